"""The compiled half of :mod:`vicinal.learners.itml`; imported at fit time only."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from vicinal.kernels.cpu.jit import compiled_sum

Array: TypeAlias = NDArray[np.float64]


@compiled_sum  # type: ignore[untyped-decorator]
def _update_and_multiply(A: Array, beta: float, w: Array, v: Array, Av: Array) -> float:
    """A ← A + β w wᵀ in the lower triangle, then Av ← A v; returns vᵀ A v.

    In one sweep over A, because large A are limited by how fast memory is.
    """
    for i in range(A.shape[0]):
        total = 0.0
        scaled = beta * w[i]
        for j in range(i):
            a = A[i, j] + scaled * w[j]
            A[i, j] = a
            total += a * v[j]
            Av[j] += a * v[i]
        A[i, i] += scaled * w[i]
        Av[i] = total + A[i, i] * v[i]
    p = 0.0
    for i in range(A.shape[0]):
        p += Av[i] * v[i]
    return p


@compiled_sum  # type: ignore[untyped-decorator]
def _squared_length(A: Array, beta: float, w: Array, v: Array) -> float:
    """vᵀ (A + β w wᵀ) v from the lower triangle of A, which stays as it is."""
    p, along = 0.0, 0.0
    for i in range(A.shape[0]):
        total = 0.0
        for j in range(i):
            total += A[i, j] * v[j]
        p += v[i] * (2.0 * total + A[i, i] * v[i])
        along += w[i] * v[i]
    return p + beta * along * along


@compiled_sum  # type: ignore[untyped-decorator]
def _step(p: float, sign: float, bound: float, multiplier: float, gamma: float) -> float:
    """The largest α ≤ λ towards p = ξ, where 1/ξ = 1/ξ⁰ − δλ/γ; 0 where nothing is to be done."""
    if not p > 0:  # A is positive definite but for rounding
        return 0.0
    inverse_xi = 1.0 / bound - sign * multiplier / gamma
    return min(multiplier, sign * (1.0 / p - inverse_xi) / (1.0 + 1.0 / gamma))


@compiled_sum  # type: ignore[untyped-decorator]
def project_in_turn(
    A: Array, V: Array, sign: Array, bound: Array, multiplier: Array, gamma: float
) -> float:
    """One pass of Bregman projections, in place on A (d, d) and multiplier (p,).

    For every pair c with difference v = V[c] and p = vᵀ A v: the largest step α ≤ λ_c towards
    p = ξ_c, then λ_c ← λ_c − α and A⁻¹ ← A⁻¹ − δ_c α v vᵀ, that is A ← A + β (A v)(A v)ᵀ. The
    slack is a function of the multiplier, 1/ξ_c = 1/ξ⁰_c − δ_c λ_c/γ, and γ may be infinite.

    Of a pair that has no multiplier and obeys its bound only p is computed, in half the time. The
    update of a pair waits for the next one that needs A v.

    Returns by how much −log det A has grown.
    """
    d = A.shape[0]
    Av, w = np.zeros(d), np.zeros(d)
    beta, growth = 0.0, 0.0
    for c in range(V.shape[0]):
        if multiplier[c] == 0:
            p = _squared_length(A, beta, w, V[c])
            if _step(p, sign[c], bound[c], 0.0, gamma) == 0:
                continue
        p = _update_and_multiply(A, beta, w, V[c], Av)
        step = _step(p, sign[c], bound[c], multiplier[c], gamma)
        multiplier[c] -= step
        shrinkage = 1.0 - sign[c] * step * p
        beta = sign[c] * step / shrinkage
        growth += np.log(shrinkage)
        Av, w = w, Av
    for i in range(d):
        for j in range(i + 1):
            A[i, j] += beta * w[i] * w[j]
            A[j, i] = A[i, j]
    return growth
