"""Metrics of rank-one bases, M = Σ_k w_k b_k b_kᵀ with w ≥ 0, learned from triplets.

The parts that SCML and BoostMetric share. Everything is a sum over triplets (i, j, l) of
x_il x_ilᵀ − x_ij x_ijᵀ, and many triplets share a pair. So distances are measured once per pair,
and gradients are collected once per pair: with Lap the Laplacian of the pairs' weights,
Σ_r u_r (x_il x_ilᵀ − x_ij x_ijᵀ) = Xᵀ·Lap·X. No array of triplets × bases is ever made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import DTypeLike
from scipy.linalg import eigh
from scipy.special import expit

from vicinal._typing import FloatArray, IndexArray
from vicinal.exceptions import SaturatedStartWarning, warn_user
from vicinal.learners.base import MetricLearner
from vicinal.learners.descent import store_solution
from vicinal.learners.fit_input import FitInput, in_units_of_data
from vicinal.learners.labeled_data import refuse_extreme
from vicinal.learners.parameters import (
    CALLBACK,
    COUNT,
    NOT_NEGATIVE,
    OPTIONAL_COUNT,
    ParameterConstraints,
)
from vicinal.supervision import Triplets

MarginLoss: TypeAlias = Callable[[FloatArray], tuple[float, FloatArray]]
"""Margins ρ (t,) → the loss of all of them, and u = −∂loss/∂ρ (t,)."""

MAX_ELEMENTS = 2**21
"""Margins of triplets under bases that are held at once."""


def exponential(margins: FloatArray) -> tuple[float, FloatArray]:
    """ln Σ_r exp(−ρ_r).

    By the formula of SciPy's ``logsumexp``, without what makes that one several times as slow where
    there are few triplets: other array libraries, complex numbers, weights.
    """
    exponents: FloatArray = -margins
    value = largest = float(exponents.max())
    if np.isfinite(largest):
        at_largest = exponents == largest
        exponents[at_largest] = -np.inf  # their sum, a whole number, is not to be rounded
        others = float(np.exp(exponents - largest).sum())
        ties = float(np.count_nonzero(at_largest))
        value = float(np.log1p(others / ties)) + float(np.log(ties)) + largest
    return value, np.exp(-margins - value)


def logistic(margins: FloatArray) -> tuple[float, FloatArray]:
    """Σ_r ln(1 + exp(−ρ_r))."""
    return float(np.logaddexp(0.0, -margins).sum()), expit(-margins)


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
        from vicinal.learners.compiled_loops import pair_distances

        distances = np.empty(len(self._a))
        pair_distances(np.ascontiguousarray(self.X @ L.T), self._a, self._b, distances)
        return distances[self._far] - distances[self._near]

    def laplacian(self, u: FloatArray, V: FloatArray) -> FloatArray:
        """(n, c) Lap·V of V (n, c) for the weights u (t,) of the triplets.

        Σ_r u_r (v_il v_ilᵀ − v_ij v_ijᵀ) = Vᵀ·Lap·V.
        """
        from vicinal.learners.compiled_loops import add_laplacian

        out = np.zeros(V.shape)
        add_laplacian(V, self._a, self._b, self._near, self._far, u, out)
        return out

    def moments(
        self, bases: FloatArray, u: FloatArray, c: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Σ_r u_r h_r (k,) and Σ_r c_r h_r h_rᵀ (k, k), h_r the margins of r under each b bᵀ."""
        P = self.X @ bases.T  # (n, k)
        k = len(bases)
        # Many triplets share a pair: measured once, where there is room for it.
        measured = self._squares(P) if len(self._a) * k <= MAX_ELEMENTS else None
        first, second = np.zeros(k), np.zeros((k, k))
        size = max(1, MAX_ELEMENTS // k)
        for start in range(0, self.n_triplets, size):
            part = slice(start, start + size)
            far, near = self._far[part], self._near[part]
            if measured is not None:
                H = measured[far] - measured[near]  # (size, k)
            else:
                H = self._squares(P, far) - self._squares(P, near)
            first += u[part] @ H
            second += (H.T * c[part]) @ H
        return first, second

    def _squares(self, P: FloatArray, pairs: IndexArray | slice = slice(None)) -> FloatArray:
        """(len(pairs), k) squared differences between the rows of P (n, k)."""
        return (P[self._a[pairs]] - P[self._b[pairs]]) ** 2

    def scatter(self, u: FloatArray) -> FloatArray:
        """(d, d) Σ_r u_r (x_il x_ilᵀ − x_ij x_ijᵀ) for the weights u (t,) of the triplets."""
        A = self.X.T @ self.laplacian(u, self.X)
        return 0.5 * (A + A.T)


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


CONVERGED = frozenset({"gradient", "decrease", "step", "stationary", "separated"})

CONSTRAINTS: ParameterConstraints = {
    "n_similar": COUNT,
    "n_dissimilar": COUNT,
    "n_components": OPTIONAL_COUNT,
    "tol": NOT_NEGATIVE,
    "callback": CALLBACK,
}


@dataclass(frozen=True)
class TripletData:
    """The data of a fit: samples in units of ``scale``, triplets of them, maybe labels."""

    sums: TripletSums
    triplets: Triplets
    codes: IndexArray | None
    scale: float
    """Original units per unit of ``sums.X``: L in original units is L / scale."""


@dataclass(frozen=True)
class Composed:
    """The best M = Σ_k w_k b_k b_kᵀ found, in units of the scaled data, and how it was found."""

    weights: FloatArray
    bases: FloatArray
    n_iter: int
    stop_reason: str
    history: FloatArray

    @property
    def value(self) -> float:
        return float(self.history[-1])

    @property
    def converged(self) -> bool:
        return self.stop_reason in CONVERGED


def triplet_data(
    X: FloatArray, triplets: Triplets, codes: IndexArray | None, rescale: bool
) -> TripletData:
    """Samples and triplets, centered, and rescaled where asked for."""
    centered, scale = _centered(X, rescale)
    return TripletData(TripletSums(centered, triplets), triplets, codes, scale)


def components_of(
    weights: FloatArray,
    bases: FloatArray,
    scale: float,
    n_components: int | None,
    dtype: DTypeLike = np.float64,
) -> FloatArray:
    """L in the units of the data; at least one row, also where nothing was learned."""
    rows = np.sqrt(weights)[:, None] * bases
    L = rows
    if n_components is not None or len(rows) > bases.shape[1]:
        L = factor(rows.T @ rows, n_components)
    if len(L) == 0:
        L = np.zeros((1, bases.shape[1]))
    return in_units_of_data(L, scale, dtype)


def store_composed(
    learner: MetricLearner,
    given: FitInput,
    found: Composed,
    *,
    scale: float,
    n_components: int | None,
    tol: float,
    may_converge: bool = True,
    **attributes: object,
) -> None:
    """Set all attributes of a fit at once, and tell where nothing was learned or it was cut short.

    Parameters
    ----------
    learner : what was fitted
    given : the input
    found : weights and bases, and how they were found
    scale : original units per unit of the samples that were learned from
    n_components, tol : of the learner
    may_converge : whether the algorithm has a test of convergence that max_iter can preempt
    **attributes : what else the learner has
    """
    active = found.weights > 0
    weights, bases = found.weights[active], found.bases[active]
    store_solution(
        learner,
        given,
        found,
        tol=tol,
        advice="raise either" if may_converge and len(weights) else None,
        components_=components_of(weights, bases, scale, n_components, given.X.dtype),
        weights_=weights,
        bases_=bases,
        scale_=scale,
        **attributes,
    )
    if len(weights) == 0:
        warn_user(
            f"{type(learner).__name__} learned nothing, its metric is zero: no basis gains more by "
            "satisfying triplets than its penalty costs. Lower the penalty, or look at the "
            "triplets.",
            SaturatedStartWarning,
        )


def _centered(X: FloatArray, rescale: bool) -> tuple[FloatArray, float]:
    """X less its mean, divided by the root mean square distance from it where asked for."""
    X = X.astype(np.float64)
    if not rescale:
        refuse_extreme(X, "rescale=False")
        return X - X.mean(axis=0), 1.0
    largest = float(np.abs(X).max()) or 1.0
    X = X / largest  # before a square can overflow
    X -= X.mean(axis=0)
    spread = float(np.abs(X).max()) or 1.0
    X /= spread
    rms = float(np.sqrt(np.mean(np.sum(X * X, axis=1)))) or 1.0
    return X / rms, largest * spread * rms
