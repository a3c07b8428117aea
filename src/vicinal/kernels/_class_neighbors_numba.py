"""The compiled half of :mod:`vicinal.kernels.class_neighbors`; imported on the first search only.

Each (query, class) keeps its k best references in a max-heap ordered by (distance, id), the worst
at the root. So equal distances are settled by the smaller id, in whatever order tiles arrive.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vicinal.kernels.compiled import compiled, compiled_sum


class Problem(NamedTuple):
    """Everything that is the same for all tiles of one search."""

    queries: NDArray[np.floating]  # (n, d)
    references: NDArray[np.floating]  # (m, d), sorted by class
    offsets: NDArray[np.int64]  # (c + 1,) class c is references[offsets[c]:offsets[c + 1]]
    ids: NDArray[np.int64]  # (m,) names of the references
    exclude: NDArray[np.int64]  # (n,) the id that a query may not have, or -1
    query_groups: NDArray[np.int64]  # (n,), or empty: no groups
    reference_groups: NDArray[np.int64]  # (m,), or empty: no groups


class Tile(NamedTuple):
    """Queries `first_query + i` against references `start + r`, r < stop - start.

    ``query_bound[i] + reference_bound[r] + product[i, r]`` is never above the squared distance.
    """

    first_query: int
    start: int
    stop: int
    first_class: int  # the class of reference `start`
    query_bound: NDArray[np.float64]  # (b,)
    reference_bound: NDArray[np.float64]  # (t,)
    product: NDArray[np.float64]  # (b, t)


@compiled
def _precedes(distance: float, id_: int, other: float, other_id: int) -> bool:
    return distance < other or (distance == other and id_ < other_id)


@compiled_sum
def _squared_distance(a: NDArray[np.floating], b: NDArray[np.floating]) -> float:
    """Σ (a − b)², in some fixed order: the error bound holds for every order."""
    total = 0.0
    for j in range(a.shape[0]):
        step = np.float64(a[j]) - np.float64(b[j])
        total += step * step
    return total


@compiled
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


@compiled
def _barred(problem: Problem, query: int, reference: int) -> bool:
    if problem.ids[reference] == problem.exclude[query]:
        return True
    if problem.query_groups.shape[0] == 0:
        return False
    return bool(problem.query_groups[query] == problem.reference_groups[reference])


@compiled
def scan(
    problem: Problem, tile: Tile, distances: NDArray[np.float64], ids: NDArray[np.int64]
) -> None:
    """Offer the references of a tile to the heaps `distances`, `ids` (n, c, k) of its queries.

    The bound only skips what cannot enter; whatever may enter is measured by direct differences.
    The comparison is written so that a NaN bound never skips.
    """
    for i in range(tile.query_bound.shape[0]):
        query = tile.first_query + i
        for c in range(tile.first_class, problem.offsets.shape[0] - 1):
            if problem.offsets[c] >= tile.stop:
                break
            best, best_ids = distances[query, c], ids[query, c]  # (k,)
            limit = best[0] - tile.query_bound[i]
            begin = max(problem.offsets[c], tile.start)
            for r in range(begin, min(problem.offsets[c + 1], tile.stop)):
                if tile.product[i, r - tile.start] + tile.reference_bound[r - tile.start] > limit:
                    continue
                if _barred(problem, query, r):
                    continue
                distance = _squared_distance(problem.queries[query], problem.references[r])
                if _precedes(distance, problem.ids[r], best[0], best_ids[0]):
                    _sink(best, best_ids, best.shape[0], distance, problem.ids[r])
                    limit = best[0] - tile.query_bound[i]


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
