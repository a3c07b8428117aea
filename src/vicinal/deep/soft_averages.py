"""The row soft averages of squared distances, and their gradient 2·Lap·Z, block by block.

What :mod:`vicinal.kernels.contract` asks of a kernel, for tensors: the backward pass receives the
derivatives ds_i, dt_i of whatever was made of the soft averages, and so knows no losses.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from vicinal.deep.comparisons import Comparisons

BLOCK_ELEMENTS = 2**23
"""Of a block of anchors × columns; some ten arrays of that size are alive at a time."""


@dataclass(frozen=True)
class RowAverages:
    """What the distances of every anchor are reduced to; zeros where a set is empty."""

    s: Tensor
    """(b,) b(α; {d_ij : j ∈ S_i})."""
    t: Tensor
    """(b,) b(1; {d_il : l ∈ D_i})."""
    n_similar: Tensor
    """(b,) sizes of S_i."""
    n_dissimilar: Tensor
    """(b,) sizes of D_i."""


def row_averages(
    Z: Tensor, R: Tensor, comparisons: Comparisons, *, alpha: float, nearest: int | None
) -> RowAverages:
    """Soft averages of d_ij = ‖z_i − r_j‖², differentiable in Z and R.

    Parameters
    ----------
    Z : (b, m)
        The anchors.
    R : (n, m)
        The columns; Z itself where a batch is compared with itself, whose gradient then is the
        sum of both, 2·Lap·Z.
    comparisons : Comparisons
        The sets S_i and D_i.
    alpha : float
        Exponent of the similar side; any real, 0, ±inf.
    nearest : int or None
        Of every S_i only so many nearest.
    """
    apply: Any = _RowAverages.apply
    if len(R):  # distances stay the same, their rounding errors shrink
        center = R.detach().mean(dim=0)
        Z, R = Z - center, R - center
    return RowAverages(*apply(Z, R, comparisons, alpha, nearest))


class _RowAverages(torch.autograd.Function):
    """Distances exist only inside a block: in the forward pass, and again in the backward one."""

    @staticmethod
    def forward(
        ctx: Any, Z: Tensor, R: Tensor, comparisons: Comparisons, alpha: float, nearest: int | None
    ) -> tuple[Tensor, ...]:
        s, t = (Z.new_zeros(len(Z)) for _ in range(2))
        n_similar, n_dissimilar = (Z.new_zeros(len(Z), dtype=torch.long) for _ in range(2))
        with torch.autocast(Z.device.type, enabled=False):
            for rows, similar, dissimilar in _blocks(Z, R, comparisons, alpha, nearest):
                s[rows], n_similar[rows] = similar.value, similar.count
                t[rows], n_dissimilar[rows] = dissimilar.value, dissimilar.count
        ctx.save_for_backward(Z, R)
        ctx.arguments = comparisons, alpha, nearest
        ctx.mark_non_differentiable(n_similar, n_dissimilar)
        return s, t, n_similar, n_dissimilar

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, ds: Tensor, dt: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        """∂/∂z_i = 2 (Σ_j W_ij) z_i − 2 Σ_j W_ij r_j, and the same of Wᵀ for the columns."""
        Z, R = ctx.saved_tensors
        of_anchors, of_columns = ctx.needs_input_grad[:2]
        grad_anchors, grad_columns = torch.zeros_like(Z), torch.zeros_like(R)
        with torch.autocast(Z.device.type, enabled=False):
            for rows, similar, dissimilar in _blocks(Z, R, *ctx.arguments):
                W = similar.weighted(ds[rows]) + dissimilar.weighted(dt[rows])  # (b, n)
                if of_anchors:
                    grad_anchors[rows] = 2 * (W.sum(dim=1, keepdim=True) * Z[rows] - W @ R)
                if of_columns:
                    grad_columns += 2 * (W.sum(dim=0)[:, None] * R - W.T @ Z[rows])
        return (
            grad_anchors if of_anchors else None,
            grad_columns if of_columns else None,
            None,
            None,
            None,
        )


@dataclass(frozen=True)
class _SoftAverage:
    """b of the members of each row, and what its weights r = ∂b/∂d are made of."""

    value: Tensor
    """(b,) zeros for rows without a member."""
    count: Tensor
    """(b,) members."""
    exponentials: Tensor
    """(b, n) proportional to the weights; zeros outside the set."""
    total: Tensor
    """(b,) their sums."""

    def weighted(self, derivative: Tensor) -> Tensor:
        """(b, n) derivative_i · r_ij; zeros for rows without a member."""
        return self.exponentials * (derivative / self.total)[:, None]


def _blocks(
    Z: Tensor, R: Tensor, comparisons: Comparisons, alpha: float, nearest: int | None
) -> Iterator[tuple[slice, _SoftAverage, _SoftAverage]]:
    """Blocks of anchors with the soft averages of their similar and dissimilar sides.

    Without columns there are none: no anchor then has any side.
    """
    if len(R) == 0:
        return
    length = max(1, BLOCK_ELEMENTS // len(R))
    squares = R.square().sum(dim=1)  # (n,)
    for start in range(0, len(Z), length):
        rows = slice(start, min(start + length, len(Z)))
        block = Z[rows]
        D = torch.addmm(squares[None, :], block, R.T, alpha=-2)  # (b, n)
        D = (D + block.square().sum(dim=1, keepdim=True)).clamp_(min=0)
        similar, dissimilar = comparisons.masks(rows.start, rows.stop)
        if nearest is not None:
            similar = _nearest(D, similar, nearest)
        yield rows, _soft_average(D, similar, alpha), _soft_average(D, dissimilar, 1.0)


def _nearest(D: Tensor, mask: Tensor, k: int) -> Tensor:
    """The mask, of every row only its k nearest members."""
    chosen = D.masked_fill(~mask, math.inf).topk(min(k, D.shape[1]), largest=False).indices
    return torch.zeros_like(mask).scatter_(1, chosen, True).logical_and_(mask)


def _soft_average(D: Tensor, mask: Tensor, gamma: float) -> _SoftAverage:
    """The formulas of :func:`vicinal.kernels.reference.masked_soft_average`, for tensors.

    With the extreme exponent factored out: for x = −γ (d − d*), d* the member of the largest
    exponent, b = d* − ln(mean eˣ)/γ and r = softmax(x). Nothing underflows that matters.
    """
    count = mask.sum(dim=1)  # (b,)
    members = count.clamp(min=1).to(D.dtype)
    if gamma == 0:
        return _SoftAverage((D * mask).sum(dim=1) / members, count, mask.to(D.dtype), members)
    if gamma > 0:
        extreme = D.masked_fill(~mask, math.inf).amin(dim=1)
    else:
        extreme = D.masked_fill(~mask, -math.inf).amax(dim=1)
    extreme = extreme.masked_fill(count == 0, 0.0)
    if math.isinf(gamma):
        tied = (mask & (extreme[:, None] == D)).to(D.dtype)
        return _SoftAverage(extreme, count, tied, tied.sum(dim=1).clamp(min=1))
    growth = ((D - extreme[:, None]) * -gamma).masked_fill_(~mask, 0.0).expm1_()  # in (−1, 0]
    mean = growth.sum(dim=1) / members
    value = extreme - mean.log1p() / gamma
    return _SoftAverage(value, count, growth.add_(mask), members * (1 + mean))
