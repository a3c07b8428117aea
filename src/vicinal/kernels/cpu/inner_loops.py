"""The inner loops of the CPU kernel: short, contiguous, vectorized by the compiler.

Points are stored transposed, one coordinate per row, so that the loop over points is contiguous.
Coordinates are padded with zeros to a multiple of 4, anchors come in quads of 4 rows.
"""

from __future__ import annotations

import numpy as np
from llvmlite.binding import get_host_cpu_features

from vicinal.kernels.cpu.jit import fast_exp, inner, inner_sum

QUAD = 4
HAS_32_REGISTERS = bool(get_host_cpu_features().get("avx512f"))
"""Vector registers: with 32 of them (AVX-512) products are made 4 rows at a time, else 2."""
CHUNK = 512
"""Points per chunk: its coordinates and its 4 rows of distances stay in the first caches."""
LANES = 128
"""Independent partial results of a reduction: it vectorizes without reordering sums."""


@inner
def _start_rank4(d0, d1, d2, d3, norms, z0, z1, z2, z3, a):
    for j in range(d0.shape[0]):
        q, w0, w1, w2, w3 = norms[j], z0[j], z1[j], z2[j], z3[j]
        d0[j] = q + a[0, 0] * w0 + a[0, 1] * w1 + a[0, 2] * w2 + a[0, 3] * w3
        d1[j] = q + a[1, 0] * w0 + a[1, 1] * w1 + a[1, 2] * w2 + a[1, 3] * w3
        d2[j] = q + a[2, 0] * w0 + a[2, 1] * w1 + a[2, 2] * w2 + a[2, 3] * w3
        d3[j] = q + a[3, 0] * w0 + a[3, 1] * w1 + a[3, 2] * w2 + a[3, 3] * w3


@inner
def add_rank4(d0, d1, d2, d3, z0, z1, z2, z3, a):
    """d_r += Σ_k a_rk z_k for 4 rows d and 4 rows z: the rank-4 update all products are made of."""
    for j in range(d0.shape[0]):
        w0, w1, w2, w3 = z0[j], z1[j], z2[j], z3[j]
        d0[j] += a[0, 0] * w0 + a[0, 1] * w1 + a[0, 2] * w2 + a[0, 3] * w3
        d1[j] += a[1, 0] * w0 + a[1, 1] * w1 + a[1, 2] * w2 + a[1, 3] * w3
        d2[j] += a[2, 0] * w0 + a[2, 1] * w1 + a[2, 2] * w2 + a[2, 3] * w3
        d3[j] += a[3, 0] * w0 + a[3, 1] * w1 + a[3, 2] * w2 + a[3, 3] * w3


@inner
def quad_distances(B, ZT, norms, start, stop, D, at):
    """D[r, at:] ← ‖z_j‖² + b_r·z_j for j in start:stop.

    With b_r = −2 a_r it is the squared distance less ‖a_r‖², which the caller adds.
    """
    for j in range(start, stop, CHUNK):
        e = min(stop, j + CHUNK)
        f = at + j - start
        g = f + e - j
        for k in range(0, ZT.shape[0], QUAD):
            b = B[:, k : k + QUAD]
            d = D[0, f:g], D[1, f:g], D[2, f:g], D[3, f:g]
            z = ZT[k, j:e], ZT[k + 1, j:e], ZT[k + 2, j:e], ZT[k + 3, j:e]
            if k == 0:
                _start_rank4(d[0], d[1], d[2], d[3], norms[j:e], z[0], z[1], z[2], z[3], b)
            else:
                add_rank4(d[0], d[1], d[2], d[3], z[0], z[1], z[2], z[3], b)


@inner_sum
def _sum(d):
    total = np.float64(0.0)
    for j in range(d.shape[0]):
        total += d[j]
    return total


@inner
def _fold_smaller(lanes, chunk):
    for i in range(chunk.shape[0]):
        lanes[i] = chunk[i] if chunk[i] < lanes[i] else lanes[i]


@inner
def _smallest_of_few(d):
    """Without slices, whose reference counts would cost more than the comparisons."""
    whole = d.shape[0] - d.shape[0] % 4
    a = b = c = e = d.dtype.type(np.inf)
    for j in range(0, whole, 4):
        a = d[j] if d[j] < a else a
        b = d[j + 1] if d[j + 1] < b else b
        c = d[j + 2] if d[j + 2] < c else c
        e = d[j + 3] if d[j + 3] < e else e
    for j in range(whole, d.shape[0]):
        a = d[j] if d[j] < a else a
    return min(min(a, b), min(c, e))


@inner
def smallest(d, lanes):
    """The minimum of a row."""
    if d.shape[0] < 4 * LANES:
        return _smallest_of_few(d)
    lanes[:] = np.inf
    for j in range(0, d.shape[0], LANES):
        _fold_smaller(lanes, d[j : j + LANES])
    half = LANES // 2
    while half:
        _fold_smaller(lanes[:half], lanes[half : 2 * half])
        half //= 2
    return lanes[0]


@inner
def largest(d, lanes):
    """The maximum of a row; it is made the minimum of the negated row and back."""
    for j in range(d.shape[0]):
        d[j] = -d[j]
    most = -smallest(d, lanes)
    for j in range(d.shape[0]):
        d[j] = -d[j]
    return most


@inner
def exponentiate(d, alpha, extreme, lanes):
    """d ← exp(−α (d − extreme)) in place; returns the sum."""
    n = d.shape[0]
    whole = n - n % LANES
    total = np.float64(0.0)
    if whole:
        lanes[:] = 0
        for j in range(0, whole, LANES):
            chunk = d[j : j + LANES]
            for i in range(LANES):
                chunk[i] = fast_exp(alpha * (extreme - chunk[i]))
                lanes[i] += chunk[i]
        total = _sum(lanes)
    rest = d[whole:]
    for j in range(rest.shape[0]):  # a loop of its own: with the sum inside it, it would be serial
        rest[j] = fast_exp(alpha * (extreme - rest[j]))
    return total + _sum(rest)


