"""Metrics Σ_k w_k b_k b_kᵀ learned from triplets: the parts that SCML and BoostMetric share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from vicinal._typing import FloatArray, IndexArray
from vicinal.exceptions import SaturatedStartWarning, warn_user
from vicinal.learners.base import MetricLearner
from vicinal.learners.descent import store_solution, warn_excluded
from vicinal.learners.fit_input import FitInput, in_units_of_data
from vicinal.learners.labeled_data import refuse_extreme
from vicinal.learners.parameters import (
    CALLBACK,
    COUNT,
    NOT_NEGATIVE,
    OPTIONAL_COUNT,
    ParameterConstraints,
)
from vicinal.learners.supervision import Triplets, nearest_triplets
from vicinal.learners.triplet_margins import TripletSums, factor

CONVERGED = frozenset({"gradient", "decrease", "step", "separated"})

CONSTRAINTS: ParameterConstraints = {
    "n_similar": COUNT,
    "n_dissimilar": COUNT,
    "n_components": OPTIONAL_COUNT,
    "tol": NOT_NEGATIVE,
    "callback": CALLBACK,
}


@dataclass(frozen=True)
class TripletData:
    """What a fit learns from: samples in units of ``scale``, triplets of them, maybe labels."""

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


def labeled_triplets(
    X: FloatArray, codes: IndexArray, n_similar: int, n_dissimilar: int
) -> tuple[Triplets, dict[str, object]]:
    """The nearest triplets of labeled samples, and how many samples have none."""
    triplets = nearest_triplets(_comparable(X), codes, n_similar, n_dissimilar)
    n_excluded = len(X) - len(np.unique(triplets.i))
    warn_excluded(n_excluded, len(X), "have no other of their class and are no anchors of triplets")
    return triplets, {"n_excluded_": n_excluded}


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
    dtype: Any = np.float64,
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


def _comparable(X: FloatArray) -> FloatArray:
    """X times a power of two: exact, distances compare as before, and none overflows."""
    X = X.astype(np.float64)
    _, exponent = np.frexp(np.abs(X).max())
    return np.ldexp(X, -exponent)


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
