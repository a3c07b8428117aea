"""One evaluation by the compiled loops: layout of the points, work on blocks, sums of threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from vicinal._typing import FloatArray, IndexArray
from vicinal.kernels.contract import Comparisons, IndexLists, Response, SweepResult
from vicinal.kernels.cpu.inner_loops import QUAD
from vicinal.kernels.cpu.layout import (
    MIN_POINTS,
    Arrangement,
    Block,
    compact_order,
    make_tiles,
    needed_runs,
    negligible_gap,
    no_tiles,
    rotate_to_principal_axes,
    transpose_padded,
    whole_runs,
)
from vicinal.kernels.cpu.row_blocks import (
    DIRECT,
    GENTLE,
    SHIFTED,
    backward,
    backward_lists,
    backward_work,
    forward,
    forward_lists,
    forward_work,
    sum_targets,
    weigh_targets,
)


class Memory(NamedTuple):
    """The weights of a block and what describes them, for the compiled loops."""

    E: FloatArray
    """(4q, n) unnormalized weights, by runs of points."""
    runs: IndexArray
    """(q, runs, 2) first and last point of every run."""
    counts: IndexArray
    """(q, 2) how many runs are similar, and how many there are."""
    averages: FloatArray
    """(q, 4, 2) soft averages."""
    sums: FloatArray
    """(q, 4, 2) sums of the weights."""


@dataclass(frozen=True)
class _ThreadSums:
    """The sums of one thread: over columns, over transposed products, over listed pairs."""

    columns: FloatArray  # (n,)
    transposed: FloatArray  # (c', n) or empty
    listed: FloatArray  # (n, c) or empty


class CpuSweep:
    """One sweep: the layout of the points, and the work on a share of the blocks."""

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
        self._use_similar, self._use_dissimilar = self._complete_sides()
        self._lay_out(unmoved)
        self._values, self._seconds = np.zeros(len(Z)), np.zeros(len(Z))
        self._slope_sums = np.zeros(len(Z))
        self._product = np.zeros((len(Z), self._VT.shape[0]))

    def _complete_sides(self) -> tuple[bool, bool]:
        """Which sides are computed from all points; the others from lists, or not at all."""
        return self._comparisons.similar is None, self._comparisons.dissimilar is None

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

    def run(self, respond: Callable[..., Any], blocks: list[Block]) -> _ThreadSums:
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
        work = forward_work(len(self._points[0]), E.dtype), backward_work(len(self._VT))
        for block in blocks:
            quads = block.quads
            averages = np.zeros((len(quads), QUAD, 2))
            sums = np.ones((len(quads), QUAD, 2))
            memory = Memory(E, runs, counts, averages, sums)
            self._choose_runs(quads, block.labels, runs, counts)
            forward(quads, self._points, self._sides, self._modes, memory, work[0])
            coefficients = self._answer(block, memory, part.listed, respond)
            backward(
                quads,
                coefficients,
                self._VT,
                (E, runs, counts),
                self._product,
                part.columns,
                part.transposed if self._symmetric else None,
                work[1],
            )
        return part

    def _answer(
        self, block: Block, memory: Memory, listed: FloatArray, respond: Callable[..., Any]
    ) -> FloatArray:
        """(q, 4, 2) what a unit of unnormalized weight is worth; listed pairs are added at once."""
        rows, taken = self.placed.order[block.anchors], block.taken
        s, t = memory.averages.reshape(-1, 2)[taken].T
        similar, dissimilar = self._forward_lists(rows, s, t)
        self._values[rows], ds, dt, second = Response(*respond(rows, s, t))
        self._seconds[rows] = 0.0 if second is None else second
        coefficients = np.zeros((len(block.quads), QUAD, 2))
        worth = coefficients.reshape(-1, 2)  # (4q, 2) of every place, those of padding 0
        worth[taken, 0] = ds if self._use_similar else 0.0
        worth[taken, 1] = dt if self._use_dissimilar else 0.0
        self._slope_sums[rows] = worth[taken].sum(axis=1)
        coefficients /= memory.sums
        similar.add_to(listed, ds, self._V, self._symmetric)
        dissimilar.add_to(listed, dt, self._V, self._symmetric)
        return coefficients

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
        c = self._comparisons
        listed = c.similar is not None or c.dissimilar is not None
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


class TargetSweep(CpuSweep):
    """One sweep over averages of targets instead of soft averages of distances."""

    def __init__(
        self,
        comparisons: Comparisons,
        unmoved: Arrangement,
        Z: FloatArray,
        V: FloatArray,
        Y: FloatArray,
        symmetric: bool,
    ) -> None:
        super().__init__(comparisons, unmoved, Z, V, (1.0, 1.0), symmetric)
        self._Y = np.asarray(Y, dtype=Z.dtype)  # (n, q)
        self._YT = np.ascontiguousarray(self._Y[self.placed.permuted].T)

    def _complete_sides(self) -> tuple[bool, bool]:
        return self._comparisons.similar is None, False

    def _answer(
        self, block: Block, memory: Memory, listed: FloatArray, respond: Callable[..., Any]
    ) -> FloatArray:
        """W_ij = p_ij (g_i·ŷ_i − g_i·y_j), in place of the weights; it adds up to 0 per row."""
        rows, lists = self.placed.order[block.anchors], self._comparisons.similar
        pairs = _ListedRows.forward(rows, lists, self._Z, 1.0, np.empty(len(rows)))
        averages = self._averages(block, memory) if lists is None else pairs.average(self._Y)
        self._values[rows], slopes = respond(rows, averages)
        # Slopes and weights of any size: their product is made in float64, at the end.
        size = np.abs(slopes).max(axis=1)
        slopes = slopes / np.where(size > 0, size, 1.0)[:, None]
        constants = (slopes * averages).sum(axis=1)
        if lists is None:
            return self._weigh(block, memory, size, np.column_stack([constants, -slopes]))
        weighted = pairs.weighted(constants, slopes, self._Y)
        weighted.add_to(listed, size, self._V, self._symmetric)
        return np.zeros((len(block.quads), QUAD, 2))

    def _averages(self, block: Block, memory: Memory) -> FloatArray:
        """(b, q) the averages of the targets."""
        totals = np.zeros((QUAD * len(block.quads), len(self._YT)))
        sum_targets(memory.E, memory.runs, memory.counts, self._YT, totals)
        return totals[block.taken] / memory.sums[:, :, :1].reshape(-1, 1)[block.taken]

    def _weigh(
        self, block: Block, memory: Memory, size: FloatArray, factors: FloatArray
    ) -> FloatArray:
        """Multiply the weights by factors_i · (1, y_j); what a unit of the product is worth."""
        n_places = QUAD * len(block.quads)
        placed, coefficients = np.zeros((n_places, factors.shape[1])), np.zeros((n_places, 2))
        placed[block.taken], coefficients[block.taken, 0] = factors, size
        weigh_targets(memory.E, memory.runs, memory.counts, self._YT, placed)
        return coefficients.reshape(-1, QUAD, 2) / memory.sums


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

    def average(self, Y: FloatArray) -> FloatArray:
        """(b, q) Σ_j p_ij y_j over the listed points."""
        assert self.lists is not None
        counts = self.lists.counts[self.rows]
        weighted = self.weights[:, None] * Y[self.lists.of(self.rows)].astype(np.float64)  # (p, q)
        return np.add.reduceat(weighted, np.cumsum(counts) - counts) / self.sums[:, None]

    def weighted(self, constants: FloatArray, slopes: FloatArray, Y: FloatArray) -> _ListedRows:
        """The same pairs, with weights times constant_i − slopes_i · y_j."""
        assert self.lists is not None
        owners = np.repeat(np.arange(len(self.rows)), self.lists.counts[self.rows])
        products = np.einsum("pq,pq->p", slopes[owners], Y[self.lists.of(self.rows)])
        return replace(self, weights=self.weights * (constants[owners] - products))

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


def _is_spread_out(norms: FloatArray, gap: float) -> bool:
    """Whether typical squared distances exceed the gap beyond which a point is negligible."""
    return bool(2.0 * norms.mean() > gap)
