r"""The k nearest rows of every query under several metrics: prepared once, exact, pruned.

Rows lie in tiles of 32, cells of a k-d tree in the mean of the metrics. Under every metric their
coordinates along the principal axes, in which :math:`\|L\delta\|` is the norm, are rounded to one
byte, and every tile has a box around them. A row at v with code c and :math:`\|v - c\| \le e` is at
least :math:`\|u - c\| - e` away from a query at u, and at least as far as the box of its tile.
Axes that are left out only make these bounds smaller, and rounding is taken into account. Whatever
may be among the k nearest is measured in float64, as :math:`\|L(x - x')\|^2`. So no neighbor is
missed; of equally distant rows the one with the smaller number comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sklearn.utils import gen_batches

from vicinal._typing import FloatArray, IndexArray
from vicinal.kernels.cpu.class_neighbors import Neighbors, check_reach

if TYPE_CHECKING:
    from vicinal.kernels.cpu.metric_search import Codes, ExactMetrics

SAMPLE = 4096
"""Rows from which axes and units are found: any are correct, good ones are faster."""
LEFT_OUT = 0.005
"""Share of the variance along axes that have no codes."""
ORDER_AXES = 16
BLOCK = 2**20
"""Coordinates that are projected at a time."""
QUERIES = 32
"""Queries that a thread takes at a time."""
_WIDTH = 32  # metric_search.WIDTH, without importing Numba
_ROUNDING = 2.0**-48


class SearchMetric(NamedTuple):
    """The metric ‖L (x − x')‖² of some columns; the Euclidean one of all columns without L."""

    columns: slice
    L: FloatArray | None


@dataclass(frozen=True)
class Blocks:
    """Rows in blocks of columns, each of them contiguous, so that a row is near to the next."""

    values: FloatArray
    n: int
    widths: tuple[int, ...]

    @classmethod
    def of(cls, X: FloatArray) -> Blocks:
        """All columns of rows X (n, p) in one block, without a copy where X is contiguous."""
        X = np.ascontiguousarray(X, dtype=np.float64)
        return cls(X.ravel(), len(X), (X.shape[1],))

    @classmethod
    def empty(cls, n: int, widths: Sequence[int]) -> Blocks:
        """Blocks (n, width) to be filled."""
        return cls(np.empty(n * sum(widths)), n, tuple(widths))

    @property
    def starts(self) -> IndexArray:
        """The first column of each block, and the number of columns."""
        return np.cumsum([0, *self.widths])

    def block(self, columns: slice) -> tuple[FloatArray, slice]:
        """The block (n, width) that columns lie in, and where they lie in it."""
        starts = self.starts
        b = int(np.searchsorted(starts, columns.start, "right")) - 1
        start, stop = starts[b], starts[b + 1]
        block = self.values[self.n * start : self.n * stop].reshape(self.n, -1)
        return block, slice(columns.start - start, columns.stop - start)

    def __iter__(self) -> Iterator[FloatArray]:
        """The blocks."""
        return (self.block(slice(start, start + 1))[0] for start in self.starts[:-1])


class _Axes(NamedTuple):
    """Maps of the samples, less their center, to coordinates in units of the codes."""

    maps: list[FloatArray]  # (r, p') of the columns of each metric
    columns: list[slice]
    units: FloatArray  # (M,) code units per unit of distance
    lengths: FloatArray  # (M,) Frobenius norms of the maps
    order_map: FloatArray  # (r', p) to the coordinates that rows are sorted by

    @property
    def starts(self) -> IndexArray:
        """(M + 1,) the first axis of each metric in the list of all of them."""
        return np.cumsum([0, *(len(axes) for axes in self.maps)])

    def coordinates(self, deviations: FloatArray) -> FloatArray:
        """(q, Σ r) of samples (q, p), less their center, under all metrics."""
        found = [
            deviations[:, own] @ axes.T for axes, own in zip(self.maps, self.columns, strict=True)
        ]
        return np.concatenate(found, axis=1)


class MetricIndex:
    """Rows that are laid out once, and then searched many times under several metrics.

    Parameters
    ----------
    X : (n, p) rows of float64, finite, or blocks of their columns; must not change afterwards
    metrics : the metrics
    offsets : (c + 1,) class c is ``X[offsets[c]:offsets[c + 1]]``; None: all are one class
    sort : whether to sort the rows into tiles, which takes longer than it saves few queries

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 1.0]])
    >>> one = np.eye(2)
    >>> index = MetricIndex(X, [SearchMetric(slice(0, 2), one), SearchMetric(slice(0, 2), one[1:])])
    >>> distances, rows = index.nearest(np.array([[2.0, 1.0]]), [2, 1])
    >>> rows.tolist()  # two under the first metric, one under the second
    [[[1, 0]], [[2, -1]]]
    >>> distances.tolist()
    [[[2.0, 5.0]], [[0.0, inf]]]
    """

    def __init__(
        self,
        X: FloatArray | Blocks,
        metrics: Sequence[SearchMetric],
        offsets: IndexArray | None = None,
        *,
        sort: bool = True,
    ) -> None:
        if not isinstance(X, Blocks):
            X = Blocks.of(X)
        offsets = np.array([0, X.n]) if offsets is None else np.asarray(offsets)
        parts = list(X)
        self._center = np.concatenate([part.mean(axis=0) for part in parts])
        step = max(1, X.n // SAMPLE)
        sample = np.concatenate([part[::step] for part in parts], axis=1)
        self._axes = _find_axes(sample - self._center, metrics)
        low, high = (np.concatenate([f(part, axis=0) for part in parts]) for f in (np.min, np.max))
        self._reach = float(np.linalg.norm(np.maximum(high - self._center, self._center - low)))
        self._exact = _exact_metrics(X, metrics)
        order = np.arange(X.n)
        if sort and X.n > _WIDTH:
            order = self._compact_order(X, offsets)
        self._codes = self._encode(X, *_tiles(order, offsets))

    @staticmethod
    def memory(n: int, metrics: Sequence[SearchMetric]) -> int:
        """Bytes that the codes of n rows take, about; the rows themselves are shared."""
        axes = sum(_rank(metric) + 3 for metric in metrics)
        return n * (8 + axes + 2 * 4 * axes // _WIDTH + 5 * len(metrics))

    def nearest(
        self,
        queries: FloatArray,
        ks: Sequence[int],
        exclude: IndexArray | None = None,
        threads: int | None = None,
    ) -> Neighbors:
        """The nearest of all rows, (M, q, k); where there are classes, (M, c, q, k).

        Parameters
        ----------
        queries : (q, p) of float64
        ks : (M,) number of neighbors under each metric, at most k; missing ones are inf and -1
        exclude : (q,) the row that a query may not have for a neighbor (-1: none)
        threads : at most; None: those that Numba may use
        """
        from vicinal.kernels.cpu.metric_search import Questions, search  # imports Numba

        queries = np.ascontiguousarray(queries)
        deviations = queries - self._center
        axes, starts = self._axes, self._axes.starts
        Z = axes.coordinates(deviations)
        check_reach(Z / np.repeat(axes.units, np.diff(starts)), "queries")
        lengths = np.sqrt(np.einsum("qp,qp->q", deviations, deviations)) + self._reach
        blurs = _ROUNDING * deviations.shape[1] * lengths[:, None] * axes.lengths
        blurs += 2.0**-22 * np.sqrt(np.add.reduceat(Z**2, starts[:-1], axis=1))
        counts = np.array(ks)
        asked = Questions(
            queries,
            Z.astype(np.float32),
            axes.units,
            blurs,
            np.full(len(queries), -1) if exclude is None else np.asarray(exclude, dtype=np.int64),
            counts,
            np.argsort(-counts, kind="stable"),
        )
        classes = len(self._codes.class_tiles) - 1
        shape = len(axes.maps), classes, len(queries), int(counts.max())
        found = Neighbors(np.full(shape, np.inf), np.full(shape, -1, dtype=np.int64))

        def search_block(part: slice) -> None:
            own = found.distances[:, :, part].copy(), found.ids[:, :, part].copy()
            search(self._exact, self._codes, asked.part(part), *own)
            found.distances[:, :, part], found.ids[:, :, part] = own

        run_in_threads(search_block, list(gen_batches(len(queries), QUERIES)), threads)
        if shape[1] == 1:
            return Neighbors(found.distances[:, 0], found.ids[:, 0])
        return found

    def _compact_order(self, X: Blocks, offsets: IndexArray) -> IndexArray:
        """(n,) the rows as cells of a k-d tree, one class after the other."""
        from vicinal.kernels.cpu.layout import compact_order  # imports Numba

        Z = np.zeros((X.n, len(self._axes.order_map)), dtype=np.float32)
        for start, part in zip(X.starts, X, strict=False):
            columns = slice(start, start + part.shape[1])
            for block in _blocks(*Z.shape):
                deviations = part[block] - self._center[columns]
                Z[block] += deviations @ self._axes.order_map[:, columns].T
        return np.asarray(compact_order(Z, offsets))

    def _encode(self, X: Blocks, rows: IndexArray, class_tiles: IndexArray) -> Codes:
        from vicinal.kernels.cpu.metric_search import Codes, encode  # imports Numba

        starts = self._axes.starts
        M, tiles = len(self._axes.maps), len(rows) // _WIDTH
        codes = Codes(
            rows,
            class_tiles,
            starts,
            np.empty(starts[-1] * tiles * _WIDTH, dtype=np.int8),
            np.empty((M, tiles, _WIDTH), dtype=np.float32),
            np.empty((starts[-1], tiles), dtype=np.float32),
            np.empty((starts[-1], tiles), dtype=np.float32),
            np.empty((M, tiles), dtype=np.float32),
        )
        for q, (axes, columns) in enumerate(zip(self._axes.maps, self._axes.columns, strict=True)):
            part, inside = X.block(columns)
            U = np.empty((X.n, len(axes)), dtype=np.float32)
            for block in _blocks(*U.shape):
                with np.errstate(over="ignore"):
                    U[block] = (part[block, inside] - self._center[columns]) @ axes.T
            own = slice(starts[q], starts[q + 1])
            coded = codes.codes[own.start * tiles * _WIDTH : own.stop * tiles * _WIDTH]
            encode(
                U, rows, coded.reshape(tiles, len(axes), _WIDTH), codes.norms[q],
                codes.low[own], codes.high[own], codes.errors[q],
            )  # fmt: skip
        return codes


def _width(metric: SearchMetric) -> int:
    return metric.columns.stop - metric.columns.start


def _rank(metric: SearchMetric) -> int:
    return _width(metric) if metric.L is None else len(metric.L)


def _find_axes(deviations: FloatArray, metrics: Sequence[SearchMetric]) -> _Axes:
    """Principal axes of a sample of rows (s, p), less their center, under every metric."""
    p = deviations.shape[1]
    found = [_codes_map(deviations, metric) for metric in metrics]
    maps, columns = [axes for axes, _ in found], [metric.columns for metric in metrics]
    sums = np.zeros((p, p))
    for axes, own in zip(maps, columns, strict=True):
        sums[own, own] += axes.T @ axes
    variances, axes = np.linalg.eigh(sums)
    root = np.sqrt(np.maximum(variances, 0.0))[:, None] * axes.T
    _, axes = np.linalg.eigh(_gram(deviations @ root.T))
    return _Axes(
        maps,
        columns,
        np.array([unit for _, unit in found]),
        np.array([np.linalg.norm(axes) for axes in maps]),
        axes[:, ::-1][:, :ORDER_AXES].T @ root,
    )


def _codes_map(deviations: FloatArray, metric: SearchMetric) -> tuple[FloatArray, float]:
    """The map (r, p') from samples, less their center, to code units; and units per distance."""
    L = np.eye(_rank(metric)) if metric.L is None else metric.L
    Z = deviations[:, metric.columns] @ L.T
    variances, axes = np.linalg.eigh(_gram(Z))
    left = np.cumsum(variances) <= LEFT_OUT * variances.sum()
    axes = axes[:, ~left][:, ::-1] if not left.all() else axes[:, -1:]
    spreads = np.quantile(np.abs(Z @ axes), 0.99, axis=0).max(initial=0.0)
    largest = spreads if spreads > 0 else np.abs(Z).max(initial=0.0)
    unit = 100.0 / largest if 1e-140 < largest < 1e140 else 1.0
    return _padded(unit * (axes.T @ L), axis=0), unit


def _gram(Z: FloatArray) -> FloatArray:
    """ZᵀZ, scaled so that it does not overflow."""
    Z = Z / max(np.abs(Z).max(initial=0.0), 1e-300)
    return np.asarray(Z.T @ Z)


def _exact_metrics(X: Blocks, metrics: Sequence[SearchMetric]) -> ExactMetrics:
    from vicinal.kernels.cpu.metric_search import ExactMetrics  # imports Numba

    factors = [np.empty((0, 0)) if m.L is None else _padded(m.L) for m in metrics]
    sizes = np.array([factor.size for factor in factors])
    places = []
    for metric in metrics:
        block, inside = X.block(metric.columns)
        first = metric.columns.start - inside.start
        places.append((X.n * first + inside.start, block.shape[1]))
    return ExactMetrics(
        X.values,
        np.array(places),
        np.concatenate([factor.ravel() for factor in factors]),
        np.cumsum(sizes) - sizes,
        np.array([metric.columns.start for metric in metrics]),
        np.array([_width(metric) for metric in metrics]),
        np.array([0 if metric.L is None else len(metric.L) for metric in metrics]),
    )


def _padded(L: FloatArray, axis: int = 1) -> FloatArray:
    """The matrix, filled up with zeros along an axis: compiled loops take 4 places at a time."""
    widths = [(0, 0), (0, 0)]
    widths[axis] = (0, -L.shape[axis] % 4)
    return np.pad(L, widths)


def _tiles(order: IndexArray, offsets: IndexArray) -> tuple[IndexArray, IndexArray]:
    """Rows by slot, -1 where the last tile of a class has no more; (c + 1,) tiles of classes."""
    per_class = -(-np.diff(offsets) // _WIDTH)
    class_tiles = np.concatenate([[0], np.cumsum(per_class)])
    codes = np.repeat(np.arange(len(per_class)), np.diff(offsets))
    slots = np.arange(len(order)) - offsets[codes] + _WIDTH * class_tiles[codes]
    rows = np.full(_WIDTH * class_tiles[-1], -1)
    rows[slots] = order
    return rows, class_tiles


def _blocks(n: int, width: int) -> Iterator[slice]:
    return gen_batches(n, max(1, BLOCK // max(width, 1)))


def run_in_threads(
    run: Callable[[slice], None], blocks: Sequence[slice], threads: int | None = None
) -> None:
    """Run a function on blocks, in as many threads as Numba may use, or fewer."""
    import numba

    threads = min(numba.get_num_threads() if threads is None else threads, len(blocks))
    if threads <= 1:
        for block in blocks:
            run(block)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(run, blocks))
