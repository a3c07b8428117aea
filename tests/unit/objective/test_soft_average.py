"""The soft average against the definition in high precision, naive loops and closed forms."""

from __future__ import annotations

import decimal
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import brentq

from vicinal.objective.soft_average import gamma_for_k, k_for_gamma, soft_average, soft_weights

INF, NAN = math.inf, math.nan
HUGE = float(np.finfo(np.float64).max)

numbers = st.floats(-100, 100, allow_subnormal=False).map(lambda x: round(x, 6))
lists = st.lists(numbers, min_size=1, max_size=12)
gammas = st.floats(-20, 20)
signs = st.sampled_from([-1.0, 1.0])
powers_of_two = st.builds(lambda s, e, m: s * math.ldexp(m, e), signs, st.integers(-1070, 40),
                          st.floats(1, 2))  # fmt: skip


# ------------------------------------------------------------------------------------- oracles


def exact(values, gamma, *, plain=False):
    """The definition, −ln(Σ exp(−γ a)/n)/γ, in decimals: as many as the logarithm loses, and 60."""
    a, g = [decimal.Decimal(x) for x in values], decimal.Decimal(gamma)
    size = abs(g) * (max(map(abs, a)) + 1)
    with decimal.localcontext() as context:
        context.prec = 60 + 2 * abs(size.adjusted())
        context.Emin, context.Emax = decimal.MIN_EMIN, decimal.MAX_EMAX
        mean = sum((-g * x).exp() for x in a) / (1 if plain else len(a))
        return float(-mean.ln() / g)


def naive(values, gamma):
    if gamma == 0:
        return math.fsum(values) / len(values)
    return -math.log(math.fsum(math.exp(-gamma * x) for x in values) / len(values)) / gamma


def mean_of_smallest(values, k):
    """By its words: the ⌊k⌋ smallest plus the fraction times the next, over k; in fractions."""
    a, k = sorted(map(Fraction, values)), Fraction(k)
    whole = math.floor(k)
    rest = (k - whole) * a[whole] if k > whole else 0
    return (sum(a[:whole]) + rest) / k


def rounding(values):
    """The accuracy promised: relative to the range, but no better than the values themselves."""
    return 1e-12 * float(np.ptp(values)) + 4 * float(np.spacing(np.max(np.abs(values))))


# ---------------------------------------------------------------------------- the soft average


@given(lists, powers_of_two)
@settings(max_examples=150)
@example([0.0, 1.0], 5e-324)
@example([0.0, 0.3, 1.0], 2.0**-1070)
@example([0.0, 1.0], 2.0**-55)
@example([1e6, 1e6 + 1e-3, 1e6 + 2e-3], 2.0**-30)
@example([0.0] + [36.0] * 50, 1.0)
def test_is_the_definition_in_high_precision(values, gamma):
    assert abs(soft_average(values, gamma) - exact(values, gamma)) <= rounding(values)


@given(lists, powers_of_two)
@settings(max_examples=60)
def test_plain_is_the_definition_without_1_over_n(values, gamma):
    expected = exact(values, gamma, plain=True)
    tolerance = rounding(values) + 1e-14 * abs(expected)
    result = soft_average(values, gamma, plain=True)
    assert result == expected or abs(result - expected) <= tolerance


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1.0, 1e150, 1e300])
@pytest.mark.parametrize("sign", [-1, 1])
def test_tends_to_the_mean_without_a_jump(scale, sign):
    values = [0.3 * scale, -0.7 * scale, 0.9 * scale, 0.1 * scale]
    mean = float(sum(map(Fraction, values)) / 4)
    previous = soft_average(values, sign * 2.0**-10 / scale)
    for exponent in range(-11, -80, -1):
        gamma = sign * math.ldexp(1 / scale, exponent)
        b = soft_average(values, gamma)
        bound = math.ldexp(1.6**2 / 8, exponent) + 1e-15  # 0 ≤ ±(mean − b) ≤ |γ| (max − min)²/8
        assert -1e-15 <= sign * (mean - b) / scale <= bound
        assert sign * (b - previous) / scale >= -1e-15
        previous = b
    assert abs(soft_average(values, 0.0) - mean) <= 1e-15 * scale


