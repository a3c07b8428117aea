"""The base of all metric learners: a transformer x → L x, a metric, a verifier of pairs."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import ClassVar, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d, validate_data

from vicinal._typing import FloatArray
from vicinal.learners.fit_input import DTYPES, FitInput, check_labeled, on_host
from vicinal.learners.parameters import ParameterConstraints, check_parameters

Strategy: TypeAlias = Literal["accuracy", "f_beta", "max_tpr", "max_tnr"]


class MetricLearner(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of the metric learners, which differ in how they learn ``components_`` (m, d).

    The learned squared distance is d(x, x′) = ‖L (x − x′)‖² = (x − x′)ᵀ M (x − x′), with
    L = ``components_`` and M = LᵀL. A pair is called similar where its distance is at most
    ``threshold_``.
    """

    _constraints: ClassVar[ParameterConstraints]

    components_: FloatArray
    n_features_in_: int
    threshold_: float

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn the metric from class labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Class labels of any type that scikit-learn takes.

        Returns
        -------
        self
        """
        given = check_labeled(self, X, y)
        check_parameters(self)
        self._learn_labeled(given)
        return self

    def _learn_labeled(self, given: FitInput) -> None:
        """Learn from checked samples and labels, and set all attributes at the end."""
        raise NotImplementedError

    def transform(self, X: ArrayLike) -> FloatArray:
        """Embed X so that Euclidean distances are the learned ones: Z = X Lᵀ.

        Parameters
        ----------
        X : array-like or tensor of shape (n_samples, n_features)
            A tensor, on whatever device, is copied to the host, and its graph is not followed.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_components)
        """
        return self._embed(self._queries(X))

    def _queries(self, X: ArrayLike) -> FloatArray:
        """X (n, d), checked like the samples of the fit."""
        check_is_fitted(self)
        return np.asarray(validate_data(self, on_host(X), dtype=DTYPES, reset=False))

    def _embed(self, X: FloatArray) -> FloatArray:
        """Z = X Lᵀ."""
        return np.asarray(X @ self.components_.T.astype(X.dtype, copy=False))

    def _difference(self, A: FloatArray, B: FloatArray) -> FloatArray:
        """L (a − b) for every row a of A and b of B, more exact than embedding each."""
        return self._embed(A - B)

    def get_mahalanobis_matrix(self) -> FloatArray:
        """M = LᵀL, the (n_features, n_features) matrix of the squared distance."""
        check_is_fitted(self)
        return np.asarray(self.components_.T @ self.components_)

    def get_metric(self) -> Callable[..., float]:
        """The learned distance as a function of two vectors, for any code that takes a metric.

        Returns
        -------
        metric : callable
            ``metric(u, v, squared=False)`` returns the (squared) distance of two 1-D arrays or
            tensors.
        """
        check_is_fitted(self)
        fitted = copy(self)  # a later fit sets new attributes, and leaves these alone

        def metric(u: ArrayLike, v: ArrayLike, squared: bool = False) -> float:
            rows = [np.asarray(on_host(x), dtype=np.float64)[None] for x in (u, v)]
            difference = fitted._difference(*rows)[0]
            distance = float(difference @ difference)
            return distance if squared else float(np.sqrt(distance))

        return metric

    def pair_distance(self, pairs: ArrayLike) -> FloatArray:
        """The learned distance within each pair.

        Parameters
        ----------
        pairs : array-like or tensor of shape (n_pairs, 2, n_features)

        Returns
        -------
        distances : ndarray of shape (n_pairs,)
        """
        given = self._tuples("pairs", pairs, 2)
        return np.asarray(np.linalg.norm(self._difference(given[:, 0], given[:, 1]), axis=1))

    def _tuples(self, name: str, given: ArrayLike, width: int) -> FloatArray:
        """Pairs, triplets or quadruplets of samples (number, width, d), checked."""
        check_is_fitted(self)
        tuples: FloatArray = check_array(
            on_host(given), dtype=DTYPES, allow_nd=True, ensure_2d=False, input_name=name
        )
        d = self.n_features_in_
        if tuples.ndim != 3 or tuples.shape[1:] != (width, d):
            count = {2: "two", 3: "three", 4: "four"}[width]
            raise ValueError(
                f"{name} must have shape (n_{name}, {width}, {d}): {count} samples of {d} "
                f"features each; got {tuples.shape}"
            )
        return tuples

    def pair_score(self, pairs: ArrayLike) -> FloatArray:
        """The similarity within each pair: the negative learned distance.

        Parameters
        ----------
        pairs : array-like or tensor of shape (n_pairs, 2, n_features)

        Returns
        -------
        scores : ndarray of shape (n_pairs,)
            Higher is more similar, as scikit-learn's ranking scores expect.
        """
        return -self.pair_distance(pairs)

    def predict_pairs(self, pairs: ArrayLike) -> NDArray[np.bool_]:
        """Whether each pair is similar: its distance is at most ``threshold_``.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, n_features)

        Returns
        -------
        similar : ndarray of bool of shape (n_pairs,)
        """
        check_is_fitted(self, "components_")
        if not hasattr(self, "threshold_"):
            raise NotFittedError(
                f"{type(self).__name__} has no threshold yet: call calibrate_threshold with "
                "validation pairs, or set_threshold, before predict_pairs"
            )
        return np.asarray(self.pair_distance(pairs) <= self.threshold_)

    def predict_triplets(self, triplets: ArrayLike) -> NDArray[np.bool_]:
        """Whether the first sample of each triplet is nearer to the second than to the third.

        Parameters
        ----------
        triplets : array-like of shape (n_triplets, 3, n_features)

        Returns
        -------
        holds : ndarray of bool of shape (n_triplets,)
        """
        given = self._tuples("triplets", triplets, 3)
        return self.predict_quadruplets(given[:, [0, 1, 0, 2]])

    def predict_quadruplets(self, quadruplets: ArrayLike) -> NDArray[np.bool_]:
        """Whether the first two samples of each quadruplet are nearer than the last two.

        Parameters
        ----------
        quadruplets : array-like of shape (n_quadruplets, 4, n_features)

        Returns
        -------
        holds : ndarray of bool of shape (n_quadruplets,)
        """
        given = self._tuples("quadruplets", quadruplets, 4)
        return np.asarray(self.pair_distance(given[:, :2]) < self.pair_distance(given[:, 2:]))

    def triplet_accuracy(self, triplets: ArrayLike) -> float:
        """The share of the triplets (n_triplets, 3, n_features) that hold."""
        return float(self.predict_triplets(triplets).mean())

    def quadruplet_accuracy(self, quadruplets: ArrayLike) -> float:
        """The share of the quadruplets (n_quadruplets, 4, n_features) that hold."""
        return float(self.predict_quadruplets(quadruplets).mean())

    def set_threshold(self, threshold: float) -> Self:
        """Call pairs similar up to this distance."""
        check_is_fitted(self, "components_")
        self.threshold_ = float(threshold)
        return self

    def calibrate_threshold(
        self,
        pairs: ArrayLike,
        similar: ArrayLike,
        *,
        strategy: Strategy = "accuracy",
        beta: float = 1.0,
        min_rate: float | None = None,
    ) -> Self:
        """Choose the threshold on validation pairs, which ``fit`` should not have seen.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, n_features)
        similar : array-like of shape (n_pairs,)
            Booleans, 1/0 or +1/−1.
        strategy : {"accuracy", "f_beta", "max_tpr", "max_tnr"}, default="accuracy"
            What the threshold maximizes: the accuracy, the F-beta score of "similar", the true
            positive rate where the true negative rate is at least ``min_rate``, or the reverse.
        beta : float, default=1.0
            How much recall counts against precision in "f_beta".
        min_rate : float in [0, 1], optional
            The bound of "max_tpr" and "max_tnr".

        Returns
        -------
        self
        """
        distances = self.pair_distance(pairs)
        truth = column_or_1d(similar) > 0
        if len(truth) != len(distances):
            raise ValueError(f"similar has {len(truth)} entries for {len(distances)} pairs")
        if truth.all() or not truth.any():
            raise ValueError("a threshold needs both similar and dissimilar validation pairs")
        self.threshold_ = best_threshold(distances, truth, strategy, beta, min_rate)
        return self

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def best_threshold(
    distances: FloatArray,
    similar: NDArray[np.bool_],
    strategy: Strategy,
    beta: float = 1.0,
    min_rate: float | None = None,
) -> float:
    """The threshold of the best score; midway between two distances, the smallest of equals."""
    order = np.argsort(distances, kind="stable")
    d, truth = distances[order].astype(np.float64), similar[order]
    # Calling the k nearest pairs similar, for every k that does not cut through equal distances.
    positives = np.concatenate([[0], np.cumsum(truth)])  # true positives among the k nearest
    k = np.arange(len(d) + 1)
    possible = np.concatenate([[True], d[1:] > d[:-1], [True]])
    n_similar = positives[-1]
    tpr = positives / n_similar
    tnr = 1.0 - (k - positives) / (len(d) - n_similar)
    score = _score(strategy, positives, k, n_similar, tpr, tnr, beta, min_rate)
    best = int(np.argmax(np.where(possible, score, -np.inf)))
    if best == 0:
        return float(np.nextafter(d[0], -np.inf))
    if best == len(d):
        return float(d[-1])
    return float(0.5 * (d[best - 1] + d[best]))


def _score(
    strategy: Strategy,
    positives: FloatArray,
    k: NDArray[np.intp],
    n_similar: int,
    tpr: FloatArray,
    tnr: FloatArray,
    beta: float,
    min_rate: float | None,
) -> FloatArray:
    if strategy == "accuracy":
        return tpr * n_similar + tnr * (len(k) - 1 - n_similar)
    if strategy == "f_beta":
        # At k = 0 the denominator is 0 for β = 0: none called similar scores 0.
        return (1 + beta**2) * positives / np.maximum(beta**2 * n_similar + k, 1e-300)
    if strategy in ("max_tpr", "max_tnr"):
        if min_rate is None or not 0 <= min_rate <= 1:
            raise ValueError(f"strategy={strategy!r} needs min_rate in [0, 1], got {min_rate!r}")
        goal, bound = (tpr, tnr) if strategy == "max_tpr" else (tnr, tpr)
        return np.where(bound >= min_rate, goal, -1.0)
    raise ValueError(
        f"strategy={strategy!r} is unknown; use 'accuracy', 'f_beta', 'max_tpr' or 'max_tnr'"
    )
