"""What SCML and BoostMetric share: metrics Σ_k w_k b_k b_kᵀ, learned from triplets."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.utils import check_scalar

from vicinal._typing import FloatArray, IndexArray
from vicinal.exceptions import ConvergenceWarning, ExcludedRowsWarning, SaturatedStartWarning
from vicinal.learners.configuration import check_n_components
from vicinal.learners.supervision import Triplets, nearest_triplets
from vicinal.learners.triplet_margins import TripletSums, factor
from vicinal.learners.weakly_supervised import TripletLearner

CONVERGED = frozenset({"gradient", "decrease", "step", "separated"})


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


class CompositionLearner(TripletLearner):
    """Base of the learners of compositions; they differ in ``_compose``."""

    n_similar: int
    n_dissimilar: int
    rescale: bool
    n_components: int | None
    tol: float
    callback: Any
    verbose: int

    def _triplets_from_labels(self, X: FloatArray, codes: IndexArray) -> Triplets:
        self._check_parameters(X.shape[1])
        triplets = nearest_triplets(_comparable(X), codes, self.n_similar, self.n_dissimilar)
        self.n_excluded_ = len(X) - len(np.unique(triplets.i))
        if self.n_excluded_:
            warnings.warn(
                f"{self.n_excluded_} of {len(X)} samples have no other of their class and are no "
                "anchors of triplets.",
                ExcludedRowsWarning,
                stacklevel=3,
            )
        return triplets

    def _learn_triplets(self, X: FloatArray, triplets: Triplets, codes: IndexArray | None) -> Self:
        data = self._prepare(X, triplets, codes)
        return self._store(data, self._compose(data), X.dtype)

    def _store(self, data: TripletData, composed: Composed, dtype: Any) -> Self:
        active = composed.weights > 0
        self.weights_, self.bases_ = composed.weights[active], composed.bases[active]
        self.scale_ = data.scale
        self.components_ = self._to_components(self.weights_, self.bases_, data.scale, dtype)
        self._store_evidence(composed)
        return self

    def _prepare(self, X: FloatArray, triplets: Triplets, codes: IndexArray | None) -> TripletData:
        self._check_parameters(X.shape[1])
        centered, scale = _centered(X, self.rescale)
        return TripletData(TripletSums(centered, triplets), triplets, codes, scale)

    def _compose(self, data: TripletData) -> Composed:
        raise NotImplementedError

    def _to_components(
        self, weights: FloatArray, bases: FloatArray, scale: float, dtype: Any = np.float64
    ) -> FloatArray:
        """L in the units of the data; at least one row, also where nothing was learned."""
        rows = np.sqrt(weights)[:, None] * bases
        L = rows
        if self.n_components is not None or len(rows) > bases.shape[1]:
            L = factor(rows.T @ rows, self.n_components)
        if len(L) == 0:
            L = np.zeros((1, bases.shape[1]))
        return np.asarray(L / scale, dtype=dtype)

    def _store_evidence(self, composed: Composed) -> None:
        self.history_ = composed.history
        self.objective_ = float(composed.history[-1])
        self.n_iter_ = composed.n_iter
        self.stop_reason_ = composed.stop_reason
        self.converged_ = composed.stop_reason in CONVERGED
        name = type(self).__name__
        if composed.stop_reason == "interrupted":
            raise KeyboardInterrupt(f"{name} was interrupted; what it had learned is kept")
        if len(self.weights_) == 0:
            warnings.warn(
                f"{name} learned nothing, its metric is zero: no basis gains more by satisfying "
                "triplets than its penalty costs. Lower the penalty, or look at the triplets.",
                SaturatedStartWarning,
                stacklevel=5,
            )
        elif composed.stop_reason == "max_iter" and self._may_converge():
            warnings.warn(
                f"{name} stopped after max_iter={self.n_iter_} iterations before it converged to "
                f"tol={self.tol}; raise either.",
                ConvergenceWarning,
                stacklevel=5,
            )

    def _may_converge(self) -> bool:
        """Whether the algorithm has a test of convergence that max_iter can preempt."""
        return True

    def _check_parameters(self, d: int) -> None:
        check_scalar(self.n_similar, "n_similar", Integral, min_val=1)
        check_scalar(self.n_dissimilar, "n_dissimilar", Integral, min_val=1)
        check_scalar(self.tol, "tol", Real, min_val=0)
        check_n_components(self.n_components, d)
        if self.callback is not None and not callable(self.callback):
            raise ValueError("callback must be a function of one FitProgress, or None")


def _comparable(X: FloatArray) -> FloatArray:
    """X times a power of two: exact, distances compare as before, and none overflows."""
    X = X.astype(np.float64)
    _, exponent = np.frexp(np.abs(X).max())
    return np.ldexp(X, -exponent)


def _centered(X: FloatArray, rescale: bool) -> tuple[FloatArray, float]:
    """X less its mean, divided by the root mean square distance from it where asked for."""
    X = X.astype(np.float64)
    if not rescale:
        return X - X.mean(axis=0), 1.0
    largest = float(np.abs(X).max()) or 1.0
    X = X / largest  # before a square can overflow
    X -= X.mean(axis=0)
    spread = float(np.abs(X).max()) or 1.0
    X /= spread
    rms = float(np.sqrt(np.mean(np.sum(X * X, axis=1)))) or 1.0
    return X / rms, largest * spread * rms
