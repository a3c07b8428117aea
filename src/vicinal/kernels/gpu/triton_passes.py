"""The two passes over all pairs, in Triton.

Pass 1 finds two log sums per row, by a running maximum and compensated sums. Pass 2 computes the
weights anew, and (W + Wᵀ)·V; every row is written by one program.
"""

# Triton compiles a subset of Python: tuples grow by +, constants are upper case as is its custom.
# ruff: noqa: N803, N806, RET505, RUF005
# mypy: disable-error-code="assignment"

from __future__ import annotations

import triton
import triton.language as tl

from vicinal.kernels.gpu.triton_tiles import (
    ABOVE,
    BELOW,
    DISSIMILAR,
    FAR,
    HALF,
    MIXED,
    REACH,
    REST,
    SCALED,
    SIMILAR,
    SLOPE,
    TOP,
    count_tiles,
    exponents,
    gram,
    load_plane,
    load_ranges,
    load_tile,
    masks_of,
    nth_tile,
    own_half,
)

TOTAL = tl.constexpr(13.0)
"""log₂ of what the weights of a row of a tile are scaled to add up to, at most."""
WIDE = tl.constexpr(64)
"""Features of V beyond which registers do not hold what the sums have lost."""
ROUNDER = tl.constexpr(12582912.0)
"""1.5 · 2²³: adding and subtracting it rounds to an integer."""


@triton.jit
def _join(y, rest, scale, running, SIGN: tl.constexpr, PARTS: tl.constexpr):
    """Take a tile into running sums Σ 2^(scale · (y + rest − top)), compensated for lost digits."""
    top, total, lost = running
    reach = y
    if PARTS == 3:  # of large exponents the rest alone is large enough to overflow
        reach = y + SIGN * rest
    # A power of 2, so that pass 2 can repeat these exponentials.
    higher = tl.maximum(top, tl.ceil(tl.max(reach, 1) * scale) / scale)
    shrink = tl.exp2((top - higher) * scale)
    x = exponents(y - higher[:, None], rest, scale, SIGN, PARTS)
    increment = tl.sum(tl.exp2(x), 1) - lost * shrink
    before = total * shrink
    after = before + increment
    return higher, after, (after - before) - increment


