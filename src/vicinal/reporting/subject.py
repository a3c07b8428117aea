"""What a report is about: the parts of a fitted model, whatever it is wrapped in."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.validation import check_is_fitted, validate_data

from vicinal._typing import FloatArray
from vicinal.features.hat_basis import HatBasis
from vicinal.learners.base import MetricLearner
from vicinal.learners.triplet_margins import factor
from vicinal.reporting.neighborhoods import Measured
from vicinal.voting.class_mean import ClassMeanKNN

DEFAULT_K = 5
"""Votes of K-NN on the space of a learner that came without a classifier."""


@dataclass(frozen=True)
class Subject:
    """A fitted model, taken apart: X → ``leading`` → A (n, d) → metric → Z (n, m) → votes."""

    estimator: Any
    """What learned the metric: a learner, an ANNSearchCV, or an ANNClassifier."""
    leading: Pipeline | None
    """Fitted steps before it."""
    voter: Any
    """Unfitted K-NN on Z; None where the estimator itself is the whole classifier."""
    n_neighbors: int

    @property
    def learner(self) -> Any:
        """The metric learner with its settings; None for a committee, which has several."""
        if self.voter is None:
            return None
        return getattr(self.estimator, "best_estimator_", self.estimator)

    def prepare(self, X: Any) -> FloatArray:
        """A (n, d): the features that the metric is about."""
        A = X if self.leading is None else self.leading.transform(X)
        return np.asarray(validate_data(self.estimator, A, dtype=np.float64, reset=False))

    def metric(self) -> FloatArray | None:
        """M (d, d); None where the distance is not a quadratic form (kernels)."""
        try:
            return np.asarray(self.estimator.get_mahalanobis_matrix(), dtype=np.float64)
        except ValueError:  # the kernel form of RVML
            return None

    def embed(self, A: FloatArray) -> FloatArray:
        """Z (n, m), whose Euclidean distances are those of the (mean) learned metric."""
        if self.voter is not None:
            with _names_were_checked():
                return np.asarray(self.estimator.transform(A), dtype=np.float64)
        return np.asarray(self._unfold(A) @ self._mean_factor.T)

    def measured(self, A: FloatArray) -> Measured | None:
        """The rows A (n, d) as the learned distance sees them; None where M is None."""
        M = self.metric()
        if M is None or self.knots is None:
            return None if M is None else Measured(A, M)
        return Measured(self._unfold(A), self.estimator.mean_metric(), HatBasis(self.knots))

    @property
    def knots(self) -> FloatArray | None:
        """Those of a committee that unfolds features."""
        return getattr(self.estimator, "knots_", None)

    def directions(self, axes: FloatArray, A: FloatArray) -> FloatArray:
        """(r, d) directions (r, m) of the learned space as linear functions of the features.

        Hats of unfolded features are replaced by the straight lines nearest to them on A (n, d).
        """
        if self.knots is None:
            d = A.shape[1]
            return np.asarray(axes @ (self.embed(np.eye(d)) - self.embed(np.zeros((1, d)))).T)
        return np.asarray(axes @ self._mean_factor @ HatBasis(self.knots).slopes(A))

    def _unfold(self, A: FloatArray) -> FloatArray:
        with _names_were_checked():
            return np.asarray(self.estimator.unfold(A))

    @cached_property
    def _mean_factor(self) -> FloatArray:
        """(p, p) L of the mean metric of a committee."""
        M = self.estimator.mean_metric()
        return factor(M, len(M))

    def fitted_voter(self, A: FloatArray, y: NDArray[Any]) -> Any:
        """K-NN on the learned space of the training rows, for ``vote``."""
        return self.estimator if self.voter is None else clone(self.voter).fit(self.embed(A), y)

    def probabilities(self, voter: Any, A: FloatArray) -> FloatArray:
        """(n, c) of the classes ``voter.classes_``."""
        with _names_were_checked():
            return np.asarray(voter.predict_proba(A if self.voter is None else self.embed(A)))

    def effective_neighbors(self, A: FloatArray) -> FloatArray:
        """(n,) of a committee."""
        with _names_were_checked():
            return np.asarray(self.estimator.effective_neighbors(A))

    def learner_rows(self, A: FloatArray) -> FloatArray:
        """What the learner itself was given: A, or A standardized by the search."""
        scaler = getattr(self.estimator, "scaler_", None)
        with _names_were_checked():
            return A if scaler is None else np.asarray(scaler.transform(A))

    def unfitted(self) -> Pipeline:
        """The whole of it once more, for cross-validation: leading steps, learner, K-NN."""
        leading = [] if self.leading is None else [step for _, step in self.leading.steps]
        scaler = getattr(self.estimator, "scaler_", None)
        steps = [*leading, *([] if scaler is None else [scaler]), self.learner, self.voter]
        return make_pipeline(*(clone(step) for step in steps))


@contextmanager
def _names_were_checked() -> Iterator[None]:
    """``prepare`` has compared the names of the columns; from there on they are a plain array."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        yield


def subject_of(model: Any) -> Subject:
    """Take a fitted model apart, or say what can be reported on.

    Parameters
    ----------
    model : ANNClassifier, ANNSearchCV, a learner, or a Pipeline
        A pipeline may end in one of these, or in a learner and K-NN.
    """
    if isinstance(model, Pipeline):
        return _pipeline_subject(model)
    check_is_fitted(model)
    if hasattr(model, "chosen_") and hasattr(model, "predict_proba"):
        heaviest = max(model.chosen_, key=lambda choice: choice.weight)
        return Subject(model, None, None, int(heaviest.n_neighbors))
    if hasattr(model, "best_params_") and hasattr(model, "get_mahalanobis_matrix"):
        k = int(model.best_params_["n_neighbors"])
        return Subject(model, None, ClassMeanKNN(k, rule=model.rule), k)
    if isinstance(model, MetricLearner):
        return Subject(model, None, ClassMeanKNN(DEFAULT_K, rule="vote"), DEFAULT_K)
    raise TypeError(
        f"cannot report on a {type(model).__name__}: give a fitted ANNClassifier, ANNSearchCV, a "
        "metric learner of vicinal, or a Pipeline that ends in one of them (K-NN may follow)"
    )


def _pipeline_subject(model: Pipeline) -> Subject:
    steps = [step for _, step in model.steps]
    ends_in_knn = isinstance(steps[-1], (KNeighborsClassifier, ClassMeanKNN)) and len(steps) > 1
    at = len(steps) - 1 - ends_in_knn
    inner = subject_of(steps[at])
    voter, k = inner.voter, inner.n_neighbors
    if ends_in_knn:
        voter, k = clone(steps[-1]), int(steps[-1].n_neighbors)
    return Subject(inner.estimator, model[:at] if at else None, voter, k)
