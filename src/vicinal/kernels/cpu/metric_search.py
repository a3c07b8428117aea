"""Compiled loops of the neighbor search under several metrics; imported by the first search only.

Heaps and ties are those of :mod:`vicinal.kernels.cpu.neighbor_heaps`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vicinal._typing import FloatArray, IndexArray
from vicinal.kernels.cpu.jit import compiled, inner
from vicinal.kernels.cpu.layout import box_bounds
from vicinal.kernels.cpu.neighbor_heaps import _precedes, _sink

WIDTH = 32
"""Rows of a tile."""
GROUP = 4
"""Queries whose distances to a tile are bounded together."""
LARGEST_CODE = 127
LANES = 16
BATCH = 64
"""Rows that are measured at a time."""
ENOUGH = 40
"""Rows that are worth measuring before all tiles of a kind have been filtered."""
CHOSEN = 64
"""Tiles that are filtered at a time, at most."""
SHARES = (0.25, 0.5, 1.0)
"""Of the squared distance known so far: boxes up to the first come first, and so on."""
_FAR = 1e18  # code units; squares beyond it leave float32
_NEAR = 1e15  # code units; squares up to it may be subtracted in float32
_ROUNDOFF = 2.0**-22
_NOBODY = np.iinfo(np.int64).max


class ExactMetrics(NamedTuple):
    """Rows and factors, by which whatever may be a neighbor is measured."""

    X: FloatArray  # blocks of columns (n, width), one after the other
    places: (
        IndexArray  # (M, 2) where the columns of each metric begin, and the width of their block
    )
    factors: FloatArray  # factors (m, p') of all metrics, one after the other
    starts: IndexArray  # (M,) where they begin
    columns: IndexArray  # (M,) the first of the p' columns of a query that each of them is about
    widths: IndexArray  # (M,) p', a multiple of 4 in the factors
    ranks: IndexArray  # (M,) m; 0 stands for the Euclidean metric


class Codes(NamedTuple):
    """Rows in tiles, their rounded coordinates under every metric, and the boxes around them.

    Metric q has the axes ``starts[q]:starts[q + 1]``, a multiple of 4.
    """

    rows: IndexArray  # (tiles * WIDTH,) rows of X; -1 where a class has no more
    class_tiles: IndexArray  # (c + 1,) the first tile of each class
    starts: IndexArray  # (M + 1,)
    codes: NDArray[np.int8]  # arrays (tiles, r, WIDTH) of all metrics, one after the other
    norms: NDArray[np.float32]  # (M, tiles, WIDTH) squared lengths of the codes; inf without a row
    low: NDArray[np.float32]  # (Σ r, tiles)
    high: NDArray[np.float32]  # (Σ r, tiles)
    errors: NDArray[np.float32]  # (M, tiles) how far coordinates are from their codes, at most


class Questions(NamedTuple):
    """Queries, and what is asked about them."""

    X: FloatArray  # (q, p)
    coordinates: NDArray[np.float32]  # (q, Σ r) in units of the codes
    units: FloatArray  # (M,) code units per unit of distance
    blurs: FloatArray  # (q, M) bound of what rounding changes, in code units
    exclude: IndexArray  # (q,) the row that is not a neighbor, or -1
    ks: IndexArray  # (M,)
    visits: IndexArray  # (M,) metrics by descending k

    def part(self, queries: slice) -> Questions:
        """The same about some of the queries."""
        return self._replace(
            X=self.X[queries],
            coordinates=self.coordinates[queries],
            blurs=self.blurs[queries],
            exclude=self.exclude[queries],
        )


@compiled
def encode(U, rows, codes, norms, low, high, errors):
    """Codes (tiles, r, WIDTH), norms, boxes (r, tiles) and errors of coordinates U (n, r)."""
    r = U.shape[1]
    for t in range(errors.shape[0]):
        low[:, t], high[:, t] = np.inf, -np.inf
        error, norm = 0.0, 0.0
        for i in range(WIDTH):
            row = rows[t * WIDTH + i]
            if row < 0:
                codes[t, :, i], norms[t, i] = 0, np.inf
                continue
            squares, length, coded = 0.0, 0.0, 0.0
            for j in range(r):
                u = U[row, j]
                if not abs(u) < _FAR:
                    squares, low[j, t], high[j, t], u = np.inf, -np.inf, np.inf, U.dtype.type(0)
                code = max(-LARGEST_CODE, min(LARGEST_CODE, np.rint(u)))
                codes[t, j, i] = np.int8(code)
                squares += (u - code) ** 2
                length += np.float64(u) ** 2
                coded += np.float64(code) ** 2
                low[j, t], high[j, t] = min(low[j, t], u), max(high[j, t], u)
            norms[t, i] = coded
            error, norm = max(error, squares), max(norm, length)
        errors[t] = np.sqrt(error) * (1 + 1e-6) + _ROUNDOFF * np.sqrt(norm)
        for j in range(r):
            low[j, t] -= _ROUNDOFF * abs(low[j, t])
            high[j, t] += _ROUNDOFF * abs(high[j, t])


@compiled
def project(X, center, factor, out):
    """out (n, m) ← (X - center) factor, of a transposed factor (p, m); each row in the same way."""
    p = X.shape[1]
    for i in range(X.shape[0]):
        row, x = out[i], X[i]
        row[:] = 0
        for j in range(0, p - p % 4, 4):
            x0, x1 = x[j] - center[j], x[j + 1] - center[j + 1]
            x2, x3 = x[j + 2] - center[j + 2], x[j + 3] - center[j + 3]
            l0, l1, l2, l3 = factor[j], factor[j + 1], factor[j + 2], factor[j + 3]
            for c in range(row.shape[0]):
                row[c] += x0 * l0[c] + x1 * l1[c] + x2 * l2[c] + x3 * l3[c]
        for j in range(p - p % 4, p):
            step = x[j] - center[j]
            for c in range(row.shape[0]):
                row[c] += step * factor[j, c]


@inner
def _measure(L, q, x, batch, size, work):
    """distances (size,) ← ‖L (x - X[row])‖² of the rows of a batch, of a multiple of LANES.

    Rows are the contiguous axis: each is measured in the same way, wherever it is in the batch.
    """
    steps, z, distances = work[0], work[1], work[2]
    first, width, m, at = L.columns[q], L.widths[q], L.ranks[q], L.starts[q]
    factor, place, step = L.factors, L.places[q, 0], L.places[q, 1]
    for b in range(size):
        row = L.X[place + step * batch[b] : place + step * batch[b] + width]
        for j in range(width):
            steps[j, b] = x[first + j] - row[j]
        distances[b] = 0
    if m == 0:
        for j in range(width):
            for b in range(size):
                distances[b] += steps[j, b] * steps[j, b]
    for _ in range(m):
        for b in range(size):
            z[b] = 0
        for j in range(0, width, 4):
            l0, l1, l2, l3 = factor[at], factor[at + 1], factor[at + 2], factor[at + 3]
            at += 4
            for b in range(size):
                z[b] += (
                    l0 * steps[j, b]
                    + l1 * steps[j + 1, b]
                    + l2 * steps[j + 2, b]
                    + l3 * steps[j + 3, b]
                )
        for b in range(size):
            distances[b] += z[b] * z[b]


@inner
def _add_products(coded, left, sums):
    """sums[g WIDTH:] += Σ_j left[g, j] coded[j], of one query g or of four."""
    r = coded.shape[0]
    if left.shape[0] == 1:
        for j in range(0, r, 4):
            a0, a1, a2, a3 = left[0, j], left[0, j + 1], left[0, j + 2], left[0, j + 3]
            for s in range(WIDTH):
                c0, c1 = np.float32(coded[j, s]), np.float32(coded[j + 1, s])
                c2, c3 = np.float32(coded[j + 2, s]), np.float32(coded[j + 3, s])
                sums[s] += a0 * c0 + a1 * c1 + a2 * c2 + a3 * c3
        return
    for j in range(0, r, 4):
        a0, a1, a2, a3 = left[0, j], left[0, j + 1], left[0, j + 2], left[0, j + 3]
        b0, b1, b2, b3 = left[1, j], left[1, j + 1], left[1, j + 2], left[1, j + 3]
        d0, d1, d2, d3 = left[2, j], left[2, j + 1], left[2, j + 2], left[2, j + 3]
        e0, e1, e2, e3 = left[3, j], left[3, j + 1], left[3, j + 2], left[3, j + 3]
        for s in range(WIDTH):
            c0, c1 = np.float32(coded[j, s]), np.float32(coded[j + 1, s])
            c2, c3 = np.float32(coded[j + 2, s]), np.float32(coded[j + 3, s])
            sums[s] += a0 * c0 + a1 * c1 + a2 * c2 + a3 * c3
            sums[WIDTH + s] += b0 * c0 + b1 * c1 + b2 * c2 + b3 * c3
            sums[2 * WIDTH + s] += d0 * c0 + d1 * c1 + d2 * c2 + d3 * c3
            sums[3 * WIDTH + s] += e0 * c0 + e1 * c1 + e2 * c2 + e3 * c3


@inner
def _filter(tile, chosen, group, reaches, found, sizes, sums):
    """found[g] ← the rows of some tiles that may be within reach of query g, of a group.

    ‖u − c‖² = ‖c‖² − 2 u·c + ‖u‖²; what rounding changes of it is added to the limit.
    """
    rows, coded, norms, errors, marks = tile
    left, offsets, slack = group
    for t in chosen:
        for g in range(left.shape[0]):
            for s in range(WIDTH):
                sums[g * WIDTH + s] = norms[t, s]
        _add_products(coded[t], left, sums)
        for g in range(sizes.shape[0]):
            reach = reaches[g] + errors[t]
            limit = np.float32(reach * reach * slack + offsets[g])
            own = sums[g * WIDTH : (g + 1) * WIDTH]
            beyond = 0
            for s in range(WIDTH):
                beyond += own[s] > limit
            if beyond == WIDTH:
                continue
            bit = np.uint8(1 << g)
            for s in range(WIDTH):
                row = rows[t * WIDTH + s]
                if not own[s] > limit and row >= 0 and not marks[row] & bit:
                    found[g, sizes[g]] = row
                    sizes[g] += 1


@inner
def _offer(exact, q, x, exclude, found, count, work, best, names):
    """Measure rows, and put those into the heap that are near enough."""
    distances, batch = work[2], work[3]
    for begin in range(0, count, BATCH):
        size = min(BATCH, count - begin)
        padded = -(-size // LANES) * LANES
        for b in range(padded):
            batch[b] = found[begin + min(b, size - 1)]
        _measure(exact, q, x, batch, padded, work)
        for b in range(size):
            if batch[b] != exclude and _precedes(distances[b], batch[b], best[0], names[0]):
                _sink(best, names, best.shape[0], distances[b], batch[b])


@inner
def _reach(asked, q, i, worst):
    """How far in code units a row may be from query i that is within the squared distance."""
    return asked.units[q] * np.sqrt(worst) + asked.blurs[i, q]


@inner
def _scan_tiles(exact, asked, at, tile, chosen, group, heaps, work, last):
    """Offer the rows of some tiles to the heaps of the queries of a group."""
    first, q = at
    reaches, found, sizes, sums = group[3:]
    best, names = heaps
    _filter(tile, chosen, group[:3], reaches, found, sizes, sums)
    for g in range(sizes.shape[0]):
        if sizes[g] > ENOUGH or (sizes[g] > 0 and (last or np.isinf(reaches[g]))):
            i = first + g
            k = asked.ks[q]
            _offer(
                exact, q, asked.X[i], asked.exclude[i], found[g], sizes[g],
                work, best[i, :k], names[i, :k],
            )  # fmt: skip
            sizes[g] = 0
            reaches[g] = _reach(asked, q, i, best[i, 0])


@inner
def _choose(bounds, group, share, t, last, size, chosen):
    """chosen ← the next tiles whose boxes are within reach; how many, and the tile after them."""
    reaches, slack = group
    count = 0
    while t < last and count < size:
        wanted = False
        for g in range(reaches.shape[0]):
            wanted |= bounds[g, t] <= np.float32(reaches[g] * reaches[g] * slack * share)
        chosen[count] = t
        count += wanted
        t += 1
    for g in range(reaches.shape[0]):
        for place in range(count):
            bounds[g, chosen[place]] = np.nan  # never again
    return count, t


@inner
def _nearest_tiles(bounds, tiles, k, chosen):
    """chosen ← some tiles around the one whose box is nearest to each query; how many."""
    first, last = tiles
    around = min(1 + k // WIDTH, CHOSEN // GROUP)
    count = 0
    for g in range(bounds.shape[0]):
        nearest, least = first, np.inf
        for t in range(first, last):
            if bounds[g, t] < least:
                nearest, least = t, bounds[g, t]
        begin = max(first, nearest - around // 2)
        for t in range(begin, min(last, begin + around)):
            if not np.isnan(bounds[g, t]):
                chosen[count] = t
                count += 1
                bounds[:, t] = np.nan
    return count


@inner
def _search_group(exact, asked, at, tile, tiles, group, heaps, bounds, work):
    """The k nearest rows of some tiles, ascending, for the queries of a group.

    Rows that are marked are in the heaps already. Boxes that are near come first, so that fewer
    of the others are near enough.
    """
    first, last = tiles
    q = at[1]
    best, names = heaps
    chosen, reaches, slack = work[4], group[3], group[2]
    unlimited = False
    for g in range(reaches.shape[0]):
        unlimited |= np.isinf(reaches[g])
    if unlimited:
        count = _nearest_tiles(bounds, tiles, asked.ks[q], chosen)
        _scan_tiles(exact, asked, at, tile, chosen[:count], group, heaps, work, True)
    size = 4
    for share in SHARES:
        t = first
        while t < last:
            count, t = _choose(bounds, (reaches, slack), share, t, last, size, chosen)
            _scan_tiles(exact, asked, at, tile, chosen[:count], group, heaps, work, t == last)
            size = min(2 * size, CHOSEN)
    k = asked.ks[q]
    for i in range(at[0], at[0] + reaches.shape[0]):
        for place in range(k - 1, 0, -1):  # the heap becomes a list
            distance, name = best[i, place], names[i, place]
            best[i, place], names[i, place] = best[i, 0], names[i, 0]
            _sink(best[i], names[i], place, distance, name)
        for place in range(k):
            if names[i, place] == _NOBODY:
                best[i, place], names[i, place] = np.inf, -1


@inner
def _begin(exact, asked, at, known, heap, mark, work):
    """Fill the heap of a query with rows that are near under another metric, and mark them."""
    i, q = at
    best, names = heap
    marks, bit = mark
    best[:], names[:] = np.inf, _NOBODY
    count = 0
    while count < known.shape[0] and known[count] >= 0:
        marks[known[count]] |= bit
        count += 1
    _offer(exact, q, asked.X[i], asked.exclude[i], known, count, work, best, names)


@inner
def _greatest(numbers):
    """The greatest of some integers; NumPy's own compiles for longer."""
    most = numbers[0]
    for i in range(numbers.shape[0]):
        most = numbers[i] if numbers[i] > most else most
    return most


