"""Compiled loops of rank-one learners, pairs and forests; imported where needed, with Numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from vicinal._typing import FloatArray, IndexArray
from vicinal.kernels.cpu.jit import compiled as _compiled
from vicinal.kernels.cpu.jit import compiled_sum as _compiled_sum

Function = TypeVar("Function", bound=Callable[..., Any])
compiled: Callable[[Function], Function] = _compiled
compiled_sum: Callable[[Function], Function] = _compiled_sum


@compiled_sum
def pair_distances(Z: FloatArray, a: IndexArray, b: IndexArray, out: FloatArray) -> None:
    """out_p ← ‖z_a − z_b‖² of every pair p = (a, b), by direct differences."""
    for p in range(a.shape[0]):
        x, y = Z[a[p]], Z[b[p]]
        total = 0.0
        for k in range(Z.shape[1]):
            step = x[k] - y[k]
            total += step * step
        out[p] = total


@compiled
def add_laplacian(
    V: FloatArray,
    a: IndexArray,
    b: IndexArray,
    near: IndexArray,
    far: IndexArray,
    u: FloatArray,
    out: FloatArray,
) -> None:
    """out += Lap·V, with Vᵀ·Lap·V = Σ_r u_r (v_il v_ilᵀ − v_ij v_ijᵀ).

    The pair (i, j) of triplet r is near_r, the pair (i, l) far_r; pair p is (a_p, b_p). Pairs that
    weigh nothing are free.
    """
    pull, push = np.zeros(a.shape[0]), np.zeros(a.shape[0])
    for r in range(u.shape[0]):
        push[far[r]] += u[r]
        pull[near[r]] += u[r]
    for p in range(a.shape[0]):
        weight = push[p] - pull[p]
        if weight == 0.0:
            continue
        x, y = V[a[p]], V[b[p]]
        to_x, to_y = out[a[p]], out[b[p]]
        for k in range(V.shape[1]):
            flow = weight * (x[k] - y[k])
            to_x[k] += flow
            to_y[k] -= flow


@compiled_sum
def take_steps(
    P: FloatArray,
    rows: IndexArray,
    state: FloatArray,
    t: int,
    gamma: float,
    beta: float,
    adaptive: bool,
) -> None:
    """One step for each of the drawn batches (3, steps, batch) of rows of P (n, k).

    ``state`` (3, k), updated in place, holds w, Σ g and Σ g².
    """
    k = P.shape[1]
    h, g = np.empty(k), np.empty(k)
    w, g_sum, squares = state[0], state[1], state[2]
    batch = rows.shape[2]
    for step in range(rows.shape[1]):
        g[:] = 0.0
        for b in range(batch):
            x, y, z = P[rows[0, step, b]], P[rows[1, step, b]], P[rows[2, step, b]]
            slack = 1.0
            for q in range(k):
                near, far = x[q] - y[q], x[q] - z[q]
                h[q] = near * near - far * far
                slack += h[q] * w[q]
            if slack > 0.0:
                for q in range(k):
                    g[q] += h[q]
        t += 1
        for q in range(k):
            mean = g[q] / batch
            g_sum[q] += mean
            squares[q] += mean * mean
            rate = t / (0.001 + np.sqrt(squares[q])) if adaptive else np.sqrt(t)
            w[q] = rate / gamma * max(0.0, -g_sum[q] / t - beta)


@compiled_sum
def _update_and_multiply(
    A: FloatArray, beta: float, w: FloatArray, v: FloatArray, Av: FloatArray
) -> float:
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


@compiled_sum
def _squared_length(A: FloatArray, beta: float, w: FloatArray, v: FloatArray) -> float:
    """vᵀ (A + β w wᵀ) v from the lower triangle of A, which stays as it is."""
    p, along = 0.0, 0.0
    for i in range(A.shape[0]):
        total = 0.0
        for j in range(i):
            total += A[i, j] * v[j]
        p += v[i] * (2.0 * total + A[i, i] * v[i])
        along += w[i] * v[i]
    return p + beta * along * along


@compiled_sum
def _step(p: float, sign: float, bound: float, multiplier: float, gamma: float) -> float:
    """The largest α ≤ λ towards p = ξ, where 1/ξ = 1/ξ⁰ − δλ/γ; 0 where nothing is to be done."""
    if not p > 0:  # A is positive definite but for rounding
        return 0.0
    inverse_xi = 1.0 / bound - sign * multiplier / gamma
    return min(multiplier, sign * (1.0 / p - inverse_xi) / (1.0 + 1.0 / gamma))


@compiled_sum
def project_in_turn(
    A: FloatArray,
    V: FloatArray,
    sign: FloatArray,
    bound: FloatArray,
    multiplier: FloatArray,
    gamma: float,
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


@compiled
def descend_trees(
    X: FloatArray,
    roots: IndexArray,
    features: IndexArray,
    thresholds: FloatArray,
    children: IndexArray,
    out: IndexArray,
) -> None:
    """out (n, t) ← the leaf of every row of X (n, d) in every tree of a forest."""
    for t in range(roots.shape[0]):
        for i in range(X.shape[0]):
            node = roots[t]
            while features[node] >= 0:
                right = 1 if X[i, features[node]] > thresholds[node] else 0
                node = children[node, right]
            out[i, t] = node


@compiled_sum
def add_boosted_weights(
    leaves: IndexArray,
    asked: IndexArray,
    roots: IndexArray,
    steps: FloatArray,
    weights: FloatArray,
    out: FloatArray,
) -> None:
    """out (q, n) += derivatives of boosted predictions by the residuals before the first tree.

    Tree t takes A r from residuals r, where row i of A has w_j s_l for the rows j in the leaf l of
    i: so the last tree comes first, and every other one passes on (I − A)ᵀ of what it is given.
    ``leaves`` (t, n) and ``asked`` (q, t) count from the root of the tree, ``steps`` (v,) are s.
    """
    most = 0
    for t in range(roots.shape[0]):
        for i in range(leaves.shape[1]):
            most = max(most, leaves[t, i])
        for q in range(asked.shape[0]):
            most = max(most, asked[q, t])
    sums = np.empty(most + 1)
    for q in range(asked.shape[0]):
        g = out[q]
        for t in range(roots.shape[0] - 1, -1, -1):
            own = leaves[t]
            sums[:] = 0.0
            for i in range(own.shape[0]):
                sums[own[i]] -= g[i]
            sums[asked[q, t]] += 1.0
            for v in range(sums.shape[0]):
                if sums[v] != 0.0:
                    sums[v] *= steps[roots[t] + v]
            for i in range(own.shape[0]):
                g[i] += weights[i] * sums[own[i]]
