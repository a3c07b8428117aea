"""How points and anchors are laid out for the compiled loops."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from vicinal.kernels.contract import FloatArray, IndexArray
from vicinal.kernels.cpu_pruning import Tiles
from vicinal.kernels.cpu_tiles import QUAD

Quads: TypeAlias = tuple[IndexArray, IndexArray, IndexArray]
"""Quads (q, 4) of positions, their classes (q,), and how many of the 4 are real (q,)."""


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
