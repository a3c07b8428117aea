"""From rows to a fitted model, step by step, so that there is always a best one so far."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from vicinal._typing import FloatArray
from vicinal.automatic.classifier import ANNClassifier
from vicinal.exceptions import TimeLimitWarning
from vicinal.learners.ann import ANN
from vicinal.learners.base import MetricLearner
from vicinal.search.search_cv import ANNSearchCV
from vicinal.tables.errors import TableError
from vicinal.tables.methods import METHODS, fit_learner, make_learner
from vicinal.tables.watch import Listener, Stage, Watch
from vicinal.validation.folds import Fold, stratified_folds, usable_folds
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
    listener: Listener | None = None


@dataclass(frozen=True)
class Rows:
    """What is learned from: X (n, d), y (n,), groups (n,) or None."""

    X: FloatArray
    y: NDArray[Any]
    groups: NDArray[Any] | None = None


@dataclass(frozen=True)
class Candidate:
    """A fitted model, and what is known about it."""

    estimator: Any
    accuracy: float | None
    """Cross-validated, of the choice of K included; None if there was no time for that."""
    how: str
    timed_out: bool = False


def candidates(rows: Rows, settings: FitSettings) -> Iterator[Candidate]:
    """Ever better models, the last being the one asked for.

    First plain K-NN; then the learned metric with the K of plain K-NN; then the one whose
    parameters were chosen by cross-validation. Whoever stops listening has the best so far. When
    the time is up, no further one comes.
    """
    if settings.method not in METHODS:
        raise TableError(f"method {settings.method!r} is unknown; use {', '.join(METHODS)}")
    watch = Watch(settings.max_time, settings.listener)
    try:
        folds = stratified_folds(N_FOLDS, rows.y, rows.groups, settings.seed)
        splits = usable_folds(folds, rows.y)
    except ValueError as error:
        raise TableError(str(error)) from error
    plain = _plain(rows, splits, watch)
    yield plain
    try:
        if settings.method in ("auto", "single"):
            yield _automatic(rows, settings, watch)
        elif settings.method != "plain":
            yield from _learned(rows, settings, splits, plain, watch)
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


def _plain(rows: Rows, splits: list[Fold], watch: Watch) -> Candidate:
    hits = np.zeros(len(N_NEIGHBORS))
    for i, (train, test) in enumerate(splits):
        watch.tell("plain K-NN", i / len(splits))
        hits += _hits(rows.X[train], rows.y[train], rows.X[test], rows.y[test])
    k, accuracy = _best_k(hits, splits)
    knn = ClassMeanKNN(k, rule="vote").fit(rows.X, rows.y)
    return Candidate(knn, accuracy, f"plain K-NN, K = {k} by cross-validation")


def _automatic(rows: Rows, settings: FitSettings, watch: Watch) -> Candidate:
    remaining = watch.remaining
    model = ANNClassifier(
        mode="committee" if settings.method == "auto" else "single",
        effort=settings.effort,
        max_time=None if remaining is None else max(remaining, 1e-3),
        callback=lambda progress: watch.tell("metrics and votes", progress.done / progress.total),
        random_state=settings.seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TimeLimitWarning)  # the candidate says it
        model.fit(rows.X, rows.y, groups=rows.groups)
    model.set_params(callback=None)
    return Candidate(model, model.best_score_, _describe(model), model.timed_out_)


def _describe(model: ANNClassifier) -> str:
    if model.mode == "committee":
        return f"a committee of {len(model.chosen_)} metrics and votes, chosen out of fold"
    (one,) = model.chosen_
    return f"one metric ({one.configuration}), K = {one.n_neighbors}, chosen out of fold"


def _learned(
    rows: Rows, settings: FitSettings, splits: list[Fold], plain: Candidate, watch: Watch
) -> Iterator[Candidate]:
    method, k = settings.method, plain.estimator.n_neighbors
    learner = make_learner(method, settings.seed)
    early = f"{method.upper()} with its defaults, K = {k} of plain K-NN, not cross-validated"
    try:
        fit_learner(
            learner, rows.X, rows.y, rows.groups, watch=watch, stage=Stage(f"{method}, all rows")
        )
    except KeyboardInterrupt:  # a learner keeps what it has learned
        if hasattr(learner, "components_"):
            yield Candidate(_pair(learner, k, rows), None, f"{early}, and not converged")
        raise
    first = Candidate(_pair(learner, k, rows), None, early, timed_out=watch.expired)
    yield first
    if watch.expired:
        return
    chosen = (
        _search_ann(rows, learner, settings.seed, watch)
        if isinstance(learner, ANN)
        else _choose_k(rows, learner, splits, watch)
    )
    yield replace(first, timed_out=True) if chosen is None else chosen


def _choose_k(
    rows: Rows, learner: MetricLearner, splits: list[Fold], watch: Watch
) -> Candidate | None:
    """K by cross-validation of learner and vote; None if the time is up before a fold is done."""
    hits, done = np.zeros(len(N_NEIGHBORS)), []
    for i, (train, test) in enumerate(splits):
        groups = None if rows.groups is None else rows.groups[train]
        X, y = rows.X[train], rows.y[train]
        stage = Stage("choice of K", begin=i / len(splits), share=1 / len(splits))
        fold = fit_learner(clone(learner), X, y, groups, watch=watch, stage=stage)
        if watch.expired:  # this metric is not the one that is judged
            break
        hits += _hits(fold.transform(X), y, fold.transform(rows.X[test]), rows.y[test])
        done.append(Fold(train, test))
    if not done:
        return None
    k, accuracy = _best_k(hits, done)
    how = f"{type(learner).__name__}, K = {k} by {len(done)}-fold cross-validation"
    return Candidate(_pair(learner, k, rows), accuracy, how, timed_out=watch.expired)


def _search_ann(rows: Rows, learner: ANN, seed: int, watch: Watch) -> Candidate | None:
    """α, γ and K by ANNSearchCV; None if the time is up before it is done."""
    fits = N_FOLDS * (len(ALPHAS) + len(GAMMAS) - 1)  # γ = 1 is tried with every α
    count = watch.counter("choice of α, γ and K", fits)
    search = ANNSearchCV(
        clone(learner).set_params(callback=count),
        alphas=ALPHAS,
        gammas=GAMMAS,
        cv=N_FOLDS,
        random_state=seed,
    ).fit(rows.X, rows.y, groups=rows.groups)
    if watch.expired:
        return None
    for part in (search.estimator, search.best_estimator_):
        part.set_params(callback=None)
    best = search.best_params_
    how = f"ANN, α = {best['alpha']:g}, γ = {best['gamma']:g}, K = {best['n_neighbors']}"
    return Candidate(search, search.best_score_, f"{how} by cross-validation")


def _pair(learner: MetricLearner, k: int, rows: Rows) -> Pipeline:
    """The learned metric and a vote of K neighbors under it, both fitted."""
    knn = ClassMeanKNN(k, rule="vote").fit(learner.transform(rows.X), rows.y)
    return Pipeline([("learner", learner), ("knn", knn)])


def _hits(Z: Any, y: NDArray[Any], Z_test: Any, y_test: NDArray[Any]) -> FloatArray:
    """(len(N_NEIGHBORS),) test rows that K voters get right; −inf where there are fewer."""
    knn = ClassMeanKNN(1, rule="vote").fit(Z, y)
    hits = np.full(len(N_NEIGHBORS), -np.inf)
    for i, k in enumerate(N_NEIGHBORS):
        if k <= len(Z):
            hits[i] = np.sum(knn.set_params(n_neighbors=k).predict(Z_test) == y_test)
    return hits


def _best_k(hits: FloatArray, splits: list[Fold]) -> tuple[int, float]:
    """K and its accuracy over the test rows of the splits; of equally good ones the smallest."""
    best = int(np.argmax(hits))
    return N_NEIGHBORS[best], float(hits[best] / sum(len(test) for _, test in splits))
