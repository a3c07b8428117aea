"""The fit of ``ANNClassifier``: fold, descend, score out of fold, choose."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vicinal._typing import FloatArray, IndexArray
from vicinal.automatic.committee import (
    CANDIDATES,
    Candidate,
    Choice,
    Scores,
    greedy_weights,
    out_of_fold,
    rank,
    score_candidates,
)
from vicinal.automatic.metric_path import (
    ITERATES,
    Parts,
    Paths,
    Samples,
    descents_in,
    metric_path,
    run_descents,
    starting_metric,
    starts_in,
)
from vicinal.features.hat_basis import HatBasis, drop_unused_hats, worth_expanding
from vicinal.validation.folds import Fold, stratified_folds, stratified_sample, usable_folds
from vicinal.validation.schedule import Schedule, run_tasks
from vicinal.voting.row_weights import VotingRows

N_FOLDS = 5
REPEATS = 2
FEW_ROWS = 1000
"""Below it the folds are dealt twice: choices made on few rows are noisy, and cost little."""
TUNING_ROWS = 4000
"""Rows that are tuned on at effort 1; the cost of a descent grows with their square."""
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
class TuningOutcome:
    """Everything a fit has found."""

    metrics: FloatArray
    basis: HatBasis | None
    """What the metrics are about, if one of them needs more than the features themselves."""
    chosen: list[Choice]
    cv_results: dict[str, NDArray[np.generic]]
    oof_rows: IndexArray
    oof_proba: FloatArray
    histories: dict[str, FloatArray]
    timed_out: bool


class AutomaticFit:
    """One fit on the samples X (n, d) with their voters and groups.

    A committee may expand the features in hat functions; a single metric is a matrix of the
    features themselves.
    """

    def __init__(
        self,
        mode: str,
        X: FloatArray,
        voters: VotingRows,
        groups: IndexArray | None,
        effort: float,
        rng: np.random.RandomState,
    ) -> None:
        self._mode = mode
        limit = round(effort * TUNING_ROWS)
        self.rows = stratified_sample(voters.codes, limit, at_least=MIN_MEMBERS, random_state=rng)
        basis = HatBasis.of(X) if mode == "committee" and worth_expanding(X) else None
        X = X[self.rows]
        self._samples = Samples(
            X if basis is None else basis.expand(X),
            voters[self.rows],
            None if groups is None else groups[self.rows],
            basis,
        )
        self._folds = self._usable_folds(rng)

    def _usable_folds(self, rng: np.random.RandomState) -> list[Fold]:
        samples = self._samples
        codes = samples.voters.codes
        repeats = REPEATS if len(codes) < FEW_ROWS else 1
        folds = [
            fold
            for _ in range(repeats)
            for fold in stratified_folds(N_FOLDS, codes, samples.groups, rng)
        ]
        return usable_folds(folds, codes)

    def run(self, schedule: Schedule, report: Callable[[TuningProgress], object]) -> TuningOutcome:
        """Tune, then choose a committee, or one metric that is learned again from all rows.

        ``report`` is told of every descent.
        """
        parts = self._parts([fold.train for fold in self._folds], schedule)
        descents, starts = descents_in(parts[0]), starts_in(parts[0])
        counter = _Counter(len(descents) * len(parts), report)
        paths = run_descents(parts, schedule, counter.count)
        scores = score_candidates(self._samples, self._folds, paths.metrics, schedule)
        complete = len(paths.metrics) == len(starts) + len(descents) * len(ITERATES)
        timed_out = schedule.deadline.is_over() and not complete
        order = rank(scores.errors, scores.log_losses)
        if self._mode == "committee":
            metrics, chosen, oof = self._committee(paths, scores, order)
        else:
            metrics, chosen, oof = self._single(scores, scores.candidates[order[0]], schedule)
        metrics, basis = drop_unused_hats(metrics, self._samples.basis)
        return TuningOutcome(
            metrics=metrics,
            basis=basis,
            chosen=chosen,
            cv_results=_cv_results(scores, order),
            oof_rows=self.rows,
            oof_proba=oof,
            histories=paths.histories,
            timed_out=timed_out,
        )

    def _parts(self, rows: list[IndexArray], schedule: Schedule) -> list[Parts]:
        with warnings.catch_warnings():
            # Many classes with few members each: scikit-learn has said so of the whole data.
            warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
            return run_tasks(self._samples.parts, rows, schedule)

    def _committee(
        self, paths: Paths, scores: Scores, order: IndexArray
    ) -> tuple[FloatArray, list[Choice], FloatArray]:
        candidates = [scores.candidates[i] for i in order[:CANDIDATES]]
        P = np.array([self._out_of_fold(scores, candidate) for candidate in candidates])
        voters = self._samples.voters
        weights = greedy_weights(P, voters.codes, voters.weights)
        seated = [(c, float(w)) for c, w in zip(candidates, weights, strict=True) if w > 0]
        names = list(dict.fromkeys(candidate.metric for candidate, _ in seated))
        metrics = _stack([L for name in names for L in paths.metrics[name]])
        f = len(self._folds)
        chosen = [
            _choice(c, w, tuple(range(names.index(c.metric) * f, (names.index(c.metric) + 1) * f)))
            for c, w in sorted(seated, key=lambda seat: -seat[1])
        ]
        return metrics, chosen, np.tensordot(weights, P, axes=1)

    def _single(
        self, scores: Scores, best: Candidate, schedule: Schedule
    ) -> tuple[FloatArray, list[Choice], FloatArray]:
        (parts,) = self._parts([np.arange(len(self.rows))], schedule)
        name, iterate = best.metric.configuration, best.metric.iterate
        starts = starts_in(parts)
        if name in starts:
            L = starting_metric(parts[starts[name]])
        else:
            descent = next(d for d in descents_in(parts) if d.name == name)
            L = metric_path(parts[descent.space], descent, iterates=(iterate,)).iterates[iterate]
        return L[None], [_choice(best, 1.0, (0,))], self._out_of_fold(scores, best)

    def _out_of_fold(self, scores: Scores, candidate: Candidate) -> FloatArray:
        return out_of_fold(self._samples, self._folds, scores, candidate)


def _stack(factors: list[FloatArray]) -> FloatArray:
    """(q, m, d) factors of different ranks; rows of zeros change no distance."""
    m = max(len(L) for L in factors)
    return np.array([np.pad(L, ((0, m - len(L)), (0, 0))) for L in factors])


def _choice(candidate: Candidate, weight: float, metrics: tuple[int, ...]) -> Choice:
    name = candidate.metric
    return Choice(
        name.configuration, name.iterate, candidate.vote, candidate.n_neighbors, weight, metrics
    )


def _cv_results(scores: Scores, order: IndexArray) -> dict[str, NDArray[np.generic]]:
    ranks = np.empty(len(order), dtype=np.intp)
    ranks[order] = np.arange(1, len(order) + 1)
    return {
        "configuration": np.array([c.metric.configuration for c in scores.candidates]),
        "iterate": np.array([c.metric.iterate for c in scores.candidates]),
        "vote": np.array([c.vote for c in scores.candidates]),
        "n_neighbors": np.array([c.n_neighbors for c in scores.candidates]),
        "mean_test_error": scores.errors,
        "mean_test_log_loss": scores.log_losses,
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
