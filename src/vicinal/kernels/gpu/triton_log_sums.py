"""Pass 1: two log sums a row, by a running maximum and compensated sums."""

# Constants of a kernel are upper case, as is Triton's custom.
# ruff: noqa: N803

from __future__ import annotations

import triton
import triton.language as tl

from vicinal.kernels.gpu.triton_tiles import (
    BIAS,
    DISSIMILAR,
    FAR,
    MIXED,
    SIMILAR,
    count_tiles,
    gram,
    load_plane,
    load_ranges,
    load_tile,
    masks_of,
    nth_tile,
)


@triton.jit
def _join(x, top, total, lost):
    """Take exponents x (BM, BN) into running sums Σ 2^(x − top), compensated for lost digits."""
    higher = tl.maximum(top, tl.max(x, 1))
    shrink = tl.exp2(top - higher)
    increment = tl.sum(tl.exp2(x - higher[:, None]), 1) - lost * shrink
    before = total * shrink
    after = before + increment
    return higher, after, (after - before) - increment


@triton.jit
def log_sums(
    row_hi, row_lo, row_ids, n_rows, col_hi, col_lo, col_data, col_ids, n_cols,
    ranges, scales, out,
    KIND: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    NB: tl.constexpr, KB: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """Pass 1, the tiles of one kind: log₂ Σ_j 2^(2κ z_i·z_j − κ‖z_j‖²), −FAR where there are none.

    ``out`` is (2, n_rows): similar and dissimilar sums; pure tiles write their side only.
    """
    tile_i = tl.program_id(0)
    rows = tile_i * BM + tl.arange(0, BM)
    a_hi = load_tile(row_hi, tile_i, BM, NB, KB)
    a_lo = a_hi
    if PARTS == 2:
        a_lo = load_tile(row_lo, tile_i, BM, NB, KB)
    edges = load_ranges(ranges, tile_i)
    scale_s, scale_d = tl.load(scales), tl.load(scales + 1)
    top_s = tl.full((BM,), -FAR, dtype=tl.float32)
    sum_s = tl.zeros((BM,), dtype=tl.float32)
    lost_s = tl.zeros((BM,), dtype=tl.float32)
    top_d, sum_d, lost_d = top_s, sum_s, lost_s
    for t in range(count_tiles(KIND, edges, n_cols // BN)):
        tile = nth_tile(KIND, t, edges)
        here = tile * BN + tl.arange(0, BN)
        b_hi = load_tile(col_hi, tile, BN, NB, KB)
        b_lo = b_hi
        if PARTS == 2:
            b_lo = load_tile(col_lo, tile, BN, NB, KB)
        S = gram(a_hi, a_lo, b_hi, b_lo, NB, PARTS)
        if KIND != DISSIMILAR:
            x_s = S * scale_s + load_plane(col_data, BIAS + SIMILAR, here, n_cols)[None, :]
        if KIND != SIMILAR:
            x_d = S * scale_d + load_plane(col_data, BIAS + DISSIMILAR, here, n_cols)[None, :]
        if KIND == MIXED:
            same, apart = masks_of(row_ids, col_ids, rows, here, n_rows, n_cols)
            x_s = tl.where(same & apart, x_s, float("-inf"))
            x_d = tl.where(apart & (same == 0), x_d, float("-inf"))
        if KIND != DISSIMILAR:
            top_s, sum_s, lost_s = _join(x_s, top_s, sum_s, lost_s)
        if KIND != SIMILAR:
            top_d, sum_d, lost_d = _join(x_d, top_d, sum_d, lost_d)
    if KIND != DISSIMILAR:
        tl.store(out + rows, top_s + tl.log2(tl.where(sum_s > 0, sum_s, 1.0)))
    if KIND != SIMILAR:
        tl.store(out + n_rows + rows, top_d + tl.log2(tl.where(sum_d > 0, sum_d, 1.0)))
