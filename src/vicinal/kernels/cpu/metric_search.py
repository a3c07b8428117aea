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
_ROUNDOFF = 2.0**-22
_NOBODY = np.iinfo(np.int64).max


class ExactMetrics(NamedTuple):
    """Rows and factors, by which whatever may be a neighbor is measured."""

    X: FloatArray  # (n, p)
    factors: FloatArray  # factors (m, p') of all metrics, one after the other
    starts: IndexArray  # (M,) where they begin
    columns: IndexArray  # (M,) the first of the p' features that each of them is about
    widths: IndexArray  # (M,) p', a multiple of 4 in the factors
    ranks: IndexArray  # (M,) m; 0 stands for the Euclidean metric


class Codes(NamedTuple):
    """Rows in tiles, their rounded coordinates under every metric, and the boxes around them."""

    rows: IndexArray  # (tiles * WIDTH,) rows of X; -1 where a class has no more
    class_tiles: IndexArray  # (c + 1,) the first tile of each class
    codes: NDArray[np.int8]  # (M, tiles, r, WIDTH)
    low: NDArray[np.float32]  # (M, r, tiles)
    high: NDArray[np.float32]  # (M, r, tiles)
    errors: NDArray[np.float32]  # (M, tiles) how far coordinates are from their codes, at most


class Questions(NamedTuple):
    """Queries, and what is asked about them."""

    X: FloatArray  # (q, p)
    coordinates: NDArray[np.float32]  # (q, M, r) in units of the codes
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
def encode(U, rows, codes, low, high, errors):
    """Codes (tiles, r, WIDTH), boxes (r, tiles) and errors (tiles,) of coordinates U (n, r)."""
    r = U.shape[1]
    for t in range(errors.shape[0]):
        low[:, t], high[:, t] = np.inf, -np.inf
        error, norm = 0.0, 0.0
        for i in range(WIDTH):
            row = rows[t * WIDTH + i]
            if row < 0:
                codes[t, :, i] = 0
                continue
            squares, length = 0.0, 0.0
            for j in range(r):
                u = U[row, j]
                if not abs(u) < _FAR:
                    squares, low[j, t], high[j, t], u = np.inf, -np.inf, np.inf, U.dtype.type(0)
                code = max(-LARGEST_CODE, min(LARGEST_CODE, np.rint(u)))
                codes[t, j, i] = np.int8(code)
                squares += (u - code) ** 2
                length += np.float64(u) ** 2
                low[j, t], high[j, t] = min(low[j, t], u), max(high[j, t], u)
            error, norm = max(error, squares), max(norm, length)
        errors[t] = np.sqrt(error) * (1 + 1e-6) + _ROUNDOFF * np.sqrt(norm)
        for j in range(r):
            low[j, t] -= _ROUNDOFF * abs(low[j, t])
            high[j, t] += _ROUNDOFF * abs(high[j, t])


