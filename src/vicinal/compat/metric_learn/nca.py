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
from vicinal.learners.descent import FitCallback, FitProgress

TOL = 2.2e-9
"""What SciPy's L-BFGS-B takes where no tolerance is given."""


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
        Stop at this relative increase of Σ p, the expected number of right samples, per iteration;
        None is 2.2e-9, as in SciPy.
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
                n_components=m,
                init=start,
                max_iter=self.max_iter,
                tol=tol,
                callback=_Settled(n_used, tol, report),
            )
            self._learn(learner, lambda: learner.fit(samples, labels))
        return self


class _Settled:
    """A callback that ends a run where Σ p rises by less than ``tol`` of itself, as SciPy does.

    The learner's own rule looks at J = n − Σ p, which may fall to zero: of that, no decrease is
    ever small.

    Parameters
    ----------
    n : how many samples have a p
    tol : relative increase per iteration
    report : called before, or None
    """

    def __init__(self, n: int, tol: float, report: FitCallback | None) -> None:
        self._n, self._tol, self._report = n, tol, report
        self._latest = np.inf

    def __call__(self, progress: FitProgress) -> bool:
        if self._report is not None:
            self._report(progress)
        gained, self._latest = self._latest - progress.objective, progress.objective
        return gained <= self._tol * max(self._n - progress.objective, 1.0)
