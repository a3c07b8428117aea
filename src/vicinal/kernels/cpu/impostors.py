"""LMNN's push: every sample against the impostors that invade its target neighbors.

For anchors i with target neighbors T_i and squared distances d_ij = ‖z_i − z_j‖²

    push = Σ_i Σ_{j∈T_i} Σ_{l∈D_i} h(1 + d_ij − d_il),     h(x) = [x]₊ or [x]₊²,

with D_i all points of other classes, and its gradient is that of Σ_ij W_ij d_ij: every triplet adds
h′ to W_ij and subtracts it from W_il. Only l nearer than 1 + max_j d_ij matter. Every evaluation
finds all of them anew; neither triplets nor anything n×n is ever kept.

The compiled loops measure the distances of four anchors at a time, then take one anchor after the
other: its impostors are picked from its row of distances, weighed, and added to the sums at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from vicinal._typing import FloatArray, IndexArray
from vicinal.kernels.contract import Comparisons, Push, hinge_losses
from vicinal.kernels.cpu.inner_loops import QUAD, quad_distances
from vicinal.kernels.cpu.jit import compiled, inner
from vicinal.kernels.cpu.layout import (
    Block,
    Tiles,
    append_runs,
    box_bounds,
    compact_order,
    cut_into_blocks,
    make_tiles,
    rotate_to_principal_axes,
    run_in_shares,
    transpose_padded,
)
from vicinal.kernels.reference import add_laplacian

BLOCK_ELEMENTS = 2**18
"""Pairs per block: small enough that every thread gets some."""
SERIAL_ELEMENTS = 2**18
"""Evaluations of fewer pairs than this are not worth waking threads."""
PRUNED_POINTS = 4000
"""Below this, to look for tiles that can be skipped costs more than it saves."""


class ReferenceImpostors:
    """The readable kernel: NumPy, anchor by anchor. It is the oracle of the other."""

    def __init__(self, targets: Comparisons) -> None:
        self._targets = targets

    def sweep(
        self,
        Z: FloatArray,
        V: FloatArray,
        *,
        squared: bool,
        symmetric: bool,
        rows: IndexArray | None = None,
        width: float = 0.0,
    ) -> Push:
        """See :meth:`vicinal.kernels.contract.PushKernel.sweep`."""
        rows = self._targets.anchors if rows is None else rows
        classes = self._targets.class_of_row
        value, second, n_active = 0.0, 0.0, 0
        out = np.zeros(V.shape)  # (n, c)
        block = max(1, BLOCK_ELEMENTS // len(Z))
        for start in range(0, len(rows), block):
            anchors = rows[start : start + block]
            D = cdist(Z[anchors], Z, "sqeuclidean")  # (b, n)
            W = np.zeros_like(D)
            for i, d, w in zip(anchors, D, W, strict=True):
                targets = self._targets.similar.of(np.array([i]))  # type: ignore[union-attr]
                others = classes != classes[i]
                hinges = np.maximum(0.0, 1.0 + d[targets, None] - d[others])  # (k, others)
                losses, slopes = hinge_losses(hinges, squared, width)
                value += float(losses.sum())
                second += float(hinges.sum())
                n_active += int((hinges > 0).sum())
                w[targets] += slopes.sum(axis=1)
                w[others] -= slopes.sum(axis=0)
            add_laplacian(out, W, anchors, V, symmetric)
        return Push(value, out, n_active, second=second)


class Impostors:
    """The Numba kernel: fused, threaded over anchors, far tiles of points skipped with proof."""

    def __init__(self, targets: Comparisons) -> None:
        self._targets = targets

    def sweep(
        self,
        Z: FloatArray,
        V: FloatArray,
        *,
        squared: bool,
        symmetric: bool,
        rows: IndexArray | None = None,
        width: float = 0.0,
    ) -> Push:
        """See :meth:`vicinal.kernels.contract.PushKernel.sweep`."""
        rows = self._targets.anchors if rows is None else rows
        hinge = Hinge(squared, float(width))
        position, points, tiles = _lay_out(self._targets, Z, V)
        blocks = cut_into_blocks(np.sort(position[rows]), points.offsets, BLOCK_ELEMENTS)
        product, row_sums = np.zeros(V.shape), np.zeros(len(Z))

        def run(share: list[Block]) -> Sums:
            return _run(share, points, tiles, hinge, symmetric, product, row_sums)

        parts = run_in_shares(run, blocks, threaded=len(rows) * len(Z) >= SERIAL_ELEMENTS)
        return _assemble(parts, points.V, position, symmetric)


def _lay_out(
    targets: Comparisons, Z: FloatArray, V: FloatArray
) -> tuple[IndexArray, Points, Tiles | None]:
    """Where each row went; the points in the order and form that the compiled loops want; tiles."""
    lists = targets.similar
    assert lists is not None
    n = len(Z)
    offsets = np.ascontiguousarray(targets.offsets, dtype=np.int64)
    prune = n >= PRUNED_POINTS
    order = position = np.arange(n)
    if prune:
        Z = rotate_to_principal_axes(Z)
        order = compact_order(Z, offsets)
        position = np.empty(n, dtype=np.int64)
        position[order] = np.arange(n)
    Z = np.asarray(Z[order], dtype=np.float64)
    indptr = np.concatenate([[0], np.cumsum(lists.counts[order])])
    indices = position[lists.of(order)]
    distances = np.empty(len(indices))
    sort_targets(Z, indptr, indices, distances)
    ZT = transpose_padded(Z)
    points = Points(
        ZT=ZT,
        norms=np.einsum("ij,ij->i", Z, Z),
        offsets=offsets,
        V=np.asarray(V[order], dtype=np.float64),
        indptr=indptr,
        indices=indices,
        distances=distances,
    )
    return position, points, make_tiles(ZT, offsets) if prune else None


def _run(
    blocks: list[Block],
    points: Points,
    tiles: Tiles | None,
    hinge: Hinge,
    symmetric: bool,
    product: FloatArray,
    row_sums: FloatArray,
) -> Sums:
    """One thread's share of the blocks; product and row sums are shared, each has its own rows."""
    sums = Sums(
        product=product,
        rows=row_sums,
        columns=np.zeros(len(row_sums)),
        transposed=np.zeros(product.shape if symmetric else (0, 0)),
        value=np.zeros(2),
        active=np.zeros(1, dtype=np.int64),
    )
    work = _Work.of(points, 0 if tiles is None else tiles.low.shape[1])
    for block in blocks:
        push(block.quads, block.labels, block.real, points, tiles, hinge, symmetric, sums, work)
    return sums


