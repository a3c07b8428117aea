"""MLKR."""

from __future__ import annotations

from typing import Self

from numpy.typing import ArrayLike
from sklearn.base import TransformerMixin

from vicinal._typing import Seed
from vicinal.compat.metric_learn.base_metric import MahalanobisMixin
from vicinal.compat.metric_learn.run_log import printed_run
from vicinal.compat.metric_learn.starts import check_rank, starting_components
from vicinal.compat.metric_learn.tuple_input import Preprocessor
from vicinal.learners import mlkr as native

TOL = 1e-9
"""Relative decrease of the objective per iteration; SciPy's own is 2e-9."""


class MLKR(TransformerMixin, MahalanobisMixin):
    """Metric Learning for Kernel Regression: :class:`vicinal.MLKR` from metric-learn's start.

    Parameters
    ----------
    n_components : int, default=None
        Rows of L; None keeps all features.
    init : {"auto", "pca", "identity", "random"} or array, default="auto"
        L to start from, as it is, whatever the scale of the samples.
    tol : float, default=None
        Stop at this relative decrease of the objective per iteration; None is 1e-9.
    max_iter : int, default=1000
        Iterations.
    verbose : bool, default=False
        Whether to print every iteration.
    preprocessor : array-like or callable, default=None
        Where samples are given as indicators.
    random_state : int, RandomState or None, default=None
        For init="random" and "pca".
    """

    _needs_labels = True

    def __init__(
        self,
        n_components: int | None = None,
        init: str | ArrayLike = "auto",
        tol: float | None = None,
        max_iter: int = 1000,
        verbose: bool = False,
        preprocessor: ArrayLike | Preprocessor | None = None,
        random_state: Seed = None,
    ) -> None:
        super().__init__(preprocessor)
        self.n_components = n_components
        self.init = init
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: object, y: object) -> Self:
        """Learn from samples and the number to predict for each."""
        samples, targets = self._prepare_inputs(X, y, y_numeric=True, ensure_min_samples=2)
        m = check_rank(self.n_components, samples.shape[1])
        start = starting_components(self.init, m, samples, None, self.random_state)
        tol = TOL if self.tol is None else self.tol
        with printed_run(type(self).__name__, self.verbose) as report:
            learner = native.MLKR(m, init=start, max_iter=self.max_iter, tol=tol, callback=report)
            self._learn(learner, lambda: learner.fit(samples, targets))
        return self
