"""LMNN."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import TransformerMixin

from vicinal._typing import Seed
from vicinal.compat.metric_learn.base_metric import MahalanobisMixin
from vicinal.compat.metric_learn.deprecated import DEPRECATED, renamed
from vicinal.compat.metric_learn.starts import check_rank, starting_components
from vicinal.compat.metric_learn.tuple_input import Preprocessor
from vicinal.learners import lmnn as native
from vicinal.learners.descent import FitProgress
from vicinal.learners.parameters import COUNT


class LMNN(TransformerMixin, MahalanobisMixin):
    """Large Margin Nearest Neighbor: :class:`vicinal.LMNN` from metric-learn's start.

    Parameters
    ----------
    init : {"auto", "pca", "lda", "identity", "random"} or array, default="auto"
        L to start from, as it is, whatever the scale of the samples.
    n_neighbors : int, default=3
        Target neighbors per sample; no class may have fewer samples.
    min_iter, learn_rate, convergence_tol : default=50, 1e-7 and 0.001
        Without effect: the solver finds its steps, and stops at the minimum.
    max_iter : int, default=1000
        Iterations.
    regularization : float, default=0.5
        What the pull counts; the push counts 1 less this.
    verbose : bool, default=False
        Whether to print every iteration.
    preprocessor : array-like or callable, default=None
        Where samples are given as indicators.
    n_components : int, default=None
        Rows of L; None keeps all features.
    random_state : int, RandomState or None, default=None
        For init="random" and "pca".
    k : deprecated
        The old name of ``n_neighbors``.
    """

    _needs_labels = True

    def __init__(
        self,
        init: str | ArrayLike = "auto",
        n_neighbors: int = 3,
        min_iter: int = 50,
        max_iter: int = 1000,
        learn_rate: float = 1e-7,
        regularization: float = 0.5,
        convergence_tol: float = 0.001,
        verbose: bool = False,
        preprocessor: ArrayLike | Preprocessor | None = None,
        n_components: int | None = None,
        random_state: Seed = None,
        k: int | str = DEPRECATED,
    ) -> None:
        super().__init__(preprocessor)
        self.init = init
        self.n_neighbors = renamed("k", k, "n_neighbors", n_neighbors)
        self.min_iter = min_iter
        self.max_iter = max_iter
        self.learn_rate = learn_rate
        self.regularization = regularization
        self.convergence_tol = convergence_tol
        self.verbose = verbose
        self.n_components = n_components
        self.random_state = random_state
        self.k = DEPRECATED

    def fit(self, X: object, y: object) -> Self:
        """Learn from samples and their class labels."""
        samples, labels = self._prepare_inputs(X, y, dtype=float, ensure_min_samples=2)
        m = check_rank(self.n_components, samples.shape[1])
        start = starting_components(self.init, m, samples, labels, self.random_state)
        smallest = int(np.unique(labels, return_counts=True)[1].min())
        COUNT.check("n_neighbors", self.n_neighbors)
        if int(self.n_neighbors) > smallest:
            raise ValueError(
                f"not enough class labels for specified k (smallest class has {smallest})"
            )
        learner = native.LMNN(
            int(self.n_neighbors),
            push_weight=1.0 - self.regularization,
            n_components=m,
            init=start,
            max_iter=self.max_iter,
            callback=_Printed() if self.verbose else None,
        )
        self._learn(learner, lambda: learner.fit(samples, labels))
        if self.verbose:
            ended = "converged with objective" if learner.converged_ else "didn't converge:"
            print("LMNN", ended, learner.objective_)
        return self


class _Printed:
    """A callback that prints the objective of every iteration and its change."""

    def __init__(self) -> None:
        print("iter | objective | objective difference")
        self._latest = np.inf

    def __call__(self, progress: FitProgress) -> None:
        if progress.objective != self._latest:
            print(progress.n_iter, progress.objective, progress.objective - self._latest)
        self._latest = progress.objective
