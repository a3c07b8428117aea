"""The soft average b(γ; a), its weights and limits, and γ ↔ K (paper Eq. 12, Lemmas 2 and 3).

Every function folds γ < 0 onto γ > 0 by the symmetry b(γ; a) = −b(−γ; −a), so that the minimum
is the one reference from which all distances are taken.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Float64Array: TypeAlias = NDArray[np.float64]

# Where |γ|·(max a − min a) is below this, b(γ) and the mean agree to less than rounding:
# 0 ≤ mean − b(γ) ≤ γ·(max a − min a)²/8 for γ > 0 (Hoeffding's lemma).
_LINEAR = 2.0**-55


def soft_average(
    values: ArrayLike, gamma: float, *, axis: int | None = -1, plain: bool = False
) -> Any:
    r"""The soft average of ``values``: between the minimum, the mean and the maximum.

    .. math:: b(γ; a) = -\frac{1}{γ} \ln\Bigl( \frac{1}{n} \sum_{k=1}^{n} e^{-γ a_k} \Bigr)

    with the limits b(0) = mean, b(+∞) = min, b(−∞) = max; strictly decreasing in γ unless all
    values are equal (paper Eq. 12 and 13, Lemma 2).

    Parameters
    ----------
    values : array_like of real numbers
        The numbers a; n of them along ``axis``.
    gamma : float
        Any real number, 0, or ±inf.
    axis : int or None, default=-1
        The axis to average over; None for all the values.
    plain : bool, default=False
        Leave out the factor 1/n, as NCA and PNCA need: b(γ) − ln(n)/γ.

    Returns
    -------
    b : ndarray or scalar
        The shape of ``values`` without ``axis``. float32 (float16) where the values are, else
        float64; always computed in float64.

    Raises
    ------
    ValueError
        If there is nothing along ``axis``, if ``gamma`` is NaN, or for ``plain`` with γ = 0, where
        −ln(n)/γ diverges.

    Notes
    -----
    Accurate to a few roundings of max − min (and of b itself) for every γ, however large or small,
    and never outside [min, max] unless ``plain``.

    A NaN makes its result NaN, as in ``np.mean``. Infinite values enter by their limit: for γ > 0
    a value +inf has weight e^−∞ = 0 (it still counts in n) and a value −inf makes the result −inf;
    for γ < 0 the other way round; for γ = 0 it is the mean, NaN only where both infinities occur.

    Examples
    --------
    >>> import numpy as np
    >>> a = [1.0, 2.0, 6.0]
    >>> [round(float(soft_average(a, g)), 4) for g in (-np.inf, -1, 0, 1, np.inf)]
    [6.0, 4.9261, 3.0, 1.7804, 1.0]
    >>> soft_average([[0.0, 2.0], [1e300, -1e300]], 0.0, axis=1)
    array([1., 0.])
    >>> bool(np.isclose(soft_average(a, 1.0, plain=True), -np.log(np.sum(np.exp(-np.array(a))))))
    True
    """
    gamma = _checked_gamma(gamma)
    if plain and gamma == 0:
        raise ValueError(
            "The plain soft average −ln(Σ exp(−γ a))/γ diverges at gamma = 0; "
            "use plain=False for the mean, or a nonzero gamma."
        )
    a, dtype = _along_last_axis(values, axis)  # (..., n)
    with np.errstate(all="ignore"):  # an overflow here is the limit that is meant
        b = _soft_minimum(a, gamma, plain) if gamma >= 0 else -_soft_minimum(-a, -gamma, plain)
        return (b + 0.0).astype(dtype)[()]  # + 0.0: no negative zero


def soft_weights(values: ArrayLike, gamma: float, *, axis: int | None = -1) -> Any:
    r"""The weights of the soft average, which are also its gradient (paper Eq. 30).

    .. math:: r_k = \frac{∂b(γ; a)}{∂a_k} = \frac{e^{-γ a_k}}{\sum_j e^{-γ a_j}}

    Parameters
    ----------
    values : array_like of real numbers
        The numbers a; n of them along ``axis``.
    gamma : float
        Any real number; 0: uniform weights; +inf (−inf): uniform over all the values that are equal
        to the minimum (maximum).
    axis : int or None, default=-1
        The axis along which the weights sum to 1; None for all the values.

    Returns
    -------
    r : ndarray
        The shape of ``values``; nonnegative, of sum 1 along ``axis``. dtype as `soft_average`.

    Raises
    ------
    ValueError
        If there is nothing along ``axis``, or if ``gamma`` is NaN.

    Notes
    -----
    A NaN makes all the weights along its axis NaN. Infinite values enter by their limit: for γ > 0
    a value +inf has weight 0 and values −inf share the whole weight; for γ < 0 the other way round.

    Examples
    --------
    >>> import numpy as np
    >>> soft_weights([0.0, np.log(3.0)], 1.0)
    array([0.75, 0.25])
    >>> soft_weights([2.0, 5.0, 2.0, 9.0], np.inf)
    array([0.5, 0. , 0.5, 0. ])
    >>> soft_weights([2.0, 5.0, 2.0, 9.0], 0)
    array([0.25, 0.25, 0.25, 0.25])
    """
    gamma = _checked_gamma(gamma)
    a, dtype = _along_last_axis(values, axis)  # (..., n)
    if gamma < 0:
        a, gamma = -a, -gamma
    with np.errstate(all="ignore"):
        lowest = a.min(axis=-1, keepdims=True)  # (..., 1)
        e = np.exp(_exponents(_half_distances(a, lowest), gamma))  # (..., n), at least one is 1
        r = np.where(np.isnan(lowest), np.nan, e / e.sum(axis=-1, keepdims=True)).astype(dtype)
    return r.reshape(np.shape(values)) if axis is None else np.moveaxis(r, -1, axis)


def gamma_for_k(values: ArrayLike, k: float, *, largest: bool = False) -> float:
    r"""The γ whose soft average is the mean of the k smallest (largest) values.

    .. math:: b(γ; a) = \frac{1}{k} \sum_{j=1}^{k} a_{(j)}, \qquad a_{(1)} ≤ … ≤ a_{(n)}

    There is exactly one such γ ≥ 0 (γ ≤ 0 for the largest) unless all values are equal (paper
    Lemma 3 and Eq. 18). For k between two integers the sum is interpolated: the ⌊k⌋ smallest, plus
    the fraction times the next one, divided by k.

    Parameters
    ----------
    values : array_like of shape (n,)
        Finite real numbers, in any order.
    k : float
        How many; a real number in [1, n].
    largest : bool, default=False
        Take the k largest instead, and γ ≤ 0.

    Returns
    -------
    gamma : float
        0.0 for k = n, and also where all values are equal (every γ would do). inf (−inf for the
        largest) where the k values are all equal to the minimum (maximum), thus for k = 1.

    Raises
    ------
    ValueError
        If ``values`` is empty, not one-dimensional or not finite, or if k is outside [1, n].

    Notes
    -----
    Solved on the values mapped to [0, 1], so that no scale is too small or too large, by Newton's
    method in ln γ inside a bracket that holds for all values. It stops once
    \|b(γ) − target\| ≤ 1e-12·(max − min) (in fact a few roundings) or γ is settled to 1e-12
    relative. Where k is close to n, γ itself is ill-determined, b(γ) is not. Differences below
    1e-300·(max − min) are not resolved.

    Examples
    --------
    >>> import numpy as np
    >>> a = [4.0, 1.0, 2.0, 9.0]
    >>> gamma = gamma_for_k(a, 2)
    >>> round(gamma, 6), round(float(soft_average(a, gamma)), 6)
    (2.633117, 1.5)
    >>> gamma_for_k(a, 4), gamma_for_k(a, 1), gamma_for_k(a, 1, largest=True)
    (0.0, inf, -inf)
    """
    a = _sorted_finite(values)  # (n,)
    k = float(k)
    if not 1 <= k <= a.size:
        raise ValueError(f"k must lie between 1 and the number of values, {a.size}; got {k}.")
    return 0.0 - _gamma_for_k_smallest(-a[::-1], k) if largest else _gamma_for_k_smallest(a, k)


def k_for_gamma(values: ArrayLike, gamma: float) -> float:
    r"""The number of neighbors that γ amounts to: the inverse of `gamma_for_k`.

    The real number k in [1, n] for which the mean of the k smallest values (γ > 0) or of the k
    largest (γ < 0), interpolated as in `gamma_for_k`, is b(γ) (paper Lemma 3). With
    :math:`m_j` the mean of the j smallest and :math:`m_j ≤ b < m_{j+1}` it is

    .. math:: k = j + j \, (b - m_j) / (a_{(j+1)} - b)

    Parameters
    ----------
    values : array_like of shape (n,)
        Finite real numbers, in any order.
    gamma : float
        Any real number, 0, or ±inf.

    Returns
    -------
    k : float
        n for γ = 0, and where all values are equal. At γ = +inf (−inf) the number of values that
        are equal to the minimum (maximum), the limit of k there; 1 if it is unique.

    Raises
    ------
    ValueError
        If ``values`` is empty, not one-dimensional or not finite, or if ``gamma`` is NaN.

    Notes
    -----
    ``k_for_gamma(a, gamma_for_k(a, k))`` is k to 1e-9·n where the extreme value is unique (with m
    values tied at the extreme, every k ≤ m has γ = ±inf, and m comes back). Differences below
    1e-300·(max − min) are not resolved.

    Examples
    --------
    >>> import numpy as np
    >>> a = [4.0, 1.0, 2.0, 9.0]
    >>> round(k_for_gamma(a, gamma_for_k(a, 2.5)), 9)
    2.5
    >>> k_for_gamma(a, 0), k_for_gamma(a, np.inf), k_for_gamma([1, 1, 5], np.inf)
    (4.0, 1.0, 2.0)
    """
    gamma = _checked_gamma(gamma)
    a = _sorted_finite(values)  # (n,)
    if gamma < 0:
        a, gamma = -a[::-1], -gamma
    delta, span, exponent = _unit_interval(a)
    with np.errstate(all="ignore"):
        mantissa, power = np.frexp(gamma)
        gamma = float(np.ldexp(mantissa * span, power + exponent))  # γ in units of 1/(max − min)
    if gamma == 0 or span == 0:
        return float(a.size)
    b = float(soft_average(delta, gamma))
    means = np.cumsum(delta) / np.arange(1, a.size + 1)  # (n,) m_j, ascending
    j = int(np.searchsorted(means, b, side="right"))
    if j == a.size:
        return float(j)
    return min(j + j * (b - float(means[j - 1])) / (float(delta[j]) - b), j + 1.0)


def _soft_minimum(a: Float64Array, gamma: float, plain: bool) -> Float64Array:
    """b(γ; a) over the last axis, for γ in [0, inf]."""
    lowest: Float64Array = a.min(axis=-1, keepdims=True)  # (..., 1)
    highest: Float64Array = a.max(axis=-1, keepdims=True)  # (..., 1)
    if np.isinf(gamma):
        return np.squeeze(lowest, axis=-1)
    h = _half_distances(a, lowest)  # (..., n)
    u = _exponents(h, gamma)  # (..., n), ≤ 0
    b: Float64Array  # (..., 1)
    if plain:
        step = -0.5 * np.log(np.exp(u).sum(axis=-1, keepdims=True)) / gamma
        b = (lowest + step) + step
    else:
        linear = (gamma * h.max(axis=-1, keepdims=True) * 2 < _LINEAR) | (gamma == 0)
        step = np.where(linear, _mean(h), -0.5 * _log_mean_exp(u) / gamma)
        b = np.clip((lowest + step) + step, lowest, highest)
    limit = lowest + highest if gamma == 0 else lowest
    return np.squeeze(np.where(np.isinf(lowest), limit, b), axis=-1)


def _half_distances(a: Float64Array, lowest: Float64Array) -> Float64Array:
    """(a − min a)/2, which never overflows; 0 exactly where a is the minimum."""
    smallest = np.finfo(np.float64).smallest_subnormal
    h: Float64Array = np.maximum(a / 2 - lowest / 2, smallest)
    return np.where(a == lowest, 0.0, h)


def _exponents(h: Float64Array, gamma: float) -> Float64Array:
    """−γ·(a − min a) from the half distances, for γ in [0, inf]; its limits at 0·inf are 0."""
    u: Float64Array = -gamma * h * 2
    return np.where((h == 0) | (gamma == 0), 0.0, u)


def _log_mean_exp(u: Float64Array) -> Float64Array:
    """ln((1/n) Σ exp(u)) for u ≤ 0 with max 0, to full *relative* accuracy: also where u → 0."""
    mean: Float64Array = np.expm1(u).mean(axis=-1, keepdims=True)  # one sign: nothing cancels
    coarse: Float64Array = np.log(np.exp(u).mean(axis=-1, keepdims=True))
    return np.where(mean > -0.5, np.log1p(mean), coarse)


def _mean(h: Float64Array) -> Float64Array:
    """The mean of h ≥ 0 without overflow of the sum."""
    top = h.max(axis=-1, keepdims=True)
    top = np.where((top > 0) & np.isfinite(top), top, 1.0)
    mean: Float64Array = top * (h / top).mean(axis=-1, keepdims=True)
    return mean


def _gamma_for_k_smallest(a: Float64Array, k: float) -> float:
    """γ in [0, inf] for the ascending values a."""
    delta, span, exponent = _unit_interval(a)
    if k == a.size or span == 0:
        return 0.0
    j = int(k)
    target = float(delta[:j].sum() + (k - j) * delta[j]) / k
    if target == 0:
        return np.inf
    with np.errstate(all="ignore"):
        return float(np.ldexp(_solve(delta, target) / span, -exponent))


def _solve(delta: Float64Array, target: float) -> float:
    """The root γ of b(γ; δ) = target, for δ in [0, 1] with min 0 and max 1, 0 < target < mean."""
    # mean − γ/8 ≤ b(γ) ≤ ln(n)/γ brackets the root; a factor of 2 on either side is for rounding.
    low = 4 * (float(delta.mean()) - target)
    if low <= 0:
        return 0.0
    x_low = np.log(low)
    x_high = x = min(np.log(2 * np.log(delta.size)) - np.log(target), 709.0)  # x = ln γ
    last = x_high - x_low
    for _ in range(200):
        gamma = float(np.exp(x))
        b = soft_average(delta, gamma)
        x_low, x_high = (x, x_high) if b > target else (x_low, x)
        slope = (soft_weights(delta, gamma) @ delta - b) / b  # d ln b / d ln γ
        x_next = x - np.log(b / target) / slope if slope < 0 else np.nan
        width = 2.0**-50 * max(1.0, abs(x))
        settled = abs(x_next - x) <= width or x_high - x_low <= width
        if settled or abs(b - target) <= 2.0**-50 * target:
            break
        if not (x_low < x_next < x_high and abs(x_next - x) <= last / 2):
            x_next = (x_low + x_high) / 2  # halve where Newton leaves the bracket, or is slow
        x, last = x_next, abs(x_next - x)
    return float(np.exp(x))


def _unit_interval(a: Float64Array) -> tuple[Float64Array, float, int]:
    """δ, span and e with a = 2^e·(a_min + span·δ), 0 ≤ δ ≤ 1, for ascending finite a."""
    exponent = int(np.frexp(np.abs(a).max())[1])  # |a|·2^−e < 1: no difference overflows
    with np.errstate(under="ignore"):
        a = np.ldexp(a, -exponent)
        span = float(a[-1] - a[0])
        return (a - a[0]) / (span or 1.0), span, exponent


def _along_last_axis(values: ArrayLike, axis: int | None) -> tuple[Float64Array, np.dtype[Any]]:
    """The values as float64 with ``axis`` moved to the end, and the dtype of the result."""
    a = np.asarray(values)
    if a.dtype.kind not in "biufO":
        raise TypeError(f"values must be real numbers, got dtype {a.dtype}.")
    dtype = a.dtype if a.dtype in (np.float16, np.float32) else np.dtype(np.float64)
    a = a.reshape(-1) if axis is None else np.moveaxis(a, axis, -1)
    if a.shape[-1] == 0:
        raise ValueError(f"No values to average along axis {axis} of shape {np.shape(values)}.")
    return a.astype(np.float64), dtype


def _checked_gamma(gamma: float) -> float:
    gamma = float(gamma)
    if np.isnan(gamma):
        raise ValueError("gamma must be a real number, 0 or ±inf; got NaN.")
    return gamma


def _sorted_finite(values: ArrayLike) -> Float64Array:
    a = np.asarray(values)
    if a.ndim != 1:
        raise ValueError(f"values must be one-dimensional, got shape {a.shape}.")
    a, _ = _along_last_axis(a, -1)
    if not np.isfinite(a).all():
        raise ValueError("values must be finite.")
    return np.sort(a)