@triton.jit
def log_sums(
    row_points, row_data, row_ids, n_rows, col_points, col_data, col_ids, n_cols,
    ranges, scales, out,
    KIND: tl.constexpr, SIGN_S: tl.constexpr, SIGN_D: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, NB: tl.constexpr, KB: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """Pass 1, the tiles of one kind: Σ_j 2^(−κ d_ij) = 2^(scale · top) · total; 0 for no columns.

    ``out`` is (2, 2, n_rows): top and total of the similar and of the dissimilar side; pure tiles
    write their side only.
    """
    tile_i = tl.program_id(0)
    rows = tile_i * BM + tl.arange(0, BM)
    a = load_tile(row_points, tile_i, n_rows, BM, NB, KB, PARTS)
    half = own_half(row_data, rows, n_rows)
    rest_i = load_plane(row_data, REST, rows, n_rows)
    edges = load_ranges(ranges, tile_i)
    scale_s, scale_d = tl.load(scales), tl.load(scales + 1)
    nothing = tl.zeros((BM,), dtype=tl.float32)
    sum_s = (nothing - FAR, nothing, nothing)
    sum_d = sum_s
    for t in range(count_tiles(KIND, edges, n_cols // BN)):
        tile = nth_tile(KIND, t, edges)
        here = tile * BN + tl.arange(0, BN)
        b = load_tile(col_points, tile, n_cols, BN, NB, KB, PARTS)
        y, rest = gram(a, b, half, rest_i, load_plane(col_data, REST, here, n_cols), NB, PARTS)
        if KIND != DISSIMILAR:
            y_s = SIGN_S * (y - load_plane(col_data, HALF + SIMILAR, here, n_cols)[None, :])
        if KIND != SIMILAR:
            y_d = SIGN_D * (y - load_plane(col_data, HALF + DISSIMILAR, here, n_cols)[None, :])
        if KIND == MIXED:
            same, apart = masks_of(row_ids, col_ids, rows, here, n_rows, n_cols)
            y_s = tl.where(same & apart, y_s, float("-inf"))
            y_d = tl.where(apart & (same == 0), y_d, float("-inf"))
        if KIND != DISSIMILAR:
            sum_s = _join(y_s, rest, scale_s, sum_s, SIGN_S, PARTS)
        if KIND != SIMILAR:
            sum_d = _join(y_d, rest, scale_d, sum_d, SIGN_D, PARTS)
    if KIND != DISSIMILAR:
        tl.store(out + rows, sum_s[0])
        tl.store(out + n_rows + rows, sum_s[1])
    if KIND != SIMILAR:
        tl.store(out + 2 * n_rows + rows, sum_d[0])
        tl.store(out + 3 * n_rows + rows, sum_d[1])


@triton.jit
def _row_side(data, SIDE: tl.constexpr, stats, tile, rows, n):
    """What pass 2 needs of a tile of rows for one side; the reference is REACH above the lowest."""
    top = load_plane(data, TOP + SIDE, rows, n)
    slope = load_plane(data, SLOPE + SIDE, rows, n)
    scaled = load_plane(data, SCALED + SIDE, rows, n)
    low = tl.load(stats + tile * 4 + 2 * SIDE)
    high = tl.load(stats + tile * 4 + 2 * SIDE + 1)
    return top, slope, scaled, low, high


@triton.jit
def _two_exponentials(y, rest, scale, SIDE: tl.constexpr, SIGN: tl.constexpr, PARTS: tl.constexpr,
                      row, col_data, here, n_cols):  # fmt: skip
    """U = slope_i 2^(−κd − log_i) + slope_j 2^(−κd − log_j); exponents are small where U is not."""
    top, slope, _, _, _ = row
    top_j = load_plane(col_data, TOP + SIDE, here, n_cols)
    slope_j = load_plane(col_data, SLOPE + SIDE, here, n_cols)
    own = exponents(y - top[:, None], rest, scale, SIGN, PARTS)
    other = exponents(y - top_j[None, :], rest, scale, SIGN, PARTS)
    return slope[:, None] * tl.exp2(own) + slope_j[None, :] * tl.exp2(other)


@triton.jit
def _weights(y, rest, scale, SIDE: tl.constexpr, SIGN: tl.constexpr, PARTS: tl.constexpr,
             row, col_data, col_stats, tile, here, n_cols):  # fmt: skip
    """U of a pure tile, with one exponential where that is safe and exact enough.

    Safe is where all log sums of both tiles are within reach of one reference: then

        2^(−κd − reference) · (slope_i 2^(reference − log_i) + slope_j 2^(reference − log_j))

    cannot overflow, because −κd ≤ log_i, log_j, and loses no weight above 2^−46.
    """
    if PARTS == 3:
        return _two_exponentials(y, rest, scale, SIDE, SIGN, PARTS, row, col_data, here, n_cols)
    else:
        _, _, scaled, low, high = row
        low_j = tl.load(col_stats + tile * 4 + 2 * SIDE)
        high_j = tl.load(col_stats + tile * 4 + 2 * SIDE + 1)
        reference = tl.where(low < FAR, low, low_j) + REACH
        narrow = (high <= reference + ABOVE) & (high_j <= reference + ABOVE)
        if narrow & (low_j >= reference - BELOW):
            rescale = tl.exp2(reference - (low_j + REACH))
            scaled_j = load_plane(col_data, SCALED + SIDE, here, n_cols) * rescale
            U = tl.exp2((y - reference / scale) * scale)
            U *= scaled[:, None] + scaled_j[None, :]
        else:
            U = _two_exponentials(y, rest, scale, SIDE, SIGN, PARTS, row, col_data, here, n_cols)
        return U


@triton.jit
def _mixed_weights(y, rest, scale_s, scale_d, SIGN_S: tl.constexpr, SIGN_D: tl.constexpr,
                   PARTS: tl.constexpr, masks, row_s, row_d,
                   col_data, here, n_cols):  # fmt: skip
    """U of a mixed tile: each pair takes the planes of its side."""
    same, apart = masks
    y_s = SIGN_S * (y - load_plane(col_data, HALF + SIMILAR, here, n_cols)[None, :])
    y_d = SIGN_D * (y - load_plane(col_data, HALF + DISSIMILAR, here, n_cols)[None, :])
    top_s, slope_s, _, _, _ = row_s
    top_d, slope_d, _, _, _ = row_d
    own_s = exponents(y_s - top_s[:, None], rest, scale_s, SIGN_S, PARTS)
    own_d = exponents(y_d - top_d[:, None], rest, scale_d, SIGN_D, PARTS)
    own = tl.exp2(tl.where(same, own_s, own_d))
    U = own * tl.where(same, slope_s[:, None], slope_d[:, None])
    top_s = load_plane(col_data, TOP + SIMILAR, here, n_cols)
    top_d = load_plane(col_data, TOP + DISSIMILAR, here, n_cols)
    slope_s = load_plane(col_data, SLOPE + SIMILAR, here, n_cols)
    slope_d = load_plane(col_data, SLOPE + DISSIMILAR, here, n_cols)
    other_s = exponents(y_s - top_s[None, :], rest, scale_s, SIGN_S, PARTS)
    other_d = exponents(y_d - top_d[None, :], rest, scale_d, SIGN_D, PARTS)
    other = tl.exp2(tl.where(same, other_s, other_d))
    U += other * tl.where(same, slope_s[None, :], slope_d[None, :])
    # A point that is in no set may be nearer than all that are: its exponential is not a weight.
    return tl.where(apart, U, 0.0)


@triton.jit
def _tile_weights(KIND: tl.constexpr, y, rest, scales, SIGN_S: tl.constexpr, SIGN_D: tl.constexpr,
                  PARTS: tl.constexpr, masks, row_s, row_d,
                  col_data, col_stats, tile, here, n_cols):  # fmt: skip
    """U of a tile of any kind; y is still without the half norms of the columns."""
    if KIND == MIXED:
        return _mixed_weights(y, rest, scales[0], scales[1], SIGN_S, SIGN_D, PARTS, masks,
                              row_s, row_d, col_data, here, n_cols)  # fmt: skip
    elif KIND == SIMILAR:
        y = SIGN_S * (y - load_plane(col_data, HALF + SIMILAR, here, n_cols)[None, :])
        return _weights(y, rest, scales[0], SIMILAR, SIGN_S, PARTS,
                        row_s, col_data, col_stats, tile, here, n_cols)  # fmt: skip
    else:
        y = SIGN_D * (y - load_plane(col_data, HALF + DISSIMILAR, here, n_cols)[None, :])
        return _weights(y, rest, scales[1], DISSIMILAR, SIGN_D, PARTS,
                        row_d, col_data, col_stats, tile, here, n_cols)  # fmt: skip


@triton.jit
def _add_exact_products(U, sums, degree, v, COPIES: tl.constexpr, NV: tl.constexpr):
    """The same of three parts: weights are split as V is.

    Those of a row are scaled, to add up to 2¹³ at most: products and sums of integers are exact,
    and the others too small for their truncation to count.
    """
    exponent = TOTAL - tl.ceil(tl.log2(tl.maximum(tl.sum(tl.abs(U), 1), 1e-30)))
    down = tl.exp2(-exponent)
    U = U * tl.exp2(exponent)[:, None]
    first = ((U + ROUNDER) - ROUNDER).to(tl.float16)
    second = (U - first.to(tl.float32)).to(tl.float16)
    total = tl.sum(first.to(tl.float32), 1).to(tl.float64) + tl.sum(second.to(tl.float32), 1)
    degree += total * down
    added, lost = (), ()
    for b in tl.static_range(NV):
        small = tl.dot(first, v[2 * NV + b])
        small = tl.dot(second, v[NV + b], small)
        small = tl.dot(second, v[b], small)
        small = tl.dot(first, v[NV + b], small)
        large = tl.dot(first, v[b]) * down[:, None]
        if COPIES == 1:
            large += small * down[:, None]
        both = sums[b] + large
        added = added + (both,)
        if COPIES == 2:
            taken = both - sums[b]
            error = (sums[b] - (both - taken)) + (large - taken)
            lost = lost + (sums[NV + b] + (error + small * down[:, None]),)
    return added + lost, degree


@triton.jit
def _add_products(U, sums, degree, v, COPIES: tl.constexpr, NV: tl.constexpr,
                  PARTS: tl.constexpr):  # fmt: skip
    """Add U V to the sums, NV blocks of them and perhaps what they have lost, U 1 to the degrees.

    v_i Σ_j U_ij and Σ_j U_ij v_j nearly cancel, so both must see the same U. Tensor cores truncate
    what they add up, which shrinks the one against the other: each tile begins at 0, and is added
    with rounding.
    """
    if PARTS < 3:
        first = U.to(tl.float16)
        second = (U - first.to(tl.float32)).to(tl.float16)
        degree += tl.sum(first.to(tl.float32) if PARTS == 1 else U, 1)
        added = ()
        for b in tl.static_range(NV):
            tile = tl.zeros(sums[b].shape, dtype=tl.float32)
            if PARTS == 2:
                tile = tl.dot(second, v[b], tile)
                tile = tl.dot(first, v[NV + b], tile)
            added = added + (sums[b] + tl.dot(first, v[b], tile),)
        return added, degree
    else:
        return _add_exact_products(U, sums, degree, v, COPIES, NV)


@triton.jit
def _add_to_memory(products, degrees, sums, degree, tile_i, COPIES: tl.constexpr,
                   BM: tl.constexpr, NV: tl.constexpr, KV: tl.constexpr):  # fmt: skip
    tl.debug_barrier()  # the last addition was perhaps written by another thread of this program
    first = products + tile_i.to(tl.int64) * (BM * NV * KV)
    offsets = tl.arange(0, BM)[:, None] * (NV * KV) + tl.arange(0, KV)[None, :]
    for b in tl.static_range(NV):
        there = first + offsets + b * KV
        total = tl.load(there) + sums[b]
        if COPIES == 2:
            total += sums[NV + b]
        tl.store(there, total)
    rows = tile_i * BM + tl.arange(0, BM)
    tl.store(degrees + rows, tl.load(degrees + rows) + degree)


@triton.jit
def weighted_sums(
    row_points, row_data, row_ids, row_stats, n_rows,
    col_points, col_data, col_ids, col_stats, n_cols,
    values, ranges, scales, out_products, out_degrees,
    KIND: tl.constexpr, SIGN_S: tl.constexpr, SIGN_D: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, NB: tl.constexpr, KB: tl.constexpr,
    NV: tl.constexpr, KV: tl.constexpr, PARTS: tl.constexpr, SHARED: tl.constexpr,
    CHUNK: tl.constexpr,
):  # fmt: skip
    """Pass 2, the tiles of one kind: add Σ_j U_ij v_j and Σ_j U_ij, U_ij = W_ij + W_ji.

    The slopes of the rows weigh W_ij, those of the columns W_ji. ``SHARED``: V is Z. Every CHUNK
    tiles the sums are added to those in memory, in float64.
    """
    COPIES: tl.constexpr = 2 if PARTS == 3 and NV * KV <= WIDE else 1
    tile_i = tl.program_id(0)
    rows = tile_i * BM + tl.arange(0, BM)
    a = load_tile(row_points, tile_i, n_rows, BM, NB, KB, PARTS)
    half = own_half(row_data, rows, n_rows)
    rest_i = load_plane(row_data, REST, rows, n_rows)
    row_s = _row_side(row_data, SIMILAR, row_stats, tile_i, rows, n_rows)
    row_d = _row_side(row_data, DISSIMILAR, row_stats, tile_i, rows, n_rows)
    edges = load_ranges(ranges, tile_i)
    scale_s, scale_d = tl.load(scales), tl.load(scales + 1)
    count = count_tiles(KIND, edges, n_cols // BN)
    for start in range(0, count, CHUNK):
        sums = ()
        for _ in tl.static_range(COPIES * NV):
            sums = sums + (tl.zeros((BM, KV), dtype=tl.float32),)
        degree = tl.zeros((BM,), dtype=tl.float64)
        for t in range(start, tl.minimum(start + CHUNK, count)):
            tile = nth_tile(KIND, t, edges)
            here = tile * BN + tl.arange(0, BN)
            b = load_tile(col_points, tile, n_cols, BN, NB, KB, PARTS)
            v = b if SHARED else load_tile(values, tile, n_cols, BN, NV, KV, PARTS)
            y, rest = gram(a, b, half, rest_i, load_plane(col_data, REST, here, n_cols), NB, PARTS)
            masks = ()
            if KIND == MIXED:
                masks = masks_of(row_ids, col_ids, rows, here, n_rows, n_cols)
            U = _tile_weights(KIND, y, rest, (scale_s, scale_d), SIGN_S, SIGN_D, PARTS, masks,
                              row_s, row_d, col_data, col_stats, tile, here, n_cols)  # fmt: skip
            sums, degree = _add_products(U, sums, degree, v, COPIES, NV, PARTS)
        _add_to_memory(out_products, out_degrees, sums, degree, tile_i, COPIES, BM, NV, KV)
