"""Samples that are on a device already, made ready for a fit without leaving it.

What is computed here has the size of features; nothing of the size of samples is copied off.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from vicinal._typing import FloatArray, IndexArray


def check_samples(X: Tensor) -> Tensor:
    """A tensor (n, d) of finite samples, in float32 if it is, else in float64."""
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
    """Subtract the mean, divide by the largest absolute value: safe for every finite input."""
    largest = float(X.abs().max())
    scaled = X / largest if largest > 0 else X.clone()
    scaled -= scaled.double().mean(0).to(X.dtype)
    spread = float(scaled.abs().max())
    return (scaled, 1.0) if spread == 0 else (scaled / spread, largest * spread)


def second_moments(X: Tensor) -> FloatArray:
    """XᵀX (d, d) in float64, on the host."""
    return np.asarray((X.double().T @ X.double()).cpu().numpy())


def covariances(X: Tensor, offsets: IndexArray) -> tuple[FloatArray, list[FloatArray]]:
    """The covariance of all samples and that of every class, (d, d) each, on the host.

    Class c is ``X[offsets[c]:offsets[c + 1]]``.
    """

    def covariance(rows: Tensor) -> FloatArray:
        gaps = rows.double() - rows.double().mean(0)
        return second_moments(gaps) / len(rows)

    return covariance(X), [covariance(X[a:b]) for a, b in pairwise(offsets.tolist())]