@given(lists)
def test_limits(values):
    assert soft_average(values, INF) == min(values)
    assert soft_average(values, -INF) == max(values)
    mean = float(sum(map(Fraction, values)) / len(values))
    assert abs(soft_average(values, 0) - mean) <= rounding(values)
    assert soft_average(values, -0.0) == soft_average(values, 0.0)


@given(lists, gammas, gammas)
def test_never_increases_with_gamma_and_stays_in_range(values, gamma1, gamma2):
    low, high = sorted([gamma1, gamma2])
    b_low, b_high = soft_average(values, low), soft_average(values, high)
    assert b_low >= b_high - rounding(values)
    assert min(values) <= b_high <= max(values)
    assert min(values) <= b_low <= max(values)


@given(lists, gammas, st.integers(-300, 300), numbers)
def test_follows_shift_and_scale(values, gamma, exponent, shift):
    b = soft_average(values, gamma)
    scaled = soft_average(np.ldexp(values, exponent), math.ldexp(gamma, -exponent))
    assert abs(math.ldexp(scaled, -exponent) - b) <= rounding(values)
    shifted = soft_average(np.add(values, shift), gamma)
    assert abs(shifted - shift - b) <= 4 * rounding([*values, 200.0, -200.0])


@given(lists, gammas)
def test_is_odd_under_reflection(values, gamma):
    reflected = soft_average(np.negative(values), -gamma)
    assert abs(reflected + soft_average(values, gamma)) <= rounding(values)


@pytest.mark.parametrize("gamma", [-INF, -3.0, 0.0, 0.5, INF])
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_axis_against_loops(gamma, axis):
    a = np.random.default_rng(0).normal(size=(3, 4, 5))
    b, r = soft_average(a, gamma, axis=axis), soft_weights(a, gamma, axis=axis)
    rows = {0: "jk", 1: "ik", 2: "ij"}[axis % 3]
    assert b.shape == tuple(a.shape["ijk".index(c)] for c in rows)
    assert r.shape == a.shape
    for at in np.ndindex(b.shape):
        index = list(at)
        index.insert(axis % 3, slice(None))
        row = a[tuple(index)].tolist()
        expected = {-INF: max(row), INF: min(row)}.get(gamma)
        expected = naive(row, gamma) if expected is None else expected
        assert b[at] == pytest.approx(expected, rel=1e-13, abs=1e-13)
        assert_array_equal(r[tuple(index)], soft_weights(row, gamma))


@pytest.mark.parametrize("gamma", [-INF, -3.0, 0.0, 0.5, INF])
def test_axis_none_takes_all(gamma):
    a = np.random.default_rng(1).normal(size=(3, 4))
    assert soft_average(a, gamma, axis=None) == soft_average(a.ravel(), gamma)
    assert soft_average(7.0, gamma, axis=None) == 7.0
    assert_array_equal(soft_weights(a, gamma, axis=None).ravel(), soft_weights(a.ravel(), gamma))


def test_rows_do_not_disturb_each_other():
    rows = np.array([[1e300, -1e300, 0], [1e-9, 2e-9, 4e-9], [1, 1, 1], [INF, 0, 1], [NAN, 0, 1]])
    for gamma in (-2.0, 0.0, 1e-25, 2.0**20):
        together = soft_average(rows, gamma)
        assert_array_equal(together, [soft_average(row, gamma) for row in rows])


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("value", [-3.7, 0.0, 1e300])
@pytest.mark.parametrize("gamma", [-INF, -HUGE, -1.0, -5e-324, 0.0, 5e-324, 1.0, HUGE, INF])
def test_of_equal_values_is_that_value(n, value, gamma):
    assert soft_average([value] * n, gamma) == value


# ------------------------------------------------------------------------------------- extremes


