"""The Numba kernel: fused, threaded over rows, nothing n×n in memory.

One evaluation lays the points out once (transposed, padded, in compact order where skipping
pays) and lets every thread take its share of the blocks. The anchors are cut into quads of one
class, the quads into blocks whose weights fit a cache: once for all evaluations, unless the order
changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache, partial

import numpy as np

from vicinal._typing import FloatArray, IndexArray
from vicinal.kernels.contract import (
    Comparisons,
    HostKernel,
    IndexLists,
    Respond,
    Response,
    SweepResult,
)
from vicinal.kernels.cpu.inner_loops import QUAD
from vicinal.kernels.cpu.layout import (
    MIN_POINTS,
    Arrangement,
    Block,
    compact_order,
    cut_into_blocks,
    make_tiles,
    needed_runs,
    negligible_gap,
    no_tiles,
    rotate_to_principal_axes,
    run_in_shares,
    transpose_padded,
    whole_runs,
)
from vicinal.kernels.cpu.row_blocks import (
    DIRECT,
    GENTLE,
    SHIFTED,
    backward,
    backward_lists,
    forward,
    forward_lists,
)

BLOCK_ELEMENTS = 2**19
"""Weights per block: 4 MiB in float64, within reach of the second and third caches."""
SERIAL_ELEMENTS = 2**18
"""Evaluations of fewer weights than this are not worth waking threads."""


class CpuKernel(HostKernel):
    """See :class:`vicinal.kernels.contract.Kernel`."""

    def __init__(self, comparisons: Comparisons) -> None:
        self._comparisons = comparisons
        self._unmoved = Arrangement.of(comparisons)

    @cached_property
    def _all_blocks(self) -> list[Block]:
        """Of all anchors, where points keep the order of the rows."""
        return _blocks(self._unmoved, self._comparisons.anchors)

    def sweep(
        self,
        Z: FloatArray,
        V: FloatArray,
        respond: Respond,
        *,
        alpha: float,
        beta: float = 1.0,
        symmetric: bool = False,
        rows: IndexArray | None = None,
    ) -> SweepResult:
        """See :meth:`vicinal.kernels.contract.Kernel.sweep`."""
        exponents = float(alpha), float(beta)
        sweep = _Evaluation(self._comparisons, self._unmoved, Z, V, exponents, symmetric)
        if rows is None and not sweep.reordered:
            blocks = self._all_blocks
        else:
            blocks = _blocks(sweep.placed, self._comparisons.anchors if rows is None else rows)
        elements = QUAD * sum(len(block.quads) for block in blocks) * len(Z)
        run = partial(sweep.run, respond)
        return sweep.assemble(run_in_shares(run, blocks, threaded=elements >= SERIAL_ELEMENTS))


@dataclass(frozen=True)
class _ThreadSums:
    """The sums of one thread: over columns, over transposed products, over listed pairs."""

    columns: FloatArray  # (n,)
    transposed: FloatArray  # (c', n) or empty
    listed: FloatArray  # (n, c) or empty


class _Evaluation:
    """One evaluation: the layout of the points, and the work on a share of the blocks."""

    def __init__(
        self,
        comparisons: Comparisons,
        unmoved: Arrangement,
        Z: FloatArray,
        V: FloatArray,
        exponents: tuple[float, float],
        symmetric: bool,
    ) -> None:
        self._comparisons, self._Z, self._V = comparisons, np.ascontiguousarray(Z), V
        self._alpha, self._beta = exponents
        self._symmetric = symmetric
        self._use_similar = comparisons.similar is None
        self._use_dissimilar = comparisons.dissimilar is None
        self._lay_out(unmoved)
        self._values, self._seconds = np.zeros(len(Z)), np.zeros(len(Z))
        self._slope_sums = np.zeros(len(Z))
        self._product = np.zeros((len(Z), self._VT.shape[0]))

    # -- layout ------------------------------------------------------------------------------

    def _lay_out(self, unmoved: Arrangement) -> None:
        """Points in the order and the form that the compiled loops want."""
        Z, placed, offsets = self._Z, unmoved, unmoved.offsets
        norms = np.einsum("ij,ij->i", Z, Z)
        gaps = self._gaps()
        prune = len(Z) >= MIN_POINTS and _is_spread_out(norms, max(gaps))
        if prune:
            Z = rotate_to_principal_axes(Z)
            placed = Arrangement.of(self._comparisons, compact_order(Z, offsets))
        self.placed, self._prune = placed, prune
        ZT = transpose_padded(Z[placed.permuted])
        shared = self._V is self._Z and not prune
        self._VT = ZT if shared else transpose_padded(self._V[placed.permuted])
        tiles = make_tiles(ZT, offsets) if prune else no_tiles(ZT.dtype)
        self._points = (ZT, norms[placed.permuted], placed.groups)
        self._tiles, self._tile_gaps = tiles, gaps
        used = self._use_similar, self._use_dissimilar
        self._sides = (self._alpha, self._beta, *used, *placed.sizes)
        # No squared distance exceeds 4 max‖z‖², the points being centered; 2 mean‖z‖² is typical.
        farthest, typical = 4.0 * float(norms.max(initial=0.0)), 2.0 * float(norms.mean())
        self._modes = tuple(_mode(a, farthest, typical, Z.dtype) for a in (self._alpha, self._beta))

    def _gaps(self) -> tuple[float, float]:
        """Per side, the distance beyond the nearest point at which points are negligible."""
        gap = negligible_gap(len(self._Z), self._Z.dtype)

        def of(used: bool, exponent: float) -> float:
            if not used:
                return -np.inf
            return gap / exponent if exponent > 0 else np.inf

        return of(self._use_similar, self._alpha), of(self._use_dissimilar, self._beta)

    # -- work --------------------------------------------------------------------------------

    @property
    def reordered(self) -> bool:
        """Whether positions differ from rows."""
        return self._prune

    def run(self, respond: Respond, blocks: list[Block]) -> _ThreadSums:
        """Forward, respond, backward for every block of one thread's share."""
        part = self._empty_part()
        if not blocks:
            return part
        q, n = max(len(block.quads) for block in blocks), len(self._Z)
        max_runs = self._tiles.low.shape[1] + 3
        E = np.empty(
            (QUAD * q, n if self._use_similar or self._use_dissimilar else 0), self._Z.dtype
        )
        runs = np.empty((q, max_runs, 2), dtype=np.int64)
        counts = np.zeros((q, 2), dtype=np.int64)
        for quads, labels, _, taken, anchors in blocks:
            averages = np.zeros((len(quads), QUAD, 2))
            sums = np.ones((len(quads), QUAD, 2))
            memory = (E, runs, counts, averages, sums)
            self._choose_runs(quads, labels, runs, counts)
            forward(quads, self._points, self._sides, self._modes, memory)
            rows = self.placed.order[anchors]
            s, t = averages.reshape(-1, 2)[taken].T
            similar, dissimilar = self._forward_lists(rows, s, t)
            self._values[rows], ds, dt, second = Response(*respond(rows, s, t))
            self._seconds[rows] = 0.0 if second is None else second
            coefficients = np.zeros((len(quads), QUAD, 2))
            worth = coefficients.reshape(-1, 2)  # (4q, 2) of every place, those of padding 0
            worth[taken, 0] = ds if self._use_similar else 0.0
            worth[taken, 1] = dt if self._use_dissimilar else 0.0
            self._slope_sums[rows] = worth[taken].sum(axis=1)
            coefficients /= sums
            backward(
                quads,
                coefficients,
                self._VT,
                self._symmetric,
                (E, runs, counts),
                self._product,
                part.columns,
                part.transposed,
            )
            similar.add_to(part.listed, ds, self._V, self._symmetric)
            dissimilar.add_to(part.listed, dt, self._V, self._symmetric)
        return part

    def _choose_runs(
        self, quads: IndexArray, labels: IndexArray, runs: IndexArray, counts: IndexArray
    ) -> None:
        """Which points each quad has to look at."""
        if self._prune:
            ZT, _, groups = self._points
            needed_runs(quads, labels, ZT, groups, self._tiles, self._tile_gaps, runs, counts)
        else:
            used = self._use_similar, self._use_dissimilar
            whole_runs(labels, self.placed.offsets, *used, runs, counts)

    def _empty_part(self) -> _ThreadSums:
        n = len(self._Z)
        listed = not (self._use_similar and self._use_dissimilar)
        return _ThreadSums(
            columns=np.zeros(n),
            transposed=np.zeros((self._VT.shape[0] if self._symmetric else QUAD, n)),
            listed=np.zeros(self._V.shape if listed else (0, 0)),
        )

    def _forward_lists(
        self, rows: IndexArray, s: FloatArray, t: FloatArray
    ) -> tuple[_ListedRows, _ListedRows]:
        """Soft averages over the sides that are lists, written into s and t."""
        c = self._comparisons
        return (
            _ListedRows.forward(rows, c.similar, self._Z, self._alpha, s),
            _ListedRows.forward(rows, c.dissimilar, self._Z, self._beta, t),
        )

    def assemble(self, parts: list[_ThreadSums]) -> SweepResult:
        """The values' sum, and H = ½ Δ V − W V or Lap V = Δ V − W V − Wᵀ V, by rows."""
        c = self._V.shape[1]
        delta = np.zeros(len(self._Z))  # by position
        for part in parts:
            delta += part.columns
        out = (delta[self.placed.position] + self._slope_sums)[:, None] * self._V
        out *= 1.0 if self._symmetric else 0.5
        out -= self._product[self.placed.position, :c]
        for part in parts:
            if self._symmetric:
                out -= part.transposed.T[self.placed.position, :c]
            if part.listed.size:
                out += part.listed
        laplacian = out.astype(self._V.dtype, copy=False)
        return SweepResult(float(self._values.sum()), laplacian, second=float(self._seconds.sum()))