def _assemble(parts: list[Sums], V: FloatArray, position: IndexArray, symmetric: bool) -> Push:
    """H = ½ Δ V − W V, or Lap V = Δ V − W V − Wᵀ V, back in the order of the rows."""
    delta = parts[0].rows + sum(part.columns for part in parts)
    out = (1.0 if symmetric else 0.5) * delta[:, None] * V - parts[0].product
    if symmetric:
        for part in parts:
            out -= part.transposed
    value, second = (sum(float(part.value[k]) for part in parts) for k in (0, 1))
    active = sum(int(part.active[0]) for part in parts)
    return Push(value, out[position], active, second=second)


class Hinge(NamedTuple):
    """The loss of a triplet."""

    squared: bool
    width: float  # over which the kink of the plain hinge is smoothed


class Points(NamedTuple):
    """The points by position: an order of the rows in which classes stay together."""

    ZT: np.ndarray  # (m', n) coordinates by row, padded to a multiple of 4
    norms: np.ndarray  # (n,)
    offsets: np.ndarray  # (c + 1,)
    V: np.ndarray  # (n, c)
    indptr: np.ndarray  # (n + 1,) the targets of position p ...
    indices: np.ndarray  # ... are the positions indices[indptr[p]:indptr[p + 1]]
    distances: np.ndarray  # their squared distances, nearest first


class Sums(NamedTuple):
    """Sums over the anchors."""

    product: np.ndarray  # (n, c) W V; written at the anchors' positions only
    rows: np.ndarray  # (n,) W 1; likewise
    columns: np.ndarray  # (n,) Wᵀ 1
    transposed: np.ndarray  # (n, c) Wᵀ V, or empty
    value: np.ndarray  # (2,) Σ of the losses, and of the hinges
    active: np.ndarray  # (1,) how many are positive


class _Work(NamedTuple):
    """What the compiled loops work in. NumPy makes it: their own arrays take long to compile."""

    A: np.ndarray  # (4, m') coordinates of the anchors
    B: np.ndarray  # (4, m') ... times −2
    D: np.ndarray  # (4, n) distances
    bounds: np.ndarray  # (4, tiles) least distances
    runs: np.ndarray  # (tiles + 2, 2) runs of points
    limits: np.ndarray  # (4,)
    found: np.ndarray  # (n + 1,) impostors ...
    distances: np.ndarray  # ... and their distances
    gains: np.ndarray  # as many as an anchor has targets, at most

    @classmethod
    def of(cls, points: Points, n_tiles: int) -> _Work:
        """For some points in some tiles."""
        m, n = points.ZT.shape
        return cls(
            np.empty((QUAD, m)),
            np.empty((QUAD, m)),
            np.empty((QUAD, n)),
            np.empty((QUAD, n_tiles)),
            np.empty((n_tiles + 2, 2), dtype=np.int64),
            np.empty(QUAD),
            np.empty(n + 1, dtype=np.int64),
            np.empty(n + 1),
            np.empty(np.diff(points.indptr).max()),
        )


