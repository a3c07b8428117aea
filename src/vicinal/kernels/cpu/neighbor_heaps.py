"""Compiled loops of the neighbor search; imported by the first search only.

Each (query, class) keeps its k best references in a max-heap ordered by (distance, id), the worst
at the root. So equal distances are settled by the smaller id, in whatever order tiles arrive.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vicinal.kernels.cpu.jit import compiled, inner, inner_sum


class SearchInput(NamedTuple):
    """Everything that is the same for all tiles of one search."""

    queries: NDArray[np.floating]  # (n, d)
    references: NDArray[np.floating]  # (m, d), sorted by class
    offsets: NDArray[np.int64]  # (c + 1,) class c is references[offsets[c]:offsets[c + 1]]
    ids: NDArray[np.int64]  # (m,) names of the references
    exclude: NDArray[np.int64]  # (n,) the id that a query may not have, or -1
    query_groups: NDArray[np.int64]  # (n,), or empty: no groups
    reference_groups: NDArray[np.int64]  # (m,), or empty: no groups


class Tile(NamedTuple):
    """Queries `first_query + i` against references `start + r`, r < stop - start."""

    first_query: int
    start: int
    stop: int
    first_class: int  # the class of reference `start`
    unit: float  # distance of the filter / distance
    radii: NDArray[np.float64]  # (b,) at least the sum of both norms, in the filter's unit
    filtered: NDArray[np.float32]  # (b, t) squared distances, rounded, in the filter's unit


_ROUNDOFF = 2.0**-24
_UNDERFLOW = 1e-36  # above whatever the filter loses to subnormal numbers
_STRIDE = 64  # references that are skipped at once
_CHUNK = 16  # features whose tile of references stays in the innermost cache


@compiled
def measure(A: NDArray[np.float32], B: NDArray[np.float32], filtered: NDArray[np.float32]) -> None:
    """filtered (b, t) = squared distances of A (b, d) and B (d, t), d a multiple of 4."""
    d, t = B.shape
    filtered[:, :t] = 0
    for chunk in range(0, d, _CHUNK):
        for i in range(A.shape[0]):
            row = filtered[i]
            for j in range(chunk, min(chunk + _CHUNK, d), 4):
                a0, a1, a2, a3 = A[i, j], A[i, j + 1], A[i, j + 2], A[i, j + 3]
                b0, b1, b2, b3 = B[j], B[j + 1], B[j + 2], B[j + 3]
                for r in range(t):
                    e0, e1, e2, e3 = a0 - b0[r], a1 - b1[r], a2 - b2[r], a3 - b3[r]
                    row[r] = (((row[r] + e0 * e0) + e1 * e1) + e2 * e2) + e3 * e3


@inner
def _limit(tile: Tile, i: int, d: int, worst: float) -> np.float32:
    """What the filter cannot exceed for a squared distance up to `worst` (module docstring)."""
    distance = tile.unit * np.sqrt(worst) + 1.001 * _ROUNDOFF * tile.radii[i]
    return np.float32(distance * distance * (1 + 2 * (d + 4) * _ROUNDOFF) + _UNDERFLOW)


@inner
def _precedes(distance: float, id_: int, other: float, other_id: int) -> bool:
    return distance < other or (distance == other and id_ < other_id)


@inner_sum
def _squared_distance(a: NDArray[np.floating], b: NDArray[np.floating]) -> float:
    """Σ (a − b)², in some fixed order."""
    total = 0.0
    for j in range(a.shape[0]):
        step = np.float64(a[j]) - np.float64(b[j])
        total += step * step
    return total


@inner
def _sink(
    distances: NDArray[np.float64], ids: NDArray[np.int64], size: int, distance: float, id_: int
) -> None:
    """Replace the root of the heap `[:size]` and let the new entry sink to its place."""
    hole = 0
    while True:
        child = 2 * hole + 1
        if child >= size:
            break
        sibling = child + 1
        if sibling < size and _precedes(
            distances[child], ids[child], distances[sibling], ids[sibling]
        ):
            child = sibling
        if not _precedes(distance, id_, distances[child], ids[child]):
            break
        distances[hole] = distances[child]
        ids[hole] = ids[child]
        hole = child
    distances[hole] = distance
    ids[hole] = id_


@inner
def _barred(problem: SearchInput, query: int, reference: int) -> bool:
    if problem.ids[reference] == problem.exclude[query]:
        return True
    if problem.query_groups.shape[0] == 0:
        return False
    return bool(problem.query_groups[query] == problem.reference_groups[reference])


@inner
def _none_within(values: NDArray[np.float32], limit: np.float32) -> bool:
    within = 0
    for r in range(values.shape[0]):  # no early exit: this vectorizes
        within += values[r] <= limit
    return within == 0


@inner
def _scan_class(
    problem: SearchInput,
    tile: Tile,
    i: int,
    c: int,
    best: NDArray[np.float64],
    ids: NDArray[np.int64],
) -> None:
    """Offer the references of class c in the tile to the heap (k,) of query i."""
    query, d = tile.first_query + i, problem.queries.shape[1]
    limit = _limit(tile, i, d, best[0])
    end = min(problem.offsets[c + 1], tile.stop)
    for begin in range(max(problem.offsets[c], tile.start), end, _STRIDE):
        filtered = tile.filtered[i, begin - tile.start : min(begin + _STRIDE, end) - tile.start]
        if _none_within(filtered, limit):
            continue
        for r in range(filtered.shape[0]):
            reference = begin + r
            if filtered[r] > limit or _barred(problem, query, reference):
                continue
            distance = _squared_distance(problem.queries[query], problem.references[reference])
            if _precedes(distance, problem.ids[reference], best[0], ids[0]):
                _sink(best, ids, best.shape[0], distance, problem.ids[reference])
                limit = _limit(tile, i, d, best[0])


@compiled
def scan(
    problem: SearchInput, tile: Tile, distances: NDArray[np.float64], ids: NDArray[np.int64]
) -> None:
    """Offer the references of a tile to the heaps `distances`, `ids` (n, c, k) of its queries.

    The filter only skips what cannot enter; whatever may enter is measured exactly.
    """
    for i in range(tile.radii.shape[0]):
        query = tile.first_query + i
        for c in range(tile.first_class, problem.offsets.shape[0] - 1):
            if problem.offsets[c] >= tile.stop:
                break
            _scan_class(problem, tile, i, c, distances[query, c], ids[query, c])


@compiled
def sort_heaps(distances: NDArray[np.float64], ids: NDArray[np.int64]) -> None:
    """Turn the heaps (b, c, k) into ascending lists, in place."""
    for i in range(distances.shape[0]):
        for c in range(distances.shape[1]):
            heap, names = distances[i, c], ids[i, c]
            for last in range(heap.shape[0] - 1, 0, -1):
                distance, id_ = heap[last], names[last]
                heap[last], names[last] = heap[0], names[0]
                _sink(heap, names, last, distance, id_)