@inner
def exponentiate_gently(d, alpha, extreme):
    """d ← exp(x), x = −α (d − extreme), where every |x| ≤ ½; returns Σ (eˣ − 1) without cancelling.

    Excluded points (d infinite) get weight 0 and count as nothing. A Taylor sum: it runs only
    for exponents so small that the soft average is almost the mean, where accuracy is the issue.
    """
    total = np.float64(0.0)
    for j in range(d.shape[0]):
        if np.isinf(d[j]):
            d[j] = 0
            continue
        x = np.float64(alpha * (extreme - d[j]))
        growth, term = x, x
        for k in range(2, 15):
            term *= x / k
            growth += term
        total += growth
        d[j] = 1 + growth
    return total


@inner
def weigh_uniformly(d):
    """d ← 1 (0 where excluded) in place; returns the sum of the distances before."""
    total = np.float64(0.0)
    for j in range(d.shape[0]):
        excluded = np.isinf(d[j])
        total += 0.0 if excluded else d[j]
        d[j] = 0 if excluded else 1
    return total


@inner
def mark_extreme(d, extreme):
    """d ← 1 where it equals the extreme, else 0; returns how many there are."""
    ties = 0
    for j in range(d.shape[0]):
        tie = d[j] == extreme
        ties += tie
        d[j] = 1 if tie else 0
    return ties


@inner_sum
def _pair_dot4(e, f, v0, v1, v2, v3):
    zero = e.dtype.type(0)
    s0, s1, s2, s3 = zero, zero, zero, zero
    t0, t1, t2, t3 = zero, zero, zero, zero
    for j in range(e.shape[0]):
        x, y, w0, w1, w2, w3 = e[j], f[j], v0[j], v1[j], v2[j], v3[j]
        s0 += x * w0
        s1 += x * w1
        s2 += x * w2
        s3 += x * w3
        t0 += y * w0
        t1 += y * w1
        t2 += y * w2
        t3 += y * w3
    return s0, s1, s2, s3, t0, t1, t2, t3


@inner_sum
def _quad_dot4(e, f, g, h, v0, v1, v2, v3):
    zero = e.dtype.type(0)
    s0, s1, s2, s3 = zero, zero, zero, zero
    t0, t1, t2, t3 = zero, zero, zero, zero
    p0, p1, p2, p3 = zero, zero, zero, zero
    q0, q1, q2, q3 = zero, zero, zero, zero
    for j in range(e.shape[0]):
        w0, w1, w2, w3 = v0[j], v1[j], v2[j], v3[j]
        x, y, u, v = e[j], f[j], g[j], h[j]
        s0 += x * w0
        s1 += x * w1
        s2 += x * w2
        s3 += x * w3
        t0 += y * w0
        t1 += y * w1
        t2 += y * w2
        t3 += y * w3
        p0 += u * w0
        p1 += u * w1
        p2 += u * w2
        p3 += u * w3
        q0 += v * w0
        q1 += v * w1
        q2 += v * w2
        q3 += v * w3
    return s0, s1, s2, s3, t0, t1, t2, t3, p0, p1, p2, p3, q0, q1, q2, q3


@inner
def quad_products(e, f, g, h, VT, start, P):
    """P[r] += V[start:…]ᵀ (e, f, g, h)[r]: the fastest where 16 sums fit the registers."""
    stop = start + e.shape[0]
    for k in range(0, VT.shape[0], QUAD):
        s = _quad_dot4(
            e,
            f,
            g,
            h,
            VT[k, start:stop],
            VT[k + 1, start:stop],
            VT[k + 2, start:stop],
            VT[k + 3, start:stop],
        )
        for i in range(QUAD):
            P[0, k + i] += s[i]
            P[1, k + i] += s[QUAD + i]
            P[2, k + i] += s[2 * QUAD + i]
            P[3, k + i] += s[3 * QUAD + i]


@inner
def add_quad(sums, e, f, g, h, x):
    """sums += Σ_r x_r·(e, f, g, h)[r]."""
    a, b, c, d = x[0], x[1], x[2], x[3]
    for j in range(sums.shape[0]):
        sums[j] += a * e[j] + b * f[j] + c * g[j] + d * h[j]


@inner
def pair_products(e, f, VT, start, p, q):
    """p += V[start:…]ᵀ e and q += V[start:…]ᵀ f: two rows of E V from one reading of V."""
    stop = start + e.shape[0]
    for k in range(0, VT.shape[0], QUAD):
        r = _pair_dot4(
            e,
            f,
            VT[k, start:stop],
            VT[k + 1, start:stop],
            VT[k + 2, start:stop],
            VT[k + 3, start:stop],
        )
        for i in range(QUAD):
            p[k + i] += r[i]
            q[k + i] += r[QUAD + i]


@inner
def add_pair(sums, x, e, y, f):
    """sums += x·e + y·f."""
    for j in range(sums.shape[0]):
        sums[j] += x * e[j] + y * f[j]


@inner_sum
def dot(e, y):
    """Σ_j e_j y_j, in the type of e."""
    total = e.dtype.type(0)
    for j in range(e.shape[0]):
        total += e[j] * y[j]
    return total


@inner
def add_multiple(sums, x, e):
    """sums += x·e."""
    for j in range(sums.shape[0]):
        sums[j] += x * e[j]


@inner
def multiply(e, factors):
    """e *= factors, as many as there are of e."""
    for j in range(e.shape[0]):
        e[j] *= factors[j]
