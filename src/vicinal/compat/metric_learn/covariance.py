"""Covariance."""

from __future__ import annotations

from typing import Self

from sklearn.base import TransformerMixin

from vicinal.compat.metric_learn.base_metric import MahalanobisMixin
from vicinal.learners import covariance as native


class Covariance(TransformerMixin, MahalanobisMixin):
    """The inverse covariance of the samples as metric: :class:`vicinal.Covariance`.

    Parameters
    ----------
    preprocessor : array-like or callable, default=None
        Where samples are given as indicators.
    """

    def fit(self, X: object, y: object = None) -> Self:
        """Learn from samples (n_samples, n_features); y is ignored."""
        samples = self._prepare_inputs(X, ensure_min_samples=2)
        learner = native.Covariance()
        self._learn(learner, lambda: learner.fit(samples))
        return self
