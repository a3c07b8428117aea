"""One evaluation by the tile kernels: pass 1, then pass 2, on one GPU (or in the interpreter)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from vicinal.kernels.gpu.panel import PAD, Labels, Split, feature_blocks, power_of_two, tile_ranges
from vicinal.kernels.gpu.triton_log_sums import log_sums
from vicinal.kernels.gpu.triton_products import weighted_sums

FAR = 1e30
REACH = 64.0
LARGEST_SLOPE = 2.0**13
CHUNK = 128
SHARED_MEMORY = 216 * 2**10
"""Of a program; the chip has 227 KiB, the compiler takes some for itself."""
DISSIMILAR, SIMILAR, MIXED = 1, 0, 2


@dataclass(frozen=True)
class Tiling:
    """Rows and columns of a tile, warps of a program, tiles that are loaded ahead."""

    height: int
    width: int
    warps: int
    stages: int

    @property
    def options(self) -> dict[str, int]:
        return {
            "BM": self.height,
            "BN": self.width,
            "num_warps": self.warps,
            "num_stages": self.stages,
        }


def log_sum_tiling(features: int) -> Tiling:
    """The fastest of some on an H200."""
    if features <= 64:
        return Tiling(64, 128 if features <= 32 else 64, 4, 2)
    return _first_that_fits(features, 0)


def product_tiling(features: int, values: int) -> Tiling:
    """The fastest of some on an H200; ``values`` is the width of V where it is not Z, else 0."""
    if features + values <= 64:
        return Tiling(64, 128, 4, 3 if features + values <= 32 else 2)
    return _first_that_fits(features, values)


def _first_that_fits(features: int, values: int) -> Tiling:
    """Shared memory holds 4 bytes a feature of every row, and of all columns loaded ahead."""
    wide, narrow, narrowest = Tiling(128, 64, 8, 2), Tiling(64, 64, 4, 2), Tiling(64, 32, 4, 2)
    for tiling in (wide, narrow):
        ahead = tiling.stages * tiling.width * (features + values)
        if 4 * (tiling.height * features + ahead) <= SHARED_MEMORY:
            return tiling
    return narrowest


class TritonSweep:
    """Distances, soft averages and weighted sums of n points; nothing n×n is ever in memory.

    Parameters
    ----------
    Z : (n, m) float64 tensor, m at most 256, centered
    labels : the class and the group of every row
    complete : which of the sides, similar and dissimilar, are computed here
    gammas : exponents of the two sides; finite, not zero
    parts : 2 float16 parts of every number ("high"), or 1 ("fast")
    """

    def __init__(
        self,
        Z: Tensor,
        labels: Labels,
        complete: tuple[bool, bool],
        gammas: tuple[float, float],
        parts: int,
    ) -> None:
        self.n = len(Z)
        self._points = Split.of(Z)
        self._labels, self._complete, self._parts = labels, complete, parts
        # Rounded first, so that the exponents' parts agree on it.
        kappas = torch.tensor([gamma * math.log2(math.e) for gamma in gammas]).float().double()
        self._kappas = kappas.to(Z.device)  # (2,)
        self._norms = self._points.seen(parts).square().sum(1)  # (n,)
        self._scales = (2 * self._kappas / self._points.unit**2).float()
        self._biases = -self._kappas[:, None] * self._norms  # (2, n)
        self.state = torch.full((2, self.n), FAR, device=Z.device)
        """(2, n) the raw log sums of pass 1; FAR where it has not been."""

    def soft_averages(self, rows: Tensor | None, counts: Tensor) -> Tensor:
        """(2, b) float64: s and t of these rows; ``counts`` (2, n) are the sizes of the sets."""
        raw = self._log_sums(rows)
        rows = torch.arange(self.n, device=raw.device) if rows is None else rows
        self.state[:, rows] = raw
        logs = raw.double() - counts[:, rows].log2()
        return self._norms[rows] - logs / self._kappas[:, None]

    def _log_sums(self, rows: Tensor | None) -> Tensor:
        tiling = log_sum_tiling(self._points.hi.shape[1])
        points, labels = self._selected(rows)
        n_rows, n_cols = len(points.hi), len(self._points.hi)
        sums = torch.full((3, 2, n_rows), -FAR, device=points.hi.device)
        columns = _padded(self._biases.float(), n_cols, -math.inf)
        ranges = tile_ranges(labels, self._labels, tiling.height, tiling.width)
        blocks, block = feature_blocks(points.width)
        for kind in self._kinds():
            log_sums[(n_rows // tiling.height,)](
                points.hi, points.lo, labels.ids, n_rows,
                self._points.hi, self._points.lo, columns, self._labels.ids, n_cols,
                ranges, self._scales, sums[kind],
                KIND=kind, NB=blocks, KB=block, PARTS=self._parts, **tiling.options,
            )  # fmt: skip
        sums = torch.logsumexp(sums.double() * math.log(2), dim=0) / math.log(2)
        sums = torch.where(sums > -FAR / 2, sums, FAR).float()[:, : points.n]
        sums[[not complete for complete in self._complete]] = FAR
        return sums

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
        if V is not None and V.shape[1] > 128:
            parts = [self.laplacian(v, slopes, rows, cols) for v in V.split(128, dim=1)]
            return torch.cat([flow for flow, _ in parts], dim=1), parts[0][1]
        unit = power_of_two(LARGEST_SLOPE, torch.stack(slopes).abs().max())
        values = self._points if V is None else Split.of(V, each_feature=True)
        sums, degrees = self._products(values, (slopes[0] * unit, slopes[1] * unit), rows, cols)
        own = values.seen(self._parts)
        own = own if rows is None else own[rows]
        return (degrees[:, None] * own - sums / values.unit) / unit, degrees / unit

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
        tiling = product_tiling(blocks * block, 0 if shared else value_blocks * value_block)
        (points_i, labels_i), (points_j, labels_j) = self._selected(rows), self._selected(cols)
        values_j = points_j if shared else values if cols is None else values.take(cols)
        data_i, stats_i = self._planes(rows, slopes[0], tiling.height)
        data_j, stats_j = self._planes(cols, slopes[1], tiling.width)
        n_rows, n_cols = len(points_i.hi), len(points_j.hi)
        sums = torch.zeros((n_rows, value_blocks * value_block), device=data_i.device)
        degrees = torch.zeros(n_rows, device=data_i.device)
        ranges = tile_ranges(labels_i, labels_j, tiling.height, tiling.width)
        for kind in self._kinds():
            weighted_sums[(n_rows // tiling.height,)](
                points_i.hi, points_i.lo, data_i, labels_i.ids, stats_i, n_rows,
                points_j.hi, points_j.lo, data_j, labels_j.ids, stats_j, n_cols,
                values_j.hi, values_j.lo, ranges, self._scales, sums, degrees,
                KIND=kind, NB=blocks, KB=block, NV=value_blocks, KV=value_block,
                PARTS=self._parts, SHARED=shared, CHUNK=CHUNK, **tiling.options,
            )  # fmt: skip
        return sums[: points_i.n, : values.width].double(), degrees[: points_i.n].double()

    def _selected(self, rows: Tensor | None) -> tuple[Split, Labels]:
        if rows is None:
            return self._points, self._labels
        return self._points.take(rows), self._labels.take(rows)

    def _planes(self, rows: Tensor | None, slopes: Tensor, height: int) -> tuple[Tensor, Tensor]:
        """Planes (10, N) and the lowest and highest log sums of every tile, (tiles, 4)."""
        biases, raw = self._biases, self.state
        if rows is not None:
            biases, raw, slopes = biases[:, rows], raw[:, rows], slopes[:, rows]
        size = -(-raw.shape[1] // PAD) * PAD
        known = raw < FAR / 2
        logs = torch.where(known, raw.double() + biases, FAR).float()  # (2, b)
        tiles = _padded(logs, size, FAR).view(2, -1, height)
        low = tiles.amin(2)  # (2, tiles)
        high = torch.where(tiles < FAR / 2, tiles, -FAR).amax(2)
        reference = low.repeat_interleave(height, dim=1)[:, : raw.shape[1]] + REACH
        scaled = torch.where(known, slopes * torch.exp2((reference - logs).double()), 0.0)
        slopes = torch.where(known, slopes, 0.0)
        planes = [_padded(biases.float(), size, -math.inf), _padded(raw, size, FAR)]
        planes += [_padded(logs, size, FAR)]
        planes += [_padded(plane.float(), size, 0.0) for plane in (slopes, scaled)]
        stats = torch.stack([low[0], high[0], low[1], high[1]], dim=1)
        return torch.cat(planes).contiguous(), stats.contiguous()


def _padded(values: Tensor, size: int, filling: float) -> Tensor:
    """(k, n) → (k, size)."""
    return torch.nn.functional.pad(values, (0, size - values.shape[1]), value=filling)
