"""NCA."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import TransformerMixin

from vicinal._typing import Seed
from vicinal.compat.metric_learn.base_metric import MahalanobisMixin
from vicinal.compat.metric_learn.run_log import printed_run
from vicinal.compat.metric_learn.starts import check_rank, starting_components
from vicinal.compat.metric_learn.tuple_input import Preprocessor
from vicinal.learners import nca as native

TOL = 1e-7
"""Relative decrease of n − Σ p per iteration; SciPy asks for 2e-9 of Σ p, which is far larger."""


class NCA(TransformerMixin, MahalanobisMixin):
    """Neighborhood Components Analysis: :class:`vicinal.NCA` from metric-learn's start.

    Parameters
    ----------
    init : {"auto", "pca", "lda", "identity", "random"} or array, default="auto"
        L to start from, as it is, whatever the scale of the samples.
    n_components : int, default=None
        Rows of L; None keeps all features.
    max_iter : int, default=100
        Iterations.
    tol : float, default=None
        Stop at this relative decrease of the objective per iteration; None is 1e-7.
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
        init: str | ArrayLike = "auto",
        n_components: int | None = None,
        max_iter: int = 100,
        tol: float | None = None,
        verbose: bool = False,
        preprocessor: ArrayLike | Preprocessor | None = None,
        random_state: Seed = None,
    ) -> None:
        super().__init__(preprocessor)
        self.init = init
        self.n_components = n_components
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: object, y: object) -> Self:
        """Learn from samples and their class labels."""
        samples, labels = self._prepare_inputs(X, y, ensure_min_samples=2)
        m = check_rank(self.n_components, samples.shape[1])
        start = starting_components(self.init, m, samples, labels, self.random_state)
        sizes = np.unique(labels, return_counts=True)[1]
        if len(sizes) == 1 or sizes.max() == 1:  # the objective is constant
            self._store({"components_": start, "n_iter_": 0})
            return self
        n_used = int(sizes[sizes > 1].sum())
        tol = TOL if self.tol is None else self.tol
        with printed_run(type(self).__name__, self.verbose, lambda J: n_used - J) as report:
            learner = native.NCA(
                n_components=m, init=start, max_iter=self.max_iter, tol=tol, callback=report
            )
            self._learn(learner, lambda: learner.fit(samples, labels))
        return self
