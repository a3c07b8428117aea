r"""The k nearest references of every query, class by class: exact, stable, in bounded memory.

Filter and refine. Tiles of all distances are computed in float32, from points that are centered
and scaled into [-1, 1] in float64. With :math:`u = 2^{-24}`, points :math:`a, b` there become
float32 points off by at most :math:`u\|a\|, u\|b\|`, and the sum of d squares is off by
:math:`(d + 3) u` of itself, to first order. So the filter's value :math:`\hat v` of a reference
at exact squared distance :math:`v` is at most

.. math:: \hat v \le \bigl(\sqrt v + u (\|a\| + \|b\|)\bigr)^2 \, (1 + 2 (d + 4) u),

and where it is larger, with the k-th best distance so far for v, the reference is out. All others
are measured in float64 by direct differences, whose outcome does not depend on the tiling:
duplicates are at exactly 0, nothing is negative, and ties go to the smaller id.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from vicinal.kernels.cpu.neighbor_heaps import SearchInput

MEMORY = 64 * 2**20  # bytes of working memory, all threads together
_TILE_SIDE = 512  # queries, and references, of a tile: it stays in the cache
_LARGEST_VALUE = 1e150  # squares beyond it overflow
_WORTH_THREADS = 10**6  # differences below which waking threads takes longer than the work


class Neighbors(NamedTuple):
    """Squared distances, ascending, and the ids of the references; missing ones are inf and -1."""

    distances: NDArray[np.float64]
    ids: NDArray[np.int64]


class NeighborIndex:
    """References that are checked and laid out once, and then searched many times.

    Parameters
    ----------
    references : (m, d) array of float32 or float64, finite; must not change afterwards
    ids : (m,) distinct ints >= 0, default 0 .. m-1
        What to call the references, in the result and in `exclude`. Of equally distant
        references the one with the smaller id comes first.

    Examples
    --------
    >>> index = NeighborIndex([[0.0], [1.0], [5.0]])
    >>> distances, ids = index.search([[2.0]], [0, 2, 3], k=2)  # two of one class, one of another
    >>> distances
    array([[[ 1.,  4.],
            [ 9., inf]]])
    >>> ids
    array([[[ 1,  0],
            [ 2, -1]]])
    >>> index.nearest(index.references, k=1, exclude=[0, 1, 2]).ids.ravel()  # leave-one-out
    array([1, 0, 1])
    """

    def __init__(self, references: ArrayLike, ids: ArrayLike | None = None) -> None:
        self.references = as_points(references, "references")
        m = len(self.references)
        self.ids = _codes(np.arange(m) if ids is None else ids, m, "ids")

    def search(
        self,
        queries: ArrayLike,
        offsets: ArrayLike | None,
        k: int,
        *,
        exclude: ArrayLike | None = None,
        query_groups: ArrayLike | None = None,
        reference_groups: ArrayLike | None = None,
        memory: int = MEMORY,
    ) -> Neighbors:
        r"""Find the k nearest references of every class for every query.

        :math:`d^{[1]} \le \dots \le d^{[k]}` of the paper's Eq. 1, with :math:`d = \|q - r\|^2`.

        Parameters
        ----------
        queries : (n, d) array of float32 or float64 (anything else is converted to float64)
        offsets : (c + 1,) ints; class c is ``references[offsets[c]:offsets[c + 1]]``, maybe empty
            None: all references are one class, in any order.
        k : number of neighbors in each class
        exclude : (n,) ints, the id that a query may not have for a neighbor (-1: none)
        query_groups, reference_groups : (n,) and (m,) ints
            A query and a reference of the same group are never neighbors.
        memory : bytes of working memory, beyond the result's n * c * k * 16; the result is the same

        Returns
        -------
        distances, ids : both (n, c, k); distances are float64 whatever the input
        """
        X, R = as_points(queries, "queries"), self.references
        n, m = len(X), len(R)
        if X.shape[1] != R.shape[1]:
            raise ValueError(f"queries have {X.shape[1]} features, references {R.shape[1]}")
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        if (query_groups is None) != (reference_groups is None):
            raise ValueError("give both query_groups and reference_groups, or none of them")
        from vicinal.kernels.cpu.neighbor_heaps import SearchInput  # imports numba

        problem = SearchInput(
            queries=X,
            references=R,
            offsets=np.array([0, m]) if offsets is None else _offsets(offsets, m),
            ids=self.ids,
            exclude=_codes(np.full(n, -1) if exclude is None else exclude, n, "exclude"),
            query_groups=_codes(query_groups, n, "query_groups"),
            reference_groups=_codes(reference_groups, m, "reference_groups"),
        )
        found = Neighbors(
            np.full((n, len(problem.offsets) - 1, k), np.inf),
            np.full((n, len(problem.offsets) - 1, k), -1, dtype=np.int64),
        )
        if n and m:
            _search(problem, found, self._filtered(X, memory), memory)
        return found

    def nearest(self, queries: ArrayLike, k: int, **options: Any) -> Neighbors:
        """Find the k nearest of all references, (n, k); the options are those of `search`."""
        found = self.search(queries, None, k, **options)
        return Neighbors(found.distances[:, 0], found.ids[:, 0])

    def _filtered(self, X: NDArray[np.floating], memory: int) -> _FilterPoints:
        """The references for the filter: kept, unless queries X need another unit, or too large."""
        frame = self._frame.including(X)
        if frame is not self._frame or 16 * self.references.size > memory:
            return _FilterPoints(frame, self.references)
        return self._kept

    @cached_property
    def _frame(self) -> _FilterScale:
        return _FilterScale.around(self.references)

    @cached_property
    def _kept(self) -> _FilterPoints:
        return _FilterPoints(self._frame, self.references).kept()


def as_points(values: ArrayLike, name: str) -> NDArray[np.floating]:
    """`values` as rows of float32 or float64 whose squared distances do not overflow."""
    X = np.asarray(values)
    X = np.ascontiguousarray(X, dtype=X.dtype if X.dtype == np.float32 else np.float64)
    if X.ndim != 2:
        raise ValueError(f"{name} must have two dimensions, got shape {X.shape}")
    check_reach(X, name)
    return X


def check_reach(X: NDArray[np.floating], name: str) -> None:
    """Raise a ValueError unless squared distances of the rows of X do not overflow."""
    if X.size and not max(float(X.max()), -float(X.min())) <= _LARGEST_VALUE:
        raise ValueError(
            f"{name} has NaN, infinity or values beyond {_LARGEST_VALUE:g}, whose squared "
            "distances overflow: clean or rescale it"
        )


def _codes(values: ArrayLike | None, length: int, name: str) -> NDArray[np.int64]:
    if values is None:
        return np.empty(0, dtype=np.int64)
    codes = np.asarray(values)
    if codes.shape != (length,) or (length and codes.dtype.kind not in "iu"):
        raise ValueError(f"{name} must be {length} integers, got {codes.dtype} {codes.shape}")
    return np.ascontiguousarray(codes, dtype=np.int64)


def _offsets(values: ArrayLike, m: int) -> NDArray[np.int64]:
    offsets = _codes(values, np.size(values), "offsets")
    if len(offsets) < 2 or offsets[0] != 0 or offsets[-1] != m or np.any(np.diff(offsets) < 0):
        raise ValueError(f"offsets must ascend from 0 to {m}, the number of references")
    return offsets


def _search(problem: SearchInput, found: Neighbors, points: _FilterPoints, memory: int) -> None:
    """Spread blocks of queries over threads; each thread writes its own rows of the result."""
    import numba

    (n, d), m = problem.queries.shape, len(problem.references)
    threads = numba.get_num_threads() if n * m * d >= _WORTH_THREADS else 1
    height, width = _tile_shape((n, m, d), threads, memory)

    def search_block(start: int) -> None:
        _search_rows(problem, found, points, slice(start, min(start + height, n)), width)

    if threads == 1:
        for start in range(0, n, height):
            search_block(start)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(search_block, range(0, n, height)))


def _search_rows(
    problem: SearchInput, found: Neighbors, points: _FilterPoints, rows: slice, width: int
) -> None:
    """Compare a block of b queries with all references, `width` of them at a time."""
    from vicinal.kernels.cpu.neighbor_heaps import Tile, measure, scan, sort_heaps

    frame = points.frame
    A, query_norms = frame.place(problem.queries[rows])  # (b, d'), (b,)
    filtered = np.empty((len(A), width), dtype=np.float32)  # (b, t)
    m = len(problem.references)
    for start in range(0, m, width):
        stop = min(start + width, m)
        B, largest_norm = points.tile(start, stop)  # (d', t)
        measure(A, B, filtered)
        first = int(np.searchsorted(problem.offsets, start, side="right")) - 1
        radii = query_norms + largest_norm  # (b,)
        tile = Tile(rows.start, start, stop, first, frame.unit, radii, filtered)
        scan(problem, tile, found.distances, found.ids)
    sort_heaps(found.distances[rows], found.ids[rows])


class _FilterScale(NamedTuple):
    """Coordinates of the filter: centered, and scaled by a power of 2 into [-1, 1]."""

    center: NDArray[np.float64]  # (d,)
    unit: float

    @classmethod
    def around(cls, references: NDArray[np.floating]) -> _FilterScale:
        if not references.size:
            return cls(np.zeros(references.shape[1]), 1.0)
        center = references.mean(axis=0, dtype=np.float64)
        return cls(center, _unit(references, center))

    def including(self, X: NDArray[np.floating]) -> _FilterScale:
        """The same frame, or one of a smaller unit if X (n, d) exceeds it."""
        unit = _unit(X, self.center) if X.size else self.unit
        return self if unit >= self.unit else _FilterScale(self.center, unit)

    def place(self, X: NDArray[np.floating]) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """The rows as float32, filled up to a multiple of 4 features, and their norms."""
        n, d = X.shape
        exact = np.subtract(X, self.center, dtype=np.float64)  # (n, d)
        exact *= self.unit
        placed = np.zeros((n, -(-d // 4) * 4), dtype=np.float32)
        placed[:, :d] = exact
        return placed, np.sqrt(np.einsum("ij,ij->i", exact, exact))


def _unit(X: NDArray[np.floating], center: NDArray[np.float64]) -> float:
    """The power of 2 that scales the rows X (n, d), less the center, into [-1, 1]."""
    low, high = X.min(axis=0), X.max(axis=0)  # (d,)
    reach = max(0.0, float((high - center).max()), float((center - low).max()))
    return float(2.0 ** -max(int(np.frexp(reach)[1]), -1000))


class _FilterPoints:
    """The references (m, d) in the frame of the filter, tile by tile, or all at once if kept."""

    def __init__(self, frame: _FilterScale, references: NDArray[np.floating]) -> None:
        self.frame = frame
        self._references = references
        self._all: tuple[NDArray[np.float32], NDArray[np.float64]] | None = None

    def kept(self) -> _FilterPoints:
        """The same, with all tiles in memory: 4 bytes per value."""
        placed, norms = self.frame.place(self._references)
        self._all = np.ascontiguousarray(placed.T), norms
        return self

    def tile(self, start: int, stop: int) -> tuple[NDArray[np.float32], float]:
        """(d', stop - start), contiguous, and the largest norm."""
        if self._all is None:
            placed, norms = self.frame.place(self._references[start:stop])
            return np.ascontiguousarray(placed.T), float(norms.max())
        columns, norms = self._all
        return np.ascontiguousarray(columns[:, start:stop]), float(norms[start:stop].max())


def _tile_shape(sizes: tuple[int, int, int], threads: int, memory: int) -> tuple[int, int]:
    """Queries b and references t of a tile: 4 b t + 16 (b + t) (d + 3) bytes per thread."""
    n, m, d = sizes
    values, d = memory / 4 / threads, 4 * (d + 3)
    side = min(_TILE_SIDE, np.sqrt(d * d + values) - d)  # b = t uses up the memory
    height = max(1, min(int(side), -(-n // threads)))  # few queries still occupy all threads
    width = min(m, _TILE_SIDE**2 / height, (values - height * d) / (height + d))
    return height, max(1, int(width))
