"""Fits along a path of settings, on one fold and on all folds at once, and their results."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from vicinal._typing import FloatArray, IndexArray, LabelArray
from vicinal.exceptions import ExcludedRowsWarning
from vicinal.learners.blas_threads import single_threaded_blas
from vicinal.learners.descent import logger
from vicinal.learners.neighbor_learner import NeighborLearner
from vicinal.search.grid import GridPoint, Step
from vicinal.validation.folds import Fold
from vicinal.validation.out_of_fold import Rows, Rule, correct_votes
from vicinal.validation.schedule import Deadline, Schedule, run_tasks
from vicinal.voting.neighbor_search import search_backend


def check_rows(
    X: FloatArray, y: LabelArray, codes: IndexArray, sample_weight: object, groups: object
) -> Rows:
    """The rows of a search; weights and groups, where they are given, have one entry per row."""
    given = {"sample_weight": sample_weight, "groups": groups}
    metadata = {name: np.asarray(values) for name, values in given.items() if values is not None}
    for name, values in metadata.items():
        if values.shape != codes.shape:
            raise ValueError(f"{name} must have one entry per sample {codes.shape}: {values.shape}")
    rows = Rows(X, y, **metadata)
    if rows.sample_weight is not None and len(np.unique(codes[rows.sample_weight > 0])) < 2:
        raise ValueError("sample_weight must be positive in at least two classes")
    return rows


@dataclass(frozen=True)
class Trial:
    """The scores of one fit on one fold."""

    point: GridPoint
    accuracies: FloatArray
    """(number of K,)"""
    n_iter: int
    seconds: float


@dataclass(frozen=True)
class SearchSetup:
    """Rows, learner and choices that are the same on every fold."""

    estimator: NeighborLearner
    rows: Rows
    ks: IndexArray
    rule: Rule
    standardize: bool

    def parts(self, fold: Fold) -> tuple[Rows, Rows]:
        """The training and the test rows of a fold, standardized by the former if asked for."""
        train, test = self.rows.take(fold.train), self.rows.take(fold.test)
        if not self.standardize:
            return train, test
        scaler = scaler_of(train.X)
        train, test = (replace(part, X=scaler.transform(part.X)) for part in (train, test))
        return train, test

    def score(self, L: FloatArray, train: Rows, test: Rows) -> FloatArray:
        """(number of K,) accuracies of a metric L (m, d), by neighbors found as the fits are."""
        backend = search_backend(self.estimator.backend)
        hits = correct_votes(lambda X: X @ L.T, train, test, self.ks, self.rule, backend)
        return hits / len(test.y)


@dataclass(frozen=True)
class FoldSearch:
    """A fold, and the solutions found on it so far."""

    setup: SearchSetup
    fold: Fold
    solutions: dict[GridPoint, FloatArray] = field(default_factory=dict)
    """L (m, d) of every visited point, from which fits at other points start."""

    def run(
        self, steps: Sequence[Step], *, warm: bool, deadline: Deadline, log: str = ""
    ) -> list[Trial]:
        """Fit and score every step, until an interrupt."""
        train, test = self.setup.parts(self.fold)
        trials: list[Trial] = []
        for step in steps:
            if deadline.is_over():
                break
            begin = time.perf_counter()
            start = self.solutions.get(step.start) if warm and step.start else None
            learner = fit_at(self.setup.estimator, step.point, train, start)
            self.solutions[step.point] = L = learner.components_
            seconds = time.perf_counter() - begin
            scores = self.setup.score(L, train, test)
            trials.append(Trial(step.point, scores, learner.n_iter_, seconds))
            if log:
                reached = f"accuracy {scores.max():.4f}, {learner.n_iter_} iterations"
                logger.info("%s, %s: %s, %.2f s", log, step.point, reached, seconds)
        return trials


def scaler_of(X: FloatArray) -> StandardScaler:
    """Learn mean and standard deviation; its transform gives arrays, whatever is configured."""
    return StandardScaler().set_output(transform="default").fit(X)


def fit_at(
    estimator: NeighborLearner, point: GridPoint, rows: Rows, start: FloatArray | None
) -> NeighborLearner:
    """A fitted copy of the estimator at (α, γ), from a given L (m, d) or from its own start."""
    learner: NeighborLearner = clone(estimator)
    settings = {"alpha": point.alpha, "gamma": point.gamma}
    known = learner.get_params(deep=False)
    learner.set_params(**{name: value for name, value in settings.items() if name in known})
    if start is not None:
        learner.set_params(warm_start=True)
        learner.components_ = start
    learner.fit(rows.X, rows.y, **rows.metadata)
    return learner.set_params(warm_start=estimator.warm_start)


def search_folds(
    searches: Sequence[FoldSearch],
    steps: Sequence[Step],
    *,
    warm: bool,
    n_jobs: int | None,
    log: bool,
) -> list[list[Trial]]:
    """The trials of every fold; the same numbers for every `n_jobs`.

    Folds run in threads, each with as many threads in the kernel as here: a process of its own
    would get fewer, and sum in another order.
    """
    schedule = Schedule(n_threads=effective_n_jobs(n_jobs))

    def search(number: int) -> list[Trial]:
        name = f"fold {number + 1} of {len(searches)}" if log else ""
        return searches[number].run(steps, warm=warm, deadline=schedule.deadline, log=name)

    # Each fit limits BLAS and restores it, for the whole process: around all, so that it stays.
    with single_threaded_blas():
        return run_tasks(search, range(len(searches)), schedule)


@contextmanager
def each_warning_once() -> Iterator[None]:
    """Repeat the first warning of each kind, with their number.

    Rows that have no neighbors to learn from in a fold are not worth a warning.
    """
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


@dataclass(frozen=True)
class SearchResults:
    """Trials of every fold at p points, in the order of (α, γ)."""

    points: tuple[GridPoint, ...]
    ks: IndexArray
    scores: FloatArray
    """(p, number of K, folds) accuracies."""
    n_iter: FloatArray
    """(p,) mean over the folds."""
    seconds: FloatArray
    """(p,) mean over the folds."""

    @classmethod
    def of(cls, folds: Sequence[Sequence[Trial]], ks: IndexArray) -> SearchResults:
        """Put the trials of the folds, each in the same order, together."""
        order = sorted(range(len(folds[0])), key=lambda i: folds[0][i].point)
        trials = [[fold[i] for fold in folds] for i in order]  # point by point
        scores = np.array([[trial.accuracies for trial in row] for row in trials])  # (p, folds, K)
        return cls(
            points=tuple(row[0].point for row in trials),
            ks=ks,
            scores=np.ascontiguousarray(scores.transpose(0, 2, 1)),
            n_iter=np.array([np.mean([trial.n_iter for trial in row]) for row in trials]),
            seconds=np.array([np.mean([trial.seconds for trial in row]) for row in trials]),
        )

    @property
    def means(self) -> FloatArray:
        """(p, number of K) mean accuracies."""
        return np.asarray(np.average(self.scores, axis=2))

    def best(self) -> tuple[int, int]:
        """GridPoint and K of the highest mean; of equal ones the first: least α, then γ, then K."""
        i, j = np.unravel_index(np.argmax(self.means), self.means.shape)
        return int(i), int(j)

    def errors(self, alphas: FloatArray, gammas: FloatArray) -> FloatArray:
        """(a, g, number of K) mean errors; NaN where nothing was fitted."""
        errors = np.full((len(alphas), len(gammas), len(self.ks)), np.nan)
        for point, means in zip(self.points, self.means, strict=True):
            errors[alphas == point.alpha, gammas == point.gamma] = 1.0 - means
        return errors

    def table(self) -> dict[str, Any]:
        """One row for every point and K, in scikit-learn's columns."""
        k = len(self.ks)
        rows = self.scores.reshape(len(self.points) * k, -1)  # (p · number of K, folds)
        means = np.average(rows, axis=1)
        columns: dict[str, Any] = {
            "mean_fit_time": np.repeat(self.seconds, k),
            "mean_n_iter": np.repeat(self.n_iter, k),
            "param_alpha": np.repeat([point.alpha for point in self.points], k),
            "param_gamma": np.repeat([point.gamma for point in self.points], k),
            "param_n_neighbors": np.tile(self.ks, len(self.points)),
        }
        names = ("alpha", "gamma", "n_neighbors")
        settings = zip(*(columns[f"param_{name}"].tolist() for name in names), strict=True)
        columns["params"] = [dict(zip(names, values, strict=True)) for values in settings]
        columns |= {f"split{i}_test_score": column for i, column in enumerate(rows.T)}
        columns["mean_test_score"] = means
        columns["std_test_score"] = np.sqrt(np.average((rows - means[:, None]) ** 2, axis=1))
        columns["rank_test_score"] = rankdata(-means, method="min").astype(np.int32)
        return columns
