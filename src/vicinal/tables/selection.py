"""Ever better models of a table, from plain K-NN to the one that was asked for."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from vicinal._typing import IndexArray
from vicinal.automatic.classifier import ANNClassifier
from vicinal.exceptions import TableError, TimeLimitWarning
from vicinal.learners.ann import ANN
from vicinal.learners.base import MetricLearner
from vicinal.search.search_cv import ANNSearchCV
from vicinal.tables.methods import METHODS, fit_learner, make_learner
from vicinal.validation.folds import Fold, stratified_folds, usable_folds
from vicinal.validation.out_of_fold import Rows, correct_votes
from vicinal.validation.schedule import Deadline, FitStage, ProgressListener, Schedule, run_tasks
from vicinal.voting.class_mean import ClassMeanKNN
from vicinal.voting.votes import N_NEIGHBORS

N_FOLDS = 5
ALPHAS = 2.0 ** np.arange(-4, 5)
GAMMAS = 2.0 ** np.arange(-3, 4)
"""What ANNSearchCV tries by itself for ANN⁺."""


@dataclass(frozen=True)
class FitSettings:
    """How a model is fitted.

    Attributes
    ----------
    method : str
        One of ``METHODS``.
    seed : int
    max_time : float or None
        Seconds after which the best so far is taken.
    effort : float
        Of ANNClassifier, for method "auto".
    listener : callable or None
        Told the stage, and how much of it is done.
    """

    method: str = "auto"
    seed: int = 0
    max_time: float | None = None
    effort: float = 1.0
    listener: ProgressListener | None = None


@dataclass(frozen=True)
class CandidateModel:
    """A fitted model, and what is known about it."""

    estimator: Any
    accuracy: float | None
    """Cross-validated, of the choice of K included; None if there was no time for that."""
    how: str
    timed_out: bool = False


def candidates(rows: Rows, settings: FitSettings) -> Iterator[CandidateModel]:
    """Ever better models, the last being the one asked for.

    First plain K-NN; then the learned metric with the K of plain K-NN; then the one whose
    parameters were chosen by cross-validation. Whoever stops listening has the best so far. When
    the time is up, no further one comes.
    """
    if settings.method not in METHODS:
        raise TableError(f"method {settings.method!r} is unknown; use {', '.join(METHODS)}")
    schedule = Schedule(Deadline.after(settings.max_time), listener=settings.listener)
    try:
        folds = stratified_folds(N_FOLDS, rows.y, rows.groups, settings.seed)
        folds = usable_folds(folds, rows.y)
    except ValueError as error:
        raise TableError(str(error)) from error
    plain = _plain(rows, folds, schedule)
    yield plain
    try:
        if settings.method in ("auto", "single"):
            yield _automatic(rows, settings, schedule)
        elif settings.method != "plain":
            yield from _learned(rows, settings, folds, plain, schedule)
    except ValueError as error:
        raise TableError(_too_few(rows, settings.method, error)) from error


def _too_few(rows: Rows, method: str, error: ValueError) -> str:
    """Why a method cannot learn from a table that K-NN can: in the end, too few rows or groups."""
    labels, sizes = np.unique(rows.y, return_counts=True)
    facts, more = f"{sizes.min()} row(s)", "rows"
    rarest = labels[sizes.argmin()]
    if rows.groups is not None:
        groups = [len(np.unique(rows.groups[rows.y == label])) for label in labels]
        facts, more = f"rows of {min(groups)} group(s)", "rows and groups"
        rarest = labels[np.argmin(groups)]
    return (
        f"{method} cannot be fitted and cross-validated on these {len(rows.y)} rows, where class "
        f"{str(rarest)!r} has {facts}: give every class more {more}, or use --method plain. "
        f"({error})"
    )


def _plain(rows: Rows, folds: list[Fold], schedule: Schedule) -> CandidateModel:
    stage, ks = FitStage("plain K-NN", schedule), _usable_k(folds)

    def judge(number: int) -> IndexArray:
        stage.tell(number / len(folds))
        train, test = (rows.take(part) for part in folds[number])
        return correct_votes(lambda X: X, train, test, ks)

    hits = run_tasks(judge, range(len(folds)), schedule)
    k, accuracy = _best_k(ks, hits, folds)
    knn = ClassMeanKNN(k, rule="vote").fit(rows.X, rows.y)
    return CandidateModel(knn, accuracy, f"plain K-NN, K = {k} by cross-validation")


def _automatic(rows: Rows, settings: FitSettings, schedule: Schedule) -> CandidateModel:
    remaining, stage = schedule.deadline.remaining, FitStage("metrics and votes", schedule)
    model = ANNClassifier(
        mode="committee" if settings.method == "auto" else "single",
        effort=settings.effort,
        max_time=None if remaining is None else max(remaining, 1e-3),
        callback=lambda progress: stage.tell(progress.done / progress.total),
        random_state=settings.seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TimeLimitWarning)  # the candidate says it
        model.fit(rows.X, rows.y, groups=rows.groups)
    model.set_params(callback=None)
    return CandidateModel(model, model.best_score_, _describe(model), model.timed_out_)


def _describe(model: ANNClassifier) -> str:
    if model.mode == "committee":
        return f"a committee of {len(model.chosen_)} metrics and votes, chosen out of fold"
    (one,) = model.chosen_
    return f"one metric ({one.configuration}), K = {one.n_neighbors}, chosen out of fold"


def _learned(
    rows: Rows, settings: FitSettings, folds: list[Fold], plain: CandidateModel, schedule: Schedule
) -> Iterator[CandidateModel]:
    method, k, deadline = settings.method, plain.estimator.n_neighbors, schedule.deadline
    learner = make_learner(method, settings.seed)
    early = f"{method.upper()} with its defaults, K = {k} of plain K-NN, not cross-validated"
    try:
        fit_learner(learner, rows, FitStage(f"{method}, all rows", schedule))
    except KeyboardInterrupt:  # a learner keeps what it has learned
        if hasattr(learner, "components_"):
            yield CandidateModel(_pair(learner, k, rows), None, f"{early}, and not converged")
        raise
    first = CandidateModel(_pair(learner, k, rows), None, early, timed_out=deadline.is_over())
    yield first
    if deadline.is_over():
        return
    chosen = (
        _search_ann(rows, learner, settings.seed, schedule)
        if isinstance(learner, ANN)
        else _choose_k(rows, learner, folds, schedule)
    )
    yield replace(first, timed_out=True) if chosen is None else chosen


def _choose_k(
    rows: Rows, learner: MetricLearner, folds: list[Fold], schedule: Schedule
) -> CandidateModel | None:
    """K by cross-validation of learner and vote; None if the time is up before a fold is done."""
    ks, deadline, share = _usable_k(folds), schedule.deadline, 1 / len(folds)

    def judge(number: int) -> IndexArray | None:
        if deadline.is_over():
            return None
        train, test = (rows.take(part) for part in folds[number])
        stage = FitStage("choice of K", schedule, begin=number / len(folds), share=share)
        fitted = fit_learner(clone(learner), train, stage)
        if deadline.is_over():  # this metric is not the one that is judged
            return None
        return correct_votes(fitted.transform, train, test, ks)

    found = run_tasks(judge, range(len(folds)), schedule)
    done = [(fold, hits) for fold, hits in zip(folds, found, strict=True) if hits is not None]
    if not done:
        return None
    k, accuracy = _best_k(ks, [hits for _, hits in done], [fold for fold, _ in done])
    how = f"{type(learner).__name__}, K = {k} by {len(done)}-fold cross-validation"
    return CandidateModel(_pair(learner, k, rows), accuracy, how, timed_out=deadline.is_over())


def _search_ann(rows: Rows, learner: ANN, seed: int, schedule: Schedule) -> CandidateModel | None:
    """α, γ and K by ANNSearchCV; None if the time is up before it is done."""
    fits = N_FOLDS * (len(ALPHAS) + len(GAMMAS) - 1)  # γ = 1 is tried with every α
    count = FitStage("choice of α, γ and K", schedule).fit_counter(fits)
    watched = clone(learner).set_params(callback=count)
    search = ANNSearchCV(
        watched,
        alphas=ALPHAS,
        gammas=GAMMAS,
        cv=N_FOLDS,
        random_state=seed,
    ).fit(rows.X, rows.y, groups=rows.groups)
    if schedule.deadline.is_over():
        return None
    for part in (watched, search.best_estimator_):
        part.set_params(callback=None)
    best = search.best_params_
    how = f"ANN, α = {best['alpha']:g}, γ = {best['gamma']:g}, K = {best['n_neighbors']}"
    return CandidateModel(search, search.best_score_, f"{how} by cross-validation")


def _pair(learner: MetricLearner, k: int, rows: Rows) -> Pipeline:
    """The learned metric and a vote of K neighbors under it, both fitted."""
    knn = ClassMeanKNN(k, rule="vote").fit(learner.transform(rows.X), rows.y)
    return Pipeline([("learner", learner), ("knn", knn)])


def _usable_k(folds: list[Fold]) -> IndexArray:
    """The values of K for which every fold has enough training rows."""
    smallest = min(len(fold.train) for fold in folds)
    return np.array([k for k in N_NEIGHBORS if k <= smallest])


def _best_k(ks: IndexArray, hits: list[IndexArray], folds: list[Fold]) -> tuple[int, float]:
    """K and its accuracy over the test rows of the folds; of equally good ones the smallest."""
    total = np.sum(hits, axis=0)
    best = int(np.argmax(total))
    return int(ks[best]), float(total[best] / sum(len(fold.test) for fold in folds))
