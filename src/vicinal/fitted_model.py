"""The parts of a fitted model: preparation, metric and votes.

.. code-block:: text

    X ── preparation ──► A (n, d) ── metric ──► Z (n, m) ── votes ──► classes
         scaler, PCA,        of a learner, a search    of K neighbors in Z,
         table columns       or a committee, or none   or of a committee

:func:`anatomy` takes a model apart. The report, the export, tables and the command line work with
the parts and do not ask what kind of model they came from. A new kind of model registers itself
with ``anatomy.register``.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, singledispatch
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, clone
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.validation import check_is_fitted, validate_data

from vicinal._typing import FloatArray, IndexArray
from vicinal.automatic.classifier import ANNClassifier
from vicinal.automatic.regressor import ANNRegressor
from vicinal.features.expansion import Expansion
from vicinal.learners.base import MetricLearner
from vicinal.learners.fit_input import store_fit
from vicinal.learners.rank_one_metrics import factor
from vicinal.search.search_cv import ANNSearchCV
from vicinal.voting.class_mean import ClassMeanKNN
from vicinal.voting.explanation import NeighborVote, contributions

PAIRS = 500
"""Pairs of rows whose distances say what each feature adds, at most."""

NeighborClassifier: TypeAlias = ClassMeanKNN | KNeighborsClassifier


class Transformer(Protocol):
    """A fitted step of a model."""

    def transform(self, X: ArrayLike, /) -> FloatArray:
        """The features that the next step takes."""


# ------------------------------------------------------------------------------------- metrics


@dataclass(frozen=True)
class MeasuredRows:
    """Rows as a distance sees them: columns, and the matrix of the squared distance."""

    columns: FloatArray
    """(n, p) the features, and their hat and kernel functions where there are any."""
    M: FloatArray
    """(p, p)"""
    expansion: Expansion | None = None
    """None: the columns are the features."""

    @property
    def n_features(self) -> int:
        """The number of features d."""
        return len(self.M) if self.expansion is None else self.expansion.n_features

    def contributions(self, rows: IndexArray) -> FloatArray:
        """(n, d) what each feature adds to the squared distance from row i to row ``rows[i]``."""
        return self._contributions(self.columns, self.columns[rows])

    def mean_contributions(self) -> FloatArray:
        """(d,) shares of the features in the squared distances of pairs of rows, of sum 1."""
        n = len(self.columns)
        rows = np.unique(np.linspace(0, n - 1, min(n, PAIRS)).astype(np.intp))
        columns = self.columns[rows]
        parts = self._contributions(columns, np.roll(columns, len(rows) // 2, axis=0))
        shares = np.maximum(parts.sum(axis=0), 0.0)
        total = shares.sum()
        return np.asarray(shares / total if total > 0 else np.full(len(shares), 1 / len(shares)))

    def _contributions(self, columns: FloatArray, to: FloatArray) -> FloatArray:
        if self.expansion is None:
            return contributions(columns, to, self.M)
        return self.expansion.contributions(columns, to, self.M)


class ModelMetric(Protocol):
    """A distance between prepared rows A (n, d)."""

    @property
    def steps(self) -> tuple[Transformer, ...]:
        """The fitted transformers that it consists of; the last one was learned."""

    def embed(self, A: FloatArray) -> FloatArray:
        """Z (n, m), between whose rows Euclidean distances are those of the metric."""

    def matrix(self) -> FloatArray | None:
        """M (d, d) of the squared distance; None where that is not a quadratic form of A."""

    def measure(self, A: FloatArray) -> MeasuredRows | None:
        """The rows as the distance sees them; None where ``matrix`` is None."""

    def directions(self, axes: FloatArray, A: FloatArray) -> FloatArray:
        """(r, d) directions (r, m) of Z as linear functions of the features."""


@dataclass(frozen=True)
class EuclideanMetric:
    """The Euclidean distance of the prepared rows: nothing was learned."""

    n_features: int

    @property
    def steps(self) -> tuple[Transformer, ...]:
        return ()

    def embed(self, A: FloatArray) -> FloatArray:
        return A

    def matrix(self) -> FloatArray:
        return np.eye(self.n_features)

    def measure(self, A: FloatArray) -> MeasuredRows:
        return MeasuredRows(A, self.matrix())

    def directions(self, axes: FloatArray, A: FloatArray) -> FloatArray:
        return axes


@dataclass(frozen=True)
class LearnedMetric:
    """The metric of one estimator that transforms: a learner, a search, a single metric."""

    estimator: MetricLearner | ANNSearchCV
    steps: tuple[Transformer, ...]

    def embed(self, A: FloatArray) -> FloatArray:
        with plain_arrays():
            return np.asarray(self.estimator.transform(A), dtype=np.float64)

    def matrix(self) -> FloatArray | None:
        try:
            return np.asarray(self.estimator.get_mahalanobis_matrix(), dtype=np.float64)
        except ValueError:  # the kernel form of RVML
            return None

    def measure(self, A: FloatArray) -> MeasuredRows | None:
        M = self.matrix()
        return None if M is None else MeasuredRows(A, M)

    def directions(self, axes: FloatArray, A: FloatArray) -> FloatArray:
        d = A.shape[1]
        return np.asarray(axes @ (self.embed(np.eye(d)) - self.embed(np.zeros((1, d)))).T)


@dataclass(frozen=True)
class MeanMetric:
    """The mean of the metrics of a committee, which votes by each of them."""

    committee: ANNClassifier | ANNRegressor

    @property
    def steps(self) -> tuple[Transformer, ...]:
        raise ValueError(
            "a committee has several metrics, and no transform to export: fit "
            "ANNClassifier(mode='single')"
        )

    def embed(self, A: FloatArray) -> FloatArray:
        """Z by the eigenvectors of the mean metric, those of eigenvalue 0 left out."""
        return np.asarray(self._columns(A) @ self._factor.T)

    def matrix(self) -> FloatArray:
        return np.asarray(self.committee.get_mahalanobis_matrix(), dtype=np.float64)

    def measure(self, A: FloatArray) -> MeasuredRows:
        if not self._expanded:
            return MeasuredRows(A, self.matrix())
        return MeasuredRows(self._columns(A), self.committee.mean_metric(), self._expansion)

    def directions(self, axes: FloatArray, A: FloatArray) -> FloatArray:
        """(r, d); columns are replaced by the linear functions nearest to them on A (n, d)."""
        lines = self._factor @ self._expansion.slopes(A) if self._expanded else self._factor
        return np.asarray(axes @ lines)

    def _columns(self, A: FloatArray) -> FloatArray:
        with plain_arrays():
            return np.asarray(self.committee.unfold(A))

    @property
    def _expansion(self) -> Expansion:
        return self.committee._expansion

    @property
    def _expanded(self) -> bool:
        return self._expansion.n_columns > self._expansion.n_features

    @cached_property
    def _factor(self) -> FloatArray:
        """(r, p) L of the mean metric."""
        return factor(self.committee.mean_metric())


# --------------------------------------------------------------------------------------- votes


@dataclass(frozen=True)
class NeighborVotes:
    """K-nearest-neighbor votes about prepared rows A (n, d), in the space Z of a metric."""

    knn: NeighborClassifier
    metric: ModelMetric

    @property
    def n_neighbors(self) -> int:
        """The number of neighbors K."""
        return int(self.knn.n_neighbors)

    @property
    def classes(self) -> NDArray[np.generic]:
        """(c,) in the order of the probabilities."""
        return np.asarray(self.knn.classes_)

    @property
    def of_each_class(self) -> bool:
        """Whether K rows of every class are asked, rather than K rows in all."""
        return isinstance(self.knn, ClassMeanKNN) and self.knn.rule == "class_mean"

    def labels(self) -> NDArray[np.generic]:
        """(n_rows,) the classes of the training rows."""
        if not isinstance(self.knn, ClassMeanKNN):
            return np.asarray(self.knn.classes_[self.knn._y])
        labels = np.empty(self.knn.n_samples_fit_, dtype=self.knn.classes_.dtype)
        labels[self.knn.rows_] = np.repeat(self.knn.classes_, np.diff(self.knn.offsets_))
        return labels

    def probabilities(self, A: FloatArray) -> FloatArray:
        """(n, c) of the classes."""
        return np.asarray(self.knn.predict_proba(self.metric.embed(A)))

    def predict(self, A: FloatArray) -> NDArray[np.generic]:
        """(n,) classes; among equal votes, the classifier decides."""
        return np.asarray(self.knn.predict(self.metric.embed(A)))

    def nearest(self, A: FloatArray, k: int) -> tuple[FloatArray, IndexArray]:
        """Distances and training rows (n, k), nearest first."""
        k = min(k, self.knn.n_samples_fit_)
        distances, rows = self.knn.kneighbors(self.metric.embed(A), n_neighbors=k)
        return distances, rows

    def row_weights(self, A: FloatArray) -> csr_array:
        """(n, n_rows) the share of every training row in the probabilities."""
        Z = self.metric.embed(A)
        if isinstance(self.knn, ClassMeanKNN):
            return self.knn.vote_weights(Z)[0]
        if self.knn.weights not in ("uniform", None):
            raise ValueError(f"votes with weights={self.knn.weights!r} cannot be explained")
        return csr_array(self.knn.kneighbors_graph(Z)) / self.n_neighbors

    def fitted_to(self, A: FloatArray, y: NDArray[np.generic]) -> NeighborVotes:
        """The same rule with the rows A (n, d) as training rows."""
        return replace(self, knn=clone(self.knn).fit(self.metric.embed(A), y))


@dataclass(frozen=True)
class CommitteeVotes:
    """The votes of an ANNClassifier, with the methods of :class:`NeighborVotes`."""

    committee: ANNClassifier

    @property
    def n_neighbors(self) -> int:
        """K of the heaviest member."""
        heaviest = max(self.committee.chosen_, key=lambda choice: choice.weight)
        return int(heaviest.n_neighbors)

    @property
    def classes(self) -> NDArray[np.generic]:
        return np.asarray(self.committee.classes_)

    def labels(self) -> NDArray[np.generic]:
        return np.asarray(self.committee.classes_[self.committee.y_fit_])

    def probabilities(self, A: FloatArray) -> FloatArray:
        with plain_arrays():
            return np.asarray(self.committee.predict_proba(A))

    def predict(self, A: FloatArray) -> NDArray[np.generic]:
        """(n,) classes."""
        with plain_arrays():
            return np.asarray(self.committee.predict(A))

    def nearest(self, A: FloatArray, k: int) -> tuple[FloatArray, IndexArray]:
        """Distances and training rows (n, k), those that count most first."""
        with plain_arrays():
            distances, rows = self.committee.kneighbors(A, min(k, self.committee.n_samples_fit_))
        return distances, rows

    def fitted_to(self, A: FloatArray, y: NDArray[np.generic]) -> CommitteeVotes:
        """The committee as it is: its metrics belong to its own rows."""
        return self

    def effective_neighbors(self, A: FloatArray) -> FloatArray:
        """(n,) how many neighbors the metrics look at."""
        with plain_arrays():
            return np.asarray(self.committee.effective_neighbors(A))


@dataclass(frozen=True)
class NumberVotes(CommitteeVotes):
    """The votes of an ANNRegressor, whose labels are numbers."""

    committee: ANNRegressor

    @property
    def classes(self) -> NDArray[np.generic]:
        raise TypeError("an ANNRegressor predicts numbers: it has no classes")

    def labels(self) -> NDArray[np.generic]:
        return np.asarray(self.committee.y_fit_)

    def intervals(self, A: FloatArray, coverage: float) -> FloatArray:
        """(n, 2) lower and upper ends, between which a share `coverage` of the targets lie."""
        with plain_arrays():
            return np.asarray(self.committee.predict_interval(A, coverage))


Votes: TypeAlias = NeighborVotes | CommitteeVotes
"""The rule by which training rows decide about prepared rows."""


# ----------------------------------------------------------------------------------- the model


@dataclass(frozen=True)
class FittedModel:
    """A fitted model in its parts."""

    estimator: BaseEstimator
    """The estimator after the preparation: of a pipeline the learner, search or classifier."""
    metric: ModelMetric
    votes: Votes | None = None
    """None where the model does not predict, or not by neighbors."""
    preparation: tuple[Transformer, ...] = ()

    @property
    def search(self) -> ANNSearchCV | None:
        """The search that found the learner, if there was one."""
        return self.estimator if isinstance(self.estimator, ANNSearchCV) else None

    @property
    def committee(self) -> ANNClassifier | None:
        """The automatic classifier, where it is what votes."""
        return self.votes.committee if isinstance(self.votes, CommitteeVotes) else None

    @property
    def learner(self) -> MetricLearner | None:
        """The learner of the one metric; None of plain K-NN and of automatic classifiers."""
        if self.committee is not None or not isinstance(self.metric, LearnedMetric):
            return None
        return self.estimator if self.search is None else self.search.best_estimator_

    @property
    def steps(self) -> tuple[Transformer, ...]:
        """All fitted transformers, in the order of the data; ValueError for a committee."""
        return (*self.preparation, *self.metric.steps)

    def prepare(self, X: ArrayLike) -> FloatArray:
        """A (n, d): the features that the metric is about."""
        for step in self.preparation:
            X = step.transform(X)
        return np.asarray(validate_data(self.estimator, X, dtype=np.float64, reset=False))

    def matrix(self) -> FloatArray:
        """M (p, p) of the squared distance between rows that are not prepared yet.

        ValueError where the distance is not a quadratic form of them. Steps of the preparation are
        taken to be affine, as scalers and PCA are.
        """
        M = self.metric.matrix()
        if M is None:
            raise ValueError(
                "the learned distance is not a quadratic form of the features: there is nothing "
                "that each of them adds"
            )
        if not self.preparation:
            return M
        p = getattr(self.preparation[0], "n_features_in_", len(M))
        J = self.prepare(np.eye(p)) - self.prepare(np.zeros((1, p)))  # (p, d), of affine steps
        return np.asarray(J @ M @ J.T)

    def explain(self, x: FloatArray, training_rows: FloatArray, k: int) -> list[NeighborVote]:
        """The training rows that decided about a row, with what made them near.

        Parameters
        ----------
        x : (p,) array
        training_rows : (n, p) array
            The rows that the model was fitted on, like x not prepared yet.
        k : int
            How many are listed: the nearest, or of a committee those that count most.
        """
        A, votes = self.prepare(x[None]), self.voting()
        if isinstance(votes, CommitteeVotes):
            return list(votes.committee.explain(A, n_neighbors=k)[0].neighbors)
        distances, rows = votes.nearest(A, k)
        weights = votes.row_weights(A)[0].toarray().ravel()  # (n,)
        return [
            NeighborVote(row, label, weight, distance, added)
            for row, label, weight, distance, added in zip(
                rows[0].tolist(),
                votes.labels()[rows[0]],
                weights[rows[0]].tolist(),
                distances[0].tolist(),
                contributions(x, training_rows[rows[0]], self.matrix()),
                strict=True,
            )
        ]

    def voting(self) -> Votes:
        """The votes; TypeError where there are none."""
        if self.votes is None:
            raise TypeError(f"{type(self.estimator).__name__} does not predict by neighbors")
        return self.votes

    def unfitted(self) -> Pipeline:
        """The steps and the vote once more, not fitted, for cross-validation."""
        last = (self.votes.knn,) if isinstance(self.votes, NeighborVotes) else ()
        return make_pipeline(*(clone(step) for step in (*self.steps, *last)))

    def learner_rows(self, A: FloatArray) -> FloatArray:
        """The rows as the learner itself was given them: A, or A standardized by a search."""
        with plain_arrays():
            for step in self.metric.steps[:-1]:
                A = np.asarray(step.transform(A))
        return A


@contextmanager
def plain_arrays() -> Iterator[None]:
    """Let arrays be given to estimators that were fitted on named columns."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        yield


