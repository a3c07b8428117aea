"""The fit of the automatic models: fold, descend, score out of fold, choose."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vicinal._typing import FloatArray, IndexArray
from vicinal.automatic.committee import (
    BOOSTING,
    Candidate,
    Choice,
    Judge,
    Scores,
    cross_fitted_weights,
    eligible,
    greedy_weights,
    with_few_metrics,
)
from vicinal.automatic.metric_path import (
    EUCLID,
    MetricName,
    Parts,
    Samples,
    descents_in,
    metric_path,
    run_descents,
    starting_metric,
    starts_in,
)
from vicinal.automatic.tuning_rows import Descent, TuningRows
from vicinal.features.expansion import Expansion
from vicinal.features.target_statistics import TargetFeatures
from vicinal.validation.folds import Fold, stratified_folds, stratified_sample
from vicinal.validation.schedule import Schedule, run_tasks
from vicinal.voting.boosting import grow_boosted
from vicinal.voting.forest import Forest
from vicinal.voting.row_weights import RowWeights, probabilities
from vicinal.voting.votes import BOOSTED, OF_TREES

N_FOLDS = 5
REPEATS = 2
FEW_ROWS = 1000
"""Below it the folds are dealt twice: choices made on few rows are noisy, and cost little."""
TUNING_ROWS = 4000
"""Rows that are tuned on at effort 1; the cost of a descent grows with their square."""
MIN_CROSS_FITTED = 3
"""Folds from which on committees are chosen without each of them."""
TREES = 500
"""Trees of a member, over all folds."""
FOREST = "forest"
MEMBERS = ("linear", "hat", "kernel", "forest")
"""Kinds of members: metrics of features, of hat functions, of kernel functions; leaves of trees."""
MIN_MEMBERS = 10
"""Rows of a class that are tuned on at any effort, if it has so many."""


@dataclass(frozen=True)
class TuningProgress:
    """Progress that a callback is shown after every descent."""

    done: int
    total: int
    what: str
    seconds_left: float


@dataclass(frozen=True)
class OutOfFold:
    """Predictions (t, c) for the tuning rows by what was not learned from them."""

    predictions: FloatArray
    strength: float
    """Of the calibration."""
    before: FloatArray | None = None
    """The same before calibration, if there was one."""
    folds: Sequence[Fold] = ()
    weights: Sequence[csr_array] = ()
    """Of every fold, where they are kept: row weights (test rows, t) but those of boosted trees."""


@dataclass(frozen=True)
class TuningOutcome:
    """Everything a fit has found."""

    metrics: FloatArray
    expansion: Expansion
    """What the metrics are about."""
    chosen: list[Choice]
    cv_results: dict[str, NDArray[np.generic]]
    oof_rows: IndexArray
    oof: OutOfFold
    histories: dict[str, FloatArray]
    timed_out: bool
    forests: list[Forest] | None = None


@dataclass(frozen=True)
class _Decision:
    """The part of an outcome that committees and single metrics decide differently."""

    metrics: FloatArray
    chosen: list[Choice]
    oof: OutOfFold
    forests: list[Forest] | None = None


class AutomaticFit:
    """One fit on the samples X (n, d) with their voters and groups.

    A committee may expand the features in hat and kernel functions; a single metric is a matrix of
    the features themselves.
    """

    def __init__(
        self,
        mode: str,
        members: Sequence[str],
        X: FloatArray,
        voters: TuningRows,
        groups: IndexArray | None,
        effort: float,
        rng: np.random.RandomState,
        target_features: TargetFeatures | None = None,
        max_metrics: int | None = None,
    ) -> None:
        self._mode, self._max_metrics = mode, max_metrics
        self._members = tuple(members) if mode == "committee" else ("linear",)
        limit = round(min(effort * TUNING_ROWS, len(X)))
        self.rows = stratified_sample(voters.strata, limit, at_least=MIN_MEMBERS, random_state=rng)
        # Boosted trees weigh all rows: where these are many, explanations would take too long.
        self._boosted = voters.boosted if len(self.rows) == len(X) else ()
        expansion = Expansion.of(X, {_kind_of(descent.name) for descent in self._descents(voters)})
        X = X[self.rows]
        self._samples = Samples(
            expansion.expand(X),
            voters[self.rows],
            None if groups is None else groups[self.rows],
            expansion,
        )
        self._folds = self._usable_folds(rng)
        if target_features is not None:
            features = target_features.take(self.rows)
            by_fold = [expansion.expand(features.in_fold(X, *fold)) for fold in self._folds]
            self._samples = replace(self._samples, X_by_fold=by_fold)
        self._seed = int(rng.randint(2**30))

    def _descents(self, voters: TuningRows) -> list[Descent]:
        """The descents of the kinds that are wanted."""
        return [d for d in voters.descents if _kind_of(d.name) in self._members]

    def _usable_folds(self, rng: np.random.RandomState) -> list[Fold]:
        samples = self._samples
        strata = samples.voters.strata
        repeats = REPEATS if len(strata) < FEW_ROWS else 1
        folds = [
            fold
            for _ in range(repeats)
            for fold in stratified_folds(N_FOLDS, strata, samples.groups, rng)
        ]
        return samples.voters.usable_folds(folds)

    def run(self, schedule: Schedule, report: Callable[[TuningProgress], object]) -> TuningOutcome:
        """Tune, then choose a committee, or one metric that is learned again from all rows.

        ``report`` is told of every descent.
        """
        parts = self._parts(range(len(self._folds)), schedule)
        starts = starts_in(parts[0])
        descents = [d for d in descents_in(parts[0]) if d in self._descents(self._samples.voters)]
        counter = _Counter(len(descents) * len(parts), report)
        forests = self._forests(schedule)
        paths = run_descents(parts, descents, schedule, counter.count)
        judge = Judge(self._samples, self._folds, paths.metrics, forests)
        scores = judge.neighbor_scores(schedule)
        voters, in_committee = self._samples.voters, self._mode == "committee"
        if not (voters.plain_single and not in_committee) and not schedule.deadline.is_over():
            scores = judge.with_lines(scores, schedule)
        if in_committee and voters.global_lines and not schedule.deadline.is_over():
            scores = judge.with_global_lines(scores, list(starts), schedule)
            scores = judge.with_slopes(scores, schedule)
        if forests:
            scores = judge.with_forests(scores, schedule)
        complete = len(paths.metrics) == len(starts) + len(descents) * len(voters.iterates)
        outcome = (
            self._committee(judge, scores)
            if in_committee
            else self._single(judge, scores, schedule)
        )
        metrics, expansion = self._samples.expansion.used_by(outcome.metrics)
        return TuningOutcome(
            metrics=metrics,
            expansion=expansion,
            cv_results=_cv_results(scores, voters),
            oof_rows=self.rows,
            histories=paths.histories,
            timed_out=schedule.deadline.is_over() and not complete,
            **{name: value for name, value in vars(outcome).items() if name != "metrics"},
        )

    def _parts(self, folds: Sequence[int | None], schedule: Schedule) -> list[Parts]:
        """The training rows of folds, or all rows where a fold is None."""

        def parts_of(fold: int | None) -> Parts:
            rows = np.arange(len(self.rows)) if fold is None else self._folds[fold].train
            return self._samples.parts(rows, fold)

        with _quiet():
            return run_tasks(parts_of, folds, schedule)

    def _forests(self, schedule: Schedule) -> dict[MetricName, list[Forest]]:
        """Forests that all folds have had the time for; none where they are not wanted."""
        if "forest" not in self._members or schedule.deadline.is_over():
            return {}
        samples, f = self._samples, len(self._folds)
        d, over = samples.expansion.n_features, schedule.deadline.is_over

        def grow(task: tuple[int | None, int]) -> Forest | None:
            if over():
                return None
            leaf, fold = task
            train = self._folds[fold].train
            features = samples.in_fold(fold)[train, :d]
            voters, seed = samples.voters[train], self._seed + fold
            if leaf is None:
                most, weights = max(self._boosted), voters.weights
                return grow_boosted(most, features, voters.targets, weights, seed, over)
            targets, weights = voters.tree_targets(), voters.weights
            n_trees = max(1, TREES // f)
            return Forest.grow(voters.tree(leaf), n_trees, features, targets, weights, seed)

        kinds: list[int | None] = [None] if self._boosted else []  # boosted trees
        kinds += samples.voters.leaf_sizes
        tasks = [(kind, fold) for kind in kinds for fold in range(f)]
        with _quiet():
            grown = run_tasks(grow, tasks, schedule)
        complete = {}
        for i, leaf in enumerate(kinds):
            forests = [forest for forest in grown[i * f : (i + 1) * f] if forest is not None]
            if len(forests) < f:
                continue
            if leaf is None:
                for n_trees in self._boosted:
                    first = [forest.first(n_trees) for forest in forests]
                    complete[MetricName(BOOSTING, n_trees)] = first
            else:
                complete[MetricName(FOREST, leaf)] = forests
        return complete

    def _committee(self, judge: Judge, scores: Scores) -> _Decision:
        candidates = self._eligible(scores)
        voters = self._samples.voters
        shares = np.array([judge.shares(scores, candidate) for candidate in candidates])
        predictions = probabilities(shares, voters.prior)
        if self._max_metrics is not None:
            asked = [None if c.vote in OF_TREES else c.metric for c in candidates]
            most = max(1, self._max_metrics // len(self._folds))
            left = with_few_metrics(predictions, voters.targets, voters.weights, asked, most)
            candidates = [candidates[i] for i in left]
            shares, predictions = shares[left], predictions[left]
        weights = greedy_weights(predictions, voters.targets, voters.weights)
        seated = [(c, float(w)) for c, w in zip(candidates, weights, strict=True) if w > 0]
        seats: dict[bool, list[MetricName]] = {False: [], True: []}  # metrics, and forests
        for candidate, _ in seated:
            names = seats[candidate.vote in OF_TREES]
            names += [] if candidate.metric in names else [candidate.metric]
        f = len(self._folds)
        chosen = []
        for c, w in sorted(seated, key=lambda seat: -seat[1]):
            first = seats[c.vote in OF_TREES].index(c.metric) * f
            chosen.append(_choice(c, w, tuple(range(first, first + f))))
        # Distances between rows need a metric, even if only forests vote.
        factors = [L for name in seats[False] for L in judge.metrics[name]]
        factors = factors or judge.metrics[MetricName(EUCLID, 0)][:1]
        return _Decision(
            _stack(factors),
            chosen,
            self._out_of_fold(judge, scores, seated, self._mean_shares(shares, weights)),
            [forest for name in seats[True] for forest in judge.forests[name]] or None,
        )

    def _out_of_fold(
        self,
        judge: Judge,
        scores: Scores,
        seated: Sequence[tuple[Candidate, float]],
        mean: FloatArray,
    ) -> OutOfFold:
        """Calibrated predictions of these members out of fold, from their mean shares."""
        voters = self._samples.voters
        strength, before = voters.no_calibration, None
        if self._mode == "committee" or not voters.plain_single:
            strength = voters.calibration(mean)
            before = probabilities(voters.calibrated(mean, voters.no_calibration), voters.prior)
        after = probabilities(voters.calibrated(mean, strength), voters.prior)
        if not voters.cross_fits:
            return OutOfFold(after, strength, before)
        local = [(c, w) for c, w in seated if c.vote != BOOSTED]
        kept = []
        for f, fold in enumerate(self._folds):
            parts = [(w, judge.row_weights(scores, c, f)) for c, w in local]
            nothing = csr_array((len(fold.test), len(mean)))
            weights = RowWeights.weighted_sum(parts).to_sparse(len(mean)) if parts else nothing
            kept.append(weights)
        return OutOfFold(after, strength, before, self._folds, kept)

    def _mean_shares(self, shares: FloatArray, weights: FloatArray) -> FloatArray:
        """(t, c + 1) mean of the candidates' shares (k, t, c + 1).

        Where a row may not decide about the committee that it judges, each fold has the committee
        that is chosen by the rows of the others.
        """
        voters = self._samples.voters
        mean = np.tensordot(weights, shares, axes=1)
        if not voters.cross_fits or len(self._folds) < MIN_CROSS_FITTED:
            return mean
        parts: list[IndexArray] = []
        left = len(mean)
        for fold in self._folds:
            if left > 0:  # the first deal, if there are several
                parts.append(fold.test)
                left -= len(fold.test)
        predictions = probabilities(shares, voters.prior)
        args = predictions, voters.targets, voters.weights
        for rows, others in zip(parts, cross_fitted_weights(*args, parts), strict=True):
            mean[rows] = np.tensordot(others, shares[:, rows], axes=1)
        return mean

    def _eligible(self, scores: Scores) -> list[Candidate]:
        """The candidates of the kinds that are wanted from which members are chosen."""
        ranked = [scores.candidates[i] for i in self._samples.voters.rank(scores.losses)]
        wanted = [c for c in ranked if _kind_of(c.metric.configuration) in self._members] or ranked
        return eligible(wanted)

    def _single(self, judge: Judge, scores: Scores, schedule: Schedule) -> _Decision:
        voters = self._samples.voters
        best = scores.candidates[voters.rank(scores.losses)[0]]
        (parts,) = self._parts([None], schedule)
        name, iterate = best.metric.configuration, best.metric.iterate
        starts = starts_in(parts)
        if name in starts:
            L = starting_metric(parts[starts[name]])
        else:
            descent = next(d for d in descents_in(parts) if d.name == name)
            L = metric_path(parts[descent.space], descent, iterates=(iterate,)).iterates[iterate]
        oof = self._out_of_fold(judge, scores, [(best, 1.0)], judge.shares(scores, best))
        return _Decision(L[None], [_choice(best, 1.0, (0,))], oof)


def _stack(factors: list[FloatArray]) -> FloatArray:
    """(q, m, d) factors of different ranks; rows of zeros change no distance."""
    m = max(len(L) for L in factors)
    return np.array([np.pad(L, ((0, m - len(L)), (0, 0))) for L in factors])


def _choice(candidate: Candidate, weight: float, metrics: tuple[int, ...]) -> Choice:
    name = candidate.metric
    return Choice(
        name.configuration, name.iterate, candidate.vote, candidate.n_neighbors, weight, metrics
    )


def _kind_of(configuration: str) -> str:
    """One of MEMBERS."""
    if configuration in (FOREST, BOOSTING):
        return FOREST
    if "kernel" in configuration:
        return "kernel"
    return "hat" if configuration.startswith("unfolded") else "linear"


@contextmanager
def _quiet() -> Iterator[None]:
    """Many classes with few members each: scikit-learn has said so of the whole data."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        yield


def _cv_results(scores: Scores, voters: TuningRows) -> dict[str, NDArray[np.generic]]:
    order = voters.rank(scores.losses)
    ranks = np.empty(len(order), dtype=np.intp)
    ranks[order] = np.arange(1, len(order) + 1)
    return {
        "configuration": np.array([c.metric.configuration for c in scores.candidates]),
        "iterate": np.array([c.metric.iterate for c in scores.candidates]),
        "vote": np.array([c.vote for c in scores.candidates]),
        "n_neighbors": np.array([c.n_neighbors for c in scores.candidates]),
        **{
            f"mean_test_{name}": losses
            for name, losses in zip(voters.loss_names, scores.losses.T, strict=True)
        },
        "rank_test_score": ranks,
    }


class _Counter:
    """Counts descents and estimates the time left."""

    def __init__(self, total: int, report: Callable[[TuningProgress], object]) -> None:
        self._done, self._total, self._report = 0, total, report
        self._start = time.monotonic()

    def count(self, name: str, fold: int) -> None:
        self._done += 1
        per_descent = (time.monotonic() - self._start) / self._done
        left = per_descent * (self._total - self._done)
        self._report(TuningProgress(self._done, self._total, f"{name}, fold {fold + 1}", left))
