"""Learners of pairs or of triplets: the same algorithm, fed by labels or by the user."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from vicinal._typing import FloatArray, IndexArray
from vicinal.learners.base import DTYPES, MetricLearner
from vicinal.learners.labeled_data import encode_labels
from vicinal.learners.supervision import Pairs, Triplets, check_pairs, check_triplets


class _WeakLearner(MetricLearner):
    """What both kinds share: labels are checked the same way before anything is drawn from them."""

    random_state: Any

    def _check_labeled(self, X: Any, y: Any) -> tuple[FloatArray, IndexArray]:
        X, y = validate_data(self, X, y, dtype=DTYPES, ensure_min_samples=2)
        self.classes_, codes = encode_labels(y)
        return X, codes


class PairLearner(_WeakLearner):
    """Learns from pairs. Subclasses say how pairs come from labels, and what is learned of them."""

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the metric from pairs that are drawn from class labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Class labels.
        """
        X, codes = self._check_labeled(X, y)
        pairs = self._pairs_from_labels(X, codes, check_random_state(self.random_state))
        return self._learn_pairs(X, pairs)

    def fit_pairs(self, X: Any, pairs: Any, similar: ArrayLike) -> Self:
        """Learn the metric from given pairs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        pairs : array-like of int of shape (n_pairs, 2)
            Row indices of X.
        similar : array-like of shape (n_pairs,)
            Which pairs ought to be near each other: booleans, 1/0 or +1/−1.
        """
        X = validate_data(self, X, dtype=DTYPES, ensure_min_samples=2)
        return self._learn_pairs(X, check_pairs(pairs, similar, len(X)))

    def _pairs_from_labels(
        self, X: FloatArray, codes: IndexArray, rng: np.random.RandomState
    ) -> Pairs:
        raise NotImplementedError

    def _learn_pairs(self, X: FloatArray, pairs: Pairs) -> Self:
        raise NotImplementedError


class TripletLearner(_WeakLearner):
    """Learns from triplets. Subclasses say how they come from labels, and what is learned."""

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the metric from triplets that are taken from class labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Class labels.
        """
        X, codes = self._check_labeled(X, y)
        return self._learn_triplets(X, self._triplets_from_labels(X, codes), codes)

    def fit_triplets(self, X: Any, triplets: ArrayLike) -> Self:
        """Learn the metric from given triplets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        triplets : array-like of int of shape (n_triplets, 3)
            Row indices (i, j, l) of X: i ought to be nearer to j than to l.
        """
        X = validate_data(self, X, dtype=DTYPES, ensure_min_samples=2)
        return self._learn_triplets(X, check_triplets(triplets, len(X)), None)

    def _triplets_from_labels(self, X: FloatArray, codes: IndexArray) -> Triplets:
        raise NotImplementedError

    def _learn_triplets(self, X: FloatArray, triplets: Triplets, codes: IndexArray | None) -> Self:
        raise NotImplementedError
