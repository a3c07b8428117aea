"""One block of anchor rows, forward (soft averages) and backward (Laplacian), compiled.

Forward leaves the unnormalized weights of the block in memory that fits a cache; backward reads
them once more. In between the objective decides, in NumPy, what each row is worth.
"""

from __future__ import annotations

import numpy as np

from vicinal.kernels.cpu.inner_loops import (
    CHUNK,
    HAS_32_REGISTERS,
    LANES,
    QUAD,
    add_multiple,
    add_pair,
    add_quad,
    add_rank4,
    dot,
    exponentiate,
    exponentiate_gently,
    largest,
    mark_extreme,
    multiply,
    pair_products,
    quad_distances,
    quad_products,
    smallest,
    weigh_uniformly,
)
from vicinal.kernels.cpu.jit import compiled, inner

SHIFTED, GENTLE, DIRECT = 0, 1, 2
"""How exponents are kept in range: less the extreme one; none beyond ½; as they are."""


@inner
def soften(d, alpha, count, mode, norm, lanes):
    """Soft average of a row of distances (less ``norm``); the row becomes unnormalized weights.

    Excluded points are +inf (−inf where α < 0). ``count`` is the size of the set; points that
    were skipped as negligible count but do not appear. Returns the average and the weights' sum.
    """
    if alpha == 0:
        return weigh_uniformly(d) / count, np.float64(count)
    extreme = -norm
    if mode != DIRECT:
        extreme = smallest(d, lanes) if alpha > 0 else largest(d, lanes)
    if np.isinf(alpha):
        ties = mark_extreme(d, extreme)
        return np.float64(extreme), np.float64(ties)
    if mode == GENTLE:
        growth = exponentiate_gently(d, alpha, extreme)
        return extreme - np.log1p(growth / count) / alpha, growth + count
    total = exponentiate(d, d.dtype.type(alpha), extreme, lanes)
    return extreme - np.log(total / count) / alpha, total


@inner
def _exclude(row, position, groups, runs, count, similar, alpha, beta):
    """Put the points that the anchor must not see beyond reach of the soft average."""
    at = 0
    for i in range(count):
        start, stop = runs[i]
        mark = -np.inf if (alpha if i < similar else beta) < 0 else np.inf
        if groups.shape[0] == 0:
            if start <= position < stop:
                row[at + position - start] = mark
        else:
            for j in range(start, stop):
                if groups[j] == groups[position]:
                    row[at + j - start] = mark
        at += stop - start


@inner
def _soften_quad(positions, rows, runs, counts, points, sides, modes, averages, sums, work):
    """Soft averages of 4 anchors from their distances; whether all of them are trustworthy.

    Exponentials taken as they are may all underflow: a sum that is almost nothing says so.
    """
    norms, groups = points[1], points[2]
    _, lanes, floor = work
    alpha, beta, use_similar, use_dissimilar, n_similar, n_dissimilar = sides
    similar, count = counts
    split = 0
    for i in range(similar):
        split += runs[i, 1] - runs[i, 0]
    width = split
    for i in range(similar, count):
        width += runs[i, 1] - runs[i, 0]
    sound = True
    for r in range(QUAD):
        p = positions[r]
        _exclude(rows[r], p, groups, runs, count, similar, alpha, beta)
        if use_similar:
            b, sums[r, 0] = soften(rows[r, :split], alpha, n_similar[p], modes[0], norms[p], lanes)
            averages[r, 0] = b + norms[p]
            sound &= modes[0] != DIRECT or sums[r, 0] > floor
        if use_dissimilar:
            b, sums[r, 1] = soften(
                rows[r, split:width], beta, n_dissimilar[p], modes[1], norms[p], lanes
            )
            averages[r, 1] = b + norms[p]
            sound &= modes[1] != DIRECT or sums[r, 1] > floor
    return sound


def forward_work(m: int, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray, float]:
    """What `forward` works in, for m coordinates, and the smallest sum of weights that it trusts.

    NumPy makes it: arrays that compiled functions make themselves take long to compile.
    """
    floor = float(np.sqrt(np.finfo(dtype).tiny))
    return np.empty((QUAD, m), dtype=dtype), np.empty(LANES, dtype=dtype), floor


def backward_work(c: int) -> tuple[np.ndarray, np.ndarray]:
    """What `backward` works in, for c columns of V."""
    return np.empty(QUAD, dtype=np.int64), np.empty((QUAD, c))


