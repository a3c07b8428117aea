r"""The k nearest references of every query, class by class: exact, stable, in bounded memory.

Filter and refine. For centered points :math:`a`, :math:`b` the expansion

.. math:: e = \|a\|^2 + \|b\|^2 - 2\, a \cdot b

costs one matrix product a tile, but loses digits. With unit roundoff :math:`u` (Higham's
:math:`\gamma_d` for both norms and the product, the roundings of centering and adding, and the
direct sum's own error) it differs from the directly computed :math:`v = \sum_j (q_j - r_j)^2` by

.. math:: |e - v| \le (4d + 12)\, u\, (\|a\|^2 + \|b\|^2) + O(u^2),

so :math:`e - 8(d + 4)\, u\, (\|a\|^2 + \|b\|^2) > v_k`, the k-th best so far, proves that a
reference is out. All others are measured by direct differences, whose outcome does not depend on
the tiling: duplicates are at exactly 0, nothing is negative, and ties go to the smaller id.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from vicinal.kernels._class_neighbors_numba import Problem

MEMORY = 64 * 2**20  # bytes of working memory, all threads together
_TILE_SIDE = 512  # queries, and references, of a tile: its products stay in the cache
_LARGEST_VALUE = 1e150  # squares beyond it overflow
_UNDERFLOW = 1e-290  # above whatever the expansion loses to underflow
_ROUNDOFF = 2.0**-53
_WORTH_THREADS = 2 * 10**6  # products below which waking threads takes longer than the work


class Neighbors(NamedTuple):
    """Squared distances, ascending, and the ids of the references; missing ones are inf and -1."""

    distances: NDArray[np.float64]
    ids: NDArray[np.int64]


def class_neighbors(
    queries: ArrayLike,
    references: ArrayLike,
    offsets: ArrayLike,
    k: int,
    *,
    ids: ArrayLike | None = None,
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
    references : (m, d) array, sorted by class
    offsets : (c + 1,) ints; class c is ``references[offsets[c]:offsets[c + 1]]``, maybe empty
    k : number of neighbors in each class
    ids : (m,) distinct ints >= 0, default 0 .. m-1
        What to call the references, in the result and in `exclude`. Of equally distant
        references the one with the smaller id comes first.
    exclude : (n,) ints, the id that a query may not have for a neighbor (-1: none)
    query_groups, reference_groups : (n,) and (m,) ints
        A query and a reference of the same group are never neighbors.
    memory : bytes of working memory, beyond the result's n * c * k * 16; the result is the same

    Returns
    -------
    distances, ids : both (n, c, k); distances are float64 whatever the input

    Examples
    --------
    >>> references = [[0.0], [1.0], [5.0]]  # two of the first class, one of the second
    >>> distances, ids = class_neighbors([[2.0]], references, [0, 2, 3], k=2)
    >>> distances
    array([[[ 1.,  4.],
            [ 9., inf]]])
    >>> ids
    array([[[ 1,  0],
            [ 2, -1]]])
    """
    X, R = as_points(queries, "queries"), as_points(references, "references")
    n, m = len(X), len(R)
    if X.shape[1] != R.shape[1]:
        raise ValueError(f"queries have {X.shape[1]} features, references {R.shape[1]}")
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    if (query_groups is None) != (reference_groups is None):
        raise ValueError("give both query_groups and reference_groups, or none of them")
    from vicinal.kernels._class_neighbors_numba import Problem  # imports numba

    problem = Problem(
        queries=X,
        references=R,
        offsets=_offsets(offsets, m),
        ids=_codes(np.arange(m) if ids is None else ids, m, "ids"),
        exclude=_codes(np.full(n, -1) if exclude is None else exclude, n, "exclude"),
        query_groups=_codes(query_groups, n, "query_groups"),
        reference_groups=_codes(reference_groups, m, "reference_groups"),
    )
    return _search(problem, k, memory)


def all_neighbors(queries: ArrayLike, references: ArrayLike, k: int, **options: Any) -> Neighbors:
    """Find the k nearest of all references for every query.

    The same as :func:`class_neighbors` with one class, and with its keyword options, except that
    the result is (n, k) and the references are in any order.

    Examples
    --------
    Leave-one-out neighbors of three points:

    >>> points = [[0.0], [1.0], [5.0]]
    >>> all_neighbors(points, points, k=1, exclude=[0, 1, 2]).ids.ravel()
    array([1, 0, 1])
    """
    R = np.asarray(references)
    distances, ids = class_neighbors(queries, R, [0, len(R)], k, **options)
    return Neighbors(distances[:, 0], ids[:, 0])


