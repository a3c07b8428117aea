"""How points and anchors are laid out for the compiled loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from vicinal._typing import FloatArray, IndexArray
from vicinal.kernels.contract import Comparisons
from vicinal.kernels.cpu.inner_loops import QUAD
from vicinal.kernels.cpu.pruning import Tiles

Quads: TypeAlias = tuple[IndexArray, IndexArray, IndexArray]
"""Quads (q, 4) of positions, their classes (q,), and how many of the 4 are real (q,)."""


@dataclass(frozen=True)
class Arrangement:
    """The comparisons in the order of positions, which may be other than that of the rows."""

    order: IndexArray
    """(n,) rows by position."""
    position: IndexArray
    """(n,) positions by row."""
    permuted: slice | IndexArray
    """The order as an index, free where it is that of the rows."""
    offsets: IndexArray
    groups: IndexArray
    """(n,), or empty where there are none."""
    sizes: tuple[IndexArray, IndexArray]
    """(n,) how many similar, how many dissimilar ones."""

    @classmethod
    def of(cls, comparisons: Comparisons, order: IndexArray | None = None) -> Arrangement:
        """In the order given, else in that of the rows."""
        n = len(comparisons.n_similar)
        rows = position = np.arange(n)
        permuted: slice | IndexArray = slice(None)
        if order is not None:
            permuted, position = order, np.empty(n, dtype=np.int64)
            position[order] = rows
            rows = order
        groups = np.empty(0) if comparisons.groups is None else comparisons.groups[permuted]
        sizes = comparisons.n_similar[permuted], comparisons.n_dissimilar[permuted]
        return cls(
            rows,
            position,
            permuted,
            _int64(comparisons.offsets),
            _int64(groups),
            (_int64(sizes[0]), _int64(sizes[1])),
        )

    def blocks(self, rows: IndexArray, size: int) -> list[Block]:
        """The rows cut into quads of positions, at most ``size`` of them a block."""
        quads, labels, real = cut_into_quads(np.sort(self.position[rows]), self.offsets)
        blocks = []
        for start in range(0, len(quads), size):
            part = slice(start, start + size)
            taken = np.flatnonzero(np.arange(QUAD) < real[part, None])
            blocks.append(Block(quads[part], labels[part], taken, quads[part].ravel()[taken]))
        return blocks


def _int64(values: IndexArray | FloatArray) -> IndexArray:
    return np.ascontiguousarray(values, dtype=np.int64)


class Block(NamedTuple):
    """Quads whose weights fit a cache."""

    quads: IndexArray
    """(q, 4) positions; where a class ends, its last one repeated."""
    labels: IndexArray
    """(q,) their classes."""
    taken: IndexArray
    """Which of the 4q places are not such repetitions."""
    anchors: IndexArray
    """The positions there."""


def transpose_padded(points: FloatArray) -> FloatArray:
    """(m', n) the coordinates by row, padded with zeros to a multiple of QUAD."""
    n, m = points.shape
    out = np.zeros((m + -m % QUAD, n), dtype=points.dtype)
    out[:m] = points.T
    return out


def rotate_to_principal_axes(Z: FloatArray) -> FloatArray:
    """The same distances in axes along which boxes are tight."""
    _, axes = np.linalg.eigh(Z.T @ Z)
    return Z @ axes


def no_tiles(dtype: np.dtype) -> Tiles:
    """Tiles of nothing, for compiled functions that want some."""
    nothing = np.empty((0, 0), dtype=dtype)
    return Tiles(np.zeros(1, np.int64), np.zeros(1, np.int64), nothing, nothing)


def cut_into_quads(positions: IndexArray, offsets: IndexArray) -> Quads:
    """Quads of one class each from sorted positions; the last of a class repeats its last row."""
    cuts = np.searchsorted(positions, offsets)  # (c + 1,)
    sizes = np.diff(cuts)
    per_class = -(-sizes // QUAD)
    labels = np.repeat(np.arange(len(sizes)), per_class)
    within = np.arange(len(labels)) - np.repeat(np.cumsum(per_class) - per_class, per_class)
    first = cuts[labels] + QUAD * within
    last = cuts[labels + 1] - 1
    quads = positions[np.minimum(first[:, None] + np.arange(QUAD), last[:, None])]
    return quads, labels, np.minimum(last - first + 1, QUAD)