@compiled
def forward(quads, points, sides, modes, block, work):
    """Soft averages of the anchors in ``quads`` against the complete sides.

    points: (ZT, norms, groups). sides: (alpha, beta, use_similar, use_dissimilar, n_similar,
    n_dissimilar), the sizes by position. modes: how exponents are kept in range. block: (E, runs,
    counts, averages, sums): which runs of points to look at, and the outputs. work: see
    `forward_work`.
    """
    ZT, norms = points[0], points[1]
    E, runs, counts, averages, sums = block
    B = work[0]
    safe = (np.int64(SHIFTED), np.int64(SHIFTED))  # trustworthy
    for q in range(quads.shape[0]):
        positions = quads[q]
        for r in range(QUAD):
            for k in range(ZT.shape[0]):
                B[r, k] = -2 * ZT[k, positions[r]]
        rows = E[QUAD * q : QUAD * (q + 1)]
        out = averages[q], sums[q]
        chosen = modes
        while True:
            at = np.int64(0)  # not the constant 0, for which the callee would be compiled again
            for i in range(counts[q, 1]):
                start, stop = runs[q, i]
                quad_distances(B, ZT, norms, start, stop, rows, at)
                at += stop - start
            if _soften_quad(
                positions, rows, runs[q], counts[q], points, sides, chosen, out[0], out[1], work
            ):
                break
            chosen = safe