@pytest.mark.parametrize("exponent", range(-20, 21, 5))
@pytest.mark.parametrize("sign", [-1, 1])
def test_neither_overflow_nor_nan_at_1e300(exponent, sign):
    gamma = sign * 2.0**exponent
    near, far = (-1e300, 1e300) if sign > 0 else (1e300, -1e300)
    assert soft_average([1e300, -1e300, 0.0], gamma) == near
    assert_array_equal(soft_weights([near, far, 0.0], gamma), [1, 0, 0])
    # near the reference, what is far away still counts, but only by its share of n
    b = soft_average([0.0, sign * 1e300], gamma)
    assert b == pytest.approx(math.log(2) / gamma, rel=1e-14)
    small = [0.0, sign * 2.0**-20, sign * 1e300]
    assert soft_average(small, gamma) == pytest.approx(
        -math.log((1 + math.exp(-abs(gamma) * 2.0**-20)) / 3) / gamma, rel=1e-13
    )


@pytest.mark.parametrize("gamma", [-INF, -HUGE, -1.0, -5e-324, 0.0, 5e-324, 1.0, HUGE, INF])
def test_the_largest_floats_do_not_overflow(gamma):
    b = soft_average([HUGE, -HUGE], gamma)
    expected = -math.copysign(HUGE, gamma) if abs(gamma) >= 1 else 0.0
    assert abs(b / HUGE - expected / HUGE) <= 1e-15
    assert soft_average([HUGE] * 5, gamma) == HUGE
    assert soft_weights([HUGE, -HUGE], gamma).sum() == 1
    assert soft_average([HUGE / 2, HUGE], 0.0) == pytest.approx(HUGE * 0.75, rel=1e-15)
    # max − min overflows, and so would the sum of the differences
    for sign in (-1, 1):
        b = soft_average([-sign * HUGE, sign * HUGE, sign * HUGE], 0.0)
        assert b == pytest.approx(sign * (HUGE / 3), rel=1e-14)


def test_gamma_and_values_that_only_together_are_moderate():
    for scale in (1e-300, 1e-150, 1e150, 1e300):
        for gamma in (-3.0, -1e-3, 0.2, 5.0):
            b = soft_average(np.array([0.0, 1.0, 3.0]) * scale, gamma / scale)
            assert b / scale == pytest.approx(naive([0, 1, 3], gamma), rel=1e-13)


def test_subnormal_values():
    tiny = 5e-324
    assert soft_average([0.0, tiny], INF) == 0
    assert soft_average([0.0, tiny], -INF) == tiny
    assert_array_equal(soft_weights([0.0, tiny], INF), [1, 0])
    assert soft_average([tiny, tiny], 1.0) == tiny
    for n in range(1, 9):
        for gamma in (-1.0, -1e-9, 0.0, 1e-9, 1.0):
            assert 0 <= soft_average([0.0] + [tiny] * n, gamma) <= tiny
            assert 0 <= soft_average([0.0] * n + [tiny], gamma) <= tiny


@pytest.mark.parametrize("gamma", [-30.0, -1e-30, 0.0, 1e-30, 30.0])
def test_zero_is_not_negative(gamma):
    assert math.copysign(1, soft_average([0.0, 0.0], gamma)) == 1
    if abs(gamma) < 1:
        assert math.copysign(1, soft_average([-1.0, 1.0], gamma)) == 1


