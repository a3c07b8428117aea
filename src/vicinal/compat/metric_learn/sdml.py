"""SDML and SDML_Supervised."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import TransformerMixin
from sklearn.exceptions import ConvergenceWarning

from vicinal._typing import FloatArray, LabelArray, Seed
from vicinal.compat.metric_learn.base_metric import MahalanobisMixin, _PairsClassifierMixin
from vicinal.compat.metric_learn.constraints import drawn_pairs
from vicinal.compat.metric_learn.deprecated import DEPRECATED, renamed
from vicinal.compat.metric_learn.starts import starting_metric
from vicinal.compat.metric_learn.tuple_input import Preprocessor, as_rows
from vicinal.exceptions import warn_user
from vicinal.learners import sdml as native


def _learn(estimator: SDML | SDML_Supervised, pairs: FloatArray, y: LabelArray) -> None:
    if estimator.verbose:
        print("SDML will use scikit-learn's graphical lasso solver.")
    d = pairs.shape[2]
    if d < 2:
        raise ValueError(f"Cannot fit SDML with {d} feature(s)")
    X, indices = as_rows(pairs)
    A0 = starting_metric(estimator.prior, X, estimator.random_state, "prior", definite=True)
    gaps = pairs[:, 0] - pairs[:, 1]
    P = (gaps.T * y) @ gaps
    K = np.linalg.inv(A0) + estimator.balance_param * P
    if np.linalg.eigvalsh(K).min() < 0:
        warn_user(
            "Warning, the input matrix of graphical lasso is not positive semi-definite (PSD). The "
            "algorithm may diverge, and lead to degenerate solutions. To prevent that, try to "
            "decrease the balance parameter `balance_param` and/or to set prior='identity'.",
            ConvergenceWarning,
        )
    # metric-learn's parameters are absolute, ours relative to the largest that make sense.
    learner = native.SDML(
        estimator.balance_param * native.relative_size(P, A0),
        sparsity=estimator.sparsity_param / (native.largest_off_diagonal(K) or 1.0),
        prior=A0,
    )
    try:
        estimator._learn(learner, lambda: learner.fit_pairs(X, indices, y))
    except ValueError as error:
        raise RuntimeError(
            "There was a problem in SDML when using scikit-learn's graphical lasso solver. "
            f"{error} Here, `balance_param` is to be lowered, or `sparsity_param` raised."
        ) from error


class SDML(_PairsClassifierMixin, MahalanobisMixin):
    """Sparse Distance Metric Learning from pairs: :class:`vicinal.SDML`.

    Parameters
    ----------
    balance_param : float, default=0.5
        η, what the pairs count against the prior; for too large an η there is no solution.
    sparsity_param : float, default=0.01
        λ, the price of the entries of M off its diagonal.
    prior : {"identity", "covariance", "random"} or array, default="identity"
        The metric to stay near to, positive definite.
    verbose : bool, default=False
        Whether to print which solver is used.
    preprocessor : array-like or callable, default=None
        Where samples are given as indicators.
    random_state : int, RandomState or None, default=None
        For prior="random".
    """

    def __init__(
        self,
        balance_param: float = 0.5,
        sparsity_param: float = 0.01,
        prior: str | ArrayLike = "identity",
        verbose: bool = False,
        preprocessor: ArrayLike | Preprocessor | None = None,
        random_state: Seed = None,
    ) -> None:
        super().__init__(preprocessor)
        self.balance_param = balance_param
        self.sparsity_param = sparsity_param
        self.prior = prior
        self.verbose = verbose
        self.random_state = random_state

    def fit(
        self, pairs: object, y: object, calibration_params: Mapping[str, Any] | None = None
    ) -> Self:
        """Learn from pairs (+1 similar, −1 dissimilar) and choose the threshold on them."""
        return self._fit_pairs(pairs, y, calibration_params, partial(_learn, self))


class SDML_Supervised(TransformerMixin, MahalanobisMixin):
    """Sparse Distance Metric Learning from pairs that are drawn from class labels.

    Parameters
    ----------
    balance_param, sparsity_param, prior, verbose, preprocessor, random_state
        As of :class:`SDML`; random_state is also for the pairs.
    n_constraints : int, default=None
        Pairs of either kind; None is 20 c² for c classes.
    num_constraints : deprecated
        The old name of ``n_constraints``.
    """

    _needs_labels = True

    def __init__(
        self,
        balance_param: float = 0.5,
        sparsity_param: float = 0.01,
        prior: str | ArrayLike = "identity",
        n_constraints: int | None = None,
        verbose: bool = False,
        preprocessor: ArrayLike | Preprocessor | None = None,
        random_state: Seed = None,
        num_constraints: int | str | None = DEPRECATED,
    ) -> None:
        super().__init__(preprocessor)
        self.balance_param = balance_param
        self.sparsity_param = sparsity_param
        self.prior = prior
        self.n_constraints = renamed(
            "num_constraints", num_constraints, "n_constraints", n_constraints
        )
        self.verbose = verbose
        self.random_state = random_state
        self.num_constraints = DEPRECATED

    def fit(self, X: object, y: object) -> Self:
        """Learn from samples and their class labels, −1 where unknown."""
        samples, labels = self._prepare_inputs(X, y, ensure_min_samples=2)
        _learn(self, *drawn_pairs(samples, labels, self.n_constraints, self.random_state))
        return self
