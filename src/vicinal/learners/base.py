"""What every metric learner is: a scikit-learn transformer x → L x, and a metric."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from vicinal._typing import FloatArray
from vicinal.learners.device_data import on_host
from vicinal.learners.verification import PairVerifier

DTYPES = (np.float64, np.float32)
"""What is kept as given; everything else becomes the first."""


class MetricLearner(PairVerifier, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of the metric learners: they differ in ``fit``, which sets ``components_`` (m, d).

    The learned squared distance is d(x, x′) = ‖L (x − x′)‖² = (x − x′)ᵀ M (x − x′), with
    L = ``components_`` and M = LᵀL.
    """

    components_: FloatArray
    n_features_in_: int

    def transform(self, X: Any) -> FloatArray:
        """Embed X so that Euclidean distances are the learned ones: Z = X Lᵀ.

        Parameters
        ----------
        X : array-like or tensor of shape (n_samples, n_features)
            A tensor, on whatever device, is copied to the host, and its graph is not followed.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        return self._embed(validate_data(self, on_host(X), dtype=DTYPES, reset=False))

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

        def metric(u: Any, v: Any, squared: bool = False) -> float:
            rows = [np.asarray(on_host(x), dtype=np.float64)[None] for x in (u, v)]
            difference = fitted._difference(*rows)[0]
            distance = float(difference @ difference)
            return distance if squared else float(np.sqrt(distance))

        return metric

    def pair_distance(self, pairs: Any) -> FloatArray:
        """The learned distance within each pair.

        Parameters
        ----------
        pairs : array-like or tensor of shape (n_pairs, 2, n_features)

        Returns
        -------
        distances : ndarray of shape (n_pairs,)
        """
        check_is_fitted(self)
        pairs = check_array(
            on_host(pairs), dtype=DTYPES, allow_nd=True, ensure_2d=False, input_name="pairs"
        )
        d = self.n_features_in_
        if pairs.ndim != 3 or pairs.shape[1:] != (2, d):
            raise ValueError(
                f"pairs must have shape (n_pairs, 2, {d}): two samples of {d} features each; "
                f"got {pairs.shape}"
            )
        return np.asarray(np.linalg.norm(self._difference(pairs[:, 0], pairs[:, 1]), axis=1))

    def pair_score(self, pairs: Any) -> FloatArray:
        """How similar the samples of each pair are: the negative learned distance.

        Parameters
        ----------
        pairs : array-like or tensor of shape (n_pairs, 2, n_features)

        Returns
        -------
        scores : ndarray of shape (n_pairs,)
            Higher is more similar, as scikit-learn's ranking scores expect.
        """
        return -self.pair_distance(pairs)

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