@pytest.mark.parametrize("far", [1.0, 10.0, 25.0, 30.0, 36.0, 700.0])
def test_many_far_values_are_neither_lost_nor_blurred(far):
    n = 10**6
    a = np.full(n + 1, far)
    a[n // 2] = 0.0
    expected = -(math.log1p(n * math.exp(-far)) - math.log(n + 1))
    for sign in (-1, 1):
        assert abs(sign * soft_average(sign * a, sign) - expected) <= 1e-14 * far


# fmt: off
INFINITIES = [  # values, γ, average, weights
    ([1.0, INF], 1.0, 1 + math.log(2), [1, 0]),
    ([1.0, INF], -1.0, INF, [0, 1]),
    ([1.0, INF], 0.0, INF, [0.5, 0.5]),
    ([1.0, INF], INF, 1.0, [1, 0]),
    ([1.0, INF], -INF, INF, [0, 1]),
    ([1.0, -INF], 1.0, -INF, [0, 1]),
    ([1.0, -INF], -1.0, 1 - math.log(2), [1, 0]),
    ([1.0, -INF], 0.0, -INF, [0.5, 0.5]),
    ([1.0, -INF], -INF, 1.0, [1, 0]),
    ([INF, INF], 1.0, INF, [0.5, 0.5]),
    ([INF, INF], 0.0, INF, [0.5, 0.5]),
    ([-INF, -INF], 2.0, -INF, [0.5, 0.5]),
    ([INF, -INF], 1.0, -INF, [0, 1]),
    ([INF, -INF], -1.0, INF, [1, 0]),
    ([INF, -INF], 0.0, NAN, [0.5, 0.5]),
    ([-INF, -INF, 0.0], INF, -INF, [0.5, 0.5, 0]),
    ([2.0, 2.0, INF, INF], 1e-9, 2 + math.log(2) / 1e-9, [0.5, 0.5, 0, 0]),
    ([INF, 3.0], 5e-324, INF, [0, 1]),
]
# fmt: on


@pytest.mark.parametrize(("values", "gamma", "average", "weights"), INFINITIES)
def test_infinite_values_enter_by_their_limit(values, gamma, average, weights):
    assert_allclose(soft_average(values, gamma), average, rtol=1e-14)
    assert_array_equal(soft_weights(values, gamma), weights)


@pytest.mark.parametrize("values", [[1.0, 0.0, 4.0], [1.0, 0.0, 1.0]])
@pytest.mark.parametrize("gamma", [0.5, 3.0, INF])
def test_an_infinite_value_is_the_limit_of_a_large_one(values, gamma):
    for sign in (1, -1):
        a = np.multiply(values, sign)
        large, infinite = [*a, sign * 1e30], [*a, sign * INF]
        assert soft_average(infinite, sign * gamma) == soft_average(large, sign * gamma)
        assert_array_equal(soft_weights(infinite, sign * gamma), soft_weights(large, sign * gamma))


@pytest.mark.parametrize("gamma", [-INF, -1.0, 0.0, 1e-320, 1.0, INF])
@pytest.mark.parametrize("values", [[1.0, NAN], [NAN], [INF, NAN, -INF]])
def test_nan_propagates(values, gamma):
    assert math.isnan(soft_average(values, gamma))
    assert np.isnan(soft_weights(values, gamma)).all()


# --------------------------------------------------------------------------------------- plain


@given(lists, gammas.filter(lambda g: abs(g) > 1e-3))
def test_plain_is_lower_by_log_n_over_gamma(values, gamma):
    difference = soft_average(values, gamma) - soft_average(values, gamma, plain=True)
    assert difference == pytest.approx(math.log(len(values)) / gamma, rel=1e-12, abs=1e-12)


@given(lists)
def test_plain_limits(values):
    assert soft_average(values, INF, plain=True) == min(values)
    assert soft_average(values, -INF, plain=True) == max(values)
    assert soft_average(values[:1], 0.37, plain=True) == values[0]
    for zero in (0, 0.0, -0.0):
        with pytest.raises(ValueError, match="diverges at gamma = 0"):
            soft_average(values, zero, plain=True)


def test_plain_beyond_the_floats_is_infinite():
    assert soft_average([1.0, 2.0], 5e-324, plain=True) == -INF
    assert soft_average([1.0, 2.0], -5e-324, plain=True) == INF
    # ln(2)/γ overflows on its own here, the result does not
    b = soft_average([HUGE, HUGE], 3.5e-309, plain=True)
    exact_b = float(Fraction(HUGE) - Fraction(math.log(2)) / Fraction(3.5e-309))
    assert b == pytest.approx(exact_b, rel=1e-13)


# ------------------------------------------------------------------------------------- weights


@given(lists, st.floats(-2, 2))
def test_weights_are_the_gradient(values, gamma):
    r = soft_weights(values, gamma)
    assert r.sum() == pytest.approx(1, abs=1e-14)
    assert (r >= 0).all()
    h = 1e-4
    for k in range(len(values)):
        step = np.zeros(len(values))
        step[k] = h
        slope = (soft_average(values + step, gamma) - soft_average(values - step, gamma)) / (2 * h)
        assert slope == pytest.approx(r[k], abs=1e-6)


@given(lists, st.floats(-3, 3))
def test_weights_are_the_softmax(values, gamma):
    e = [math.exp(-gamma * x) for x in values]
    assert_allclose(soft_weights(values, gamma), np.divide(e, math.fsum(e)), rtol=1e-12)


@given(lists)
def test_weights_at_the_limits(values):
    for gamma, extreme in ((INF, min(values)), (-INF, max(values))):
        ties = values.count(extreme)
        expected = [1 / ties if x == extreme else 0.0 for x in values]
        assert_array_equal(soft_weights(values, gamma), expected)
    assert_array_equal(soft_weights(values, 0), [1 / len(values)] * len(values))


# --------------------------------------------------------------------------------------- dtypes


@pytest.mark.parametrize("gamma", [-INF, -3.0, 0.0, 0.5, INF])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_narrow_floats_come_back_but_are_computed_in_float64(dtype, gamma):
    a = np.random.default_rng(2).normal(size=(6, 7)).astype(dtype)
    b, r = soft_average(a, gamma), soft_weights(a, gamma)
    assert (b.dtype, r.dtype) == (dtype, dtype)
    assert_array_equal(b, soft_average(a.astype(np.float64), gamma).astype(dtype))
    assert_array_equal(r, soft_weights(a.astype(np.float64), gamma).astype(dtype))
    assert soft_average(a[0], gamma).dtype == dtype


def test_float32_extremes():
    a = np.array([3e38, -3e38, 1.0], dtype=np.float32)
    assert soft_average(a, 2.0**20) == np.float32(-3e38)
    assert soft_average(a, -(2.0**20)) == np.float32(3e38)
    assert soft_average(a, 1e-45, plain=True) == -INF


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint8, bool, np.longdouble, object])
def test_all_else_is_float64(dtype):
    a = np.array([0, 1, 1], dtype=dtype)
    for result in (soft_average(a, 1.5), soft_weights(a, 1.5)):
        assert result.dtype == np.float64
    assert soft_average(a, 1.5) == pytest.approx(naive([0, 1, 1], 1.5), rel=1e-14)
    assert soft_average(a, -1.5) == pytest.approx(naive([0, 1, 1], -1.5), rel=1e-14)


