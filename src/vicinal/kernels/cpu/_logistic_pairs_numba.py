"""The compiled half of :mod:`vicinal.kernels.cpu.logistic_pairs`; imported at the first evaluation.

The forward pass leaves the rows σ(u) of a block in memory;
:func:`vicinal.kernels.cpu.row_blocks.backward` then applies them.
"""

from __future__ import annotations

import numpy as np

from vicinal.kernels.cpu.inner_loops import LANES, QUAD, quad_distances
from vicinal.kernels.cpu.jit import compiled, fast_exp, inner

FACTORS = 512 * LANES
"""Points a row is cut at: 512 factors 1 + e⁻ᵘ ≤ 2 a lane multiply without overflow."""
SMALL = 1e-6


@inner
def _softplus(d, bias, sign, lanes):
    """d ← σ(u), u = sign·(bias − d), in place; returns Σ ln(1 + eᵘ) and Σ σ(u).

    ln(1 + eᵘ) = [u]₊ + ln(1 + e) with e = e^{−|u|} ≤ 1. The factors 1 + e are multiplied and one
    logarithm is taken of the product; where 1 + e would lose digits, ln(1 + e) = e − e²/2.
    """
    n = d.shape[0]
    whole = n - n % LANES
    sums, products, weights = lanes[0], lanes[1], lanes[2]
    sums[:], products[:], weights[:] = 0.0, 1.0, 0.0
    for j in range(0, whole, LANES):
        chunk = d[j : j + LANES]
        for i in range(LANES):
            u = sign * (bias - chunk[i])
            e = fast_exp(-abs(u))
            small = e < SMALL
            sums[i] += (u if u > 0 else 0.0) + (e - 0.5 * e * e if small else 0.0)
            products[i] *= 1.0 if small else 1.0 + e
            chunk[i] = (1.0 if u > 0 else e) / (1.0 + e)
            weights[i] += chunk[i]
    value, weight = 0.0, 0.0
    for i in range(LANES):
        value += sums[i] + np.log(products[i])
        weight += weights[i]
    for j in range(whole, n):
        u = sign * (bias - d[j])
        e = np.exp(-abs(u))
        value += (u if u > 0 else 0.0) + np.log1p(e)
        d[j] = (1.0 if u > 0 else e) / (1.0 + e)
        weight += d[j]
    return value, weight


@inner
def _row(d, bias, sign, lanes):
    """The same for a row of any length."""
    value, weight = 0.0, 0.0
    for start in range(0, d.shape[0], FACTORS):
        v, w = _softplus(d[start : start + FACTORS], bias, sign, lanes)
        value += v
        weight += w
    return value, weight


@compiled
def forward(quads, labels, real, ZT, norms, offsets, bias, block):
    """Losses and weights of the anchors in ``quads`` against all points after them.

    block: (E, runs, counts, values, sums). E becomes σ(u), similar points first; values and sums
    (q, 4, 2) are Σ ln(1 + eᵘ) and Σ σ(u), by side; those of padding stay 0.
    """
    E, runs, counts, values, sums = block
    lanes = np.empty((3, LANES))
    B = np.empty((QUAD, ZT.shape[0]))
    n = norms.shape[0]
    for q in range(quads.shape[0]):
        positions = quads[q]
        start, middle = positions[0], offsets[labels[q] + 1]
        runs[q, 0, 0], runs[q, 0, 1] = start, middle
        runs[q, 1, 0], runs[q, 1, 1] = middle, n
        counts[q, 0], counts[q, 1] = 1, 2
        for r in range(QUAD):
            for k in range(ZT.shape[0]):
                B[r, k] = -2.0 * ZT[k, positions[r]]
        rows = E[QUAD * q : QUAD * (q + 1)]
        quad_distances(B, ZT, norms, start, n, rows, 0)
        for r in range(real[q]):
            p = positions[r]
            rows[r, : p + 1 - start] = -np.inf  # every pair once, no row with itself: u = −∞
            split = middle - start
            values[q, r, 0], sums[q, r, 0] = _row(rows[r, :split], bias - norms[p], -1.0, lanes)
            values[q, r, 1], sums[q, r, 1] = _row(
                rows[r, split : n - start], bias - norms[p], 1.0, lanes
            )
