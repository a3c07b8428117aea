"""LMNN's push: every sample against the impostors that invade its target neighbors.

For anchors i with target neighbors T_i and squared distances d_ij = ‖z_i − z_j‖²

    push = Σ_i Σ_{j∈T_i} Σ_{l∈D_i} h(1 + d_ij − d_il),     h(x) = [x]₊ or [x]₊²,

with D_i all points of other classes, and its gradient is that of Σ_ij W_ij d_ij: every triplet adds
h′ to W_ij and subtracts it from W_il. Only l nearer than 1 + max_j d_ij matter. Every evaluation
finds all of them anew; neither triplets nor anything n×n is ever kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from scipy.spatial.distance import cdist

from vicinal._typing import FloatArray, IndexArray
from vicinal.kernels.contract import Comparisons

if TYPE_CHECKING:
    from vicinal.kernels.cpu._impostors_numba import Points, Sums

BLOCK_ELEMENTS = 2**18
"""Pairs a block: small enough that every thread gets some."""
SERIAL_ELEMENTS = 2**18
"""Evaluations of fewer pairs than this are not worth waking threads."""
PRUNED_POINTS = 4000
"""Below this, to look for tiles that can be skipped costs more than it saves."""


@dataclass(frozen=True)
class Push:
    """The push of the visited anchors, and what its gradient needs."""

    value: float
    n_active: int
    """Triplets with a positive hinge."""
    laplacian: FloatArray
    """(n, c) the half H = ½ Δ V − W V, or Lap V, as :meth:`Kernel.sweep` returns them."""


class PushKernel(Protocol):
    """Bound to the targets of n points; knows distances and hinges, no weights, no pull."""

    def sweep(
        self,
        Z: FloatArray,
        V: FloatArray,
        *,
        squared: bool,
        symmetric: bool,
        rows: IndexArray | None = None,
    ) -> Push:
        """The push of the anchors ``rows`` (all by default) among the points Z (n, m).

        V (n, c) is what the Laplacian of W is applied to; ``squared`` chooses h.
        """
        ...


def make_push_kernel(targets: Comparisons, backend: str = "auto") -> PushKernel:
    """The kernel of that backend ("auto" is "numba") for the targets ``targets.similar``."""
    return ReferenceImpostors(targets) if backend == "numpy" else Impostors(targets)


class ReferenceImpostors:
    """The readable kernel: NumPy, anchor by anchor. It is the oracle of the other."""

    def __init__(self, targets: Comparisons) -> None:
        self._targets = targets

    def sweep(
        self,
        Z: FloatArray,
        V: FloatArray,
        *,
        squared: bool,
        symmetric: bool,
        rows: IndexArray | None = None,
    ) -> Push:
        """See :meth:`PushKernel.sweep`."""
        rows = self._targets.anchors if rows is None else rows
        classes = self._targets.class_of_row
        value, n_active = 0.0, 0
        out = np.zeros(V.shape)  # (n, c)
        block = max(1, BLOCK_ELEMENTS // len(Z))
        for start in range(0, len(rows), block):
            anchors = rows[start : start + block]
            D = cdist(Z[anchors], Z, "sqeuclidean")  # (b, n)
            W = np.zeros_like(D)
            for i, d, w in zip(anchors, D, W, strict=True):
                targets = self._targets.similar.of(np.array([i]))  # type: ignore[union-attr]
                others = classes != classes[i]
                hinges = np.maximum(0.0, 1.0 + d[targets, None] - d[others])  # (k, others)
                slopes = 2.0 * hinges if squared else (hinges > 0).astype(np.float64)
                value += float((hinges**2 if squared else hinges).sum())
                n_active += int((hinges > 0).sum())
                w[targets] += slopes.sum(axis=1)
                w[others] -= slopes.sum(axis=0)
            scale = 1.0 if symmetric else 0.5
            out += scale * W.sum(axis=0)[:, None] * V
            out[anchors] += scale * W.sum(axis=1)[:, None] * V[anchors] - W @ V
            if symmetric:
                out -= W.T @ V[anchors]
        return Push(value, n_active, out)


class Impostors:
    """The Numba kernel: fused, threaded over anchors, far tiles of points skipped with proof."""

    def __init__(self, targets: Comparisons, n_threads: int | None = None) -> None:
        self._targets = targets
        self._n_threads = n_threads

    def sweep(
        self,
        Z: FloatArray,
        V: FloatArray,
        *,
        squared: bool,
        symmetric: bool,
        rows: IndexArray | None = None,
    ) -> Push:
        """See :meth:`PushKernel.sweep`."""
        import numba

        rows = self._targets.anchors if rows is None else rows
        position, points = _lay_out(self._targets, Z, V)
        blocks = list(_blocks(np.sort(position[rows]), points))
        n_threads = 1
        if len(rows) * len(Z) >= SERIAL_ELEMENTS:
            n_threads = min(self._n_threads or numba.get_num_threads(), len(blocks))
        product, row_sums = np.zeros(V.shape), np.zeros(len(Z))

        def run(share: int) -> Sums:
            # Every thread takes every n-th block: a fixed share, so that sums have a fixed order.
            return _run(blocks[share::n_threads], points, squared, symmetric, product, row_sums)

        if n_threads == 1:
            parts = [run(0)]
        else:
            with ThreadPoolExecutor(n_threads) as pool:
                parts = list(pool.map(run, range(n_threads)))
        return _assemble(parts, points.V, position, symmetric)


Block = tuple[IndexArray, IndexArray, IndexArray]


def _lay_out(targets: Comparisons, Z: FloatArray, V: FloatArray) -> tuple[IndexArray, Points]:
    """The points in the order and the form that the compiled loops want; where each row went."""
    from vicinal.kernels.cpu._impostors_numba import Points, sort_targets
    from vicinal.kernels.cpu.layout import no_tiles, rotate_to_principal_axes, transpose_padded
    from vicinal.kernels.cpu.pruning import compact_order, make_tiles

    lists = targets.similar
    assert lists is not None
    n = len(Z)
    offsets = np.ascontiguousarray(targets.offsets, dtype=np.int64)
    prune = n >= PRUNED_POINTS
    order = position = np.arange(n)
    if prune:
        Z = rotate_to_principal_axes(Z)
        order = compact_order(Z, offsets)
        position = np.empty(n, dtype=np.int64)
        position[order] = np.arange(n)
    Z = np.asarray(Z[order], dtype=np.float64)
    indptr = np.concatenate([[0], np.cumsum(lists.counts[order])])
    indices = position[lists.of(order)]
    distances = np.empty(len(indices))
    sort_targets(Z, indptr, indices, distances)
    ZT = transpose_padded(Z)
    points = Points(
        ZT=ZT,
        norms=np.einsum("ij,ij->i", Z, Z),
        offsets=offsets,
        V=np.asarray(V[order], dtype=np.float64),
        indptr=indptr,
        indices=indices,
        distances=distances,
        prune=prune,
        tiles=make_tiles(ZT, offsets) if prune else no_tiles(ZT.dtype),
    )
    return position, points


def _blocks(positions: IndexArray, points: Points) -> Iterator[Block]:
    """Blocks of (quads (q, 4) of positions, their classes (q,), how many are real (q,))."""
    from vicinal.kernels.cpu.inner_loops import QUAD
    from vicinal.kernels.cpu.layout import cut_into_quads

    quads = cut_into_quads(positions, points.offsets)
    size = max(1, BLOCK_ELEMENTS // (QUAD * len(points.norms)))
    for start in range(0, len(quads[0]), size):
        yield tuple(part[start : start + size] for part in quads)  # type: ignore[misc]


def _run(
    blocks: list[Block],
    points: Points,
    squared: bool,
    symmetric: bool,
    product: FloatArray,
    row_sums: FloatArray,
) -> Sums:
    """One thread's share of the blocks; product and row sums are shared, each has its own rows."""
    from vicinal.kernels.cpu._impostors_numba import Sums, push

    sums = Sums(
        product=product,
        rows=row_sums,
        columns=np.zeros(len(row_sums)),
        transposed=np.zeros(product.shape if symmetric else (0, 0)),
        value=np.zeros(1),
        active=np.zeros(1, dtype=np.int64),
    )
    for quads, labels, real in blocks:
        push(quads, labels, real, points, squared, symmetric, sums)
    return sums


def _assemble(parts: list[Sums], V: FloatArray, position: IndexArray, symmetric: bool) -> Push:
    """H = ½ Δ V − W V, or Lap V = Δ V − W V − Wᵀ V, back in the order of the rows."""
    delta = parts[0].rows + sum(part.columns for part in parts)
    out = (1.0 if symmetric else 0.5) * delta[:, None] * V - parts[0].product
    if symmetric:
        for part in parts:
            out -= part.transposed
    value = sum(float(part.value[0]) for part in parts)
    return Push(value, sum(int(part.active[0]) for part in parts), out[position])
