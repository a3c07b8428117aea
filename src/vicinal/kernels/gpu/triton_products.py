"""Pass 2: weights computed anew, and (W + Wᵀ)·V; every row is written by one program."""

# Triton compiles a subset of Python: tuples grow by +, constants are upper case as is its custom.
# ruff: noqa: N803, RUF005
# mypy: disable-error-code="assignment"

from __future__ import annotations

import triton
import triton.language as tl

from vicinal.kernels.gpu.triton_tiles import (
    ABOVE,
    BELOW,
    BIAS,
    DISSIMILAR,
    FAR,
    LOG_SUM,
    MIXED,
    RAW,
    REACH,
    SCALED,
    SIMILAR,
    SLOPE,
    count_tiles,
    gram,
    load_plane,
    load_ranges,
    load_tile,
    masks_of,
    nth_tile,
)


@triton.jit
def _row_side(data, SIDE: tl.constexpr, stats, tile, rows, n):
    """What pass 2 needs of a tile of rows for one side; the reference is REACH above the lowest."""
    bias = load_plane(data, BIAS + SIDE, rows, n)
    bias = tl.maximum(bias, -FAR)  # padding: weights of 0, not of 0 · ∞
    raw = load_plane(data, RAW + SIDE, rows, n)
    slope = load_plane(data, SLOPE + SIDE, rows, n)
    low = tl.load(stats + tile * 4 + 2 * SIDE)
    high = tl.load(stats + tile * 4 + 2 * SIDE + 1)
    return bias, raw, slope, low, high


@triton.jit
def _weights(x, SIDE: tl.constexpr, row, col_data, col_stats, tile, here, n_cols):
    """U = slope_i 2^(−κd − log_i) + slope_j 2^(−κd − log_j), with one exponential where safe.

    Safe is where all log sums of both tiles are within reach of one reference: then

        2^(−κd − reference) · (slope_i 2^(reference − log_i) + slope_j 2^(reference − log_j))

    cannot overflow, because −κd ≤ log_i, log_j, and loses no weight above 2^−46. The exponent
    of the row's own term repeats the roundings of pass 1, so that the weights of a row sum to 1.
    """
    bias, raw, slope, low, high = row
    low_j = tl.load(col_stats + tile * 4 + 2 * SIDE)
    high_j = tl.load(col_stats + tile * 4 + 2 * SIDE + 1)
    reference = tl.where(low < FAR, low, low_j) + REACH
    narrow = (high <= reference + ABOVE) & (high_j <= reference + ABOVE)
    if narrow & (low_j >= reference - BELOW):
        shift = bias - reference
        scaled = slope * tl.exp2(-raw - shift)
        rescale = tl.exp2(reference - (low_j + REACH))
        scaled_j = load_plane(col_data, SCALED + SIDE, here, n_cols) * rescale
        U = tl.exp2(x + shift[:, None]) * (scaled[:, None] + scaled_j[None, :])
    else:
        log_j = load_plane(col_data, LOG_SUM + SIDE, here, n_cols)
        slope_j = load_plane(col_data, SLOPE + SIDE, here, n_cols)
        U = slope[:, None] * tl.exp2(x - raw[:, None])
        U += slope_j[None, :] * tl.exp2(x + (bias[:, None] - log_j[None, :]))
    return U


@triton.jit
def _mixed_weights(S, scale_s, scale_d, row_s, row_d, masks, col_data, here, n_cols):
    """U of a mixed tile: each pair takes the planes of its side."""
    same, apart = masks
    bias_s, raw_s, slope_s, _, _ = row_s
    bias_d, raw_d, slope_d, _, _ = row_d
    x_s = S * scale_s + load_plane(col_data, BIAS + SIMILAR, here, n_cols)[None, :]
    x_d = S * scale_d + load_plane(col_data, BIAS + DISSIMILAR, here, n_cols)[None, :]
    x = tl.where(same, x_s, x_d)
    log_s = load_plane(col_data, LOG_SUM + SIMILAR, here, n_cols)
    log_d = load_plane(col_data, LOG_SUM + DISSIMILAR, here, n_cols)
    slope_js = load_plane(col_data, SLOPE + SIMILAR, here, n_cols)
    slope_jd = load_plane(col_data, SLOPE + DISSIMILAR, here, n_cols)
    own = tl.exp2(x - tl.where(same, raw_s[:, None], raw_d[:, None]))
    U = own * tl.where(same, slope_s[:, None], slope_d[:, None])
    x += tl.where(same, bias_s[:, None], bias_d[:, None])
    other = tl.exp2(x - tl.where(same, log_s[None, :], log_d[None, :]))
    U += other * tl.where(same, slope_js[None, :], slope_jd[None, :])
    # What is in no set may be nearer than all that is: its exponential is no weight.
    return tl.where(apart, U, 0.0)


