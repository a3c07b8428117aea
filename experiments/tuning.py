"""Choose parameters and K by cross-validation: shared folds, warm starts, an early end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from experiments.methods import Method, Parameters, Stage
from vicinal._typing import FloatArray, IndexArray
from vicinal.validation.folds import Fold
from vicinal.validation.out_of_fold import Rows, correct_votes

FOLDS_FOR_ALL = 2
"""After these, and after every later fold, only the better half of a stage goes on."""


@dataclass(frozen=True)
class Training:
    """Rows, folds and settings that tuning may use."""

    X: FloatArray
    y: IndexArray
    folds: Sequence[Fold]
    protocol: str
    seed: int


@dataclass(frozen=True)
class Choice:
    """The winner of a cross-validation."""

    parameters: Parameters
    n_neighbors: int
    accuracy: float
    """Share of held-out rows that it got right."""
    n_fits: int
    factor: FloatArray | None
    """``components_`` of its last fold, where the refit may start; None if it does not."""


@dataclass
class _Candidate:
    """One configuration, and how it has fared so far."""

    parameters: Parameters
    hits: IndexArray
    """(len(neighbors),) held-out rows got right, for each K, over the folds seen."""
    factors: dict[int, FloatArray] = field(default_factory=dict)
    """By fold."""

    @property
    def best(self) -> int:
        return int(self.hits.max())


def tune(method: Method, training: Training) -> Choice:
    """Cross-validate the stages of a method, each around the best of those before.

    Within a fold, a configuration starts from the metric of the one before it on the path (the
    first of a later stage from the best so far) where the method has warm starts. One neighbor
    search per fit judges every K. All configurations of a stage see two folds, the better half of
    them the third, the better half of these the fourth, and so on. Ties go to the earlier
    configuration and the smaller K.

    Parameters
    ----------
    method : what to tune
    training : rows, folds, protocol and seed
    """
    smallest = min(len(fold.train) for fold in training.folds)
    neighbors = np.array([k for k in method.neighbors(training.protocol) if k <= smallest])
    race = _Race(method, training, neighbors)
    best: _Candidate | None = None
    for stage in method.stages(training.protocol):
        best = race.run(stage, best)
    assert best is not None
    judged = sum(len(fold.test) for fold in training.folds)
    factor = best.factors.get(len(training.folds) - 1)
    k = int(neighbors[best.hits.argmax()])
    return Choice(best.parameters, k, best.best / judged, race.n_fits, factor)


class _Race:
    def __init__(self, method: Method, training: Training, neighbors: IndexArray) -> None:
        self.method, self.training, self.neighbors = method, training, neighbors
        self.n_fits = 0

    def run(self, stage: Stage, base: _Candidate | None) -> _Candidate:
        """The best of the stage's configurations and of ``base``."""
        before = {} if base is None else base.parameters
        none = np.zeros(len(self.neighbors), dtype=np.int64)
        running = [_Candidate({**before, **values}, none) for values in stage.values]
        for number, fold in enumerate(self.training.folds):
            if number >= FOLDS_FOR_ALL:
                running = _better_half(running)
            start = None if base is None else base.factors.get(number)
            self._judge(running, number, fold, start)
        contestants = running if base is None else [base, *running]
        return max(contestants, key=lambda candidate: candidate.best)  # the first of equals

    def _judge(
        self, running: list[_Candidate], number: int, fold: Fold, start: FloatArray | None
    ) -> None:
        """Add the hits of one fold; with warm starts each candidate begins where the last ended."""
        rows = Rows(self.training.X, self.training.y)
        train, test = rows.take(fold.train), rows.take(fold.test)
        for candidate in running:
            learner = self.method.make(
                candidate.parameters, self.training.protocol, self.training.seed, start
            )
            learner.fit(train.X, train.y)
            hits = correct_votes(learner.transform, train, test, self.neighbors)
            candidate.hits = candidate.hits + hits
            self.n_fits += 1
            if self.method.warm:
                candidate.factors[number] = start = learner.components_


def _better_half(candidates: list[_Candidate]) -> list[_Candidate]:
    """In the order of the path; at least one."""
    keep = max(1, len(candidates) // 2)
    ranked = sorted(range(len(candidates)), key=lambda i: -candidates[i].best)
    return [candidates[i] for i in sorted(ranked[:keep])]
