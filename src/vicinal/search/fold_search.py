"""Walking a path of fits on one fold, and on all folds at once."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from vicinal._typing import FloatArray, IndexArray
from vicinal.exceptions import ExcludedRowsWarning
from vicinal.learners.blas_threads import single_threaded_blas
from vicinal.learners.neighbor_learner import NeighborLearner
from vicinal.learners.progress import logger
from vicinal.search.search_scores import Rule, score_path
from vicinal.search.warm_start_chain import Point, Step
from vicinal.validation.folds import Fold
from vicinal.voting.neighbor_search import search_backend


@dataclass(frozen=True)
class Sample:
    """Rows to learn from: X (n, d), labels y (n,), and what else ``fit`` takes a row."""

    X: FloatArray
    y: NDArray[Any]
    metadata: dict[str, NDArray[Any]]

    def take(self, rows: IndexArray) -> Sample:
        """Only these rows."""
        metadata = {name: values[rows] for name, values in self.metadata.items()}
        return Sample(self.X[rows], self.y[rows], metadata)


def check_metadata(metadata: dict[str, Any], codes: IndexArray) -> dict[str, NDArray[Any]]:
    """One entry a row, of what ``fit`` takes; None is as good as nothing."""
    unknown = set(metadata) - {"sample_weight", "groups"}
    if unknown:
        raise TypeError(
            f"ANNSearchCV.fit() got unexpected keyword arguments {sorted(unknown)}; "
            "it takes sample_weight and groups"
        )
    given = {name: np.asarray(values) for name, values in metadata.items() if values is not None}
    for name, values in given.items():
        if values.shape != codes.shape:
            raise ValueError(f"{name} must have one entry a sample {codes.shape}: {values.shape}")
    if "sample_weight" in given and len(np.unique(codes[given["sample_weight"] > 0])) < 2:
        raise ValueError("sample_weight must be positive in at least two classes")
    return given


@dataclass(frozen=True)
class Trial:
    """What one fit was worth on one fold."""

    point: Point
    accuracies: NDArray[np.float64]
    """(number of K,)"""
    n_iter: int
    seconds: float


@dataclass(frozen=True)
class Contest:
    """What is the same on every fold."""

    estimator: NeighborLearner
    sample: Sample
    codes: IndexArray
    """(n,) the classes of the sample as integers."""
    ks: IndexArray
    rule: Rule
    standardize: bool

    def score(self, L: FloatArray, X: FloatArray, fold: Fold) -> NDArray[np.float64]:
        """(number of K,) accuracies of a metric L (m, d), by neighbors found as the fits are."""
        backend = search_backend(self.estimator.backend)
        return score_path([L], X, self.codes, fold, self.ks, self.rule, backend)[0]


@dataclass(frozen=True)
class FoldWalk:
    """A fold, and the solutions found on it so far."""

    contest: Contest
    fold: Fold
    solutions: dict[Point, FloatArray] = field(default_factory=dict)
    """L (m, d) of every visited point: what its neighbors start from."""

    def run(self, steps: Sequence[Step], *, warm: bool, log: str = "") -> list[Trial]:
        """Fit and score every step."""
        contest, fold = self.contest, self.fold
        sample = contest.sample
        if contest.standardize:
            scaler = scaler_of(sample.X[fold.train])
            sample = replace(sample, X=scaler.transform(sample.X))
        part = sample.take(fold.train)
        trials = []
        for step in steps:
            begin = time.perf_counter()
            start = self.solutions.get(step.start) if warm and step.start else None
            learner = fit_at(contest.estimator, step.point, part, start)
            self.solutions[step.point] = L = learner.components_
            seconds = time.perf_counter() - begin
            scores = contest.score(L, sample.X, fold)
            trials.append(Trial(step.point, scores, learner.n_iter_, seconds))
            if log:
                reached = f"accuracy {scores.max():.4f}, {learner.n_iter_} iterations"
                logger.info("%s, %s: %s, %.2f s", log, step.point, reached, seconds)
        return trials


def scaler_of(X: FloatArray) -> StandardScaler:
    """Learn mean and standard deviation; its transform gives arrays, whatever is configured."""
    return StandardScaler().set_output(transform="default").fit(X)


def fit_at(
    estimator: NeighborLearner, point: Point, sample: Sample, start: FloatArray | None
) -> NeighborLearner:
    """A fitted copy of the estimator at (α, γ), from a given L (m, d) or from its own start."""
    learner: NeighborLearner = clone(estimator)
    settings = {"alpha": point.alpha, "gamma": point.gamma}
    known = learner.get_params(deep=False)
    learner.set_params(**{name: value for name, value in settings.items() if name in known})
    if start is not None:
        learner.set_params(warm_start=True)
        learner.components_ = start
    learner.fit(sample.X, sample.y, **sample.metadata)
    return learner.set_params(warm_start=estimator.warm_start)


def walk_folds(
    walks: Sequence[FoldWalk], steps: Sequence[Step], *, warm: bool, n_jobs: int | None, log: bool
) -> list[list[Trial]]:
    """The trials of every fold; the same numbers whatever `n_jobs` is.

    Folds run in threads, each with as many threads in the kernel as here: a process of its own
    would get fewer, and sum in another order.
    """
    import numba

    n_threads = numba.get_num_threads()

    def walk(number: int) -> list[Trial]:
        numba.set_num_threads(n_threads)  # a setting of the thread
        name = f"fold {number + 1} of {len(walks)}" if log else ""
        return walks[number].run(steps, warm=warm, log=name)

    # Each fit limits BLAS and restores it, for the whole process: around all, so that it stays.
    with single_threaded_blas():
        jobs = (delayed(walk)(number) for number in range(len(walks)))
        return list(Parallel(n_jobs=n_jobs, require="sharedmem")(jobs))


@contextmanager
def each_warning_once() -> Iterator[None]:
    """Repeat the first warning of a kind, with their number; rows that a fold isolates are none."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ExcludedRowsWarning)
        yield
    kinds: dict[type[Warning], list[str]] = {}
    for warning in caught:
        kinds.setdefault(warning.category, []).append(str(warning.message))
    for kind, messages in kinds.items():
        more = f" ({len(messages)} times during the search)" if len(messages) > 1 else ""
        warnings.warn(messages[0] + more, kind, stacklevel=4)