def test_the_input_is_left_alone():
    a = np.array([3.0, 1.0, 2.0])
    for f in (soft_average, soft_weights, k_for_gamma):
        f(a, -2.0)
    gamma_for_k(a, 2, largest=True)
    assert_array_equal(a, [3, 1, 2])


# --------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("f", [soft_average, soft_weights])
def test_errors(f):
    with pytest.raises(ValueError, match="gamma must be a real number"):
        f([1.0, 2.0], NAN)
    with pytest.raises(ValueError, match="No values to average along axis -1"):
        f([], 1.0)
    with pytest.raises(ValueError, match="No values to average along axis 0"):
        f(np.ones((0, 3)), 1.0, axis=0)
    with pytest.raises(ValueError, match="No values to average along axis None"):
        f(np.ones((0, 3)), 1.0, axis=None)
    with pytest.raises(ValueError, match="axis"):  # NumPy's AxisError
        f([1.0], 1.0, axis=1)
    with pytest.raises(ValueError, match="axis"):
        f(1.0, 1.0)
    with pytest.raises(TypeError, match="real numbers"):
        f([1j], 1.0)
    with pytest.raises(TypeError, match="real numbers"):
        f(["1"], 1.0)


def test_no_rows_is_no_error():
    assert soft_average(np.ones((0, 3)), 1.0, axis=1).shape == (0,)
    assert soft_weights(np.ones((0, 3)), 1.0, axis=1).shape == (0, 3)


