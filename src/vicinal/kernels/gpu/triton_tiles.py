"""What the two passes over all pairs share: tiles of rows against tiles of columns, in Triton.

Points arrive as float16 pairs hi + lo (22 bits), padded to NB blocks of KB features; products of
the parts run on the tensor cores and are added up in float32. Exponents are in units of log 2 and
leave out nothing that differs within a row: with κ = γ·log₂e

    −κ d_ij = 2κ z_i·z_j − κ‖z_j‖² − κ‖z_i‖².

A tile of columns is, for a tile of rows, purely dissimilar, purely similar, or mixed; only mixed
ones (the borders of the class, the diagonal, all of them where there are groups) look at masks.
``ranges`` has six numbers a row tile, j0 ≤ j1 ≤ g0 ≤ g1 ≤ j2 ≤ j3: mixed are [j0, j1), [g0, g1) and
[j2, j3), similar the rest of [j0, j3), dissimilar everything outside.
"""

# Triton compiles a subset of Python: tuples grow by +, constants are upper case as is its custom.
# ruff: noqa: N803, RET505, RUF005
# mypy: disable-error-code="assignment"

from __future__ import annotations

import triton
import triton.language as tl

SIMILAR = tl.constexpr(0)
DISSIMILAR = tl.constexpr(1)
MIXED = tl.constexpr(2)

# Planes of ``data``, two a quantity: similar, dissimilar.
BIAS = tl.constexpr(0)  # −κ‖z‖²; −inf on padding
RAW = tl.constexpr(2)  # log₂ Σ_j 2^(−κ d_ij + κ‖z_i‖²), as pass 1 found it; FAR where unknown
LOG_SUM = tl.constexpr(4)  # log₂ Σ_j 2^(−κ d_ij); FAR where unknown
SLOPE = tl.constexpr(6)  # what the objective makes of the soft average
SCALED = tl.constexpr(8)  # slope · 2^(reference of the tile − log sum)

FAR = tl.constexpr(1e30)
REACH = tl.constexpr(64.0)
"""The reference of a tile is this far (in units of log 2) above its lowest log sum."""
ABOVE = tl.constexpr(48.0)
BELOW = tl.constexpr(80.0)
"""How far from a common reference the log sums of two tiles may be, see _weights."""


@triton.jit
def load_tile(points, tile, ROWS: tl.constexpr, NB: tl.constexpr, KB: tl.constexpr):
    """The feature blocks of a tile of rows: NB times (ROWS, KB)."""
    first = points + tile.to(tl.int64) * (ROWS * NB * KB)
    offsets = tl.arange(0, ROWS)[:, None] * (NB * KB) + tl.arange(0, KB)[None, :]
    blocks = ()
    for b in tl.static_range(NB):
        blocks = blocks + (tl.load(first + offsets + b * KB),)
    return blocks


@triton.jit
def gram(a_hi, a_lo, b_hi, b_lo, NB: tl.constexpr, PARTS: tl.constexpr):
    """A Bᵀ; the small products first, so that they are not lost in the large one."""
    S = tl.zeros((a_hi[0].shape[0], b_hi[0].shape[0]), dtype=tl.float32)
    for b in tl.static_range(NB):
        if PARTS == 2:
            S = tl.dot(a_lo[b], tl.trans(b_hi[b]), S)
            S = tl.dot(a_hi[b], tl.trans(b_lo[b]), S)
    for b in tl.static_range(NB):
        S = tl.dot(a_hi[b], tl.trans(b_hi[b]), S)
    return S


@triton.jit
def count_tiles(KIND: tl.constexpr, ranges, n_tiles):
    """How many tiles of columns of this kind a tile of rows has."""
    j0, j1, g0, g1, j2, j3 = ranges
    if KIND == DISSIMILAR:
        return j0 + n_tiles - j3
    elif KIND == SIMILAR:
        return (g0 - j1) + (j2 - g1)
    else:
        return (j1 - j0) + (g1 - g0) + (j3 - j2)


@triton.jit
def nth_tile(KIND: tl.constexpr, t, ranges):
    """The t-th tile of this kind."""
    j0, j1, g0, g1, j2, j3 = ranges
    if KIND == DISSIMILAR:
        return tl.where(t < j0, t, t + (j3 - j0))
    elif KIND == SIMILAR:
        return tl.where(t < g0 - j1, j1 + t, t + j1 + (g1 - g0))
    else:
        border = j1 - j0
        inner = border + (g1 - g0)
        return tl.where(t < border, j0 + t, tl.where(t < inner, g0 + t - border, j2 + t - inner))


@triton.jit
def load_ranges(pointer, tile):
    """The six borders of a tile of rows."""
    p = pointer + tile * 6
    first = (tl.load(p), tl.load(p + 1), tl.load(p + 2))
    return first + (tl.load(p + 3), tl.load(p + 4), tl.load(p + 5))


@triton.jit
def load_plane(data, plane: tl.constexpr, rows, n):
    """One of the numbers that every row has, for these rows."""
    return tl.load(data + plane * n.to(tl.int64) + rows)


@triton.jit
def masks_of(row_ids, col_ids, rows, here, n_rows, n_cols):
    """(BM, BN): which pairs are of one class, and which are of different groups."""
    same = tl.load(row_ids + rows)[:, None] == tl.load(col_ids + here)[None, :]
    mine = tl.load(row_ids + n_rows + rows)
    return same, mine[:, None] != tl.load(col_ids + n_cols + here)[None, :]