@dataclass(frozen=True)
class _ListedRows:
    """The listed comparisons of a block of rows: their weights between forward and backward."""

    rows: IndexArray
    lists: IndexLists | None
    weights: FloatArray
    sums: FloatArray

    @classmethod
    def forward(
        cls,
        rows: IndexArray,
        lists: IndexLists | None,
        Z: FloatArray,
        exponent: float,
        out: FloatArray,
    ) -> _ListedRows:
        if lists is None:
            return cls(rows, None, np.empty(0), np.empty(0))
        weights = np.empty(int(lists.counts[rows].sum()), dtype=Z.dtype)
        averages, sums = np.empty(len(rows)), np.empty(len(rows))
        forward_lists(rows, lists.indptr, lists.indices, Z, exponent, weights, averages, sums)
        out[:] = averages
        return cls(rows, lists, weights, sums)

    def add_to(self, out: FloatArray, slope: FloatArray, V: FloatArray, symmetric: bool) -> None:
        if self.lists is not None:
            scaled = np.asarray(slope / self.sums, dtype=np.float64)
            backward_lists(
                self.rows,
                self.lists.indptr,
                self.lists.indices,
                scaled,
                self.weights,
                V,
                symmetric,
                out,
            )


def _mode(exponent: float, farthest: float, typical: float, dtype: np.dtype) -> int:
    """How exponents −α d up to α·farthest, most about α·typical, are best kept in range."""
    if abs(exponent) * farthest <= 0.5:
        return GENTLE
    return DIRECT if 0 < exponent * typical < _reach(dtype) else SHIFTED


@lru_cache
def _reach(dtype: np.dtype) -> float:
    """The exponent that a typical distance may have where exponentials are taken as they are."""
    return float(-0.4 * np.log(np.finfo(dtype).tiny))


def _blocks(placed: Arrangement, rows: IndexArray) -> list[Block]:
    """The rows in blocks whose weights fit a cache."""
    return cut_into_blocks(np.sort(placed.position[rows]), placed.offsets, BLOCK_ELEMENTS)


def _is_spread_out(norms: FloatArray, gap: float) -> bool:
    """Whether typical squared distances exceed the gap beyond which a point is negligible."""
    return bool(2.0 * norms.mean() > gap)
