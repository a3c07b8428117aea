"""Soft averages of the distances in a batch, and their gradient 2·Lap·Z, block by block.

The same two operations that :mod:`vicinal.kernels.contract` asks of a kernel, for tensors: the
backward pass receives the derivatives ds_i and dt_i of whatever was made of the soft averages, so
it does not depend on the loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from vicinal.deep.comparisons import BatchComparisons

BLOCK_ELEMENTS = 2**23
"""Elements of a block of anchors × columns; about ten arrays of that size exist at a time."""


@dataclass(frozen=True)
class Distance:
    """A distance d as a function of the squared Euclidean distance q of scaled embeddings."""

    directions: bool
    """Whether only the directions of embeddings are compared."""
    temperature: float
    """T for normalized embeddings, unless the user gives one."""
    scale: Callable[[Tensor], Tensor]
    """ln T → the factor of the embeddings that divides the distance by T."""
    value: Callable[[Tensor], Tensor]
    """q → d."""
    pull_back: Callable[[Tensor, Tensor], Tensor]
    """(∂J/∂d, d) → ∂J/∂q."""


def _euclidean_pull_back(weights: Tensor, D: Tensor) -> Tensor:
    """∂√q/∂q = 1/(2d); 0 at d = 0, where embeddings coincide and no direction is preferred."""
    return torch.where(D > 0, weights / (2 * D), torch.zeros_like(D))


DISTANCES = {
    "squared": Distance(False, 0.2, lambda t: torch.exp(-0.5 * t), lambda q: q, lambda w, _: w),
    "euclidean": Distance(False, 0.1, lambda t: torch.exp(-t), torch.sqrt, _euclidean_pull_back),
    "cosine": Distance(  # 1 − cos is half the squared distance of normalized embeddings
        True, 0.1, lambda t: math.sqrt(0.5) * torch.exp(-0.5 * t), lambda q: q, lambda w, _: w
    ),
}


@dataclass(frozen=True)
class AverageRule:
    """The distances that are averaged for every anchor, and the exponents."""

    alpha: float
    """Exponent of the similar side; any real number, 0, ±inf."""
    nearest: int | None
    """Number of nearest members of S_i that count; None: all."""
    distance: Distance
    contrast_all: bool
    """Whether t_i averages over S_i ∪ D_i instead of D_i."""


@dataclass(frozen=True)
class RowAverages:
    """The averages of the distances of every anchor; zeros where a set is empty."""

    s: Tensor
    """(b,) b(α; {d_ij : j ∈ S_i})."""
    t: Tensor
    """(b,) b(1; {d_il : l ∈ D_i}), or of S_i ∪ D_i."""
    n_similar: Tensor
    """(b,) number of distances that s_i averages."""
    n_contrast: Tensor
    """(b,) number of distances that t_i averages."""
    complete: Tensor
    """(b,) whether neither S_i nor D_i is empty."""


def row_averages(
    Z: Tensor, R: Tensor, comparisons: BatchComparisons, rule: AverageRule
) -> RowAverages:
    """Soft averages of the distances d_ij between z_i and r_j, differentiable in Z and R.

    Parameters
    ----------
    Z : (b, m)
        The anchors.
    R : (n, m)
        The columns; Z itself where a batch is compared with itself, whose gradient then is the
        sum of both, 2·Lap·Z.
    comparisons : BatchComparisons
        The sets S_i and D_i.
    rule : AverageRule
    """
    apply: Any = _RowAverages.apply
    if len(R):  # distances stay the same, their rounding errors shrink
        center = R.detach().mean(dim=0)
        Z, R = Z - center, R - center
    return RowAverages(*apply(Z, R, comparisons, rule))


@dataclass(frozen=True)
class _Block:
    """Some anchors with their distances and both soft averages."""

    rows: slice
    D: Tensor
    """(b, n)."""
    similar: _SoftAverage
    contrast: _SoftAverage
    complete: Tensor

    def weights(self, rule: AverageRule, ds: Tensor, dt: Tensor) -> Tensor:
        """(b, n) derivatives of the objective by the squared distances."""
        W = self.similar.weighted(ds[self.rows]) + self.contrast.weighted(dt[self.rows])
        return rule.distance.pull_back(W, self.D)


class _RowAverages(torch.autograd.Function):
    """Distances exist only inside a block: in the forward pass, and again in the backward pass."""

    @staticmethod
    def forward(
        ctx: Any, Z: Tensor, R: Tensor, comparisons: BatchComparisons, rule: AverageRule
    ) -> tuple[Tensor, ...]:
        s, t = (Z.new_zeros(len(Z)) for _ in range(2))
        n_similar, n_contrast = (Z.new_zeros(len(Z), dtype=torch.long) for _ in range(2))
        complete = Z.new_zeros(len(Z), dtype=torch.bool)
        with torch.autocast(Z.device.type, enabled=False):
            for block in _blocks(Z, R, comparisons, rule):
                rows = block.rows
                s[rows], n_similar[rows] = block.similar.value, block.similar.count
                t[rows], n_contrast[rows] = block.contrast.value, block.contrast.count
                complete[rows] = block.complete
        ctx.save_for_backward(Z, R)
        ctx.arguments = comparisons, rule
        ctx.mark_non_differentiable(n_similar, n_contrast, complete)
        return s, t, n_similar, n_contrast, complete

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, ds: Tensor, dt: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        """∂/∂z_i = 2 (Σ_j W_ij) z_i − 2 Σ_j W_ij r_j, and the same of Wᵀ for the columns."""
        Z, R = ctx.saved_tensors
        comparisons, rule = ctx.arguments
        of_anchors, of_columns = ctx.needs_input_grad[:2]
        grad_anchors, grad_columns = torch.zeros_like(Z), torch.zeros_like(R)
        with torch.autocast(Z.device.type, enabled=False):
            for block in _blocks(Z, R, comparisons, rule):
                rows, W = block.rows, block.weights(rule, ds, dt)
                if of_anchors:
                    grad_anchors[rows] = 2 * (W.sum(dim=1, keepdim=True) * Z[rows] - W @ R)
                if of_columns:
                    grad_columns += 2 * (W.sum(dim=0)[:, None] * R - W.T @ Z[rows])
        return (
            grad_anchors if of_anchors else None,
            grad_columns if of_columns else None,
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
    Z: Tensor, R: Tensor, comparisons: BatchComparisons, rule: AverageRule
) -> Iterator[_Block]:
    """Blocks of anchors with their soft averages; no block if there are no columns."""
    if len(R) == 0:
        return
    length = max(1, BLOCK_ELEMENTS // len(R))
    squares = R.square().sum(dim=1)  # (n,)
    for start in range(0, len(Z), length):
        rows = slice(start, min(start + length, len(Z)))
        block = Z[rows]
        D = torch.addmm(squares[None, :], block, R.T, alpha=-2)  # (b, n)
        D = rule.distance.value((D + block.square().sum(dim=1, keepdim=True)).clamp_(min=0))
        similar, dissimilar = comparisons.masks(rows.start, rows.stop)
        complete = similar.any(dim=1) & dissimilar.any(dim=1)
        contrast = similar | dissimilar if rule.contrast_all else dissimilar
        if rule.nearest is not None:
            similar = _nearest(D, similar, rule.nearest)
        yield _Block(
            rows,
            D,
            _soft_average(D, similar, rule.alpha),
            _soft_average(D, contrast, 1.0),
            complete,
        )


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
    if abs(gamma) > torch.finfo(D.dtype).max:  # as if it were infinite
        tied = (mask & (extreme[:, None] == D)).to(D.dtype)
        return _SoftAverage(extreme, count, tied, tied.sum(dim=1).clamp(min=1))
    growth = ((D - extreme[:, None]) * -gamma).masked_fill_(~mask, 0.0).expm1_()  # in (−1, 0]
    mean = growth.sum(dim=1) / members
    value = extreme - mean.log1p() / gamma
    return _SoftAverage(value, count, growth.add_(mask), members * (1 + mean))
