"""LSML and LSML_Supervised."""

from __future__ import annotations

from typing import Self

from numpy.typing import ArrayLike
from sklearn.base import TransformerMixin

from vicinal._typing import FloatArray, Seed
from vicinal.compat.metric_learn.base_metric import MahalanobisMixin, _QuadrupletsClassifierMixin
from vicinal.compat.metric_learn.constraints import drawn_quadruplets
from vicinal.compat.metric_learn.deprecated import DEPRECATED, renamed
from vicinal.compat.metric_learn.starts import starting_metric
from vicinal.compat.metric_learn.tuple_input import Preprocessor, as_rows
from vicinal.learners import lsml as native

TOL_SCALE = 1e-3
"""metric-learn's ``tol`` bounds the gradient, ours the relative decrease of the objective."""


def _learn(
    estimator: LSML | LSML_Supervised, quadruplets: FloatArray, weights: ArrayLike | None
) -> None:
    X, indices = as_rows(quadruplets)
    A0 = starting_metric(estimator.prior, X, estimator.random_state, "prior", definite=True)
    learner = native.LSML(
        A0,
        max_iter=estimator.max_iter,
        tol=TOL_SCALE * estimator.tol,
        verbose=2 * int(estimator.verbose),
    )
    estimator._learn(learner, lambda: learner.fit_quadruplets(X, indices, weights))


class LSML(_QuadrupletsClassifierMixin, MahalanobisMixin):
    """Least Squared-residual Metric Learning from quadruplets: :class:`vicinal.LSML`.

    Parameters
    ----------
    tol : float, default=1e-3
        Smaller is more exact.
    max_iter : int, default=1000
        Iterations.
    prior : {"identity", "covariance", "random"} or array, default="identity"
        The metric to stay near to, positive definite.
    verbose : bool, default=False
        Whether to log every iteration, on the logger "vicinal".
    preprocessor : array-like or callable, default=None
        Where samples are given as indicators.
    random_state : int, RandomState or None, default=None
        For prior="random".
    """

    def __init__(
        self,
        tol: float = 1e-3,
        max_iter: int = 1000,
        prior: str | ArrayLike = "identity",
        verbose: bool = False,
        preprocessor: ArrayLike | Preprocessor | None = None,
        random_state: Seed = None,
    ) -> None:
        super().__init__(preprocessor)
        self.tol = tol
        self.max_iter = max_iter
        self.prior = prior
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, quadruplets: object, weights: ArrayLike | None = None) -> Self:
        """Learn from quadruplets.

        Parameters
        ----------
        quadruplets : array-like of shape (n_quadruplets, 4, n_features), or indicators
            The first two samples ought to be nearer to each other than the last two.
        weights : array-like of shape (n_quadruplets,), default=None
            What each counts, relative to the others.
        """
        _learn(self, self._prepare_inputs(quadruplets, type_of_inputs="tuples"), weights)
        return self


class LSML_Supervised(TransformerMixin, MahalanobisMixin):
    """Least Squared-residual Metric Learning from quadruplets that are drawn from class labels.

    Parameters
    ----------
    tol, max_iter, prior, verbose, preprocessor, random_state
        As of :class:`LSML`; random_state is also for the quadruplets.
    n_constraints : int, default=None
        Quadruplets to draw; None is 20 c² for c classes.
    weights : array-like of shape (n_constraints,), default=None
        What each quadruplet counts, relative to the others.
    num_constraints : deprecated
        The old name of ``n_constraints``.
    """

    _needs_labels = True

    def __init__(
        self,
        tol: float = 1e-3,
        max_iter: int = 1000,
        prior: str | ArrayLike = "identity",
        n_constraints: int | None = None,
        weights: ArrayLike | None = None,
        verbose: bool = False,
        preprocessor: ArrayLike | Preprocessor | None = None,
        random_state: Seed = None,
        num_constraints: int | str | None = DEPRECATED,
    ) -> None:
        super().__init__(preprocessor)
        self.tol = tol
        self.max_iter = max_iter
        self.prior = prior
        self.n_constraints = renamed(
            "num_constraints", num_constraints, "n_constraints", n_constraints
        )
        self.weights = weights
        self.verbose = verbose
        self.random_state = random_state
        self.num_constraints = DEPRECATED

    def fit(self, X: object, y: object) -> Self:
        """Learn from samples and their class labels, −1 where unknown."""
        samples, labels = self._prepare_inputs(X, y, ensure_min_samples=2)
        found = drawn_quadruplets(samples, labels, self.n_constraints, self.random_state)
        _learn(self, found, self.weights)
        return self