@inner
def _measure(X, L, q, x, batch, size, work):
    """distances (size,) ← ‖L (x - X[row])‖² of the rows of a batch, of a multiple of LANES.

    Rows are the contiguous axis: each is measured in the same way, wherever it is in the batch.
    """
    steps, z, distances = work[0], work[1], work[2]
    first, width, m, at = L.columns[q], L.widths[q], L.ranks[q], L.starts[q]
    factor = L.factors
    for b in range(size):
        row = batch[b]
        for j in range(width):
            steps[j, b] = x[first + j] - X[row, first + j]
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
def _filter(codes, rows, errors, tiles, count, u, reach, slack, sums, found, n):
    """found[n:] ← the rows of some tiles that may be within reach; returns how many there are.

    Half of the axes, those of large variance, decide about most tiles.
    """
    r = u.shape[0]
    half = 4 * ((r // 4 + 1) // 2)
    for place in range(count):
        t = tiles[place]
        limit = np.float32((reach + errors[t]) * (reach + errors[t]) * slack)
        for s in range(WIDTH):
            sums[s] = 0
        for j in range(0, half, 4):
            u0, u1, u2, u3 = u[j], u[j + 1], u[j + 2], u[j + 3]
            for s in range(WIDTH):
                e0, e1 = u0 - np.float32(codes[t, j, s]), u1 - np.float32(codes[t, j + 1, s])
                e2, e3 = u2 - np.float32(codes[t, j + 2, s]), u3 - np.float32(codes[t, j + 3, s])
                sums[s] += e0 * e0 + e1 * e1 + e2 * e2 + e3 * e3
        within = 0
        for s in range(WIDTH):
            within += sums[s] <= limit
        if within == 0:
            continue
        for j in range(half, r, 4):
            u0, u1, u2, u3 = u[j], u[j + 1], u[j + 2], u[j + 3]
            for s in range(WIDTH):
                e0, e1 = u0 - np.float32(codes[t, j, s]), u1 - np.float32(codes[t, j + 1, s])
                e2, e3 = u2 - np.float32(codes[t, j + 2, s]), u3 - np.float32(codes[t, j + 3, s])
                sums[s] += e0 * e0 + e1 * e1 + e2 * e2 + e3 * e3
        for s in range(WIDTH):
            if sums[s] <= limit and rows[t * WIDTH + s] >= 0:
                found[n] = rows[t * WIDTH + s]
                n += 1
    return n


@inner
def _offer(exact, q, x, exclude, found, count, work, best, names):
    """Measure rows, and put those into the heap that are near enough."""
    distances, batch = work[2], work[4]
    for begin in range(0, count, BATCH):
        size = min(BATCH, count - begin)
        padded = -(-size // LANES) * LANES
        for b in range(padded):
            batch[b] = found[begin + min(b, size - 1)]
        _measure(exact.X, exact, q, x, batch, padded, work)
        for b in range(size):
            if batch[b] != exclude and _precedes(distances[b], batch[b], best[0], names[0]):
                _sink(best, names, best.shape[0], distances[b], batch[b])


@inner
def _scan_tiles(exact, rows, codes, errors, asked, at, tiles, bounds, work, best, names):
    """Offer the rows of some tiles to the heap; `at` are query and metric.

    Boxes that are near come first, so that fewer of the others are near enough.
    """
    i, q = at
    x, u, exclude = asked.X[i], asked.coordinates[i, q], asked.exclude[i]
    sums, chosen, found = work[3], work[5], work[6]
    slack = 1.0 + 1e-5 + u.shape[0] * _ROUNDOFF
    unit, blur = asked.units[q], asked.blurs[i, q]
    reach = unit * np.sqrt(best[0]) + blur
    near = np.float32(reach * reach * slack)
    cut = near
    above, size, n = np.float32(-1.0), 4, 0
    for share in SHARES:
        upto = np.float32(cut * share)
        t = tiles[0]
        while t < tiles[1]:
            count = 0
            while t < tiles[1] and count < size:
                chosen[count] = t
                count += above < bounds[t] <= min(upto, near)
                t += 1
            n = _filter(codes, rows, errors, chosen, count, u, reach, slack, sums, found, n)
            if n > ENOUGH or (n > 0 and (np.isinf(near) or t == tiles[1])):
                _offer(exact, q, x, exclude, found, n, work, best, names)
                n = 0
                reach = unit * np.sqrt(best[0]) + blur
                near = np.float32(reach * reach * slack)
            size = min(2 * size, CHOSEN)
        above = upto
        if np.isinf(above):
            break


@inner
def _first_bound(exact, asked, at, seeds, k, work):
    """The k-th smallest distance cannot exceed that of the farthest of k rows."""
    i, q = at
    distances, batch = work[2], work[4]
    farthest = 0.0
    for begin in range(0, k, BATCH):
        for b in range(BATCH):
            batch[b] = seeds[min(begin + b, k - 1)]
            if batch[b] < 0:
                return np.inf
        _measure(exact.X, exact, q, asked.X[i], batch, BATCH, work)
        for b in range(BATCH):
            farthest = max(farthest, distances[b])
    return farthest


@inner
def _search_class(exact, codes, asked, at, tiles, worst, bounds, work, best, names):
    """The k nearest rows of some tiles, ascending, none of them farther than `worst`."""
    i, q = at
    first, last = tiles
    best[:], names[:] = worst, _NOBODY
    if first == last:
        return
    rows, coded, errors = codes.rows, codes.codes[q], codes.errors[q]
    box_bounds(
        asked.coordinates[i, q],
        codes.low[q, :, first:last],
        codes.high[q, :, first:last],
        bounds[first:last],
    )
    begin = end = first
    if np.isinf(worst):  # begin where the box is nearest
        nearest = first + np.argmin(bounds[first:last])
        around = 1 + best.shape[0] // WIDTH
        begin, end = max(first, nearest - around // 2), min(last, nearest + around)
    for run in ((begin, end), (first, begin), (end, last)):
        _scan_tiles(exact, rows, coded, errors, asked, at, run, bounds, work, best, names)
    for place in range(best.shape[0] - 1, 0, -1):  # the heap becomes a list
        distance, name = best[place], names[place]
        best[place], names[place] = best[0], names[0]
        _sink(best, names, place, distance, name)


@compiled
def search(exact, codes, asked, distances, rows):
    """Fill distances and rows (M, c, q, k), ascending; missing ones are inf and -1.

    Under one metric after the other: the neighbors under the one before bound the distances.
    """
    bounds = np.empty(codes.errors.shape[1], dtype=np.float32)
    work = (
        np.zeros((exact.X.shape[1] + 3, BATCH)),
        np.empty(BATCH),
        np.empty(BATCH),
        np.empty(WIDTH, dtype=np.float32),
        np.empty(BATCH, dtype=np.int64),
        np.empty(CHOSEN, dtype=np.int64),
        np.empty(ENOUGH + CHOSEN * WIDTH, dtype=np.int64),
    )
    n_classes = codes.class_tiles.shape[0] - 1
    before = -1
    for q in asked.visits:
        k = asked.ks[q]
        for i in range(asked.X.shape[0]):
            at = i, q
            for c in range(n_classes):
                worst = np.inf
                if before >= 0 and n_classes == 1:
                    worst = _first_bound(exact, asked, at, rows[before, c, i], k, work)
                best, names = distances[q, c, i, :k], rows[q, c, i, :k]
                tiles = codes.class_tiles[c], codes.class_tiles[c + 1]
                _search_class(exact, codes, asked, at, tiles, worst, bounds, work, best, names)
                for place in range(k):
                    if names[place] == _NOBODY:
                        distances[q, c, i, place], names[place] = np.inf, -1
        before = q
