"""Learners from pairs or triplets: the same algorithm, fed by labels or by the user.

Another kind of supervision (quadruplets, chunks of samples that belong together) takes a frozen
value and its check in ``supervision``, and a base class like those below: ``fit`` checks the input,
makes the supervision from labels and learns; ``fit_quadruplets`` or ``fit_chunks`` checks what the
user gives and learns the same way. Learning ends in ``store_fit`` or ``store_solution``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from vicinal._typing import IndexArray
from vicinal.learners.base import MetricLearner
from vicinal.learners.fit_input import FitInput, check_labeled, check_unlabeled
from vicinal.learners.labeled_data import encode_labels
from vicinal.learners.parameters import check_parameters
from vicinal.learners.supervision import Pairs, Triplets, check_pairs, check_triplets


class PairLearner(MetricLearner):
    """Learns from pairs. Subclasses say how pairs come from labels, and what is learned of them."""

    random_state: Any

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the metric from pairs that are drawn from class labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Class labels.
        """
        given = check_labeled(self, X, y)
        check_parameters(self)
        classes, codes = encode_labels(given.y)
        pairs = self._pairs_from_labels(codes, check_random_state(self.random_state))
        self._learn_pairs(given.adding(classes_=classes), pairs)
        return self

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
        given = check_unlabeled(self, X)
        check_parameters(self)
        self._learn_pairs(given, check_pairs(pairs, similar, len(given.X)))
        return self

    def _pairs_from_labels(self, codes: IndexArray, rng: np.random.RandomState) -> Pairs:
        raise NotImplementedError

    def _learn_pairs(self, given: FitInput, pairs: Pairs) -> None:
        """Learn from the pairs, and set all attributes at the end."""
        raise NotImplementedError


class TripletLearner(MetricLearner):
    """Learns from triplets. Subclasses say how they come from labels, and what is learned."""

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the metric from triplets that are taken from class labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Class labels.
        """
        given = check_labeled(self, X, y)
        check_parameters(self)
        classes, codes = encode_labels(given.y)
        triplets, attributes = self._triplets_from_labels(given, codes)
        self._learn_triplets(given.adding(classes_=classes, **attributes), triplets, codes)
        return self

    def fit_triplets(self, X: Any, triplets: ArrayLike) -> Self:
        """Learn the metric from given triplets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        triplets : array-like of int of shape (n_triplets, 3)
            Row indices (i, j, l) of X: i ought to be nearer to j than to l.
        """
        given = check_unlabeled(self, X)
        check_parameters(self)
        self._learn_triplets(given, check_triplets(triplets, len(given.X)), None)
        return self

    def _triplets_from_labels(
        self, given: FitInput, codes: IndexArray
    ) -> tuple[Triplets, Mapping[str, object]]:
        """The triplets, and attributes that tell of them."""
        raise NotImplementedError

    def _learn_triplets(
        self, given: FitInput, triplets: Triplets, codes: IndexArray | None
    ) -> None:
        """Learn from the triplets, and set all attributes at the end."""
        raise NotImplementedError
