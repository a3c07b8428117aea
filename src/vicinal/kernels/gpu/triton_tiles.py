"""Tiles of rows against tiles of columns, in Triton: the parts that the two passes share.

Points arrive as sums of float16 parts (:class:`~vicinal.kernels.gpu.panel.Split`), padded to NB
blocks of KB features and scaled by √(2κ), κ = |γ|·log₂e, so that exponents, in units of log 2, are

    −κ d_ij = p_i·p_j − ½‖p_i‖² − ½‖p_j‖².

Large terms cancel in it. Of three parts they are kept exact: products of first parts, and the
integer parts of the half norms, are integers below 2²⁴, which neither float32 nor the tensor cores
(they truncate) round. All that is left is small, and added up by itself: an exponent is
``scale · (y + rest)``, with y an integer from which a reference can be subtracted without any
error. Of one or two parts there is no rest, and y is rounded to float32.

A tile of columns is, for a tile of rows, purely dissimilar, purely similar, or mixed; only mixed
ones (the borders of the class, the diagonal, all of them where there are groups) look at masks.
``ranges`` has six numbers per row tile, j0 ≤ j1 ≤ g0 ≤ g1 ≤ j2 ≤ j3: mixed are [j0, j1), [g0, g1)
and [j2, j3), similar the rest of [j0, j3), dissimilar everything outside.
"""

# Triton compiles a subset of Python: tuples grow by +, constants are upper case as is its custom.
# ruff: noqa: N803, RET505, RUF005
# mypy: disable-error-code="assignment"

from __future__ import annotations

import triton
import triton.language as tl

from vicinal.kernels.gpu import panel

SIMILAR = tl.constexpr(panel.SIMILAR)
DISSIMILAR = tl.constexpr(panel.DISSIMILAR)
MIXED = tl.constexpr(panel.MIXED)

# Planes of ``data``; two a quantity, similar and dissimilar, but for the rest.
HALF = tl.constexpr(0)  # ½‖p‖², its integer part; no column where it is infinite (padding)
REST = tl.constexpr(2)  # ½‖p‖², what the integer leaves
TOP = tl.constexpr(3)  # the log sum, rounded, over the scale; FAR where unknown
SLOPE = tl.constexpr(5)  # what the objective makes of the soft average · 2^(scale · TOP − log sum)
SCALED = tl.constexpr(7)  # slope · 2^(reference of the tile − log sum)

FAR = tl.constexpr(panel.FAR)
REACH = tl.constexpr(panel.REACH)
ABOVE = tl.constexpr(48.0)
BELOW = tl.constexpr(80.0)
"""How far from a common reference the log sums of two tiles may be, see _weights."""


@triton.jit
def load_tile(points, tile, n, ROWS: tl.constexpr, NB: tl.constexpr, KB: tl.constexpr,
              PARTS: tl.constexpr):  # fmt: skip
    """The feature blocks of a tile of rows, part by part: PARTS times NB times (ROWS, KB)."""
    first = points + tile.to(tl.int64) * (ROWS * NB * KB)
    offsets = tl.arange(0, ROWS)[:, None] * (NB * KB) + tl.arange(0, KB)[None, :]
    blocks = ()
    for part in tl.static_range(PARTS):
        for b in tl.static_range(NB):
            there = first + part * (n.to(tl.int64) * (NB * KB)) + b * KB
            blocks = blocks + (tl.load(there + offsets),)
    return blocks


@triton.jit
def _add_gram(S, a, b, PART_A: tl.constexpr, PART_B: tl.constexpr, NB: tl.constexpr):
    for k in tl.static_range(NB):
        S = tl.dot(a[PART_A * NB + k], tl.trans(b[PART_B * NB + k]), S)
    return S


@triton.jit
def gram(a, b, half, rest_a, rest_b, NB: tl.constexpr, PARTS: tl.constexpr):
    """p_i·p_j − ½‖p_i‖², large and small terms apart; the small ones with all of −½‖p_j‖²'s.

    ``half`` and ``rest_a`` (BM,) are of the rows, ``rest_b`` (BN,) of the columns. Returns y and
    the rest, (BM, BN) both; of fewer than 3 parts there is no rest, and y is returned twice.
    """
    y = tl.zeros((half.shape[0], rest_b.shape[0]), tl.float32)
    if PARTS == 2:  # the small products first, so that they are not lost in the large one
        y = _add_gram(y, a, b, 1, 0, NB)
        y = _add_gram(y, a, b, 0, 1, NB)
    y = _add_gram(y, a, b, 0, 0, NB) - half[:, None]
    rest = y
    if PARTS == 3:
        rest = tl.zeros(y.shape, tl.float32) - rest_a[:, None]
        rest = _add_gram(rest, a, b, 0, 2, NB)
        rest = _add_gram(rest, a, b, 2, 0, NB)
        rest = _add_gram(rest, a, b, 1, 1, NB)
        rest = _add_gram(rest, a, b, 0, 1, NB)
        rest = _add_gram(rest, a, b, 1, 0, NB) - rest_b[None, :]
    return y, rest


@triton.jit
def exponents(y, rest, scale, SIGN: tl.constexpr, PARTS: tl.constexpr):
    """scale · (y + rest), for y from which a reference was subtracted."""
    if PARTS == 3:
        y = y + SIGN * rest
    return y * scale


@triton.jit
def own_half(data, rows, n):
    """The integer part of ½‖p‖² of rows, padding included."""
    half = load_plane(data, HALF, rows, n)
    return tl.where(tl.abs(half) < FAR, half, 0.0)


@triton.jit
def count_tiles(KIND: tl.constexpr, ranges, n_tiles):
    """The number of tiles of columns of this kind that a tile of rows has."""
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