@compiled
def sum_targets(E, runs, counts, YT, totals):
    """totals[row] ← Σ_j E_j y_j for every row of the block; YT (q, n) are the targets."""
    for row in range(totals.shape[0]):
        at = 0
        for i in range(counts[row // QUAD, 1]):
            start, stop = runs[row // QUAD, i]
            for j in range(start, stop, CHUNK):
                e = min(stop, j + CHUNK)
                weights = E[row, at : at + e - j]
                for k in range(YT.shape[0]):
                    totals[row, k] += dot(weights, YT[k, j:e])
                at += e - j


@compiled
def weigh_targets(E, runs, counts, YT, factors):
    """Multiply the weights E_j of every row by factors[row] · (1, y_j)."""
    factor = np.empty(CHUNK, dtype=E.dtype)
    for row in range(factors.shape[0]):
        at = 0
        for i in range(counts[row // QUAD, 1]):
            start, stop = runs[row // QUAD, i]
            for j in range(start, stop, CHUNK):
                e = min(stop, j + CHUNK)
                factor[:] = factors[row, 0]
                for k in range(YT.shape[0]):
                    add_multiple(factor[: e - j], E.dtype.type(factors[row, 1 + k]), YT[k, j:e])
                multiply(E[row, at : at + e - j], factor)
                at += e - j


@compiled
def backward(quads, coefficients, VT, block, product, columns, transposed, work):
    """Add the anchors' rows of W to W V, 1ᵀW and, unless it is None, to the transposed (Wᵀ V)ᵀ.

    coefficients (q, 4, 2): what one unit of unnormalized weight is worth; anchors with both zero
    cost nothing. product (n, c) is written at the anchors' positions only. work: see
    `backward_work`.
    """
    E, runs, counts = block
    active, P = work
    for q in range(quads.shape[0]):
        n_active = 0
        for r in range(QUAD):
            if coefficients[q, r, 0] != 0 or coefficients[q, r, 1] != 0:
                active[n_active] = r
                n_active += 1
        if n_active == 0:
            continue
        rows = E[QUAD * q : QUAD * (q + 1)]
        if HAS_32_REGISTERS and n_active == QUAD:
            _quad_backward(
                rows, quads[q], coefficients[q], VT, runs[q], counts[q], product, columns, P
            )
            n_active = 0
        for i in range(0, n_active, 2):
            r1 = active[i]
            lone = i + 1 == n_active
            r2 = r1 if lone else active[i + 1]
            _pair_backward(
                rows,
                r1,
                r2,
                lone,
                quads[q],
                coefficients[q],
                VT,
                runs[q],
                counts[q],
                product,
                columns,
                P[0],
                P[1],
            )
        if transposed is not None:  # what serves it is compiled only then
            _spread(rows, quads[q], coefficients[q], VT, runs[q], counts[q], transposed)


@inner
def _quad_backward(rows, positions, coefficients, VT, runs, count, product, columns, P):
    """Products and column sums of four active anchors."""
    at = 0
    for i in range(count[1]):
        side = 0 if i < count[0] else 1
        x = coefficients[:, side]
        start, stop = runs[i]
        P[:] = 0
        for j in range(start, stop, CHUNK):
            e = min(stop, j + CHUNK)
            to = at + e - j
            row = rows[0, at:to], rows[1, at:to], rows[2, at:to], rows[3, at:to]
            quad_products(row[0], row[1], row[2], row[3], VT, j, P)
            add_quad(columns[j:e], row[0], row[1], row[2], row[3], x)
            at = to
        for r in range(QUAD):
            out = product[positions[r]]
            for k in range(out.shape[0]):
                out[k] += x[r] * P[r, k]


@inner
def _pair_backward(
    rows, r1, r2, lone, positions, coefficients, VT, runs, count, product, columns, p, q
):
    """Products and column sums of two active anchors (of one, given twice, if it is alone)."""
    at = 0
    for i in range(count[1]):
        side = 0 if i < count[0] else 1
        x = coefficients[r1, side]
        y = 0.0 if lone else coefficients[r2, side]
        start, stop = runs[i]
        p[:] = 0
        q[:] = 0
        for j in range(start, stop, CHUNK):
            e = min(stop, j + CHUNK)
            row1, row2 = rows[r1, at : at + e - j], rows[r2, at : at + e - j]
            pair_products(row1, row2, VT, j, p, q)
            add_pair(columns[j:e], x, row1, y, row2)
            at += e - j
        out1, out2 = product[positions[r1]], product[positions[r2]]
        for k in range(out1.shape[0]):
            out1[k] += x * p[k]
            out2[k] += y * q[k]


@inner
def _spread(rows, positions, coefficients, VT, runs, count, transposed):
    """transposed[:, j] += Σ_r W_rj v_r for the 4 anchors of a quad."""
    at = 0
    a = np.empty((QUAD, QUAD), dtype=rows.dtype)
    for i in range(count[1]):
        side = 0 if i < count[0] else 1
        start, stop = runs[i]
        for j in range(start, stop, CHUNK):
            e = min(stop, j + CHUNK)
            g = at + e - j
            for k in range(0, VT.shape[0], QUAD):
                for u in range(QUAD):
                    for r in range(QUAD):
                        a[u, r] = coefficients[r, side] * VT[k + u, positions[r]]
                add_rank4(
                    transposed[k, j:e],
                    transposed[k + 1, j:e],
                    transposed[k + 2, j:e],
                    transposed[k + 3, j:e],
                    rows[0, at:g],
                    rows[1, at:g],
                    rows[2, at:g],
                    rows[3, at:g],
                    a,
                )
            at = g


@compiled
def forward_lists(rows, indptr, indices, Z, alpha, weights, averages, sums):
    """Soft averages of ``rows`` over their listed points, by direct differences.

    weights (flat, in the order of the rows) becomes the unnormalized weights.
    """
    lanes = np.empty(LANES, dtype=weights.dtype)
    at = 0
    for i in range(rows.shape[0]):
        a = Z[rows[i]]
        start, stop = indptr[rows[i]], indptr[rows[i] + 1]
        d = weights[at : at + stop - start]
        for e in range(start, stop):
            b = Z[indices[e]]
            total = 0.0
            for k in range(a.shape[0]):
                total += (a[k] - b[k]) ** 2
            d[e - start] = total
        # Few points, so that cancellation where α is tiny is avoided whenever it is allowed.
        spread = abs(alpha) * (d.max() - d.min())
        mode = GENTLE if spread <= 0.5 else SHIFTED
        averages[i], sums[i] = soften(d, alpha, stop - start, mode, d.dtype.type(0), lanes)
        at += stop - start


@compiled
def backward_lists(rows, indptr, indices, coefficients, weights, V, symmetric, out):
    """Add the rows' listed part of the (half) Laplacian, applied to V, to out."""
    at = 0
    for i in range(rows.shape[0]):
        start, stop = indptr[rows[i]], indptr[rows[i] + 1]
        c = coefficients[i]
        if c != 0:
            a = rows[i]
            for e in range(start, stop):
                b = indices[e]
                w = c * weights[at + e - start]
                for k in range(V.shape[1]):
                    gap = w * (V[a, k] - V[b, k])
                    if symmetric:
                        out[a, k] += gap
                        out[b, k] -= gap
                    else:
                        out[a, k] += 0.5 * gap - 0.5 * w * V[b, k]
                        out[b, k] += 0.5 * w * V[b, k]
        at += stop - start
