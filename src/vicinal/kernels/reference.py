"""The readable kernel: NumPy, block by block. All other kernels are tested against it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from scipy.spatial.distance import cdist

from vicinal._typing import FloatArray, IndexArray
from vicinal.kernels.contract import (
    Comparisons,
    HostKernel,
    IndexLists,
    Respond,
    RespondToTargets,
    Response,
    SweepResult,
)

BLOCK_ELEMENTS = 2**22
Weighed: TypeAlias = tuple[FloatArray, FloatArray, FloatArray | None]
"""Values (b,) of anchors, their rows of W (b, n), and second values, if any."""


class ReferenceKernel(HostKernel):
    """Row blocks of the full distance matrix, boolean masks, no tricks."""

    def __init__(self, comparisons: Comparisons) -> None:
        self._comparisons = comparisons

    def sweep(
        self,
        Z: FloatArray,
        V: FloatArray,
        respond: Respond,
        *,
        alpha: float,
        beta: float = 1.0,
        symmetric: bool = False,
        rows: IndexArray | None = None,
    ) -> SweepResult:
        """See :meth:`vicinal.kernels.contract.Kernel.sweep`."""

        def weigh(anchors: IndexArray, D: FloatArray) -> Weighed:
            s, r_similar = masked_soft_average(D, self._similar(anchors, len(Z)), alpha)
            t, r_dissimilar = masked_soft_average(D, self._dissimilar(anchors, len(Z)), beta)
            values, ds, dt, second = Response(*respond(anchors, s, t))
            return values, ds[:, None] * r_similar + dt[:, None] * r_dissimilar, second

        return self._sums(Z, V, weigh, symmetric, rows)

    def sweep_targets(
        self,
        Z: FloatArray,
        V: FloatArray,
        Y: FloatArray,
        respond: RespondToTargets,
        *,
        symmetric: bool = False,
        rows: IndexArray | None = None,
    ) -> SweepResult:
        """See :meth:`vicinal.kernels.contract.Kernel.sweep_targets`."""

        def weigh(anchors: IndexArray, D: FloatArray) -> Weighed:
            _, p = masked_soft_average(D, self._similar(anchors, len(Z)), 1.0)
            averages = p @ Y  # (b, q)
            values, slopes = respond(anchors, averages)
            return values, p * ((slopes * averages).sum(axis=1)[:, None] - slopes @ Y.T), None

        return self._sums(Z, V, weigh, symmetric, rows)

    def _sums(
        self,
        Z: FloatArray,
        V: FloatArray,
        weigh: Callable[[IndexArray, FloatArray], Weighed],
        symmetric: bool,
        rows: IndexArray | None,
    ) -> SweepResult:
        """The sums over the blocks; ``weigh`` makes values and rows of W from distances."""
        n = len(Z)
        rows = self._comparisons.anchors if rows is None else rows
        values, seconds, out = np.zeros(n), np.zeros(n), np.zeros(V.shape)  # (n, c)
        block = max(1, BLOCK_ELEMENTS // n)
        for start in range(0, len(rows), block):
            anchors = rows[start : start + block]
            D = cdist(Z[anchors], Z, "sqeuclidean")  # (b, n)
            values[anchors], W, second = weigh(anchors, D)
            seconds[anchors] = 0.0 if second is None else second
            add_laplacian(out, W, anchors, V, symmetric)
        laplacian = out.astype(V.dtype, copy=False)
        return SweepResult(float(values.sum()), laplacian, second=float(seconds.sum()))

    def _similar(self, rows: IndexArray, n: int) -> np.ndarray:
        """(b, n) which points are in the similar set of which row."""
        lists = self._comparisons.similar
        mask = self._same_class(rows) if lists is None else _mask_of_lists(lists, rows, n)
        return mask & ~self._same_group(rows, n)

    def _dissimilar(self, rows: IndexArray, n: int) -> np.ndarray:
        """(b, n) which points are in the dissimilar set of which row."""
        lists = self._comparisons.dissimilar
        mask = ~self._same_class(rows) if lists is None else _mask_of_lists(lists, rows, n)
        return mask & ~self._same_group(rows, n)

    def _same_class(self, rows: IndexArray) -> np.ndarray:
        classes = self._comparisons.class_of_row
        return classes[rows][:, None] == classes[None, :]

    def _same_group(self, rows: IndexArray, n: int) -> np.ndarray:
        groups = self._comparisons.groups
        groups = np.arange(n) if groups is None else groups
        return groups[rows][:, None] == groups[None, :]


def _mask_of_lists(lists: IndexLists, rows: IndexArray, n: int) -> np.ndarray:
    mask = np.zeros((len(rows), n), dtype=bool)
    for i, row in enumerate(rows):
        mask[i, lists.indices[lists.indptr[row] : lists.indptr[row + 1]]] = True
    return mask


def add_laplacian(
    out: FloatArray, W: FloatArray, rows: IndexArray, V: FloatArray, symmetric: bool
) -> None:
    """Add to ``out`` (n, c) the Laplacian of these rows of W (b, n), or a half of it, times V."""
    scale = 1.0 if symmetric else 0.5
    out += scale * W.sum(axis=0)[:, None] * V
    out[rows] += scale * W.sum(axis=1)[:, None] * V[rows] - W @ V
    if symmetric:
        out -= W.T @ V[rows]


def masked_soft_average(
    D: FloatArray, mask: np.ndarray, gamma: float
) -> tuple[FloatArray, FloatArray]:
    """Soft average over the members of each row, and its weights r = ∂b/∂d.

    With the extreme exponent factored out: for x = −γ (d − d*), d* the member with the largest
    exponent, b = d* − ln(mean eˣ)/γ and r = softmax(x).
    """
    count = mask.sum(axis=1, keepdims=True)
    if gamma == 0:
        r = mask / count
        return (r * D).sum(axis=1), r
    nearest = np.where(mask, D, np.inf).min(axis=1, keepdims=True)
    farthest = np.where(mask, D, -np.inf).max(axis=1, keepdims=True)
    extreme = nearest if gamma > 0 else farthest
    if np.isinf(gamma):
        r = (mask & (extreme == D)).astype(D.dtype)
        return extreme[:, 0], r / r.sum(axis=1, keepdims=True)
    growth = np.expm1(-gamma * np.where(mask, D - extreme, 0.0))  # (b, n), in (-1, 0]
    mean_growth = (growth * mask).sum(axis=1, keepdims=True) / count
    r = mask * (1 + growth) / (count * (1 + mean_growth))
    return (extreme - np.log1p(mean_growth) / gamma)[:, 0], r
