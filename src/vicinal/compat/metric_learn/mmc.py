"""MMC and MMC_Supervised."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import TransformerMixin

from vicinal._typing import FloatArray, LabelArray, Seed
from vicinal.compat.metric_learn.base_metric import MahalanobisMixin, _PairsClassifierMixin
from vicinal.compat.metric_learn.constraints import drawn_pairs
from vicinal.compat.metric_learn.deprecated import DEPRECATED, renamed
from vicinal.compat.metric_learn.starts import starting_metric
from vicinal.compat.metric_learn.tuple_input import Preprocessor, as_rows
from vicinal.learners import mmc as native

TOL_SCALE = 1e-3
"""metric-learn's ``tol`` bounds the step, ours the relative decrease of the objective."""


def _learn(estimator: MMC | MMC_Supervised, pairs: FloatArray, y: LabelArray) -> None:
    X, indices = as_rows(pairs)
    A0 = starting_metric(estimator.init, X, estimator.random_state, "init", definite=False)
    learner = native.MMC(
        diagonal=estimator.diagonal,
        max_iter=estimator.max_iter,
        tol=TOL_SCALE * float(estimator.tol),
        verbose=2 * int(estimator.verbose),
    )

    def learn() -> None:
        learner.fit_pairs(X, indices, y)
        # Ours makes the squared distances of the similar pairs add up to 1.
        learner.components_ = learner.components_ * np.sqrt(total)

    gaps = pairs[y == 1, 0] - pairs[y == 1, 1]
    total = 0.5 * estimator.diagonal_c if estimator.diagonal else np.vdot(gaps @ A0, gaps) / 100
    estimator._learn(learner, learn)
    estimator.A_ = estimator.get_mahalanobis_matrix()
    if not estimator.diagonal:
        estimator.converged_ = learner.converged_


class MMC(_PairsClassifierMixin, MahalanobisMixin):
    """Mahalanobis Metric for Clustering from pairs: :class:`vicinal.MMC`.

    Parameters
    ----------
    max_iter : int, default=100
        Iterations.
    max_proj : int, default=10000
        Without effect: nothing is projected.
    tol : float, default=1e-3
        Smaller is more exact.
    init : {"identity", "covariance", "random"} or array, default="identity"
        Of a full metric M, the scale: the squared distances of the similar pairs add up to 1 % of
        what they are under this matrix. The direction is that of the one maximum.
    diagonal : bool, default=False
        Learn a diagonal M.
    diagonal_c : float, default=1.0
        What dissimilar pairs count in a diagonal M: of the same direction, its scale.
    verbose : bool, default=False
        Whether to log every iteration, on the logger "vicinal".
    preprocessor : array-like or callable, default=None
        Where samples are given as indicators.
    random_state : int, RandomState or None, default=None
        For init="random".
    convergence_threshold : deprecated
        The old name of ``tol``.
    """

    def __init__(
        self,
        max_iter: int = 100,
        max_proj: int = 10000,
        tol: float = 1e-3,
        init: str | ArrayLike = "identity",
        diagonal: bool = False,
        diagonal_c: float = 1.0,
        verbose: bool = False,
        preprocessor: ArrayLike | Preprocessor | None = None,
        random_state: Seed = None,
        convergence_threshold: float | str = DEPRECATED,
    ) -> None:
        super().__init__(preprocessor)
        self.max_iter = max_iter
        self.max_proj = max_proj
        self.tol = renamed("convergence_threshold", convergence_threshold, "tol", tol)
        self.init = init
        self.diagonal = diagonal
        self.diagonal_c = diagonal_c
        self.verbose = verbose
        self.random_state = random_state
        self.convergence_threshold = DEPRECATED

    def fit(
        self, pairs: object, y: object, calibration_params: Mapping[str, Any] | None = None
    ) -> Self:
        """Learn from pairs (+1 similar, −1 dissimilar) and choose the threshold on them."""
        return self._fit_pairs(pairs, y, calibration_params, partial(_learn, self))


class MMC_Supervised(TransformerMixin, MahalanobisMixin):
    """Mahalanobis Metric for Clustering from pairs that are drawn from class labels.

    Parameters
    ----------
    max_iter, max_proj, tol, init, diagonal, diagonal_c, verbose, preprocessor, random_state
        As of :class:`MMC`; random_state is also for the pairs.
    n_constraints : int, default=None
        Pairs of either kind; None is 20 c² for c classes.
    num_constraints, convergence_threshold : deprecated
        The old names of ``n_constraints`` and ``tol``.
    """

    _needs_labels = True

    def __init__(
        self,
        max_iter: int = 100,
        max_proj: int = 10000,
        tol: float = 1e-6,
        n_constraints: int | None = None,
        init: str | ArrayLike = "identity",
        diagonal: bool = False,
        diagonal_c: float = 1.0,
        verbose: bool = False,
        preprocessor: ArrayLike | Preprocessor | None = None,
        random_state: Seed = None,
        num_constraints: int | str | None = DEPRECATED,
        convergence_threshold: float | str = DEPRECATED,
    ) -> None:
        super().__init__(preprocessor)
        self.max_iter = max_iter
        self.max_proj = max_proj
        self.tol = renamed("convergence_threshold", convergence_threshold, "tol", tol)
        self.n_constraints = renamed(
            "num_constraints", num_constraints, "n_constraints", n_constraints
        )
        self.init = init
        self.diagonal = diagonal
        self.diagonal_c = diagonal_c
        self.verbose = verbose
        self.random_state = random_state
        self.num_constraints = DEPRECATED
        self.convergence_threshold = DEPRECATED

    def fit(self, X: object, y: object) -> Self:
        """Learn from samples and their class labels, −1 where unknown."""
        samples, labels = self._prepare_inputs(X, y, ensure_min_samples=2)
        _learn(self, *drawn_pairs(samples, labels, self.n_constraints, self.random_state))
        return self
