"""Functions for tensors on a GPU: nearest neighbors, their errors, and fits on several GPUs.

Learners need none of these: ``vc.ANN(backend="cuda")`` fits on a GPU. Importing this module imports
PyTorch.

Examples
--------
>>> import torch
>>> from vicinal.gpu import device_all_neighbors, knn_errors
>>> points, labels = torch.tensor([[0.0], [1.0], [5.0], [6.0]]), torch.tensor([0, 0, 1, 1])
>>> distances, rows = device_all_neighbors(points, points, k=1, exclude=torch.arange(4))
>>> rows.ravel()
tensor([1, 0, 3, 2])
>>> knn_errors(rows, labels, labels)
tensor([0.], dtype=torch.float64)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vicinal.kernels.gpu import device_all_neighbors, device_class_neighbors, join_ranks
from vicinal.voting.votes import majorities

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["device_all_neighbors", "device_class_neighbors", "join_ranks", "knn_errors"]


def knn_errors(rows: Tensor, labels: Tensor, truth: Tensor) -> Tensor:
    """(k,) error rates of the majority of the first 1 … k neighbors, all k at once.

    Parameters
    ----------
    rows : (n, k) neighbors of every query, nearest first; missing ones, -1, have no vote, and a
        query without neighbors is an error
    labels : (r,) class codes of the references
    truth : (n,) class codes of the queries
    """
    found = labels[rows].masked_fill(rows < 0, -1).cpu().numpy()
    winners = majorities(found, range(1, rows.shape[1] + 1))
    errors = np.mean(winners != truth.cpu().numpy(), axis=1)
    return rows.double().new_tensor(errors)
