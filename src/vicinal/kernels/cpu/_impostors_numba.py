"""The compiled half of :mod:`vicinal.kernels.cpu.impostors`; imported at the first evaluation only.

Distances of four anchors at a time, then one anchor after the other: its impostors are picked from
its row of distances, weighed, and added to the sums at once, so that no triplet is ever stored.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vicinal.kernels.cpu.inner_loops import QUAD, quad_distances
from vicinal.kernels.cpu.jit import compiled, inner
from vicinal.kernels.cpu.pruning import Tiles, append_runs, box_bounds


class Points(NamedTuple):
    """The points by position: an order of the rows in which classes stay together."""

    ZT: np.ndarray  # (m', n) coordinates by row, padded to a multiple of 4
    norms: np.ndarray  # (n,)
    offsets: np.ndarray  # (c + 1,)
    V: np.ndarray  # (n, c)
    indptr: np.ndarray  # (n + 1,) the targets of position p ...
    indices: np.ndarray  # ... are the positions indices[indptr[p]:indptr[p + 1]]
    distances: np.ndarray  # their squared distances, nearest first
    prune: bool
    tiles: Tiles


class Sums(NamedTuple):
    """What the anchors add up to."""

    product: np.ndarray  # (n, c) W V; written at the anchors' positions only
    rows: np.ndarray  # (n,) W 1; likewise
    columns: np.ndarray  # (n,) Wᵀ 1
    transposed: np.ndarray  # (n, c) Wᵀ V, or empty
    value: np.ndarray  # (1,) Σ of the hinges or of their squares
    active: np.ndarray  # (1,) how many are positive


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
def _runs(A, limits, label, points, bounds, runs):
    """The runs of points of other classes that may be within the limits; returns how many."""
    if points.prune:
        tiles = points.tiles
        for r in range(QUAD):
            box_bounds(A[r], tiles.low, tiles.high, bounds[r])
        first, last = tiles.class_starts[label], tiles.class_starts[label + 1]
        count = append_runs(0, first, bounds, limits, tiles.starts, runs, 0)
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
def _add_anchor(p, found, distances, n_found, shift, points, squared, symmetric, gains, sums):
    """One row of W: its impostors ``found``, at ``distances`` + shift, against its targets."""
    start, stop = points.indptr[p], points.indptr[p + 1]
    thresholds = points.distances[start:stop]  # without the margin
    gains[: stop - start] = 0
    product = sums.product[p]
    value, active, row_sum = 0.0, 0, 0.0
    for e in range(n_found):
        gap = 1.0 - (distances[e] + shift)
        loss = 0.0
        for t in range(stop - start - 1, -1, -1):  # farthest first: the rest is inactive too
            hinge = gap + thresholds[t]
            if hinge <= 0:
                break
            slope = 2.0 * hinge if squared else 1.0
            value += hinge * hinge if squared else hinge
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
    sums.active[0] += active


@compiled
def push(quads, labels, real, points, squared, symmetric, sums):
    """Add the rows of W of the anchors in ``quads`` (q, 4), classes ``labels``, to the sums."""
    n, m = points.norms.shape[0], points.ZT.shape[0]
    A = np.empty((QUAD, m))
    B = np.empty((QUAD, m))
    D = np.empty((QUAD, n))
    n_tiles = points.tiles.low.shape[1]
    bounds = np.empty((QUAD, n_tiles))
    runs = np.empty((n_tiles + 2, 2), dtype=np.int64)
    limits = np.empty(QUAD)
    found = np.empty(n + 1, dtype=np.int64)
    distances = np.empty(n + 1)
    gains = np.empty(np.max(np.diff(points.indptr)))
    for q in range(quads.shape[0]):
        for r in range(QUAD):
            p = quads[q, r]
            limits[r] = 1.0 + points.distances[points.indptr[p + 1] - 1]
            for k in range(m):
                A[r, k] = points.ZT[k, p]
                B[r, k] = -2.0 * A[r, k]
        count = _runs(A, limits, labels[q], points, bounds, runs)
        width = 0
        for i in range(count):
            quad_distances(B, points.ZT, points.norms, runs[i, 0], runs[i, 1], D, width)
            width += runs[i, 1] - runs[i, 0]
        for r in range(real[q]):
            p = quads[q, r]
            shift = points.norms[p]
            n_found = _pick(D[r], runs, count, limits[r] - shift, found, distances)
            _add_anchor(
                p, found, distances, n_found, shift, points, squared, symmetric, gains, sums
            )