@singledispatch
def anatomy(model: BaseEstimator) -> FittedModel:
    """Take a fitted model apart.

    Parameters
    ----------
    model : estimator
        A metric learner, ANNClassifier, ANNSearchCV, ClassMeanKNN, KNeighborsClassifier, or a
        Pipeline that ends in one of them; a model of a table. Of any other estimator only the
        transform is known, if it has one.

    Raises
    ------
    TypeError
        The model is not an estimator.
    NotFittedError
    """
    if not isinstance(model, BaseEstimator):
        raise TypeError(f"a {type(model).__name__} is not an estimator")
    check_is_fitted(model)
    preparation = (model,) if hasattr(model, "transform") else ()
    return FittedModel(model, EuclideanMetric(model.n_features_in_), preparation=preparation)


@anatomy.register
def _(model: MetricLearner) -> FittedModel:
    check_is_fitted(model)
    return FittedModel(model, LearnedMetric(model, (model,)))


@anatomy.register
def _(model: ANNClassifier) -> FittedModel:
    """The model of numbers, after the encoder of the columns where there is one."""
    check_is_fitted(model)
    if model.encoder_ is not None:
        of_numbers = copy(model)
        features = {"encoder_": None, "n_features_in_": model.X_fit_.shape[1]}
        store_fit(of_numbers, {**features, "classes_": model.classes_})
        return replace(anatomy(of_numbers), preparation=(model.encoder_,))
    single = model.mode == "single"
    metric: ModelMetric = LearnedMetric(model, (model,)) if single else MeanMetric(model)
    return FittedModel(model, metric, CommitteeVotes(model))


