"""One evaluation by the tile kernels: pass 1, then pass 2, on one GPU (or in the interpreter)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from vicinal.kernels.gpu.panel import (
    DISSIMILAR,
    FAR,
    MIXED,
    REACH,
    SIMILAR,
    Labels,
    Split,
    feature_blocks,
    padded_size,
    power_of_two,
    tile_ranges,
)
from vicinal.kernels.gpu.tiling import log_sum_tiling, product_tiling, value_width
from vicinal.kernels.gpu.triton_passes import log_sums, weighted_sums

LARGEST_SLOPE = 2.0**13
"""What slopes are scaled to, so that weights have the range of float16."""
CHUNK = 128
"""Tiles after which the sums of pass 2 are added to those in memory."""


class TritonSweep:
    """Distances, soft averages and weighted sums of n points; nothing n×n is ever in memory.

    Parameters
    ----------
    Z : (n, m) float64 tensor, m at most 256, centered
    labels : the class and the group of every row
    complete : which of the sides, similar and dissimilar, are computed here
    gammas : exponents of the two sides; finite, not zero
    parts : 1, 2 or 3 float16 parts of every number
        11 bits; 22 bits, and exponents rounded to float32; large terms exact (Split).
    memory : bytes of shared memory for tiles, enough for some (``tiling.tiles_fit``)
    """

    def __init__(
        self,
        Z: Tensor,
        labels: Labels,
        complete: tuple[bool, bool],
        gammas: tuple[float, float],
        parts: int,
        memory: int,
    ) -> None:
        self.n = len(Z)
        self._memory = memory
        self._labels, self._complete, self._parts = labels, complete, parts
        # Exponents of the side that sets the scale of the points are differences of integers; a
        # side that is not computed here has its exponent, so that nothing is 0 or infinite.
        leading = gammas[DISSIMILAR] if complete[DISSIMILAR] else gammas[SIMILAR]
        used = [g if c else leading for g, c in zip(gammas, complete, strict=True)]
        self._signs = [math.copysign(1.0, gamma) for gamma in used]
        self._root = math.sqrt(2 * abs(leading) * math.log2(math.e))
        self._points = Split.of(Z * self._root, parts)
        device = Z.device
        self._kappas = torch.tensor(used, dtype=torch.float64, device=device) * math.log2(math.e)
        self._ratios = (self._kappas / self._kappas[DISSIMILAR if complete[1] else SIMILAR]).abs()
        self._scales = self._ratios / self._points.unit**2  # (2,)
        half = 0.5 * self._points.seen().square().sum(1)
        self._half = half.round() if parts == 3 else half
        self._rest = half - self._half  # 0 but for 3 parts
        self.state = torch.full((2, self.n), FAR, dtype=torch.float64, device=device)
        """(2, n) log₂ Σ_j 2^(−κ d_ij); FAR where pass 1 has not been."""

    def soft_averages(self, rows: Tensor | None, counts: Tensor) -> Tensor:
        """(2, b) float64: s and t of these rows; ``counts`` (2, n) are the sizes of the sets."""
        logs = self._log_sums(rows)
        rows = torch.arange(self.n, device=logs.device) if rows is None else rows
        self.state[:, rows] = logs
        return (counts[:, rows].log2() - logs) / self._kappas[:, None]

    def _log_sums(self, rows: Tensor | None) -> Tensor:
        points, labels = self._selected(rows)
        tiling = log_sum_tiling(points.parts.shape[2], self._parts, self._memory)
        n_rows, n_cols = points.parts.shape[1], self._points.parts.shape[1]
        found = torch.zeros((3, 2, 2, n_rows), device=points.parts.device)
        ranges = tile_ranges(labels, self._labels, tiling.height, tiling.width)
        blocks, block = feature_blocks(points.width)
        row_data, col_data = self._norms(rows), self._norms(None)
        for kind in self._kinds():
            log_sums[(n_rows // tiling.height,)](
                points.parts, row_data, labels.ids, n_rows,
                self._points.parts, col_data, self._labels.ids, n_cols,
                ranges, self._scales.float(), found[kind],
                KIND=kind, SIGN_S=self._signs[0], SIGN_D=self._signs[1],
                NB=blocks, KB=block, PARTS=self._parts, **tiling.options,
            )  # fmt: skip
        top, total = found[..., : points.n].double().unbind(2)  # (3, 2, n) each
        logs = torch.where(total > 0, top * self._scales[:, None] + total.log2(), -math.inf)
        logs = torch.logsumexp(logs * math.log(2), dim=0) / math.log(2)
        logs[[not complete for complete in self._complete]] = FAR
        return torch.where(logs > -math.inf, logs, FAR)

    def _kinds(self) -> list[int]:
        kinds = [DISSIMILAR] if self._complete[DISSIMILAR] else []
        return kinds + ([SIMILAR] if self._complete[SIMILAR] else []) + [MIXED]

    def laplacian(
        self,
        V: Tensor | None,
        slopes: tuple[Tensor, Tensor],
        rows: Tensor | None = None,
        cols: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Σ_j U_ij (v_i − v_j) (b, c) and Σ_j U_ij (b,), float64, with U_ij = W_ij + W_ji.

        ``slopes``, each (2, n), weigh the W_ij of a row, and the W_ji of a column. None for V
        means Z, None for the b rows, or for the columns, all of them.
        """
        widest = value_width(self._points.parts.shape[2], self._parts, self._memory)
        if V is not None and V.shape[1] > widest:
            parts = [self.laplacian(v, slopes, rows, cols) for v in V.split(widest, dim=1)]
            return torch.cat([flow for flow, _ in parts], dim=1), parts[0][1]
        values = self._points if V is None else Split.of(V, self._parts, each_feature=True)
        unit = values.unit * (self._root if V is None else 1.0)
        slope_unit = power_of_two(LARGEST_SLOPE, torch.stack(slopes).abs().max())
        scaled = (slopes[0] * slope_unit, slopes[1] * slope_unit)
        sums, degrees = self._products(values, scaled, rows, cols)
        own = values.seen()
        own = own if rows is None else own[rows]
        return (degrees[:, None] * own - sums) / (unit * slope_unit), degrees / slope_unit

    def _products(
        self,
        values: Split,
        slopes: tuple[Tensor, Tensor],
        rows: Tensor | None,
        cols: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        shared = values is self._points
        blocks, block = feature_blocks(self._points.width)
        value_blocks, value_block = feature_blocks(values.width)
        extra = 0 if shared else value_blocks * value_block
        tiling = product_tiling(blocks * block, extra, self._parts, self._memory)
        (points_i, labels_i), (points_j, labels_j) = self._selected(rows), self._selected(cols)
        values_j = points_j if shared else values if cols is None else values.take(cols)
        data_i, stats_i = self._planes(rows, slopes[0], tiling.height)
        data_j, stats_j = self._planes(cols, slopes[1], tiling.width)
        n_rows, n_cols = points_i.parts.shape[1], points_j.parts.shape[1]
        sums = data_i.new_zeros((n_rows, value_blocks * value_block), dtype=torch.float64)
        degrees = data_i.new_zeros(n_rows, dtype=torch.float64)
        ranges = tile_ranges(labels_i, labels_j, tiling.height, tiling.width)
        for kind in self._kinds():
            weighted_sums[(n_rows // tiling.height,)](
                points_i.parts, data_i, labels_i.ids, stats_i, n_rows,
                points_j.parts, data_j, labels_j.ids, stats_j, n_cols,
                values_j.parts, ranges, self._scales.float(), sums, degrees,
                KIND=kind, SIGN_S=self._signs[0], SIGN_D=self._signs[1],
                NB=blocks, KB=block, NV=value_blocks, KV=value_block,
                PARTS=self._parts, SHARED=shared, CHUNK=CHUNK, **tiling.options,
            )  # fmt: skip
        return sums[: points_i.n, : values.width], degrees[: points_i.n]

    def _selected(self, rows: Tensor | None) -> tuple[Split, Labels]:
        if rows is None:
            return self._points, self._labels
        return self._points.take(rows), self._labels.take(rows)

    def _norms(self, rows: Tensor | None) -> Tensor:
        """The planes of the half norms, (3, N): padding is infinitely far, to either side."""
        half, rest = self._half, self._rest
        if rows is not None:
            half, rest = half[rows], rest[rows]
        size = padded_size(len(half))
        sides = [_padded(half[None], size, sign * math.inf) for sign in self._signs]
        return torch.cat([*sides, _padded(rest[None], size, 0.0)]).float().contiguous()

    def _planes(self, rows: Tensor | None, slopes: Tensor, height: int) -> tuple[Tensor, Tensor]:
        """Planes (9, N) and the lowest and highest log sums of every tile, (tiles, 4)."""
        logs = self.state
        if rows is not None:
            logs, slopes = logs[:, rows], slopes[:, rows]
        norms = self._norms(rows)
        size, known = norms.shape[1], logs < FAR / 2
        # Powers of 2 apart from the tops of pass 1: the same exponentials, whose sum is known.
        top = torch.where(known, logs.round() / self._scales[:, None], FAR).float().double()
        near = slopes * torch.exp2(top * self._scales[:, None] - logs)
        tiles = _padded(torch.where(known, logs, FAR), size, FAR).view(2, -1, height)
        low = tiles.amin(2).floor()  # (2, tiles), integers: their powers of 2 are exact
        high = torch.where(tiles < FAR / 2, tiles, -FAR).amax(2)
        # References are exact for exponents that are integers over a power of 2, for others not.
        high[self._ratios != 1] = FAR
        reference = low.repeat_interleave(height, dim=1)[:, : logs.shape[1]] + REACH
        scaled = slopes * torch.exp2(reference - logs)
        norms = norms.clamp(-FAR, FAR)  # padding has a weight of 0, not of 0 · ∞
        planes = [_padded(top, size, FAR)]
        planes += [_padded(torch.where(known, plane, 0.0), size, 0.0) for plane in (near, scaled)]
        stats = torch.stack([low[0], high[0], low[1], high[1]], dim=1).float()
        return torch.cat([norms, *(plane.float() for plane in planes)]), stats.contiguous()


def _padded(values: Tensor, size: int, filling: float) -> Tensor:
    """(k, n) → (k, size)."""
    return torch.nn.functional.pad(values, (0, size - values.shape[1]), value=filling)