@pytest.mark.parametrize("f", [lambda a: gamma_for_k(a, 1), lambda a: k_for_gamma(a, 1.0)])
def test_errors_of_values_for_gamma_and_k(f):
    with pytest.raises(ValueError, match="No values"):
        f([])
    with pytest.raises(ValueError, match=r"one-dimensional, got shape \(1, 2\)"):
        f([[1.0, 2.0]])
    with pytest.raises(ValueError, match="one-dimensional"):
        f(1.0)
    for bad in (NAN, INF, -INF):
        with pytest.raises(ValueError, match="finite"):
            f([1.0, bad])


@pytest.mark.parametrize("k", [0, 0.999, 3.001, 4, -1, NAN, INF])
@pytest.mark.parametrize("largest", [False, True])
def test_errors_of_k(k, largest):
    with pytest.raises(ValueError, match="between 1 and the number of values, 3"):
        gamma_for_k([1.0, 2.0, 3.0], k, largest=largest)


def test_errors_of_gamma():
    with pytest.raises(ValueError, match="gamma must be a real number"):
        k_for_gamma([1.0, 2.0], NAN)


# --------------------------------------------------------------------------------------- γ ↔ K

GOLDEN = (1 + math.sqrt(5)) / 2
TRIBONACCI = (1 + (19 - 3 * math.sqrt(33)) ** (1 / 3) + (19 + 3 * math.sqrt(33)) ** (1 / 3)) / 3


@pytest.mark.parametrize(
    ("k", "gamma"),  # q = exp(−γ/m): (1 + qᵐ)/2 = q at b = 1/m, thus at k = m/(m − 1)
    [(3 / 2, 3 * math.log(GOLDEN)), (4 / 3, 4 * math.log(TRIBONACCI))],
)
@pytest.mark.parametrize("scale", [2e-308, 1e-300, 1e-150, 1.0, 1e150, 1e300])
@pytest.mark.parametrize("shift", [0.0, -0.5, -1.0])
def test_two_values_in_closed_form(k, gamma, scale, shift):
    values = [(1 + shift) * scale, shift * scale]
    assert gamma_for_k(values, k) * scale == pytest.approx(gamma, rel=1e-12)
    assert gamma_for_k(values, k, largest=True) * scale == pytest.approx(-gamma, rel=1e-12)
    assert k_for_gamma(values, gamma / scale) == pytest.approx(k, rel=1e-12)
    assert k_for_gamma(values, -gamma / scale) == pytest.approx(k, rel=1e-12)


def test_gamma_of_values_many_decades_apart():
    # with c = 1e-100·γ the third value is out of sight: (1 + e^−c)/3 = e^{−c/2}, e^{−c/2} = φ⁻²
    for sign in (-1, 1):
        a = [0.0, sign * 1e-100, sign * 1.0]
        gamma = gamma_for_k(a, 2, largest=sign < 0)
        assert gamma * 1e-100 == pytest.approx(sign * 4 * math.log(GOLDEN), rel=1e-11)
        assert k_for_gamma(a, gamma) == pytest.approx(2, rel=1e-11)


def test_infinite_exactly_where_the_extreme_is_meant():
    a = [-0.99, 0.5, 0.99]
    assert (gamma_for_k(a, 1), gamma_for_k(a, 1, largest=True)) == (INF, -INF)
    assert gamma_for_k(a, 1 + 2.0**-52) < INF
    assert gamma_for_k([-0.99, -0.99, 0.99], 2) == INF


@pytest.mark.parametrize("n", [2, 3, 10, 112, 1000])
def test_k_just_below_n(n):
    for seed in range(30):  # at n = 112 some targets are rounded to above the mean
        a = np.random.default_rng(seed).normal(size=n)
        assert k_for_gamma(a, 0.0) == n
        assert n - 1e-9 < k_for_gamma(a, 1e-14) <= n
        for largest in (False, True):
            gamma = gamma_for_k(a, math.nextafter(n, 0), largest=largest)
            assert abs(gamma) <= 1e-10
            assert abs(soft_average(a, gamma) - math.fsum(a) / n) <= rounding(a)


def test_gamma_of_the_largest_floats():
    gamma = gamma_for_k([-HUGE, HUGE], 1.5)
    assert gamma * (HUGE / 2) == pytest.approx(3 * math.log(GOLDEN) / 4, rel=1e-12)
    assert k_for_gamma([-HUGE, HUGE], gamma) == pytest.approx(1.5, rel=1e-12)
    assert gamma_for_k([0.0, 5e-324], 1.5) == INF  # about 3e323: no float


