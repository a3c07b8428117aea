"""The two ways to write the metric: by its factor L, or by the matrix M itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg import eigh

from vicinal._typing import Array, FloatArray

SMALLEST_VARIANCE = 0.01


class Parametrization(Protocol):
    """Map from solver parameters to a metric, and from the gradient of the metric to theirs."""

    def factor(self, params: FloatArray) -> FloatArray:
        """L with M = LᵀL."""
        ...

    def operand(self, X: Array, Z: Array, *, half_is_cheaper: bool = True) -> tuple[Array, bool]:
        """V, and whether the whole Lap V is needed rather than a half: the cheapest for ∂/∂params.

        A half is an H with VᵀH + HᵀV = Vᵀ Lap V; see :meth:`vicinal.kernels.contract.Kernel.sweep`.
        """
        ...

    def pull_back(self, params: FloatArray, X: Array, LapV: Array, *, symmetric: bool) -> Array:
        """∂/∂params of Σ_ij W_ij d_ij, from what the Laplacian of W made of ``operand(X, Z)``."""
        ...

    def linear(self, params: FloatArray, C: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient of ⟨C, M⟩ for a symmetric C (d, d)."""
        ...

    def project(self, params: FloatArray) -> FloatArray:
        """The nearest feasible parameters."""
        ...

    def coordinates(self, X: Array) -> Coordinates:
        """Coordinates in which the samples X (n, d), which are centered, are nearly uncorrelated.

        See :func:`uncorrelated`.
        """
        ...


class Coordinates(NamedTuple):
    """A change θ(η) of the parameters."""

    to_params: Callable[[FloatArray], FloatArray]
    """θ of η."""
    from_params: Callable[[FloatArray], FloatArray]
    """η of θ."""
    gradient: Callable[[FloatArray, FloatArray], FloatArray]
    """∂J/∂η of η and ∂J/∂θ."""


def uncorrelated(X: Array) -> tuple[FloatArray, FloatArray]:
    """A (d, d) such that the samples XAᵀ are nearly uncorrelated, of variance 1; and A⁻¹.

    Directions of the standardized samples with a variance below 0.01 count as if it were that:
    they are mostly noise, and are not to be learned before all others.
    """
    scatter = X.T @ X / len(X)
    C = np.asarray(scatter.cpu() if hasattr(scatter, "cpu") else scatter, dtype=np.float64)
    largest = float(C.diagonal().max())
    if not 0 < largest < np.inf:
        return np.eye(len(C)), np.eye(len(C))
    # A feature that is constant but for rounding keeps the unit of the largest.
    spread = np.sqrt(np.where(C.diagonal() > 1e-12 * largest, C.diagonal(), largest))
    variances, axes = eigh(C / np.outer(spread, spread))
    sizes = np.sqrt(np.maximum(variances, SMALLEST_VARIANCE))
    return (axes / sizes) @ axes.T / spread, spread[:, None] * (axes * sizes) @ axes.T


class Factor:
    """Parameters L (m, d), M = LᵀL: every L is feasible, m < d gives a low rank."""

    def factor(self, params: FloatArray) -> FloatArray:
        return params

    def operand(self, X: Array, Z: Array, *, half_is_cheaper: bool = True) -> tuple[Array, bool]:
        """Two products of width m for Lap Z, or one of width d for a half of Lap X."""
        if half_is_cheaper and 2 * Z.shape[1] >= X.shape[1]:
            return X, False
        return Z, True

    def pull_back(self, params: FloatArray, X: Array, LapV: Array, *, symmetric: bool) -> Array:
        """∂/∂L = 2 (Lap Z)ᵀ X = 2 L Xᵀ Lap X."""
        if symmetric:
            return 2.0 * LapV.T @ X
        G = X.T @ LapV
        return 2.0 * params @ (G + G.T)

    def linear(self, params: FloatArray, C: FloatArray) -> tuple[float, FloatArray]:
        LC = params @ C
        return float(np.vdot(params, LC)), 2.0 * LC

    def project(self, params: FloatArray) -> FloatArray:
        return params

    def coordinates(self, X: Array) -> Coordinates:
        """L = ηA."""
        A, inverse = uncorrelated(X)
        return Coordinates(lambda L: L @ A, lambda L: L @ inverse, lambda _, G: G @ A.T)


class Metric:
    """Parameters M (d, d), positive semidefinite: convex wherever the objective is."""

    def factor(self, params: FloatArray) -> FloatArray:
        eigenvalues, vectors = eigh(_symmetric(params))
        return np.sqrt(np.maximum(eigenvalues, 0.0))[:, None] * vectors.T

    def operand(self, X: Array, Z: Array, *, half_is_cheaper: bool = True) -> tuple[Array, bool]:
        return X, False

    def pull_back(self, params: FloatArray, X: Array, LapV: Array, *, symmetric: bool) -> Array:
        """∂/∂M = Xᵀ Lap X."""
        G = X.T @ LapV
        return G + G.T

    def linear(self, params: FloatArray, C: FloatArray) -> tuple[float, FloatArray]:
        return float(np.vdot(params, C)), C

    def project(self, params: FloatArray) -> FloatArray:
        """ψ of Algorithm 1: drop the negative eigenvalues."""
        eigenvalues, vectors = eigh(_symmetric(params))
        kept = eigenvalues > 0
        return (vectors[:, kept] * eigenvalues[kept]) @ vectors[:, kept].T

    def coordinates(self, X: Array) -> Coordinates:
        """M = AᵀηA, of the same cone."""
        A, inverse = uncorrelated(X)
        return Coordinates(
            lambda M: A.T @ M @ A, lambda M: inverse.T @ M @ inverse, lambda _, G: A @ G @ A.T
        )


def _symmetric(M: FloatArray) -> FloatArray:
    return 0.5 * (M + M.T)
