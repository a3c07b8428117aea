"""LDML's loss: is a pair of one class, judged by its distance and one bias for all.

Over all pairs i < j of points sorted by class, with d_ij = ‖z_i − z_j‖²,

    value = Σ_{i<j} ω ln(1 + e^{u_ij}),     u_ij = d_ij − b for similar pairs, b − d_ij for others,

and weights ω = ω_s or ω_d. Its gradient is that of Σ W_ij d_ij with W_ij = ± ω σ(u_ij), positive
for similar pairs, and −Σ W_ij with respect to b. Nothing n×n is ever kept.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import expit

from vicinal._typing import FloatArray, IndexArray

BLOCK_ELEMENTS = 2**19
SERIAL_ELEMENTS = 2**17


@dataclass(frozen=True)
class LogisticSweep:
    """The loss of all pairs, and what its gradient needs."""

    value: float
    bias_slope: float
    laplacian: FloatArray
    """(n, c) the half H = ½ Δ V − W V, or Lap V, as :meth:`Kernel.sweep` returns them."""


class PairKernel(Protocol):
    """Bound to the pairs of n points."""

    def sweep(self, Z: FloatArray, V: FloatArray, bias: float, *, symmetric: bool) -> LogisticSweep:
        """The loss of all pairs among the points Z (n, m); V (n, c) is what Lap is applied to."""
        ...


def make_pair_kernel(
    offsets: IndexArray, weights: tuple[float, float], backend: str = "auto"
) -> PairKernel:
    """The kernel of that backend ("auto" is "numba") for classes at ``offsets`` and (ω_s, ω_d)."""
    kernel = ReferenceLogisticPairs if backend == "numpy" else LogisticPairs
    return kernel(offsets, weights)


class ReferenceLogisticPairs:
    """The readable kernel: NumPy, block by block. It is the oracle of the other."""

    def __init__(self, offsets: IndexArray, weights: tuple[float, float]) -> None:
        self._offsets = offsets
        self._weights = weights

    def sweep(self, Z: FloatArray, V: FloatArray, bias: float, *, symmetric: bool) -> LogisticSweep:
        """See :meth:`PairKernel.sweep`."""
        n = len(Z)
        classes = np.repeat(np.arange(len(self._offsets) - 1), np.diff(self._offsets))
        value, bias_slope = 0.0, 0.0
        out = np.zeros(V.shape)  # (n, c)
        block = max(1, BLOCK_ELEMENTS // n)
        for start in range(0, n, block):
            rows = np.arange(start, min(start + block, n))
            sign = np.where(classes[rows, None] == classes, -1.0, 1.0)  # (b, n)
            omega = np.where(sign < 0, *self._weights) * (rows[:, None] < np.arange(n))
            u = sign * (bias - cdist(Z[rows], Z, "sqeuclidean"))
            W = -sign * omega * expit(u)
            value += float((omega * np.logaddexp(0.0, u)).sum())
            bias_slope -= float(W.sum())
            scale = 1.0 if symmetric else 0.5
            out += scale * W.sum(axis=0)[:, None] * V
            out[rows] += scale * W.sum(axis=1)[:, None] * V[rows] - W @ V
            if symmetric:
                out -= W.T @ V[rows]
        return LogisticSweep(value, bias_slope, out)


class _Part(NamedTuple):
    """What one thread has summed."""

    value: list[float]
    columns: FloatArray  # (n,) Wᵀ 1
    transposed: FloatArray  # (c', n) (Wᵀ V)ᵀ


class LogisticPairs:
    """The Numba kernel: fused, threaded over rows."""

    def __init__(
        self, offsets: IndexArray, weights: tuple[float, float], n_threads: int | None = None
    ) -> None:
        self._offsets = np.ascontiguousarray(offsets, dtype=np.int64)
        self._weights = np.array(weights, dtype=np.float64)
        self._n_threads = n_threads

    def sweep(self, Z: FloatArray, V: FloatArray, bias: float, *, symmetric: bool) -> LogisticSweep:
        """See :meth:`PairKernel.sweep`."""
        import numba

        from vicinal.kernels.cpu.inner_loops import QUAD
        from vicinal.kernels.cpu.layout import transpose_padded

        n = len(Z)
        Z, V = np.asarray(Z, dtype=np.float64), np.asarray(V, dtype=np.float64)
        norms = np.einsum("ij,ij->i", Z, Z)
        points = (transpose_padded(Z), norms, self._offsets, float(bias))
        VT = transpose_padded(V)
        blocks = self._blocks(n)
        n_threads = 1
        if n * n >= SERIAL_ELEMENTS:
            n_threads = min(self._n_threads or numba.get_num_threads(), len(blocks))
        product, rows = np.zeros((n, len(VT))), np.zeros(n)

        def run(share: int) -> _Part:
            # Every thread takes every n-th block: a fixed share, so that sums have a fixed order.
            part = _Part([], np.zeros(n), np.zeros((len(VT) if symmetric else QUAD, n)))
            self._run(blocks[share::n_threads], points, VT, symmetric, product, rows, part)
            return part

        if n_threads == 1:
            parts = [run(0)]
        else:
            with ThreadPoolExecutor(n_threads) as pool:
                parts = list(pool.map(run, range(n_threads)))
        return _assemble(parts, V, product, rows, symmetric)

    def _blocks(self, n: int) -> list[tuple[IndexArray, ...]]:
        """Blocks of (quads (q, 4) of rows, their classes (q,), how many are real (q,))."""
        from vicinal.kernels.cpu.inner_loops import QUAD
        from vicinal.kernels.cpu.layout import cut_into_quads

        quads = cut_into_quads(np.arange(n), self._offsets)
        size = max(1, BLOCK_ELEMENTS // (QUAD * n))
        starts = range(0, len(quads[0]), size)
        return [tuple(part[start : start + size] for part in quads) for start in starts]

    def _run(
        self,
        blocks: list[tuple[IndexArray, ...]],
        points: tuple[Any, ...],
        VT: FloatArray,
        symmetric: bool,
        product: FloatArray,
        row_sums: FloatArray,
        part: _Part,
    ) -> None:
        """One thread's share of the blocks."""
        from vicinal.kernels.cpu._logistic_pairs_numba import forward
        from vicinal.kernels.cpu.inner_loops import QUAD
        from vicinal.kernels.cpu.row_blocks import backward

        if not blocks:
            return
        q, n = max(len(quads) for quads, _, _ in blocks), len(row_sums)
        E = np.empty((QUAD * q, n))
        runs = np.empty((q, 2, 2), dtype=np.int64)
        counts = np.empty((q, 2), dtype=np.int64)
        for quads, labels, real in blocks:
            values, sums = np.zeros((2, len(quads), QUAD, 2))
            forward(quads, labels, real, *points, (E, runs, counts, values, sums))
            taken = np.arange(QUAD) < real[:, None]  # (q, 4) padding out
            coefficients = taken[:, :, None] * self._weights * np.array([1.0, -1.0])
            row_sums[quads[taken]] = (coefficients * sums)[taken].sum(axis=1)
            part.value.append(float((values * self._weights).sum()))
            memory = (E, runs, counts)
            backward(
                quads, coefficients, VT, symmetric, memory, product, part.columns, part.transposed
            )


def _assemble(
    parts: list[_Part], V: FloatArray, product: FloatArray, rows: FloatArray, symmetric: bool
) -> LogisticSweep:
    """H = ½ Δ V − W V, or Lap V = Δ V − W V − Wᵀ V, of what the threads have summed."""
    c = V.shape[1]
    delta = rows + sum(part.columns for part in parts)
    out = (1.0 if symmetric else 0.5) * delta[:, None] * V - product[:, :c]
    if symmetric:
        for part in parts:
            out -= part.transposed.T[:, :c]
    value = sum(sum(part.value) for part in parts)
    return LogisticSweep(value, -float(rows.sum()), out)
