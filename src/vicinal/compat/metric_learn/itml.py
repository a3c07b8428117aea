"""ITML and ITML_Supervised."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import pdist
from sklearn.base import TransformerMixin
from sklearn.utils import check_array

from vicinal._typing import FloatArray, LabelArray, Seed
from vicinal.compat.metric_learn.base_metric import MahalanobisMixin, _PairsClassifierMixin
from vicinal.compat.metric_learn.constraints import drawn_pairs
from vicinal.compat.metric_learn.deprecated import DEPRECATED, renamed
from vicinal.compat.metric_learn.starts import starting_metric
from vicinal.compat.metric_learn.tuple_input import Preprocessor, as_indices
from vicinal.learners import itml as native

MOST_ROWS = 5000
"""Default bounds are percentiles over all pairs of the samples, or of so many of them."""


def _learn(
    estimator: ITML | ITML_Supervised,
    pairs: FloatArray,
    y: LabelArray,
    bounds: ArrayLike | None,
) -> None:
    X, indices = as_indices(pairs)
    limits = _default_bounds(X) if bounds is None else _given_bounds(bounds)
    A0 = starting_metric(estimator.prior, X, estimator.random_state, "prior", definite=True)
    learner = native.ITML(
        estimator.gamma,
        prior=A0,
        bounds=limits,
        max_iter=estimator.max_iter,
        tol=float(estimator.tol),
        verbose=2 * int(estimator.verbose),
    )
    estimator._learn(
        learner,
        lambda: learner.fit_pairs(X, indices, y),
        bounds_=limits,
    )


def _default_bounds(X: FloatArray) -> FloatArray:
    """5 % and 95 % of the distances among the samples, that of each to itself included."""
    rows = X[np.unique(np.linspace(0, len(X) - 1, min(len(X), MOST_ROWS)).astype(int))]
    distances = pdist(rows)
    both = np.concatenate([distances, distances, np.zeros(len(rows))])
    limits = np.percentile(both, (5, 95))
    return np.where(limits == 0, 1e-9, limits)


def _given_bounds(bounds: ArrayLike) -> FloatArray:
    limits = check_array(bounds, allow_nd=False, ensure_min_samples=0, ensure_2d=False).ravel()
    if limits.size != 2:
        raise ValueError("`bounds` should be an array-like of two elements.")
    limits = limits.astype(float)
    return np.where(limits == 0, 1e-9, limits)


class ITML(_PairsClassifierMixin, MahalanobisMixin):
    """Information-Theoretic Metric Learning from pairs: :class:`vicinal.ITML`.

    Parameters
    ----------
    gamma : float, default=1.0
        What leaving the bounds costs.
    max_iter : int, default=1000
        Passes over all pairs.
    tol : float, default=1e-3
        Stop where a pass changes the multipliers by less.
    prior : {"identity", "covariance", "random"} or array, default="identity"
        The metric to stay near to, positive definite.
    verbose : bool, default=False
        Whether to log every pass, on the logger "vicinal".
    preprocessor : array-like or callable, default=None
        Where samples are given as indicators.
    random_state : int, RandomState or None, default=None
        For prior="random".
    convergence_threshold : deprecated
        The old name of ``tol``.
    """

    def __init__(
        self,
        gamma: float = 1.0,
        max_iter: int = 1000,
        tol: float = 1e-3,
        prior: str | ArrayLike = "identity",
        verbose: bool = False,
        preprocessor: ArrayLike | Preprocessor | None = None,
        random_state: Seed = None,
        convergence_threshold: float | str = DEPRECATED,
    ) -> None:
        super().__init__(preprocessor)
        self.gamma = gamma
        self.max_iter = max_iter
        self.tol = renamed("convergence_threshold", convergence_threshold, "tol", tol)
        self.prior = prior
        self.verbose = verbose
        self.random_state = random_state
        self.convergence_threshold = DEPRECATED

    def fit(
        self,
        pairs: object,
        y: object,
        bounds: ArrayLike | None = None,
        calibration_params: Mapping[str, Any] | None = None,
    ) -> Self:
        """Learn from pairs and choose the threshold on the same pairs.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, n_features), or indicators (n_pairs, 2)
        y : array-like of shape (n_pairs,)
            +1 for similar, −1 for dissimilar pairs.
        bounds : array-like of two numbers, default=None
            Bounds on the squared distances of similar and dissimilar pairs; None is the 5th and
            the 95th percentile of the distances among the samples.
        calibration_params : dict, default=None
            Arguments of ``calibrate_threshold``.
        """
        return self._fit_pairs(pairs, y, calibration_params, partial(_learn, self, bounds=bounds))


class ITML_Supervised(TransformerMixin, MahalanobisMixin):
    """Information-Theoretic Metric Learning from pairs that are drawn from class labels.

    Parameters
    ----------
    gamma, max_iter, tol, prior, verbose, preprocessor, random_state, convergence_threshold
        As of :class:`ITML`; random_state is also for the pairs.
    n_constraints : int, default=None
        Pairs of either kind; None is 20 c² for c classes.
    num_constraints : deprecated
        The old name of ``n_constraints``.
    """

    _needs_labels = True

    def __init__(
        self,
        gamma: float = 1.0,
        max_iter: int = 1000,
        tol: float = 1e-3,
        n_constraints: int | None = None,
        prior: str | ArrayLike = "identity",
        verbose: bool = False,
        preprocessor: ArrayLike | Preprocessor | None = None,
        random_state: Seed = None,
        num_constraints: int | str | None = DEPRECATED,
        convergence_threshold: float | str = DEPRECATED,
    ) -> None:
        super().__init__(preprocessor)
        self.gamma = gamma
        self.max_iter = max_iter
        self.tol = renamed("convergence_threshold", convergence_threshold, "tol", tol)
        self.n_constraints = renamed(
            "num_constraints", num_constraints, "n_constraints", n_constraints
        )
        self.prior = prior
        self.verbose = verbose
        self.random_state = random_state
        self.num_constraints = DEPRECATED
        self.convergence_threshold = DEPRECATED

    def fit(self, X: object, y: object, bounds: ArrayLike | None = None) -> Self:
        """Learn from samples and their class labels, −1 where unknown; bounds as of ``ITML``."""
        samples, labels = self._prepare_inputs(X, y, ensure_min_samples=2)
        pairs, signs = drawn_pairs(samples, labels, self.n_constraints, self.random_state)
        _learn(self, pairs, signs, bounds)
        return self
