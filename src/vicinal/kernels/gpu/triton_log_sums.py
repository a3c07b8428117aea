"""Pass 1: two log sums a row, by a running maximum and compensated sums."""

# Constants of a kernel are upper case, as is Triton's custom.
# ruff: noqa: N803

from __future__ import annotations

import triton
import triton.language as tl

from vicinal.kernels.gpu.triton_tiles import (
    DISSIMILAR,
    FAR,
    HALF,
    MIXED,
    REST,
    SIMILAR,
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