@given(st.lists(numbers, min_size=2, max_size=12), st.floats(0, 1), st.booleans())
@example([0.0, 1e-6, 100.0], 1e-3, False)
@example([0.0] + [100.0] * 11, 0.5, True)
def test_gamma_solves_the_equation(values, position, largest):
    k = 1 + position * (len(values) - 1)
    gamma = gamma_for_k(values, k, largest=largest)
    sign = -1 if largest else 1
    target = float(sign * mean_of_smallest(np.multiply(values, sign), k))
    assert sign * gamma >= 0
    assert abs(soft_average(values, gamma) - target) <= rounding(values)
    if 1e-6 < abs(gamma) < 1e6:
        assert abs(exact(values, gamma) - target) <= rounding(values)


@given(st.lists(numbers, min_size=3, max_size=9, unique=True), st.floats(0.02, 0.98))
@settings(max_examples=50)
def test_gamma_is_that_of_another_solver(values, position):
    a = np.sort(values)
    a = (a - a[0]) / np.ptp(a)
    k = 1 + position * (a.size - 1)
    target = float(mean_of_smallest(a, k))
    assume(target > 0.01)

    def residual(gamma):
        return naive(a, gamma) - target

    expected = brentq(residual, 1e-9, 700, xtol=1e-13, rtol=1e-13)
    assert gamma_for_k(a, k) == pytest.approx(expected, rel=1e-8)
    assert gamma_for_k(-a, k, largest=True) == pytest.approx(-expected, rel=1e-8)


@given(st.lists(numbers, min_size=2, max_size=12, unique=True), st.floats(0, 1), st.booleans())
def test_k_inverts_gamma(values, position, largest):
    k = 1 + position * (len(values) - 1)
    gamma = gamma_for_k(values, k, largest=largest)
    assert k_for_gamma(values, gamma) == pytest.approx(k, abs=1e-9 * len(values))


@given(st.lists(numbers, min_size=2, max_size=12), powers_of_two)
def test_k_solves_the_equation(values, gamma):
    k = k_for_gamma(values, gamma)
    assert 1 <= k <= len(values)
    sign = -1 if gamma < 0 else 1
    mean = float(sign * mean_of_smallest(np.multiply(values, sign), k))
    assert abs(mean - soft_average(values, gamma)) <= rounding(values)


def test_gamma_inverts_k_where_k_determines_it():
    a = np.random.default_rng(3).normal(size=200)
    for gamma in (-30.0, -1.0, -0.01, 0.01, 1.0, 30.0):
        again = gamma_for_k(a, k_for_gamma(a, gamma), largest=gamma < 0)
        assert again == pytest.approx(gamma, rel=1e-9)


@pytest.mark.parametrize("n", [1, 2, 7])
@pytest.mark.parametrize("value", [-2.5, 0.0, 1e300, 5e-324])
def test_equal_values_have_gamma_0_and_k_n(n, value):
    for k in {1, n}:
        for largest in (False, True):
            gamma = gamma_for_k([value] * n, k, largest=largest)
            assert gamma == 0
            assert math.copysign(1, gamma) == 1
    for gamma in (-INF, -1.0, 0.0, 1e-9, 2.0, INF):
        assert k_for_gamma([value] * n, gamma) == n


def test_order_dtype_and_large_n_do_not_matter():
    rng = np.random.default_rng(4)
    a = rng.chisquare(5, size=20_000)
    gamma = gamma_for_k(a, 50)
    assert soft_average(a, gamma) == pytest.approx(np.sort(a)[:50].mean(), rel=1e-12)
    assert k_for_gamma(a, gamma) == pytest.approx(50, rel=1e-9)
    assert gamma_for_k(np.sort(a)[::-1], 50) == gamma
    assert gamma_for_k([3, 1, 2], 2) == gamma_for_k(np.float32([1, 2, 3]), 2.0)
