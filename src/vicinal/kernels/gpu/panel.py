"""Points as the tile kernels read them: split into float16 parts, padded, with their classes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

SIMILAR, DISSIMILAR, MIXED = 0, 1, 2
"""Sides, and kinds of tiles."""
FAR = 1e30
"""The log sum of a row where pass 1 has not been."""
REACH = 64.0
"""The reference of a tile is this far (in units of log 2) above its lowest log sum."""
PAD = 128
"""Rows are padded to a multiple of this, so that every tile is full."""
WIDEST = 256
"""Features beyond which tiles no longer fit the registers."""
LONGEST = 2.0**12
"""What the longest point is scaled to: products of its integer parts are below 2²⁴, hence exact."""
LARGEST = 2.0**11
"""What the largest value of a feature is scaled to, for the same reason."""


def padded_size(n: int) -> int:
    """n rows and their padding."""
    return n + -n % PAD


def feature_blocks(width: int) -> tuple[int, int]:
    """NB and KB: how many blocks of how many features hold ``width`` of them."""
    if width <= 32:
        return 1, 16 if width <= 16 else 32
    return -(-width // 64), 64


def power_of_two(ceiling: float, values: Tensor) -> Tensor:
    """The largest power of 2 that keeps |values| · it at most ``ceiling``; 1 for zeros."""
    exponent = torch.floor(torch.log2(ceiling / values))
    return torch.where(values > 0, torch.exp2(exponent.clamp(-900, 900)), torch.ones_like(values))


@dataclass(frozen=True)
class Split:
    """n points as sums of float16 parts, in units of ``unit``.

    Every part has 11 bits of what the parts before it leave. Of three parts the first is an
    integer, so that products of first parts add up exactly in float32.
    """

    parts: Tensor
    """(P, N, NB·KB) float16, the largest first; N and the features are padded with zeros."""
    unit: Tensor
    """What was multiplied by: () one power of two for all, or (c,) one per feature."""
    n: int
    width: int

    @classmethod
    def of(cls, points: Tensor, n_parts: int, *, each_feature: bool = False) -> Split:
        """Split points (n, m); their scale is common, or that of each feature."""
        n, width = points.shape
        blocks, block = feature_blocks(width)
        if each_feature:
            unit = power_of_two(LARGEST, points.abs().amax(0).double())
        else:
            unit = power_of_two(LONGEST, points.double().square().sum(1).amax().sqrt())
        rest = points.double() * unit
        size = (n_parts, padded_size(n), blocks * block)
        parts = torch.zeros(size, dtype=torch.float16, device=points.device)
        for k in range(n_parts):
            parts[k, :n, :width] = (rest.round() if k == 0 and n_parts == 3 else rest).half()
            rest = rest - parts[k, :n, :width]
        return cls(parts, unit, n, width)

    def seen(self) -> Tensor:
        """(n, m) float64, in units: the points as kernels see them."""
        return self.parts[:, : self.n, : self.width].double().sum(0)

    def take(self, rows: Tensor) -> Split:
        """Some of the points, padded anew."""
        size = (len(self.parts), padded_size(len(rows)), self.parts.shape[2])
        parts = torch.zeros(size, dtype=torch.float16, device=rows.device)
        parts[:, : len(rows)] = self.parts[:, rows]
        return Split(parts, self.unit, len(rows), self.width)


@dataclass(frozen=True)
class Labels:
    """Class and group of sorted rows, padded with those of the last one."""

    ids: Tensor
    """(2, N) int32: class, group."""
    has_groups: bool
    """Whether groups are more than the rows themselves, which ascend."""

    @classmethod
    def of(cls, classes: Tensor, groups: Tensor | None) -> Labels:
        """From the class of every row, ascending, and its group if there are groups."""
        rows = torch.arange(len(classes), device=classes.device)
        ids = torch.stack([classes, rows if groups is None else groups]).int()
        return cls(pad_last(ids), groups is not None)

    def take(self, rows: Tensor) -> Labels:
        """The labels of some rows, ascending."""
        return Labels(pad_last(self.ids[:, rows]), self.has_groups)


def pad_last(values: Tensor) -> Tensor:
    """(k, n) → (k, N), the last column repeated."""
    missing = padded_size(values.shape[1]) - values.shape[1]
    return torch.cat([values, values[:, -1:].expand(-1, missing)], dim=1).contiguous()


def tile_ranges(rows: Labels, cols: Labels, height: int, width: int) -> Tensor:
    """(row tiles, 6) int32: where each tile of rows finds which kind of tiles of columns.

    See :mod:`vicinal.kernels.gpu.triton_tiles`. Everything is mixed where there are groups.
    """
    n_tiles = cols.ids.shape[1] // width
    first_row, last_row = rows.ids[:, ::height], rows.ids[:, height - 1 :: height]
    if rows.has_groups:
        edges = torch.tensor([0, 0, 0, n_tiles, n_tiles, n_tiles], device=rows.ids.device)
        return edges.expand(first_row.shape[1], 6).int().contiguous()
    first, last = cols.ids[:, ::width].contiguous(), cols.ids[:, width - 1 :: width].contiguous()

    def tiles_before(edges: Tensor, values: Tensor, right: bool) -> Tensor:
        return torch.searchsorted(edges, values.contiguous(), right=right)

    j0 = tiles_before(last[0], first_row[0], right=False)
    j3 = tiles_before(first[0], last_row[0], right=True).maximum(j0)
    j1 = tiles_before(first[0], first_row[0], right=False).maximum(j0).minimum(j3)
    j2 = tiles_before(last[0], last_row[0], right=True).maximum(j1).minimum(j3)
    g0 = tiles_before(last[1], first_row[1], right=False).maximum(j1).minimum(j2)
    g1 = tiles_before(first[1], last_row[1], right=True).maximum(g0).minimum(j2)
    pure = first_row[0] == last_row[0]
    j1, j2 = torch.where(pure, j1, j0), torch.where(pure, j2, j3)
    g0, g1 = torch.where(pure, g0, j0), torch.where(pure, g1, j3)
    return torch.stack([j0, j1, g0, g1, j2, j3], dim=1).int().contiguous()
