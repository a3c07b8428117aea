"""Losses against the table of the paper's framework, finite differences and their own shape."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from vicinal.objective.losses import LOSSES, Loss, get_loss

INF = math.inf

# The table of section 2 of the framework, one number at a time.
TABLE = {
    "hinge": (lambda z: max(0.0, 1.0 + z), lambda z: float(z > -1.0)),
    "squared_hinge": (lambda z: max(0.0, 1.0 + z) ** 2, lambda z: 2.0 * max(0.0, 1.0 + z)),
    "logistic": (lambda z: math.log(1.0 + math.exp(z)), lambda z: 1.0 / (1.0 + math.exp(-z))),
    "linear": (lambda z: z, lambda z: 1.0),
    "sigmoid": (
        lambda z: 1.0 / (1.0 + math.exp(-z)),
        lambda z: math.exp(-z) / (1.0 + math.exp(-z)) ** 2,
    ),
}
CONVEX = {
    "hinge": True,
    "squared_hinge": True,
    "logistic": True,
    "linear": True,
    "sigmoid": False,
}
# (value, slope) at −∞ and at +∞.
LIMITS = {
    "hinge": ((0.0, 0.0), (INF, 1.0)),
    "squared_hinge": ((0.0, 0.0), (INF, INF)),
    "logistic": ((0.0, 0.0), (INF, 1.0)),
    "linear": ((-INF, 1.0), (INF, 1.0)),
    "sigmoid": ((0.0, 0.0), (1.0, 0.0)),
}
EVERY = pytest.mark.parametrize("name", TABLE)
GRID = np.linspace(-9.0, 9.0, 203)  # −1 is not on it

margins = st.floats(-30, 30)


def value(name, *z):
    return get_loss(name).value(np.array(z))


def slope(name, *z):
    return get_loss(name).slope(np.array(z))


def test_the_table_is_complete():
    assert list(LOSSES) == list(TABLE)
    assert all(loss.name == name for name, loss in LOSSES.items())


@EVERY
def test_values_and_slopes_of_the_table(name):
    expected_value, expected_slope = TABLE[name]
    assert_allclose(value(name, *GRID), [expected_value(z) for z in GRID], rtol=1e-13, atol=1e-15)
    assert_allclose(slope(name, *GRID), [expected_slope(z) for z in GRID], rtol=1e-13)


@EVERY
def test_slope_is_the_derivative_of_the_value(name):
    h = 1e-5
    differences = (value(name, *(GRID + h)) - value(name, *(GRID - h))) / (2 * h)
    assert_allclose(slope(name, *GRID), differences, rtol=1e-6, atol=1e-9)


@EVERY
@given(a=margins, b=margins)
def test_increasing(name, a, b):
    low, high = sorted([a, b])
    values = value(name, low, high)
    assert values[0] <= values[1]
    assert (slope(name, low, high) >= 0).all()


@EVERY
@given(a=margins, b=margins)
def test_convex_ones_lie_below_their_chords(name, a, b):
    if CONVEX[name]:
        left, middle, right = value(name, a, 0.5 * (a + b), b)
        assert middle <= 0.5 * (left + right) + 1e-12 * (1 + abs(left) + abs(right))
    assert get_loss(name).convex is CONVEX[name]


def test_sigmoid_is_not_convex():
    left, middle, right = value("sigmoid", 0.0, 2.0, 4.0)
    assert middle > 0.5 * (left + right) + 0.1


@EVERY
@pytest.mark.parametrize("z", [1e6, -1e6, INF, -INF, 1e150, -1e150])
def test_extreme_margins_are_finite_or_their_limit_and_silent(name, z):
    """No overflow on the way; a result is infinite only where the loss itself is."""
    with np.errstate(all="raise", under="ignore"):
        got = value(name, z)[0], slope(name, z)[0]
    at_infinity = LIMITS[name][int(z > 0)]
    growing = TABLE[name] if name in ("hinge", "squared_hinge", "linear") else None
    if math.isinf(z):
        assert got == at_infinity
    elif growing is not None:
        assert got == (growing[0](z), growing[1](z))
    elif name == "logistic" and z > 0:
        assert got == (z, 1.0)
    else:
        assert got == at_infinity


def test_tails_keep_their_relative_accuracy():
    """Where σ(z) ≈ e^{−|z|}, rounding of 1 − σ must not swallow it."""
    z = np.array([40.0, 100.0, 600.0])
    tail = np.exp(-z)
    assert_allclose(value("sigmoid", *-z), tail, rtol=1e-14)
    assert_allclose(value("logistic", *-z), tail, rtol=1e-14)
    assert_allclose(slope("logistic", *-z), tail, rtol=1e-14)
    assert_allclose(slope("sigmoid", *z), tail, rtol=1e-14)
    assert_array_equal(slope("sigmoid", *z), slope("sigmoid", *-z))
    assert_array_equal(value("logistic", *z), z)


@pytest.mark.parametrize("name", ["hinge", "squared_hinge"])
def test_rows_at_the_kink_and_beyond_cost_nothing(name):
    """z = −1 has loss 0 and slope 0: such a row needs no gradient work."""
    below = np.nextafter(-1.0, -2.0)
    assert_array_equal(value(name, -1.0, below, -5.0), 0.0)
    assert_array_equal(slope(name, -1.0, below, -5.0), 0.0)


@given(
    z=st.floats(-30, 30),
    width=st.floats(1e-6, 10.0),
    narrower=st.floats(0.01, 1.0),
)
def test_smoothed_hinge_is_below_the_hinge_by_half_the_width_at_most(z, width, narrower):
    z = np.array([z])
    value, slope = LOSSES["hinge"].smoothing(z, width)
    gap = LOSSES["hinge"].value(z) - value
    assert -1e-12 <= gap[0] <= width / 2 + 1e-12
    assert 0 <= slope[0] <= 1
    assert LOSSES["hinge"].smoothing(z, narrower * width)[0] >= value - 1e-12


def test_slope_of_the_smoothed_hinge_is_its_derivative():
    z, step, width = np.linspace(-2, 1, 301) + 1e-4, 1e-7, 0.3
    smoothing = LOSSES["hinge"].smoothing
    quotient = (smoothing(z + step, width)[0] - smoothing(z - step, width)[0]) / (2 * step)
    np.testing.assert_allclose(smoothing(z, width)[1], quotient, atol=1e-6)


@pytest.mark.parametrize("name", LOSSES)
def test_which_losses_have_kinks_and_which_are_never_negative(name):
    assert (LOSSES[name].smoothing is not None) == (name == "hinge")
    assert LOSSES[name].nonnegative == (LOSSES[name].value(np.array([-5.0]))[0] >= 0)


def test_hinge_slope_jumps_to_one_right_of_the_kink():
    assert slope("hinge", np.nextafter(-1.0, 0.0))[0] == 1.0


@EVERY
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(0,), (3,), (2, 3)])
def test_shape_and_dtype_are_kept_and_the_input_is_not_touched(name, dtype, shape):
    z = np.linspace(-2, 2, math.prod(shape), dtype=dtype).reshape(shape)
    before = z.copy()
    for result in (get_loss(name).value(z), get_loss(name).slope(z)):
        assert result.shape == shape
        assert result.dtype == dtype
    assert_array_equal(z, before)


@EVERY
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tensors_have_the_same_losses(name, dtype):
    torch = pytest.importorskip("torch")
    z = np.append(GRID, [-1.0, -300.0, 300.0]).astype(dtype)
    for expected, got in zip(
        get_loss(name).value_and_slope(z),
        get_loss(name).value_and_slope(torch.as_tensor(z)),
        strict=True,
    ):
        assert got.dtype == getattr(torch, dtype)
        assert_allclose(got.numpy(), expected, rtol=20 * np.finfo(dtype).eps)


def test_own_losses_of_tensors_are_computed_with_numpy():
    torch = pytest.importorskip("torch")
    seen = []

    def spy(z):
        seen.append(type(z))
        return np.sinh(z)

    value, slope = get_loss((spy, np.cosh)).value_and_slope(torch.as_tensor(GRID))
    assert seen == [np.ndarray]
    assert_allclose(value.numpy(), np.sinh(GRID))
    assert_allclose(slope.numpy(), np.cosh(GRID))


@EVERY
def test_a_name_gives_the_loss_of_that_name(name):
    assert get_loss(name) is LOSSES[name]
    assert get_loss(LOSSES[name]) is LOSSES[name]


def test_a_pair_is_a_loss():
    cubed = get_loss((lambda z: z**3, lambda z: 3 * z**2))
    assert cubed.value(np.array([2.0])) == 8.0
    assert cubed.slope(np.array([2.0])) == 12.0
    assert not cubed.convex  # nobody promised it


def test_own_loss_passes_through():
    mine = Loss("mine", np.exp, np.exp, convex=True)
    assert get_loss(mine) is mine


def test_a_loss_is_a_frozen_value():
    with pytest.raises(dataclasses.FrozenInstanceError):
        get_loss("hinge").name = "other"


def test_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"'hing' is unknown.*hinge, squared_hinge, logistic"):
        get_loss("hing")


@pytest.mark.parametrize("wrong", [None, 3, (np.exp,), (np.exp, 1.0), (np.exp, np.exp, np.exp)])
def test_what_is_no_loss_is_refused_with_the_way_out(wrong):
    with pytest.raises(ValueError, match=r"not a loss.*pair \(value, slope\)"):
        get_loss(wrong)
