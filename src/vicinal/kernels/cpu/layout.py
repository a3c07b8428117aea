"""Layout of points and anchors for the compiled loops: transposed, in quads, in compact tiles.

Tiles can be skipped. A point at squared distance d weighs e^{−α(d − d_min)} relative to the nearest
one of its set. All points with α (d − d_min) > ln(n/ε) together weigh less than ε, below rounding.
The box of a tile bounds the distance to all of its points from below, any member bounds d_min from
above: a tile whose bound exceeds that member's distance + ln(n/ε)/α is skipped, for this row, with
proof.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numba
import numpy as np

from vicinal._typing import FloatArray, IndexArray
from vicinal.kernels.contract import Comparisons
from vicinal.kernels.cpu.inner_loops import QUAD
from vicinal.kernels.cpu.jit import compiled, inner

TILE = 32
Share = TypeVar("Share")
MIN_POINTS = 1500
"""Below this the order costs more than skipping can save."""


@dataclass(frozen=True)
class Arrangement:
    """The comparisons in the order of positions, which may be other than that of the rows."""

    order: IndexArray
    """(n,) rows by position."""
    position: IndexArray
    """(n,) positions by row."""
    permuted: slice | IndexArray
    """The order as an index, free where it is that of the rows."""
    offsets: IndexArray
    groups: IndexArray
    """(n,), or empty where there are none."""
    sizes: tuple[IndexArray, IndexArray]
    """(n,) how many similar, how many dissimilar ones."""

    @classmethod
    def of(cls, comparisons: Comparisons, order: IndexArray | None = None) -> Arrangement:
        """In the order given, else in that of the rows."""
        n = len(comparisons.n_similar)
        rows = position = np.arange(n)
        permuted: slice | IndexArray = slice(None)
        if order is not None:
            permuted, position = order, np.empty(n, dtype=np.int64)
            position[order] = rows
            rows = order
        groups = np.empty(0) if comparisons.groups is None else comparisons.groups[permuted]
        sizes = comparisons.n_similar[permuted], comparisons.n_dissimilar[permuted]
        return cls(
            rows,
            position,
            permuted,
            _int64(comparisons.offsets),
            _int64(groups),
            (_int64(sizes[0]), _int64(sizes[1])),
        )


def _int64(values: IndexArray | FloatArray) -> IndexArray:
    return np.ascontiguousarray(values, dtype=np.int64)


class Block(NamedTuple):
    """Quads whose weights fit a cache."""

    quads: IndexArray
    """(q, 4) positions; where a class ends, its last one repeated."""
    labels: IndexArray
    """(q,) their classes."""
    real: IndexArray
    """(q,) how many of the 4 are not such repetitions."""
    taken: IndexArray
    """Which of the 4q places these are."""
    anchors: IndexArray
    """The positions there."""


def transpose_padded(points: FloatArray) -> FloatArray:
    """(m', n) the coordinates by row, padded with zeros to a multiple of QUAD."""
    n, m = points.shape
    out = np.zeros((m + -m % QUAD, n), dtype=points.dtype)
    out[:m] = points.T
    return out


def cut_into_blocks(positions: IndexArray, offsets: IndexArray, elements: int) -> list[Block]:
    """Blocks of quads of one class each, from sorted positions; about ``elements`` pairs each."""
    cuts = np.searchsorted(positions, offsets)  # (c + 1,)
    sizes = np.diff(cuts)
    per_class = -(-sizes // QUAD)
    labels = np.repeat(np.arange(len(sizes)), per_class)
    within = np.arange(len(labels)) - np.repeat(np.cumsum(per_class) - per_class, per_class)
    first = cuts[labels] + QUAD * within
    last = cuts[labels + 1] - 1
    quads = positions[np.minimum(first[:, None] + np.arange(QUAD), last[:, None])]
    real = np.minimum(last - first + 1, QUAD)
    size = max(1, elements // (QUAD * int(offsets[-1])))
    blocks = []
    for start in range(0, len(quads), size):
        part = slice(start, start + size)
        taken = np.flatnonzero(np.arange(QUAD) < real[part, None])
        anchors = quads[part].ravel()[taken]
        blocks.append(Block(quads[part], labels[part], real[part], taken, anchors))
    return blocks


def run_in_shares(
    run: Callable[[list[Block]], Share], blocks: list[Block], *, threaded: bool
) -> list[Share]:
    """What ``run`` makes of the blocks, cut into one share per thread.

    A share is every n-th block, whichever thread is the fastest: sums have a fixed order.
    """
    # Numba's setting follows the affinity mask and the limits that joblib gives its workers.
    n_threads = min(numba.get_num_threads(), len(blocks)) if threaded else 1
    if n_threads <= 1:
        return [run(blocks)]
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(run, [blocks[i::n_threads] for i in range(n_threads)]))


class Tiles(NamedTuple):
    """Runs of at most TILE points of one class, and the boxes around them."""

    starts: np.ndarray  # (tiles + 1,) first point of every tile
    class_starts: np.ndarray  # (c + 1,) first tile of every class
    low: np.ndarray  # (m, tiles)
    high: np.ndarray  # (m, tiles)


@lru_cache
def negligible_gap(n: int, dtype: np.dtype) -> float:
    """The exponent gap ln(n/ε) beyond which n points weigh less than rounding, with a reserve."""
    return float(np.log(n) - np.log(np.finfo(dtype).eps) + 3.0)


def compact_order(Z, offsets):
    """(n,) an order that keeps classes together and makes every tile a cell of a k-d tree."""
    order = np.arange(len(Z))
    _split_classes(np.ascontiguousarray(Z), np.asarray(offsets), order)
    return order


@compiled
def _split_classes(Z, offsets, order):
    stack = np.empty((64, 2), dtype=np.int64)
    for c in range(offsets.shape[0] - 1):
        stack[0, 0], stack[0, 1] = offsets[c], offsets[c + 1]
        depth = 1
        while depth:
            depth -= 1
            start, stop = stack[depth, 0], stack[depth, 1]
            if stop - start <= TILE:
                continue
            cell = order[start:stop].copy()
            coordinate = _widest(Z, cell)
            keys = np.empty(cell.shape[0], dtype=Z.dtype)
            for i in range(cell.shape[0]):
                keys[i] = Z[cell[i], coordinate]
            ranks = np.argsort(keys)
            for i in range(cell.shape[0]):  # an array in place of the loop compiles for a second
                order[start + i] = cell[ranks[i]]
            # Cells are cut at whole tiles, so that only the last tile of a class is short.
            half = start + TILE * ((stop - start + TILE) // (2 * TILE))
            stack[depth, 0], stack[depth, 1] = start, half
            stack[depth + 1, 0], stack[depth + 1, 1] = half, stop
            depth += 2


@inner
def _widest(Z, cell):
    """The coordinate of the largest variance within a cell."""
    m = Z.shape[1]
    total, squares = np.zeros(m), np.zeros(m)
    for i in cell:
        for k in range(m):
            total[k] += Z[i, k]
            squares[k] += Z[i, k] * Z[i, k]
    return np.argmax(squares - total * total / cell.shape[0])


def make_tiles(ZT, offsets) -> Tiles:
    """Tiles of points that are already in compact order, one class after the other."""
    sizes = np.diff(offsets)
    per_class = -(-sizes // TILE)
    class_starts = np.concatenate([[0], np.cumsum(per_class)])
    starts = np.concatenate([np.arange(a, b, TILE) for a, b in pairwise(offsets)] + [offsets[-1:]])
    low = np.minimum.reduceat(ZT, starts[:-1], axis=1)
    high = np.maximum.reduceat(ZT, starts[:-1], axis=1)
    return Tiles(starts, class_starts, low, high)


@compiled
def whole_runs(labels, offsets, use_similar, use_dissimilar, runs, counts):
    """All of the class, and all of the others: the runs of quads where nothing is skipped."""
    n = offsets[-1]
    for q in range(labels.shape[0]):
        first, last = offsets[labels[q]], offsets[labels[q] + 1]
        count = 0
        if use_similar:
            runs[q, 0, 0], runs[q, 0, 1] = first, last
            count = 1
        counts[q, 0] = count
        if use_dissimilar:
            for start, stop in ((0, first), (last, n)):
                if start < stop:
                    runs[q, count, 0], runs[q, count, 1] = start, stop
                    count += 1
        counts[q, 1] = count


@compiled
def needed_runs(quads, labels, ZT, groups, tiles, gaps, runs, counts):
    """The runs of points that any of the 4 rows of each quad needs; the similar ones first.

    ``gaps`` are the two squared-distance margins ln(n/ε)/α; a side with an infinite gap is kept
    whole.
    """
    A = np.empty((4, ZT.shape[0]), dtype=ZT.dtype)
    bounds = np.empty((4, tiles.low.shape[1]), dtype=ZT.dtype)
    for q in range(quads.shape[0]):
        for r in range(4):
            for k in range(ZT.shape[0]):
                A[r, k] = ZT[k, quads[q, r]]
        counts[q] = _quad_runs(A, quads[q], labels[q], ZT, groups, tiles, gaps, bounds, runs[q])


@inner
def box_bounds(a, low, high, bounds):
    """bounds[t] ← the squared distance from a to the box of tile t."""
    bounds[:] = 0
    for k in range(low.shape[0]):
        x, lows, highs = a[k], low[k], high[k]
        for t in range(bounds.shape[0]):
            below = lows[t] - x
            above = x - highs[t]
            gap = below if below > above else above
            gap = gap if gap > 0 else 0
            bounds[t] += gap * gap


@inner
def _nearest_in(best, starts, a, position, ZT, groups):
    """The smallest squared distance from a to the points of a tile that are not excluded."""
    least = np.inf
    for j in range(starts[best], starts[best + 1]):
        excluded = j == position if groups.shape[0] == 0 else groups[j] == groups[position]
        if excluded:
            continue
        d = 0.0
        for k in range(ZT.shape[0]):
            d += (a[k] - ZT[k, j]) ** 2
        least = min(least, d)
    return least


@inner
def _quad_runs(A, positions, label, ZT, groups, tiles, gaps, bounds, runs):
    """The runs that 4 rows need; how many of them are similar, and how many there are."""
    first, last = tiles.class_starts[label], tiles.class_starts[label + 1]
    n_tiles = bounds.shape[1]
    limits = np.empty((2, 4))
    for r in range(4):
        box_bounds(A[r], tiles.low, tiles.high, bounds[r])
        best = first + np.argmin(bounds[r, first:last])
        limits[0, r] = gaps[0] + _nearest_in(best, tiles.starts, A[r], positions[r], ZT, groups)
        other, least = -1, np.inf
        for t in range(n_tiles):
            if (t < first or t >= last) and bounds[r, t] < least:
                other, least = t, bounds[r, t]
        limits[1, r] = gaps[1] + _nearest_in(other, tiles.starts, A[r], positions[r], ZT, groups)
    none = np.int64(0)  # not the constant 0, for which the callee would be compiled once more
    similar = append_runs(first, last, bounds, limits[0], tiles.starts, runs, none)
    count = append_runs(none, first, bounds, limits[1], tiles.starts, runs, similar)
    return similar, append_runs(last, n_tiles, bounds, limits[1], tiles.starts, runs, count)


@inner
def append_runs(first, last, bounds, limit, starts, runs, count):
    """Append the needed tiles of first:last to the runs, neighbors joined; returns the count."""
    open_run = False
    for t in range(first, last):
        needed = (
            bounds[0, t] <= limit[0]
            or bounds[1, t] <= limit[1]
            or bounds[2, t] <= limit[2]
            or bounds[3, t] <= limit[3]
        )
        if not needed:
            open_run = False
        elif open_run:
            runs[count - 1, 1] = starts[t + 1]
        else:
            runs[count, 0], runs[count, 1] = starts[t], starts[t + 1]
            count += 1
            open_run = True
    return count


def no_tiles(dtype: np.dtype) -> Tiles:
    """Tiles of nothing, for compiled functions that want some."""
    nothing = np.empty((0, 0), dtype=dtype)
    return Tiles(np.zeros(1, np.int64), np.zeros(1, np.int64), nothing, nothing)


def rotate_to_principal_axes(Z: FloatArray) -> FloatArray:
    """The same distances in axes along which boxes are tight."""
    _, axes = np.linalg.eigh(Z.T @ Z)
    return Z @ axes
