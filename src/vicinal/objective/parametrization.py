"""The two ways to write the metric: by its factor L, or by the matrix M itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

import numpy as np
from scipy.linalg import eigh

from vicinal._typing import FloatArray

Laplacian: TypeAlias = Callable[[FloatArray, bool], FloatArray]
"""``laplacian(V, symmetric)``: Lap·V, or the half H with VᵀH + HᵀV = Vᵀ·Lap·V."""


class Parametrization(Protocol):
    """How solver parameters become a metric, and the metric's gradient becomes theirs."""

    def factor(self, params: FloatArray) -> FloatArray:
        """L with M = LᵀL."""
        ...

    def gradient(self, params: FloatArray, X: FloatArray, laplacian: Laplacian) -> FloatArray:
        """∂/∂params of Σ_ij W_ij d_ij, where ``laplacian`` belongs to W."""
        ...

    def linear(self, params: FloatArray, C: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient of ⟨C, M⟩ for a symmetric C (d, d)."""
        ...

    def project(self, params: FloatArray) -> FloatArray:
        """The nearest feasible parameters."""
        ...


class Factor:
    """Parameters L (m, d), M = LᵀL: every L is feasible, m < d gives a low rank."""

    def factor(self, params: FloatArray) -> FloatArray:
        return params

    def gradient(self, params: FloatArray, X: FloatArray, laplacian: Laplacian) -> FloatArray:
        """∂/∂L = 2 (Lap Z)ᵀ X = 2 L Xᵀ Lap X: the cheaper of the two for this shape of L."""
        L = params
        m, d = L.shape
        if 2 * m < d:  # Lap Z costs two products of width m, the half of Lap X one of width d
            return 2.0 * laplacian(X @ L.T, True).T @ X
        H = laplacian(X, False)  # (n, d)
        G = X.T @ H
        return 2.0 * L @ (G + G.T)

    def linear(self, params: FloatArray, C: FloatArray) -> tuple[float, FloatArray]:
        LC = params @ C
        return float(np.vdot(params, LC)), 2.0 * LC

    def project(self, params: FloatArray) -> FloatArray:
        return params


class Metric:
    """Parameters M (d, d), positive semidefinite: convex wherever the objective is."""

    def factor(self, params: FloatArray) -> FloatArray:
        eigenvalues, vectors = eigh(_symmetric(params))
        return np.sqrt(np.maximum(eigenvalues, 0.0))[:, None] * vectors.T

    def gradient(self, params: FloatArray, X: FloatArray, laplacian: Laplacian) -> FloatArray:
        G = X.T @ laplacian(X, False)
        return G + G.T

    def linear(self, params: FloatArray, C: FloatArray) -> tuple[float, FloatArray]:
        return float(np.vdot(params, C)), C

    def project(self, params: FloatArray) -> FloatArray:
        """ψ of Algorithm 1: drop the negative eigenvalues."""
        eigenvalues, vectors = eigh(_symmetric(params))
        kept = eigenvalues > 0
        return (vectors[:, kept] * eigenvalues[kept]) @ vectors[:, kept].T


def _symmetric(M: FloatArray) -> FloatArray:
    return 0.5 * (M + M.T)
