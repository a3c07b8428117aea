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

from vicinal.kernels.gpu import (
    device_all_neighbors,
    device_class_neighbors,
    join_ranks,
    knn_errors,
)

__all__ = ["device_all_neighbors", "device_class_neighbors", "join_ranks", "knn_errors"]