@compiled
def search(exact, codes, asked, distances, rows):
    """Fill distances and rows (M, c, q, k), ascending; missing ones are inf and -1.

    Under one metric after the other: what is near under the one before is measured first.
    """
    n_tiles, n_queries = codes.errors.shape[1], asked.X.shape[0]
    width = 1 if n_queries == 1 else GROUP
    bounds = np.empty((width, n_tiles), dtype=np.float32)
    work = (
        np.zeros((_greatest(exact.widths) + 3, BATCH)),
        np.empty(BATCH),
        np.empty(BATCH),
        np.empty(BATCH, dtype=np.int64),
        np.empty(CHOSEN, dtype=np.int64),
    )
    offsets, reaches = np.empty(width), np.empty(width)
    found = np.empty((width, ENOUGH + CHOSEN * WIDTH), dtype=np.int64)
    sizes, sums = np.zeros(width, dtype=np.int64), np.empty(width * WIDTH, dtype=np.float32)
    marks = np.zeros(_greatest(codes.rows) + 1, dtype=np.uint8)
    before = -1
    for q in asked.visits:
        k, axes, end = asked.ks[q], codes.starts[q], codes.starts[q + 1]
        r = end - axes
        slack = 1.0 + 1e-5 + r * _ROUNDOFF
        coded = codes.codes[axes * n_tiles * WIDTH : end * n_tiles * WIDTH]
        tile = (
            codes.rows,
            coded.reshape((n_tiles, r, WIDTH)),
            codes.norms[q],
            codes.errors[q],
            marks,
        )
        low, high = codes.low[axes:end], codes.high[axes:end]
        left = np.zeros((width, r), dtype=np.float32)
        for first in range(0, n_queries, width):
            size = min(width, n_queries - first)
            for g in range(size):
                u = asked.coordinates[first + g, axes:end]
                squares = 0.0
                for j in range(r):
                    left[g, j] = -2 * u[j]
                    squares += np.float64(u[j]) ** 2
                length = np.sqrt(squares) + LARGEST_CODE * np.sqrt(r)
                offsets[g] = (r + 4) * _ROUNDOFF * length**2 - squares
                if not length < _NEAR:
                    offsets[g] = np.inf
                box_bounds(u, low, high, bounds[g])
            group = left, offsets[:size], slack, reaches[:size], found, sizes[:size], sums
            for c in range(codes.class_tiles.shape[0] - 1):
                tiles = codes.class_tiles[c], codes.class_tiles[c + 1]
                heaps = distances[q, c], rows[q, c]
                for g in range(size):
                    i, bit = first + g, np.uint8(1 << g)
                    known = rows[before, c, i, :k] if before >= 0 else rows[q, c, i, :0]
                    heap = distances[q, c, i, :k], rows[q, c, i, :k]
                    _begin(exact, asked, (i, q), known, heap, (marks, bit), work)
                    reaches[g] = _reach(asked, q, i, distances[q, c, i, 0])
                _search_group(
                    exact, asked, (first, q), tile, tiles, group, heaps, bounds[:size], work
                )
                if before >= 0:
                    for g in range(size):
                        for row in rows[before, c, first + g, :k]:
                            if row >= 0:
                                marks[row] = 0
        before = q
