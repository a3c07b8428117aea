"""What the learners that descend an objective of their own share: checks, a run, its evidence."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.utils import check_scalar

from vicinal._typing import FloatArray
from vicinal.exceptions import ExcludedRowsWarning
from vicinal.learners.blas_threads import single_threaded_blas
from vicinal.learners.configuration import check_choice, check_n_components
from vicinal.learners.initialization import starting_factor
from vicinal.learners.labeled_data import LabeledData, center_and_scale
from vicinal.learners.progress import fit_callback
from vicinal.objective.parametrization import Factor, Metric, Parametrization
from vicinal.solvers import SOLVERS, Problem, Solution

MEDIAN_ROWS = 512
FACTOR_SOLVERS = ("lbfgs",)
MATRIX_SOLVERS = ("pgd", "apg")
INITS = ("auto", "identity", "pca", "lda", "random")
SCALED_INITS = ("auto", "pca", "lda", "random")
"""Directions only: the learner finds the scale. "identity" and arrays are taken as they are."""


def check_descent(learner: Any, d: int) -> None:
    """The parameters of the descent, before any work is done; d is the number of features."""
    check_n_components(learner.n_components, d)
    check_choice("solver", learner.solver, (*FACTOR_SOLVERS, *MATRIX_SOLVERS))
    if learner.solver in MATRIX_SOLVERS and learner.n_components not in (None, d):
        raise ValueError(
            f"solver={learner.solver!r} learns the whole matrix M and cannot keep it at rank "
            f"n_components={learner.n_components}; use solver='lbfgs', or n_components=None"
        )
    check_choice("init", learner.init, INITS, or_array=True)
    check_scalar(learner.max_iter, "max_iter", Integral, min_val=1)
    check_scalar(learner.tol, "tol", Real, min_val=0)
    if learner.callback is not None and not callable(learner.callback):
        raise ValueError("callback must be a function of one FitProgress, or None")


def parametrization_of(learner: Any) -> Parametrization:
    """L for the solvers that minimize over the factor, M for those that project."""
    return Metric() if learner.solver in MATRIX_SOLVERS else Factor()


def params_of(learner: Any, L: FloatArray) -> FloatArray:
    """A factor as the parameters of the learner's solver."""
    return L.T @ L if learner.solver in MATRIX_SOLVERS else L


def median_start(learner: Any, data: LabeledData, rng: np.random.RandomState) -> FloatArray:
    """L to start from, in the units of ``data.X``: directions at a median squared distance of 1."""
    d = data.X.shape[1]
    L = starting_factor(learner.init, data, learner.n_components or d, 20.0, rng)
    if isinstance(learner.init, str) and learner.init in SCALED_INITS:
        median = median_distance(data.X @ L.T)
        L = L / np.sqrt(median) if median > 0 else L
    return L


def median_distance(Z: FloatArray) -> float:
    """The median squared distance of distinct rows; of 512 evenly chosen ones where n is larger.

    Where more than half of the pairs coincide, the mean instead.
    """
    rows = np.unique(np.linspace(0, len(Z) - 1, min(len(Z), MEDIAN_ROWS)).astype(int))
    distances = pdist(Z[rows], "sqeuclidean")
    return float(np.median(distances)) or float(distances.mean())


def unlabeled_data(X: FloatArray) -> LabeledData:
    """Samples without labels, centered and scaled: one class, in the order given."""
    n = len(X)
    centered, scale = center_and_scale(X.astype(np.float64))
    zeros = np.zeros(n, dtype=np.intp)
    return LabeledData(
        X=centered,
        scale=scale,
        order=np.arange(n),
        codes=zeros,
        classes=np.zeros(1, dtype=np.intp),
        offsets=np.array([0, n]),
        weights=np.ones(n),
        groups=None,
    )


def descend(
    learner: Any,
    problem: Problem,
    start: FloatArray,
    to_components: Callable[[FloatArray], FloatArray],
    *,
    max_iter: int | None = None,
    n_iter_before: int = 0,
) -> Solution:
    """Minimize with the solver, the callback and the verbosity of the learner."""
    report = fit_callback(
        type(learner).__name__, learner.callback, learner.verbose, n_iter_before, to_components
    )
    solve: Callable[..., Solution] = SOLVERS[learner.solver]
    max_iter = learner.max_iter if max_iter is None else max_iter
    with single_threaded_blas():
        return solve(problem, start, max_iter=max_iter, tol=learner.tol, callback=report)


def warn_excluded(n_excluded: int, n: int) -> None:
    """Tell of samples that are alone in their class; if all are, an error will follow."""
    if 0 < n_excluded < n:
        warnings.warn(
            f"{n_excluded} of {n} samples are the only one of their class: nothing can be near "
            "them, they count only as samples of another class.",
            ExcludedRowsWarning,
            stacklevel=3,
        )
