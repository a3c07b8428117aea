"""Samples that are on a device already, made ready for a fit without leaving it.

What is computed here has the size of features; nothing of the size of samples is copied off.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from vicinal._typing import FloatArray, IndexArray
from vicinal.kernels.contract import Comparisons, IndexLists

PAIRS_AT_ONCE = 2**20


def check_samples(X: Tensor) -> Tensor:
    """A tensor of finite samples, in float32 if it is, else in float64.

    Parameters
    ----------
    X : (n, d) tensor of any numeric type
    """
    X = X.detach()
    if X.ndim != 2 or X.shape[0] < 2 or X.shape[1] < 1:
        raise ValueError(
            f"Expected a 2-dimensional X of at least 2 samples and 1 feature, got {tuple(X.shape)}"
        )
    if X.is_complex():
        raise ValueError("Complex data not supported")
    X = X if X.dtype in (torch.float32, torch.float64) else X.double()
    if not bool(torch.isfinite(X).all()):
        raise ValueError("Input X contains NaN or infinity; impute or drop such rows first")
    return X


def center_and_scale_samples(X: Tensor) -> tuple[Tensor, float]:
    """Subtract the mean, divide by the largest absolute value: safe for every finite input.

    Parameters
    ----------
    X : (n, d) tensor
    """
    largest = float(X.abs().max())
    scaled = X / largest if largest > 0 else X.clone()
    scaled -= scaled.double().mean(0).to(X.dtype)
    spread = float(scaled.abs().max())
    return (scaled, 1.0) if spread == 0 else (scaled / spread, largest * spread)


def second_moments(X: Tensor) -> FloatArray:
    """XᵀX (d, d) in float64, on the host.

    Parameters
    ----------
    X : (n, d) tensor
    """
    return np.asarray((X.double().T @ X.double()).cpu().numpy())


def covariances(X: Tensor, offsets: IndexArray) -> tuple[FloatArray, list[FloatArray]]:
    """The covariance of all samples and that of every class, (d, d) each, on the host.

    Parameters
    ----------
    X : (n, d) tensor, sorted by class
    offsets : class c is ``X[offsets[c]:offsets[c + 1]]``
    """

    def covariance(rows: Tensor) -> FloatArray:
        gaps = rows.double() - rows.double().mean(0)
        return second_moments(gaps) / len(rows)

    return covariance(X), [covariance(X[a:b]) for a, b in pairwise(offsets.tolist())]


def pull_matrix_of(X: Tensor, comparisons: Comparisons, weights: FloatArray) -> FloatArray:
    """C = Σ_i w_i Σ_{j∈S_i} (x_i − x_j)(x_i − x_j)ᵀ (d, d), on the host.

    Parameters
    ----------
    X : (n, d) tensor, sorted by class
    comparisons : the similar rows of every row
    weights : (n,) the weight of each sample as an anchor
    """
    counted = np.zeros(len(X))
    counted[comparisons.anchors] = weights[comparisons.anchors]
    w = torch.as_tensor(counted, device=X.device)
    if comparisons.similar is not None:
        return _listed_scatter(X, comparisons.similar, w)
    classes = comparisons.class_of_row
    total = _scatter_within(X, classes, w)
    if comparisons.groups is not None:
        pairs = np.stack([classes, comparisons.groups])
        cells = np.unique(pairs, axis=1, return_inverse=True)[1].ravel()
        total = total - _scatter_within(X, cells, w)
    return np.asarray(total.cpu().numpy())


def _scatter_within(X: Tensor, cells: IndexArray, w: Tensor) -> Tensor:
    """Σ w_i x_ij x_ijᵀ over the ordered pairs of rows of one cell.

    Of a cell: Σ (w_i |K| + Σw) x xᵀ − p qᵀ − q pᵀ with p = Σ w x and q = Σ x.
    """
    X = X.double()
    of_row = torch.as_tensor(cells, device=X.device)
    n_cells = int(cells.max()) + 1
    sizes, masses = (torch.zeros(n_cells, dtype=X.dtype, device=X.device) for _ in range(2))
    sizes.index_add_(0, of_row, torch.ones_like(w))
    masses.index_add_(0, of_row, w)
    p, q = (X.new_zeros((n_cells, X.shape[1])) for _ in range(2))
    p.index_add_(0, of_row, X * w[:, None])
    q.index_add_(0, of_row, X)
    weights = w * sizes[of_row] + masses[of_row]
    crossed = p.T @ q
    return (X * weights[:, None]).T @ X - crossed - crossed.T


def _listed_scatter(X: Tensor, lists: IndexLists, w: Tensor) -> FloatArray:
    """Σ_i w_i Σ_j x_ij x_ijᵀ over the listed pairs."""
    total = X.new_zeros((X.shape[1], X.shape[1]), dtype=torch.float64)
    counts = torch.as_tensor(lists.counts, device=X.device)
    owners = torch.arange(len(X), device=X.device).repeat_interleave(counts)
    others = torch.as_tensor(lists.indices, device=X.device)
    for i, j in zip(owners.split(PAIRS_AT_ONCE), others.split(PAIRS_AT_ONCE), strict=True):
        gaps = X[i].double() - X[j]
        total += (gaps * w[i][:, None]).T @ gaps
    return np.asarray(total.cpu().numpy())
