"""Metrics composed of rank-one bases, M = Σ_k w_k b_k b_kᵀ with w ≥ 0, judged by triplets.

Everything is a sum over triplets (i, j, l) of x_il x_ilᵀ − x_ij x_ijᵀ, and many triplets share a
pair. So distances are measured once a pair, and gradients are collected once a pair: with
Lap the Laplacian of the pairs' weights, Σ_r u_r (x_il x_ilᵀ − x_ij x_ijᵀ) = Xᵀ·Lap·X. No array of
triplets × bases is ever made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.special import expit, logsumexp

from vicinal.learners.supervision import Triplets

FloatArray: TypeAlias = NDArray[np.floating]
IndexArray: TypeAlias = NDArray[np.intp]
MarginLoss: TypeAlias = Callable[[FloatArray], tuple[float, FloatArray]]
"""Margins ρ (t,) → the loss of all of them, and u = −∂loss/∂ρ (t,)."""

MAX_ELEMENTS = 2**21
"""Margins of triplets under bases that are held at once."""


def exponential(margins: FloatArray) -> tuple[float, FloatArray]:
    """ln Σ_r exp(−ρ_r)."""
    value = float(logsumexp(-margins))
    return value, np.exp(-margins - value)


def logistic(margins: FloatArray) -> tuple[float, FloatArray]:
    """Σ_r ln(1 + exp(−ρ_r))."""
    return float(np.logaddexp(0.0, -margins).sum()), expit(-margins)


def mean_hinge(margins: FloatArray, width: float = 0.0) -> tuple[float, FloatArray]:
    """Mean of [1 − ρ_r]₊; within ``width`` above the kink a parabola takes over (Huber)."""
    z = 1.0 - margins
    if width == 0:
        return float(np.maximum(z, 0.0).mean()), (z > 0) / len(z)
    slope = np.clip(z / width, 0.0, 1.0)
    return float((slope * (z - 0.5 * width * slope)).mean()), slope / len(z)


class TripletSums:
    """Samples X (n, d) and triplets of them, prepared for the two sums: margins and scatter."""

    def __init__(self, X: FloatArray, triplets: Triplets) -> None:
        self.X = np.ascontiguousarray(X, dtype=np.float64)
        n, t = len(X), len(triplets)
        i = np.concatenate([triplets.i, triplets.i])
        other = np.concatenate([triplets.j, triplets.l])
        pairs, index = np.unique(
            np.minimum(i, other) * n + np.maximum(i, other), return_inverse=True
        )
        self._a, self._b = pairs // n, pairs % n  # (p,) each
        self._near, self._far = index[:t], index[t:]  # (t,) pairs (i, j) and (i, l)
        self.n_triplets = t

    def margins(self, L: FloatArray) -> FloatArray:
        """(t,) ρ_r = ‖L x_il‖² − ‖L x_ij‖² of L (m, d)."""
        from vicinal.learners._triplet_sums import pair_distances

        distances = np.empty(len(self._a))
        pair_distances(np.ascontiguousarray(self.X @ L.T), self._a, self._b, distances)
        return distances[self._far] - distances[self._near]

    def laplacian(self, u: FloatArray, V: FloatArray) -> FloatArray:
        """Lap·V (n, c) of V (n, c), with Σ_r u_r (v_il v_ilᵀ − v_ij v_ijᵀ) = Vᵀ·Lap·V."""
        from vicinal.learners._triplet_sums import add_laplacian

        p = len(self._a)
        weights: Any = np.bincount(self._far, u, p) - np.bincount(self._near, u, p)  # (p,)
        out = np.zeros_like(V)
        add_laplacian(V, self._a, self._b, weights, out)
        return out

    def moments(self, bases: FloatArray, u: FloatArray, c: FloatArray) -> tuple[Any, Any]:
        """Σ_r u_r h_r (k,) and Σ_r c_r h_r h_rᵀ (k, k), h_r the margins of r under each b bᵀ."""
        P = self.X @ bases.T  # (n, k)
        k = len(bases)
        first, second = np.zeros(k), np.zeros((k, k))
        size = max(1, MAX_ELEMENTS // k)
        for start in range(0, self.n_triplets, size):
            part = slice(start, start + size)
            far, near = self._far[part], self._near[part]
            H = (P[self._a[far]] - P[self._b[far]]) ** 2
            H -= (P[self._a[near]] - P[self._b[near]]) ** 2  # (size, k)
            first += u[part] @ H
            second += (H.T * c[part]) @ H
        return first, second

    def scatter(self, u: FloatArray) -> FloatArray:
        """(d, d) Σ_r u_r (x_il x_ilᵀ − x_ij x_ijᵀ)."""
        A = self.X.T @ self.laplacian(u, self.X)
        return 0.5 * (A + A.T)


class Composition:
    """The problem min_{w ≥ 0} loss(ρ(M)) + penalty·Σ w, M = Σ_k w_k b_k b_kᵀ (for the solvers).

    ∂/∂w_k = penalty − b_kᵀ A b_k with A = Σ_r u_r (x_il x_ilᵀ − x_ij x_ijᵀ), u = −∂loss/∂ρ.
    """

    def __init__(
        self, sums: TripletSums, bases: FloatArray, loss: MarginLoss, penalty: float
    ) -> None:
        self.sums, self.bases, self.loss, self.penalty = sums, bases, loss, penalty
        self.n_rows = len(sums.X)
        k, d = bases.shape
        # Few bases of many features: the weights' own space is the smaller one to work in.
        self._projected = sums.X @ bases.T if 27 * k < 26 * d + d * d / 8 else None

    def value_and_gradient(
        self, params: FloatArray, rows: IndexArray | None = None
    ) -> tuple[float, FloatArray]:
        """The objective at weights w (k,), and its gradient; ``rows`` is not supported."""
        if rows is not None:
            raise ValueError("triplets do not belong to rows; use a full-batch solver")
        value, u = self.loss(self.sums.margins(compose(params, self.bases)))
        if self._projected is not None:
            V = self._projected
            quadratic = np.einsum("nk,nk->k", V, self.sums.laplacian(u, V))
        else:
            quadratic = np.einsum("kd,kd->k", self.bases @ self.sums.scatter(u), self.bases)
        return value + self.penalty * float(params.sum()), self.penalty - quadratic

    def project(self, params: FloatArray) -> FloatArray:
        return np.maximum(params, 0.0)


def compose(weights: FloatArray, bases: FloatArray) -> FloatArray:
    """L (m, d) with LᵀL = Σ_k w_k b_k b_kᵀ, m the smaller of d and the number of positive w_k."""
    active = np.flatnonzero(weights > 0)
    L = np.sqrt(weights[active])[:, None] * bases[active]
    if len(active) > bases.shape[1]:
        return factor(L.T @ L)
    return L


def factor(M: FloatArray, n_components: int | None = None) -> FloatArray:
    """L (m, d) with LᵀL = M, rows by falling length; rounding below 1e-12 of the largest is 0.

    The leading n_components rows where that is given: the nearest matrix of this rank.
    """
    values, vectors = eigh(M)
    values = np.where(values > 1e-12 * max(values[-1], 0.0), values, 0.0)[::-1]
    m = np.count_nonzero(values) if n_components is None else n_components
    return np.sqrt(values[:m])[:, None] * vectors.T[::-1][:m]
