r"""The k nearest references of every query, class by class, on the device: blockwise and exact.

Blocks of all distances are computed by matrix products, from points that are centered, and the
candidates they leave are measured anew by differences. Both are float64, with errors of at most

.. math:: (2 d + 11)\, 2^{-53}\, (\|q\| + \|r\|)^2

together, to first order, and no reference at :math:`\sqrt T` or nearer has a norm above
:math:`\|q\| + \sqrt T`. A reference that is farther than the k-th by more than the errors is out;
all others are candidates. Ties go to the smaller row, as in
:mod:`vicinal.kernels.cpu.class_neighbors`.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from vicinal._typing import FloatArray, IndexArray
from vicinal.kernels.contract import IndexLists

SPARE = 8
"""Candidates beyond k that are taken at once; more are counted only where these do not suffice."""
BLOCK_ELEMENTS = 2**26


def device_class_neighbors(
    queries: Tensor,
    references: Tensor,
    offsets: list[int],
    k: int,
    *,
    exclude: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Find the k nearest references of every class for every query.

    Parameters
    ----------
    queries : (n, d) tensor
    references : (r, d) tensor on the same device, sorted by class
    offsets : class c is ``references[offsets[c]:offsets[c + 1]]``
    k : number of neighbors in each class
    exclude : (n,) rows of ``references`` that a query may not have for a neighbor; −1: none

    Returns
    -------
    distances, rows : both (n, c, k)
        Squared distances in float64, ascending; missing ones are inf and −1.
    """
    n, c, device = len(queries), len(offsets) - 1, queries.device
    distances = torch.full((n, c, k), math.inf, dtype=torch.float64, device=device)
    rows = torch.full((n, c, k), -1, dtype=torch.int64, device=device)
    center = references.double().mean(0)
    R = references.double() - center
    norms = R.square().sum(1)
    classes = [(j, *ends) for j, ends in enumerate(pairwise(offsets)) if ends[0] < ends[1]]
    longest = max((stop - start for _, start, stop in classes), default=1)
    height = max(1, BLOCK_ELEMENTS // longest)
    for begin in range(0, n, height):
        block = slice(begin, min(begin + height, n))
        Q = queries[block].double() - center
        barred = None if exclude is None else exclude[block]
        for j, start, stop in classes:
            D = torch.addmm(norms[None, start:stop], Q, R[start:stop].T, alpha=-2)  # (b, r_j)
            if barred is not None:
                _bar(D, barred - start)
            candidates = _candidates(D, Q, k) + start
            found = _measure(queries[block], references, candidates, barred, k)
            distances[block, j, : found[0].shape[1]], rows[block, j, : found[1].shape[1]] = found
    return distances, rows


def _bar(D: Tensor, columns: Tensor) -> None:
    """Put the excluded references out of reach."""
    inside = ((columns >= 0) & (columns < D.shape[1])).nonzero()[:, 0]
    D[inside, columns[inside]] = math.inf


def _candidates(D: Tensor, Q: Tensor, k: int) -> Tensor:
    """(b, ≥ k) the columns that may be among the k nearest; ``D`` (b, r) lacks the ‖q‖²."""
    width, d = D.shape[1], Q.shape[1]
    values, columns = D.topk(min(k + SPARE, width), largest=False)
    kth, norms = values[:, min(k, width) - 1], Q.square().sum(1)
    reach = 2 * norms.sqrt() + (kth + norms).clamp(min=0).sqrt()  # ≥ ‖q‖ + ‖r‖
    # Twice the error, for both that are compared, and twice that, for what is of higher order.
    behind = kth + (4 * d + 22) * torch.finfo(D.dtype).eps * reach.square()
    if columns.shape[1] < width and bool((values[:, -1] <= behind).any()):
        return D.topk(int((behind[:, None] >= D).sum(1).max()), largest=False).indices
    return columns


def _measure(
    queries: Tensor, references: Tensor, candidates: Tensor, barred: Tensor | None, k: int
) -> tuple[Tensor, Tensor]:
    """The k nearest of the candidates, by differences in float64."""
    candidates = candidates.sort(dim=1).values  # a stable sort by distance then breaks ties
    exact = torch.empty(candidates.shape, dtype=torch.float64, device=queries.device)
    height = max(1, BLOCK_ELEMENTS // (8 * candidates.shape[1] * queries.shape[1]))
    for start in range(0, len(queries), height):
        block = slice(start, start + height)
        gaps = queries[block, None, :].double() - references[candidates[block]]
        exact[block] = gaps.square().sum(2)
    if barred is not None:
        exact[candidates == barred[:, None]] = math.inf
    exact, order = exact.sort(dim=1, stable=True)
    rows = candidates.gather(1, order)[:, :k]
    return exact[:, :k], torch.where(exact[:, :k] < math.inf, rows, -1)


def device_all_neighbors(
    queries: Tensor, references: Tensor, k: int, *, exclude: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Find the k nearest of all references: (n, k) squared distances and rows.

    Parameters
    ----------
    queries : (n, d) tensor
    references : (r, d) tensor on the same device
    k : number of neighbors
    exclude : (n,) rows of ``references`` that a query may not have for a neighbor; −1: none
    """
    distances, rows = device_class_neighbors(
        queries, references, [0, len(references)], k, exclude=exclude
    )
    return distances[:, 0], rows[:, 0]


def nearest_of_class(
    X: FloatArray | Tensor,
    offsets: IndexArray,
    k: int,
    device: str = "cuda",
    *,
    same_class: bool = True,
) -> IndexLists:
    """The k nearest rows of the own class, or of the others, for every row; fewer where it ends.

    Parameters
    ----------
    X : (n, d) array or tensor, sorted by class
    offsets : class c is ``X[offsets[c]:offsets[c + 1]]``
    k : number of neighbors
    device : where to compute
    same_class : whether neighbors are of the own class, or of any other
    """
    points = torch.as_tensor(X, device=device)
    everybody = torch.arange(len(points), device=points.device)
    lists = []
    for start, stop in pairwise(offsets.tolist()):
        if stop > start:
            others = everybody[start:stop]
            exclude = others - start if same_class else None
            if not same_class:
                others = torch.cat([everybody[:start], everybody[stop:]])
            nearest = device_all_neighbors(
                points[start:stop], points[others], min(k, len(others)), exclude=exclude
            )[1]
            lists.append(torch.where(nearest >= 0, others[nearest], -1).cpu().numpy())
    counts = np.concatenate([(found >= 0).sum(axis=1) for found in lists])
    members = np.concatenate([found[found >= 0] for found in lists])
    return IndexLists(np.concatenate([[0], np.cumsum(counts)]), members)
