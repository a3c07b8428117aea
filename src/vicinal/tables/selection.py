"""Ever better models of a table, from plain K-NN to the one that was asked for."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state

from vicinal._typing import FloatArray, IndexArray
from vicinal.automatic.automatic_fit import MIN_MEMBERS, TUNING_ROWS
from vicinal.automatic.classifier import ANNClassifier
from vicinal.automatic.regressor import ANNRegressor
from vicinal.exceptions import TableError, TimeLimitWarning
from vicinal.features.target_statistics import TargetFeatures
from vicinal.kernels.cpu.class_neighbors import NeighborIndex
from vicinal.learners.ann import ANN
from vicinal.learners.base import MetricLearner
from vicinal.search.search_cv import ANNSearchCV
from vicinal.tables.methods import METHODS, fit_learner, make_learner
from vicinal.tables.training_table import TrainingTable, target_strata
from vicinal.validation.folds import Fold, stratified_folds, stratified_sample, usable_folds
from vicinal.validation.out_of_fold import Rows, correct_votes, gather_out_of_fold
from vicinal.validation.schedule import (
    Deadline,
    FitStage,
    ProgressListener,
    Schedule,
    ending_at_interrupt,
    run_tasks,
)
from vicinal.validation.scores import (
    ClassificationScores,
    NumberScores,
    classification_scores,
    number_scores,
)
from vicinal.voting.class_mean import ClassMeanKNN
from vicinal.voting.votes import N_NEIGHBORS

N_FOLDS = 5
LEARNED_ROWS = 20_000
"""Rows that a metric is learned from where the time is limited; all rows vote."""
ALPHAS = 2.0 ** np.arange(-4, 5)
GAMMAS = 2.0 ** np.arange(-3, 4)
"""What ANNSearchCV tries by itself for ANN⁺."""


@dataclass(frozen=True)
class FitSettings:
    """Settings of a fit.

    Attributes
    ----------
    method : str
        One of ``METHODS``.
    seed : int
    max_time : float or None
        Seconds after which the best so far is taken.
    effort : float
        Rows that are tuned on, 4000 at effort 1.
    class_weight : "balanced" or None
        Of ANNClassifier, for methods "auto" and "single".
    listener : callable or None
        Told the stage, and how much of it is done.
    """

    method: str = "auto"
    seed: int = 0
    max_time: float | None = None
    effort: float = 1.0
    class_weight: str | None = None
    listener: ProgressListener | None = None


@dataclass(frozen=True)
class JudgedRows:
    """Predictions for training rows by folds that did not learn from them.

    Attributes
    ----------
    rows : (t,) array
    truth, predicted : (t,) arrays of codes
    probabilities : (t, c) array
    """

    rows: IndexArray
    truth: IndexArray
    predicted: IndexArray
    probabilities: FloatArray

    @property
    def accuracy(self) -> float:
        """Share of the rows that are right."""
        return float(np.mean(self.predicted == self.truth))

    def scores(self, classes: NDArray[np.generic]) -> ClassificationScores:
        """All scores; of classes (c,)."""
        return classification_scores(self.truth, self.predicted, self.probabilities, classes)


@dataclass(frozen=True)
class CandidateModel:
    """A fitted model, and what is known about it."""

    estimator: BaseEstimator
    """Of the columns of the table."""
    how: str
    judged: JudgedRows | None = None
    """Out of fold, the choice of K included; None if there was no time for that."""
    plain: JudgedRows | None = None
    """The predictions of plain K-NN for the same rows."""
    timed_out: bool = False
    numbers: tuple[NumberScores, NumberScores] | None = None
    """Of numbers as targets: scores out of fold, and those of plain K-NN on the same rows."""

    @property
    def accuracy(self) -> float | None:
        """Share of the judged rows that are right."""
        return None if self.judged is None else self.judged.accuracy


@dataclass(frozen=True)
class TunedRows:
    """The rows that everything is tuned on and judged by, in folds.

    Attributes
    ----------
    rows : (t,) array
        Their numbers in the training table.
    data : Rows
    codes : (t,) array
        Their classes, as numbers.
    folds : list of Fold
    target_features : TargetFeatures or None
        Features that are other ones in every fold.
    only_k : int or None
        The only value of K to try; None: all that are usual.
    """

    rows: IndexArray
    data: Rows
    codes: IndexArray
    folds: list[Fold]
    target_features: TargetFeatures | None
    only_k: int | None = None

    @classmethod
    def of(cls, table: TrainingTable, rows: IndexArray, seed: int) -> TunedRows:
        """Some rows of a training table; TableError where no fold can be made of them."""
        features = table.samples.target_features
        data = table.rows.take(rows)
        try:
            folds = usable_folds(stratified_folds(N_FOLDS, data.y, data.groups, seed), data.y)
        except ValueError as error:
            raise TableError(str(error)) from error
        of_rows = None if features is None else features.take(rows)
        return cls(rows, data, table.codes[rows], folds, of_rows)

    @property
    def ks(self) -> IndexArray:
        """The values of K for which every fold has enough training rows."""
        smallest = min(len(fold.train) for fold in self.folds)
        if self.only_k is not None:
            return np.array([min(self.only_k, smallest)])
        return np.array([k for k in N_NEIGHBORS if k <= smallest])

    def parts(self, number: int) -> tuple[Rows, Rows]:
        """Training and test rows of a fold."""
        fold, data = self.folds[number], self.data
        if self.target_features is not None:
            data = replace(data, X=self.target_features.in_fold(data.X, *fold))
        return data.take(fold.train), data.take(fold.test)

    def judge(
        self, embedded: list[tuple[Rows, Rows]], hits: list[IndexArray], n_classes: int
    ) -> tuple[int, JudgedRows]:
        """The best K, of equally good ones the smallest, and its predictions.

        Parameters
        ----------
        embedded : training and test rows of the first folds, where neighbors are near
        hits : of the same folds, for every K the number of right predictions
        n_classes : int
        """
        best = int(self.ks[np.argmax(np.sum(hits, axis=0))])
        shares, classes = [], []
        folds = self.folds[: len(embedded)]
        for fold, (train, test) in zip(folds, embedded, strict=True):
            knn = ClassMeanKNN(best, rule="vote").fit(train.X, self.codes[fold.train])
            shares.append(np.zeros((len(test.X), n_classes)))
            shares[-1][:, knn.classes_] = knn.predict_proba(test.X)
            classes.append(knn.predict(test.X))
        P = gather_out_of_fold(shares, folds, np.zeros((len(self.rows), n_classes)))
        predicted = gather_out_of_fold(classes, folds, np.full(len(self.rows), -1))
        judged = np.flatnonzero(predicted >= 0)
        truth = self.codes[judged]
        return best, JudgedRows(self.rows[judged], truth, predicted[judged], P[judged])


def candidates(table: TrainingTable, settings: FitSettings) -> Iterator[CandidateModel]:
    """Ever better models of the columns of a table, the last being the one asked for.

    First plain K-NN; then the learned metric with the K of plain K-NN; then the one whose
    parameters were chosen by cross-validation. Whoever stops listening has the best so far. When
    the time is up, no further one comes. All are tuned on, and judged by, the same sample of rows.
    """
    if settings.method not in METHODS:
        raise TableError(f"method {settings.method!r} is unknown; use {', '.join(METHODS)}")
    schedule = Schedule(Deadline.after(settings.max_time), listener=settings.listener)
    if table.task == "regression":
        yield from _until_interrupt(lambda: _of_numbers(table, settings, schedule))
        return
    rng = check_random_state(settings.seed)
    size = round(settings.effort * TUNING_ROWS)
    rows = stratified_sample(table.codes, size, at_least=MIN_MEMBERS, random_state=rng)
    tuned = TunedRows.of(table, rows, settings.seed)
    plain = _plain(table, tuned, schedule)
    yield plain
    try:
        if settings.method in ("auto", "single"):
            yield from _until_interrupt(lambda: _automatic(table, settings, plain, schedule))
        elif settings.method != "plain":
            yield from _learned(table, settings, tuned, plain, schedule)
    except ValueError as error:
        raise TableError(_too_few(table.rows, settings.method, error)) from error


def _until_interrupt(fit: Callable[[], CandidateModel]) -> Iterator[CandidateModel]:
    """What is fitted; Ctrl-C ends it with the best so far, and is raised after that."""
    with ending_at_interrupt() as interrupted:
        found = fit()
    yield found
    if interrupted.is_set():
        raise KeyboardInterrupt


def _too_few(rows: Rows, method: str, error: ValueError) -> str:
    """The reason why a method cannot learn from a table that K-NN can: too few rows or groups."""
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


def _plain(table: TrainingTable, tuned: TunedRows, schedule: Schedule) -> CandidateModel:
    k, judged = _judge_plain(tuned, len(table.classes), schedule)
    how = f"plain K-NN, K = {k} by cross-validation"
    return CandidateModel(_pipeline(table, k), how, judged, judged)


def _judge_plain(tuned: TunedRows, n_classes: int, schedule: Schedule) -> tuple[int, JudgedRows]:
    stage, numbers = FitStage("plain K-NN", schedule), range(len(tuned.folds))
    parts = [tuned.parts(number) for number in numbers]

    def count(number: int) -> IndexArray:
        stage.tell(number / len(parts))
        return correct_votes(_same, *parts[number], tuned.ks)

    return tuned.judge(parts, run_tasks(count, numbers, schedule), n_classes)


def _same(X: FloatArray) -> FloatArray:
    return X


def _automatic(
    table: TrainingTable, settings: FitSettings, plain: CandidateModel, schedule: Schedule
) -> CandidateModel:
    remaining, stage = schedule.deadline.remaining, FitStage("metrics and votes", schedule)
    model = ANNClassifier(
        mode="committee" if settings.method == "auto" else "single",
        effort=settings.effort,
        max_time=None if remaining is None else max(remaining, 1e-3),
        class_weight=settings.class_weight,
        callback=lambda progress: stage.tell(progress.done / progress.total),
        random_state=settings.seed,
    )
    _fit(model, table)
    rows, P = model.oof_rows_, np.asarray(model.oof_proba_, dtype=np.float64)
    judged = JudgedRows(rows, table.codes[rows], P.argmax(axis=1), P)
    beside = plain.judged
    if beside is None or not np.array_equal(beside.rows, rows):
        tuned = TunedRows.of(table, rows, settings.seed)
        beside = _judge_plain(tuned, len(table.classes), schedule)[1]
    return CandidateModel(model, _describe(model), judged, beside, model.timed_out_)


def _fit(model: ANNClassifier | ANNRegressor, table: TrainingTable) -> None:
    """Fit to the samples, whose features of targets are other ones in every fold."""
    samples: Any = table.samples
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TimeLimitWarning)  # the candidate says it
        model.fit(samples, table.rows.y, groups=table.rows.groups)
    model.set_params(callback=None)


def _of_numbers(table: TrainingTable, settings: FitSettings, schedule: Schedule) -> CandidateModel:
    """The automatic regressor, and plain K-NN averages of the same rows."""
    if settings.method not in ("auto", "single"):
        raise TableError(
            f"--method {settings.method} predicts classes; for numbers use auto or single, or "
            "--task classification"
        )
    stage, limit = FitStage("metrics and votes", schedule), schedule.deadline.remaining
    model = ANNRegressor(
        mode="committee" if settings.method == "auto" else "single",
        effort=settings.effort,
        max_time=None if limit is None else max(limit, 1e-3),
        callback=lambda progress: stage.tell(progress.done / progress.total),
        random_state=settings.seed,
    )
    _fit(model, table)
    rows = model.oof_rows_
    truth = np.asarray(table.rows.y, dtype=np.float64)[rows]
    plain = _plain_averages(table, rows, settings.seed)
    return CandidateModel(
        model,
        _describe(model),
        timed_out=model.timed_out_,
        numbers=(number_scores(truth, model.oof_predictions_), number_scores(truth, plain)),
    )


def _plain_averages(table: TrainingTable, rows: IndexArray, seed: int) -> FloatArray:
    """(t,) means over the K nearest rows, out of fold, for the K with the least squared error."""
    data, features = table.rows.take(rows), table.samples.target_features
    y = np.asarray(data.y, dtype=np.float64)
    folds = stratified_folds(N_FOLDS, target_strata(y, table.task), data.groups, seed)
    ks = [k for k in N_NEIGHBORS if k <= min(len(fold.train) for fold in folds)]

    def means(fold: Fold) -> FloatArray:
        X = data.X if features is None else features.take(rows).in_fold(data.X, *fold)
        near = NeighborIndex(X[fold.train]).nearest(X[fold.test], max(ks)).ids
        sums = np.cumsum(y[fold.train][near], axis=1)[:, np.array(ks) - 1]
        return np.asarray(sums / np.array(ks))

    found = gather_out_of_fold(map(means, folds), folds, np.zeros((len(rows), len(ks))))
    errors = (np.ascontiguousarray(found.T) - y) ** 2
    return np.asarray(found[:, errors.sum(axis=1).argmin()])


def _describe(model: ANNClassifier | ANNRegressor) -> str:
    if model.mode == "committee":
        return f"a committee of {len(model.chosen_)} metrics and votes, chosen out of fold"
    (one,) = model.chosen_
    return f"one metric ({one.configuration}), K = {one.n_neighbors}, chosen out of fold"


def _learned(
    table: TrainingTable,
    settings: FitSettings,
    tuned: TunedRows,
    plain: CandidateModel,
    schedule: Schedule,
) -> Iterator[CandidateModel]:
    method, k, deadline = settings.method, plain.estimator["knn"].n_neighbors, schedule.deadline
    learner = make_learner(method, settings.seed)
    rows, of_rows = _learning_rows(table, settings)
    early = f"{method.upper()} with its defaults, K = {k} of plain K-NN, not cross-validated"
    early += of_rows
    try:
        fit_learner(learner, rows, FitStage(f"{method}, all rows", schedule))
    except KeyboardInterrupt:  # a learner keeps what it has learned
        if hasattr(learner, "components_"):
            yield CandidateModel(_pipeline(table, k, learner), f"{early}, and not converged")
        raise
    first = CandidateModel(_pipeline(table, k, learner), early, timed_out=deadline.is_over())
    yield first
    if deadline.is_over():
        return
    chosen = (
        _search_ann(table, learner, tuned, settings, schedule)
        if isinstance(learner, ANN)
        else _with_chosen_k(table, learner, tuned, schedule)
    )
    if chosen is None:
        yield replace(first, timed_out=True)
    else:
        yield replace(chosen, how=chosen.how + of_rows, plain=plain.judged)


def _learning_rows(table: TrainingTable, settings: FitSettings) -> tuple[Rows, str]:
    """The rows that a metric is learned from, and what is to be said about them."""
    n = len(table.codes)
    if settings.max_time is None or n <= LEARNED_ROWS:
        return table.rows, ""
    rng = check_random_state(settings.seed)
    rows = stratified_sample(table.codes, LEARNED_ROWS, random_state=rng)
    return table.rows.take(rows), f", learned from {len(rows):,} of the rows"


@dataclass(frozen=True)
class ChosenK:
    """K by cross-validation of learner and vote, and the predictions of the folds done."""

    n_neighbors: int
    judged: JudgedRows
    n_folds: int


def _choose_k(
    table: TrainingTable, learner: MetricLearner, tuned: TunedRows, schedule: Schedule
) -> ChosenK | None:
    """K, and the predictions; None if the time is up before a fold is done."""
    deadline, share = schedule.deadline, 1 / len(tuned.folds)

    def embed(number: int) -> tuple[Rows, Rows] | None:
        if deadline.is_over():
            return None
        train, test = tuned.parts(number)
        stage = FitStage("choice of K", schedule, begin=number * share, share=share)
        fitted = fit_learner(clone(learner), train, stage)
        if deadline.is_over():  # this metric is not the one that is judged
            return None
        Z_train, Z_test = fitted.transform(train.X), fitted.transform(test.X)
        return replace(train, X=Z_train), replace(test, X=Z_test)

    found = run_tasks(embed, range(len(tuned.folds)), schedule)
    done = [parts for parts in found if parts is not None]  # the first folds
    if not done:
        return None
    hits = [correct_votes(_same, *parts, tuned.ks) for parts in done]
    k, judged = tuned.judge(done, hits, len(table.classes))
    return ChosenK(k, judged, len(done))


def _with_chosen_k(
    table: TrainingTable, learner: MetricLearner, tuned: TunedRows, schedule: Schedule
) -> CandidateModel | None:
    """A fitted learner with the best K; None if there is no time."""
    chosen = _choose_k(table, learner, tuned, schedule)
    if chosen is None:
        return None
    how = f"K = {chosen.n_neighbors} by {chosen.n_folds}-fold cross-validation"
    return CandidateModel(
        _pipeline(table, chosen.n_neighbors, learner),
        f"{type(learner).__name__}, {how}",
        chosen.judged,
        timed_out=schedule.deadline.is_over(),
    )


def _search_ann(
    table: TrainingTable,
    learner: ANN,
    tuned: TunedRows,
    settings: FitSettings,
    schedule: Schedule,
) -> CandidateModel | None:
    """α, γ and K by ANNSearchCV; None if the time is up before it is done."""
    fits = N_FOLDS * (len(ALPHAS) + len(GAMMAS) - 1)  # γ = 1 is tried with every α
    count = FitStage("choice of α, γ and K", schedule).fit_counter(fits)
    of_all = len(tuned.rows) == len(table.codes)
    watched = clone(learner).set_params(callback=count)
    search = ANNSearchCV(
        watched,
        alphas=ALPHAS,
        gammas=GAMMAS,
        cv=N_FOLDS,
        random_state=settings.seed,
    ).fit(tuned.data.X, tuned.data.y, groups=tuned.data.groups)
    if schedule.deadline.is_over():
        return None
    for part in (watched, search.best_estimator_):
        part.set_params(callback=None)
    best = dict(search.best_params_)
    k = best.pop("n_neighbors")
    chosen = clone(learner).set_params(**best)
    quiet = Schedule(schedule.deadline)
    judged = _choose_k(table, chosen, replace(tuned, only_k=k), quiet)
    if of_all:
        estimator = Pipeline([("encoder", table.encoder), ("search", search)])
    else:
        rows, _ = _learning_rows(table, settings)
        fit_learner(chosen, rows, FitStage("ann, all rows", quiet))
        estimator = _pipeline(table, k, chosen)
    how = f"ANN, α = {best['alpha']:g}, γ = {best['gamma']:g}, K = {k} by cross-validation"
    return CandidateModel(
        estimator,
        how,
        None if judged is None else judged.judged,
        timed_out=schedule.deadline.is_over(),
    )


def _pipeline(table: TrainingTable, k: int, learner: MetricLearner | None = None) -> Pipeline:
    """The columns, the learned metric if any, and a vote of K neighbors under it, all fitted."""
    X, y = table.rows.X, table.rows.y
    Z = X if learner is None else learner.transform(X)
    knn = ClassMeanKNN(k, rule="vote").fit(Z, y)
    steps = [("encoder", table.encoder), ("learner", learner), ("knn", knn)]
    return Pipeline([step for step in steps if step[1] is not None])
