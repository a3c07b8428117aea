"""LDML's loss: the logistic loss of pairs, given their distances and one bias for all.

Over all pairs i < j of points sorted by class, with d_ij = ‖z_i − z_j‖²,

    value = Σ_{i<j} ω ln(1 + e^{u_ij}),     u_ij = d_ij − b for similar pairs, b − d_ij for others,

and weights ω = ω_s or ω_d. Its gradient is that of Σ W_ij d_ij with W_ij = ± ω σ(u_ij), positive
for similar pairs, and −Σ W_ij with respect to b. Nothing n×n is ever kept: the forward pass leaves
the rows σ(u) of a block in memory, :func:`vicinal.kernels.cpu.row_blocks.backward` applies them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import expit

from vicinal._typing import FloatArray, IndexArray
from vicinal.kernels.contract import LogisticSweep
from vicinal.kernels.cpu.inner_loops import LANES, QUAD, quad_distances
from vicinal.kernels.cpu.jit import compiled, fast_exp, inner
from vicinal.kernels.cpu.layout import (
    Block,
    cut_into_blocks,
    run_in_shares,
    transpose_padded,
)
from vicinal.kernels.cpu.row_blocks import backward, backward_work
from vicinal.kernels.reference import add_laplacian

BLOCK_ELEMENTS = 2**19
SERIAL_ELEMENTS = 2**17
FACTORS = 512 * LANES
"""Points at which a row is cut: 512 factors 1 + e⁻ᵘ ≤ 2 per lane multiply without overflow."""
SMALL = 1e-6


class ReferenceLogisticPairs:
    """The readable kernel: NumPy, block by block. It is the oracle of the other."""

    def __init__(self, offsets: IndexArray, weights: tuple[float, float]) -> None:
        self._offsets = offsets
        self._weights = weights

    def sweep(self, Z: FloatArray, V: FloatArray, bias: float, *, symmetric: bool) -> LogisticSweep:
        """See :meth:`vicinal.kernels.contract.PairKernel.sweep`."""
        n = len(Z)
        classes = np.repeat(np.arange(len(self._offsets) - 1), np.diff(self._offsets))
        value, bias_slope = 0.0, 0.0
        out = np.zeros(V.shape)  # (n, c)
        block = max(1, BLOCK_ELEMENTS // n)
        for start in range(0, n, block):
            rows = np.arange(start, min(start + block, n))
            sign = np.where(classes[rows, None] == classes, -1.0, 1.0)  # (b, n)
            omega = np.where(sign < 0, *self._weights) * (rows[:, None] < np.arange(n))
            u = sign * (bias - cdist(Z[rows], Z, "sqeuclidean"))
            W = -sign * omega * expit(u)
            value += float((omega * np.logaddexp(0.0, u)).sum())
            bias_slope -= float(W.sum())
            add_laplacian(out, W, rows, V, symmetric)
        return LogisticSweep(value, out, bias_slope)


class _PairSums(NamedTuple):
    """The sums of one thread."""

    value: list[float]
    columns: FloatArray  # (n,) Wᵀ 1
    transposed: FloatArray  # (c', n) (Wᵀ V)ᵀ


class LogisticPairs:
    """The Numba kernel: fused, threaded over rows."""

    def __init__(self, offsets: IndexArray, weights: tuple[float, float]) -> None:
        self._offsets = np.ascontiguousarray(offsets, dtype=np.int64)
        self._weights = np.array(weights, dtype=np.float64)

    def sweep(self, Z: FloatArray, V: FloatArray, bias: float, *, symmetric: bool) -> LogisticSweep:
        """See :meth:`vicinal.kernels.contract.PairKernel.sweep`."""
        n = len(Z)
        Z, V = np.asarray(Z, dtype=np.float64), np.asarray(V, dtype=np.float64)
        norms = np.einsum("ij,ij->i", Z, Z)
        points = (transpose_padded(Z), norms, self._offsets, float(bias))
        VT = transpose_padded(V)
        blocks = cut_into_blocks(np.arange(n), self._offsets, BLOCK_ELEMENTS)
        product, rows = np.zeros((n, len(VT))), np.zeros(n)

        def run(share: list[Block]) -> _PairSums:
            part = _PairSums([], np.zeros(n), np.zeros((len(VT) if symmetric else QUAD, n)))
            self._run(share, points, VT, symmetric, product, rows, part)
            return part

        parts = run_in_shares(run, blocks, threaded=n * n >= SERIAL_ELEMENTS)
        return _assemble(parts, V, product, rows, symmetric)

    def _run(
        self,
        blocks: list[Block],
        points: tuple[object, ...],
        VT: FloatArray,
        symmetric: bool,
        product: FloatArray,
        row_sums: FloatArray,
        part: _PairSums,
    ) -> None:
        """One thread's share of the blocks."""
        if not blocks:
            return
        q, n = max(len(block.quads) for block in blocks), len(row_sums)
        E = np.empty((QUAD * q, n))
        runs = np.empty((q, 2, 2), dtype=np.int64)
        counts = np.empty((q, 2), dtype=np.int64)
        work = backward_work(len(VT))
        for quads, labels, real, _, _ in blocks:
            values, sums = np.zeros((2, len(quads), QUAD, 2))
            forward(quads, labels, real, *points, (E, runs, counts, values, sums))
            taken = np.arange(QUAD) < real[:, None]  # (q, 4) padding out
            coefficients = taken[:, :, None] * self._weights * np.array([1.0, -1.0])
            row_sums[quads[taken]] = (coefficients * sums)[taken].sum(axis=1)
            part.value.append(float((values * self._weights).sum()))
            memory = (E, runs, counts)
            transposed = part.transposed if symmetric else None
            backward(quads, coefficients, VT, memory, product, part.columns, transposed, work)


def _assemble(
    parts: list[_PairSums], V: FloatArray, product: FloatArray, rows: FloatArray, symmetric: bool
) -> LogisticSweep:
    """H = ½ Δ V − W V, or Lap V = Δ V − W V − Wᵀ V, of what the threads have summed."""
    c = V.shape[1]
    delta = rows + sum(part.columns for part in parts)
    out = (1.0 if symmetric else 0.5) * delta[:, None] * V - product[:, :c]
    if symmetric:
        for part in parts:
            out -= part.transposed.T[:, :c]
    value = sum(sum(part.value) for part in parts)
    return LogisticSweep(value, out, -float(rows.sum()))


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
