"""Retrieval scores of embeddings, block by block: Recall@1 and MAP@R."""

from __future__ import annotations

import torch
from torch import Tensor

BLOCK = 1024
"""Queries at a time."""


@torch.no_grad()
def retrieval_scores(Z: Tensor, y: Tensor) -> dict[str, float]:
    """Every row of Z (n, m) asks all the others, by Euclidean distance; labels y (n,).

    Recall@1 is the share of rows whose nearest other row is of their class. With R the number of
    other rows of the class, MAP@R = (1/R) Σ_{k≤R} precision@k · 1[the k-th nearest is of it]. Both
    are averaged over the rows that have another one of their class.
    """
    sizes = torch.bincount(y)
    squares = Z.square().sum(dim=1)
    hits, precisions = [], []
    for start in range(0, len(Z), BLOCK):
        rows = torch.arange(start, min(start + BLOCK, len(Z)), device=Z.device)
        D = squares[None, :] - 2 * Z[rows] @ Z.T  # (b, n), less a constant a row
        D[torch.arange(len(rows)), rows] = torch.inf
        R = sizes[y[rows]] - 1  # (b,)
        length = int(sizes.max()) - 1
        nearest = D.topk(length, largest=False).indices  # (b, length), nearest first
        right = (y[nearest] == y[rows, None]).float()
        rank = torch.arange(1, length + 1, device=Z.device)
        precision = right.cumsum(dim=1) / rank
        within = rank[None, :] <= R[:, None]
        found = R > 0
        hits.append(right[found, 0])
        total = (precision * right * within).sum(dim=1)
        precisions.append(total[found] / R[found])
    return {
        "recall_at_1": float(torch.cat(hits).mean()),
        "map_at_r": float(torch.cat(precisions).mean()),
    }