@triton.jit
def _add_products(U, sums, degree, v_hi, v_lo, NV: tl.constexpr, PARTS: tl.constexpr):
    """Add U V to the sums and U 1 to the degrees.

    Tensor cores truncate what they add up: each tile begins at 0, and is added with rounding.
    """
    hi = U.to(tl.float16)
    lo = hi
    if PARTS == 2:
        lo = (U - hi.to(tl.float32)).to(tl.float16)
        degree += tl.sum(U, 1)
    else:
        degree += tl.sum(hi.to(tl.float32), 1)
    added = ()
    for b in tl.static_range(NV):
        tile = tl.zeros(sums[b].shape, dtype=tl.float32)
        if PARTS == 2:
            tile = tl.dot(lo, v_hi[b], tile)
            tile = tl.dot(hi, v_lo[b], tile)
        added = added + (sums[b] + tl.dot(hi, v_hi[b], tile),)
    return added, degree


@triton.jit
def _add_to_memory(products, degrees, sums, degree, tile_i,
                   BM: tl.constexpr, NV: tl.constexpr, KV: tl.constexpr):  # fmt: skip
    tl.debug_barrier()  # the last addition was perhaps written by another thread of this program
    first = products + tile_i.to(tl.int64) * (BM * NV * KV)
    offsets = tl.arange(0, BM)[:, None] * (NV * KV) + tl.arange(0, KV)[None, :]
    for b in tl.static_range(NV):
        there = first + offsets + b * KV
        tl.store(there, tl.load(there) + sums[b])
    rows = tile_i * BM + tl.arange(0, BM)
    tl.store(degrees + rows, tl.load(degrees + rows) + degree)


@triton.jit
def weighted_sums(
    row_hi, row_lo, row_data, row_ids, row_stats, n_rows,
    col_hi, col_lo, col_data, col_ids, col_stats, n_cols,
    value_hi, value_lo, ranges, scales, out_products, out_degrees,
    KIND: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, NB: tl.constexpr, KB: tl.constexpr,
    NV: tl.constexpr, KV: tl.constexpr, PARTS: tl.constexpr, SHARED: tl.constexpr,
    CHUNK: tl.constexpr,
):  # fmt: skip
    """Pass 2, the tiles of one kind: add Σ_j U_ij v_j and Σ_j U_ij, U_ij = W_ij + W_ji.

    The slopes of the rows weigh W_ij, those of the columns W_ji. ``SHARED``: V is Z. Every CHUNK
    tiles the sums are added to those in memory: two short chains of additions, not one long one.
    """
    tile_i = tl.program_id(0)
    rows = tile_i * BM + tl.arange(0, BM)
    a_hi = load_tile(row_hi, tile_i, BM, NB, KB)
    a_lo = a_hi
    if PARTS == 2:
        a_lo = load_tile(row_lo, tile_i, BM, NB, KB)
    row_s = _row_side(row_data, SIMILAR, row_stats, tile_i, rows, n_rows)
    row_d = _row_side(row_data, DISSIMILAR, row_stats, tile_i, rows, n_rows)
    edges = load_ranges(ranges, tile_i)
    scale_s, scale_d = tl.load(scales), tl.load(scales + 1)
    count = count_tiles(KIND, edges, n_cols // BN)
    for start in range(0, count, CHUNK):
        sums = ()
        for _ in tl.static_range(NV):
            sums = sums + (tl.zeros((BM, KV), dtype=tl.float32),)
        degree = tl.zeros((BM,), dtype=tl.float32)
        for t in range(start, tl.minimum(start + CHUNK, count)):
            tile = nth_tile(KIND, t, edges)
            here = tile * BN + tl.arange(0, BN)
            b_hi = load_tile(col_hi, tile, BN, NB, KB)
            b_lo = b_hi
            if PARTS == 2:
                b_lo = load_tile(col_lo, tile, BN, NB, KB)
            v_hi, v_lo = b_hi, b_lo
            if not SHARED:
                v_hi = load_tile(value_hi, tile, BN, NV, KV)
                v_lo = v_hi
                if PARTS == 2:
                    v_lo = load_tile(value_lo, tile, BN, NV, KV)
            S = gram(a_hi, a_lo, b_hi, b_lo, NB, PARTS)
            if KIND == MIXED:
                masks = masks_of(row_ids, col_ids, rows, here, n_rows, n_cols)
                U = _mixed_weights(S, scale_s, scale_d, row_s, row_d, masks, col_data, here, n_cols)
            elif KIND == SIMILAR:
                x = S * scale_s + load_plane(col_data, BIAS + SIMILAR, here, n_cols)[None, :]
                U = _weights(x, SIMILAR, row_s, col_data, col_stats, tile, here, n_cols)
            else:
                x = S * scale_d + load_plane(col_data, BIAS + DISSIMILAR, here, n_cols)[None, :]
                U = _weights(x, DISSIMILAR, row_d, col_data, col_stats, tile, here, n_cols)
            sums, degree = _add_products(U, sums, degree, v_hi, v_lo, NV, PARTS)
        _add_to_memory(out_products, out_degrees, sums, degree, tile_i, BM, NV, KV)