@anatomy.register
def _(model: ANNRegressor) -> FittedModel:
    """The same for numbers."""
    check_is_fitted(model)
    if model.encoder_ is not None:
        of_numbers = copy(model)
        store_fit(of_numbers, {"encoder_": None, "n_features_in_": model.X_fit_.shape[1]})
        return replace(anatomy(of_numbers), preparation=(model.encoder_,))
    single = model.mode == "single"
    metric: ModelMetric = LearnedMetric(model, (model,)) if single else MeanMetric(model)
    return FittedModel(model, metric, NumberVotes(model))


@anatomy.register
def _(model: ANNSearchCV) -> FittedModel:
    check_is_fitted(model, "cv_results_")
    check_is_fitted(model, "best_estimator_", msg="only the search was made: fit with refit=True")
    parts = (model.scaler_, model.best_estimator_)
    metric = LearnedMetric(model, tuple(part for part in parts if part is not None))
    return FittedModel(model, metric, NeighborVotes(model.classifier_, metric))


@anatomy.register(ClassMeanKNN)
@anatomy.register(KNeighborsClassifier)
def _(model: NeighborClassifier) -> FittedModel:
    check_is_fitted(model)
    metric = EuclideanMetric(model.n_features_in_)
    return FittedModel(model, metric, NeighborVotes(model, metric))


@anatomy.register
def _(model: Pipeline) -> FittedModel:
    """The last step, or the last two if these are a learner and K-NN, after all others."""
    *before, last = (anatomy(step) for _, step in model.steps if step not in (None, "passthrough"))
    ends_in_knn = isinstance(last.estimator, NeighborClassifier)
    if before and ends_in_knn and isinstance(before[-1].metric, LearnedMetric):
        *before, learned = before
        last = replace(learned, votes=NeighborVotes(last.estimator, learned.metric))
    steps = tuple(step for part in before for step in part.steps)
    return replace(last, preparation=(*steps, *last.preparation))