def as_points(values: ArrayLike, name: str) -> NDArray[np.floating]:
    """`values` as rows of float32 or float64 whose squared distances do not overflow."""
    X = np.asarray(values)
    X = np.ascontiguousarray(X, dtype=X.dtype if X.dtype == np.float32 else np.float64)
    if X.ndim != 2:
        raise ValueError(f"{name} must have two dimensions, got shape {X.shape}")
    if X.size and not max(float(X.max()), -float(X.min())) <= _LARGEST_VALUE:
        raise ValueError(
            f"{name} has NaN, infinity or values beyond {_LARGEST_VALUE:g}, whose squared "
            "distances overflow: clean or rescale it"
        )
    return X


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


def _search(problem: Problem, k: int, memory: int) -> Neighbors:
    """Spread blocks of queries over threads; each thread writes its own rows of the result."""
    import numba

    (n, d), m, c = problem.queries.shape, len(problem.references), len(problem.offsets) - 1
    found = Neighbors(np.full((n, c, k), np.inf), np.full((n, c, k), -1, dtype=np.int64))
    if n == 0 or m == 0:
        return found
    center = problem.references.mean(axis=0, dtype=np.float64)  # (d,)
    threads = numba.get_num_threads() if n * m * d >= _WORTH_THREADS else 1
    height, width = _tile_shape((n, m, d), threads, memory)

    def search_block(start: int) -> None:
        _search_rows(problem, found, center, slice(start, min(start + height, n)), width)

    blocks = range(0, n, height)
    if n * m * d < _WORTH_THREADS:
        for start in blocks:
            search_block(start)
    else:
        with _one_blas_thread(), ThreadPoolExecutor(threads) as pool:
            list(pool.map(search_block, blocks))
    return found


def _search_rows(
    problem: Problem, found: Neighbors, center: NDArray[np.float64], rows: slice, width: int
) -> None:
    """Pass all references, `width` at a time, before a block of b queries."""
    from vicinal.kernels._class_neighbors_numba import Tile, scan, sort_heaps

    A = np.subtract(problem.queries[rows], center, dtype=np.float64)  # (b, d)
    query_bound = _lowered_norms(A)  # (b,)
    A *= -2.0
    product = np.empty((len(A), width))  # (b, t)
    m = len(problem.references)
    for start in range(0, m, width):
        stop = min(start + width, m)
        B = np.subtract(problem.references[start:stop], center, dtype=np.float64)  # (t, d)
        np.matmul(A, B.T, out=product[:, : stop - start])
        first = int(np.searchsorted(problem.offsets, start, side="right")) - 1
        tile = Tile(rows.start, start, stop, first, query_bound, _lowered_norms(B), product)
        scan(problem, tile, found.distances, found.ids)
    sort_heaps(found.distances[rows], found.ids[rows])


def _lowered_norms(A: NDArray[np.float64]) -> NDArray[np.float64]:
    """Squared norms less their share of the error bound (see the module's docstring)."""
    slack = 8 * (A.shape[1] + 4) * _ROUNDOFF
    norms: NDArray[np.float64] = np.einsum("ij,ij->i", A, A)
    return norms * (1 - slack) - _UNDERFLOW


def _tile_shape(sizes: tuple[int, int, int], threads: int, memory: int) -> tuple[int, int]:
    """Queries b and references t of a tile: b t products, (b + t) d centered values a thread."""
    n, m, d = sizes
    values = memory / 8 / threads
    side = min(_TILE_SIDE, np.sqrt(d * d + values) - d)  # b = t uses up the memory
    height = max(1, min(int(side), -(-n // threads)))  # few queries still occupy all threads
    width = min(m, _TILE_SIDE**2 / height, (values - height * d) / (height + d))
    return height, max(1, int(width))


_blas_lock = threading.Lock()
_blas_users = 0
_blas_limit: Any = None


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """Keep BLAS on one thread: tiles are spread over threads already. Counts nested users."""
    global _blas_users, _blas_limit
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

    with _blas_lock:
        if _blas_users == 0:
            _blas_limit = threadpool_limits(1, user_api="blas")
        _blas_users += 1
    try:
        yield
    finally:
        with _blas_lock:
            _blas_users -= 1
            if _blas_users == 0:  # the last of overlapping searches restores the user's setting
                _blas_limit.unregister()
