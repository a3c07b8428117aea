"""Compiled ridge regressions on few rows each; imported by the first of them only."""

from __future__ import annotations

import numpy as np

from vicinal.kernels.cpu.jit import compiled_sum, inner_sum


@inner_sum
def _solve(S, right, n):
    """right (n,) ← S⁻¹ right, from the lower triangle of S, which is lost; False if singular."""
    for a in range(n):
        for b in range(a):
            total = S[a, b]
            for c in range(b):
                total -= S[a, c] * S[b, c]
            S[a, b] = total / S[b, b]
        total = S[a, a]
        for c in range(a):
            total -= S[a, c] * S[a, c]
        if not total > 0:
            return False
        S[a, a] = np.sqrt(total)
        total = right[a]
        for c in range(a):
            total -= S[a, c] * right[c]
        right[a] = total / S[a, a]
    for a in range(n - 1, -1, -1):
        right[a] /= S[a, a]
        for c in range(a):
            right[c] -= S[a, c] * right[a]
    return True


@inner_sum
def _place(X, x, row, first, factor, z):
    """z (m,) ← L (X[row] - x), of the transposed factor (p', m); without one, the difference."""
    if factor.shape[0] == 0:
        for c in range(z.shape[0]):
            z[c] = X[row, first + c] - x[first + c]
        return
    for c in range(z.shape[0]):
        z[c] = 0.0
    for f in range(factor.shape[0]):
        step = X[row, first + f] - x[first + f]
        if step != 0.0:
            for c in range(z.shape[0]):
                z[c] += step * factor[f, c]


@inner_sum
def _center(R, shares, mean):
    """R (k, m) ← √a (R - mean) with its weighted mean; returns the sum of its squares."""
    k, m = R.shape
    mean[:] = 0.0
    for j in range(k):
        for c in range(m):
            mean[c] += shares[j] * R[j, c]
    trace = 0.0
    for j in range(k):
        root = np.sqrt(shares[j])
        for c in range(m):
            R[j, c] = root * (R[j, c] - mean[c])
            trace += R[j, c] * R[j, c]
    return trace


@inner_sum
def _slope(R, mean, penalty, S, right):
    """right (m,) ← -(RᵀR + λ)⁻¹ mean; with m > k, right (k,) ← -(RRᵀ + λ)⁻¹ R mean."""
    k, m = R.shape
    n = S.shape[0]
    S[:] = 0.0
    if m <= k:
        whole = k - k % 4
        for j in range(0, whole, 4):
            r0, r1, r2, r3 = R[j], R[j + 1], R[j + 2], R[j + 3]
            for a in range(m):
                x0, x1, x2, x3 = r0[a], r1[a], r2[a], r3[a]
                for b in range(a + 1):
                    S[a, b] += x0 * r0[b] + x1 * r1[b] + x2 * r2[b] + x3 * r3[b]
        for j in range(whole, k):
            for a in range(m):
                for b in range(a + 1):
                    S[a, b] += R[j, a] * R[j, b]
        for a in range(m):
            right[a] = -mean[a]
    else:
        for a in range(k):
            total = 0.0
            for c in range(m):
                total -= R[a, c] * mean[c]
            right[a] = total
            for b in range(a + 1):
                total = 0.0
                for c in range(m):
                    total += R[a, c] * R[b, c]
                S[a, b] = total
    for a in range(n):
        S[a, a] += penalty
    return _solve(S, right, n)


@compiled_sum
def fit_lines(X, queries, metric, rows, shares, ridge, fitted):
    """fitted (q, k) ← what each of the rows (q, k) weighs in the value of the line at the query.

    ``metric`` are the first of the features that it is about, its rank m and its transposed factor
    (p', m), empty for the features themselves; ``shares`` (q, k) are those of the regressions.
    """
    first, m, factor = metric
    k = rows.shape[1]
    R, mean = np.empty((k, m)), np.empty(m)
    S, right = np.empty((min(m, k), min(m, k))), np.empty(min(m, k))
    for i in range(rows.shape[0]):
        for j in range(k):
            if shares[i, j] == 0.0:
                R[j] = 0.0
            else:
                _place(X, queries[i], rows[i, j], first, factor, R[j])
        trace = _center(R, shares[i], mean)
        squares = 0.0
        for c in range(m):
            squares += mean[c] * mean[c]
        # Rows that coincide, but for the rounding of their mean, have no slope.
        flat = trace <= 1e-24 * squares or trace == 0.0
        sloped = not flat and _slope(R, mean, ridge * trace / m, S, right)
        for j in range(k):
            slope = 0.0
            if sloped and m <= k:
                for c in range(m):
                    slope += R[j, c] * right[c]
            elif sloped:
                slope = right[j]
            fitted[i, j] = shares[i, j] + np.sqrt(shares[i, j]) * slope