@compiled
def sort_targets(Z, indptr, indices, distances):
    """Fill in the squared distances to the targets; sort every list, nearest first."""
    for i in range(indptr.shape[0] - 1):
        for e in range(indptr[i], indptr[i + 1]):
            target, d = indices[e], 0.0
            for k in range(Z.shape[1]):
                d += (Z[i, k] - Z[target, k]) ** 2
            at = e
            while at > indptr[i] and distances[at - 1] > d:
                distances[at], indices[at] = distances[at - 1], indices[at - 1]
                at -= 1
            distances[at], indices[at] = d, target


@inner
def _runs(A, limits, label, points, tiles, bounds, runs):
    """The runs of points of other classes that may be within the limits; returns how many."""
    if tiles is not None:  # what serves it is compiled only then
        for r in range(QUAD):
            box_bounds(A[r], tiles.low, tiles.high, bounds[r])
        first, last = tiles.class_starts[label], tiles.class_starts[label + 1]
        none = np.int64(0)  # not the constant 0, for which the callee would be compiled once more
        count = append_runs(none, first, bounds, limits, tiles.starts, runs, none)
        return append_runs(last, bounds.shape[1], bounds, limits, tiles.starts, runs, count)
    runs[0, 0], runs[0, 1] = 0, points.offsets[label]
    runs[1, 0], runs[1, 1] = points.offsets[label + 1], points.norms.shape[0]
    return 2


@inner
def _pick(row, runs, count, limit, found, distances):
    """The points of the runs nearer than the limit and their distances; returns how many."""
    n, at = 0, 0
    for i in range(count):
        start, width = runs[i, 0], runs[i, 1] - runs[i, 0]
        d = row[at : at + width]
        for j in range(width):  # written, then counted: without a branch it costs a cycle
            found[n] = start + j
            distances[n] = d[j]
            n += d[j] < limit
        at += width
    return n


@inner
def _add(sums, V, anchor, other, weight, symmetric, product):
    """One entry of W: weight W[anchor, other]."""
    sums.columns[other] += weight
    for k in range(V.shape[1]):
        product[k] += weight * V[other, k]
    if symmetric:
        for k in range(V.shape[1]):
            sums.transposed[other, k] += weight * V[anchor, k]


@inner
def _add_anchor(p, found, distances, n_found, shift, points, loss_of, symmetric, gains, sums):
    """One row of W: its impostors ``found``, at ``distances`` + shift, against its targets."""
    start, stop = points.indptr[p], points.indptr[p + 1]
    thresholds = points.distances[start:stop]  # without the margin
    gains[: stop - start] = 0
    product = sums.product[p]
    squared, width = loss_of.squared, loss_of.width
    value, second, active, row_sum = 0.0, 0.0, 0, 0.0
    for e in range(n_found):
        gap = 1.0 - (distances[e] + shift)
        loss = 0.0
        for t in range(stop - start - 1, -1, -1):  # farthest first: the rest is inactive too
            hinge = gap + thresholds[t]
            if hinge <= 0:
                break
            if squared:
                slope = 2.0 * hinge
                value += hinge * hinge
            else:
                slope = 1.0 if hinge >= width else hinge / width
                value += slope * (hinge - 0.5 * width * slope)
            second += hinge
            active += 1
            gains[t] += slope
            loss += slope
        if loss > 0:
            row_sum -= loss
            _add(sums, points.V, p, found[e], -loss, symmetric, product)
    for t in range(stop - start):
        if gains[t] > 0:
            row_sum += gains[t]
            _add(sums, points.V, p, points.indices[start + t], gains[t], symmetric, product)
    sums.rows[p] = row_sum
    sums.value[0] += value
    sums.value[1] += second
    sums.active[0] += active


@compiled
def push(quads, labels, real, points, tiles, hinge, symmetric, sums, work):
    """Add the rows of W of the anchors in ``quads`` (q, 4), classes ``labels``, to the sums."""
    A, B, D, bounds, runs, limits, found, distances, gains = work
    m = A.shape[1]
    for q in range(quads.shape[0]):
        for r in range(QUAD):
            p = quads[q, r]
            limits[r] = 1.0 + points.distances[points.indptr[p + 1] - 1]
            for k in range(m):
                A[r, k] = points.ZT[k, p]
                B[r, k] = -2.0 * A[r, k]
        count = _runs(A, limits, labels[q], points, tiles, bounds, runs)
        width = np.int64(0)
        for i in range(count):
            quad_distances(B, points.ZT, points.norms, runs[i, 0], runs[i, 1], D, width)
            width += runs[i, 1] - runs[i, 0]
        for r in range(real[q]):
            p = quads[q, r]
            shift = points.norms[p]
            n_found = _pick(D[r], runs, count, limits[r] - shift, found, distances)
            _add_anchor(p, found, distances, n_found, shift, points, hinge, symmetric, gains, sums)
