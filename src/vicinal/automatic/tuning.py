"""Learn and judge every candidate on every fold: the work behind the automatic classifier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from vicinal._typing import FloatArray, IndexArray
from vicinal.automatic.metric_path import (
    DESCENTS,
    ITERATES,
    Descent,
    MetricPath,
    TrainingPart,
    metric_path,
)
from vicinal.features.hat_basis import HatBasis
from vicinal.features.spaces import SpaceName, make_spaces
from vicinal.kernels.cpu.class_neighbors import Neighbors, all_neighbors
from vicinal.validation.folds import Fold
from vicinal.validation.out_of_fold import gather_out_of_fold
from vicinal.validation.schedule import Schedule, run_tasks
from vicinal.voting.row_weights import VotingRows
from vicinal.voting.votes import (
    N_NEIGHBORS,
    VoteName,
    all_votes,
    rules,
    vote_weights,
)

TINY = 1e-12  # a class of weight 0 has no prior
EUCLID = "euclid"
STARTS: dict[str, SpaceName] = {
    EUCLID: "standardized",
    "centered": "centered",
    "whitened": "whitened",
    "unfolded": "unfolded",
}
"""The metrics that descents start from are candidates too."""


@dataclass(frozen=True)
class MetricName:
    """An iterate of a descent; every fold has its own metric of that name."""

    configuration: str
    iterate: int


@dataclass(frozen=True)
class Candidate:
    """A metric and how its neighbors vote."""

    metric: MetricName
    vote: VoteName
    n_neighbors: int


Parts: TypeAlias = dict[SpaceName, TrainingPart]


@dataclass(frozen=True)
class Samples:
    """The rows that are tuned on."""

    X: FloatArray
    """(n, d), or (n, d + h) where they are unfolded."""
    voters: VotingRows
    groups: IndexArray | None
    basis: HatBasis | None = None

    def parts(self, rows: IndexArray) -> Parts:
        """These rows as training data of metrics, in every space."""
        X, codes, weights = self.X[rows], self.voters.codes[rows], self.voters.weights[rows]
        groups = None if self.groups is None else self.groups[rows]
        return {
            name: TrainingPart.of(space, X, codes, weights, groups)
            for name, space in make_spaces(X, codes, self.basis).items()
        }


@dataclass(frozen=True)
class Paths:
    """What the descents of all folds have found."""

    metrics: dict[MetricName, list[FloatArray]]
    """Factors (m, p), one a fold; p columns of samples, with their hats if unfolded."""
    histories: dict[str, FloatArray]
    """Mean objective a row, by iteration, over the folds."""


def descents_in(parts: Parts) -> list[Descent]:
    """Those whose space is there."""
    return [descent for descent in DESCENTS if descent.space in parts]


def starts_in(parts: Parts) -> dict[str, SpaceName]:
    """Those whose space is there."""
    return {name: space for name, space in STARTS.items() if space in parts}


def run_descents(
    folds: Sequence[Parts], schedule: Schedule, done: Callable[[str, int], object]
) -> Paths:
    """All descents on all folds; kept are the iterates that every fold has reached.

    They run descent by descent, so that the first ones are complete when time is up.
    """

    def descend(task: tuple[Descent, int]) -> MetricPath:
        if deadline.is_over():
            return MetricPath({}, np.empty(0))
        return metric_path(folds[task[1]][task[0].space], task[0], stop=deadline.is_over)

    deadline = schedule.deadline
    descents = descents_in(folds[0])
    tasks = [(descent, fold) for descent in descents for fold in range(len(folds))]
    found = run_tasks(descend, tasks, schedule, lambda task, path: done(task[0].name, task[1]))
    metrics = {
        MetricName(name, 0): [starting_metric(parts[space]) for parts in folds]
        for name, space in starts_in(folds[0]).items()
    }
    histories = {}
    for i, descent in enumerate(descents):
        paths = found[i * len(folds) : (i + 1) * len(folds)]
        for iterate in ITERATES:
            if all(iterate in path.iterates for path in paths):
                name = MetricName(descent.name, iterate)
                metrics[name] = [path.iterates[iterate] for path in paths]
        length = min(len(path.history) for path in paths)
        histories[descent.name] = np.mean([path.history[:length] for path in paths], axis=0)
    return Paths(metrics, histories)


def starting_metric(part: TrainingPart) -> FloatArray:
    """(m, p) the metric of the space itself."""
    return part.components(part.start())


@dataclass(frozen=True)
class Scores:
    """Out-of-fold error and log-loss of every candidate."""

    candidates: list[Candidate]
    errors: FloatArray
    log_losses: FloatArray
    neighbors: dict[tuple[MetricName, int], Neighbors]
    """Of every metric and fold."""


def score_candidates(
    samples: Samples,
    folds: Sequence[Fold],
    metrics: dict[MetricName, list[FloatArray]],
    schedule: Schedule,
) -> Scores:
    """One neighbor search a metric and fold gives the votes for every K."""
    smallest = min(len(fold.train) for fold in folds)
    ks = tuple(k for k in N_NEIGHBORS if k < smallest) or (1,)
    names = [(name, fold) for name in metrics for fold in range(len(folds))]

    def search(task: tuple[MetricName, int]) -> tuple[Neighbors, FloatArray]:
        name, f = task
        Z = samples.X @ metrics[name][f].T
        found = all_neighbors(Z[folds[f].test], Z[folds[f].train], max(ks) + 1, ids=folds[f].train)
        return found, _losses(samples.voters, folds[f].test, found, ks)

    results = run_tasks(search, names, schedule)
    losses = np.sum(
        np.reshape([loss for _, loss in results], (len(metrics), len(folds), -1, 2)), axis=1
    )  # (metrics, rules, 2)
    total = sum(samples.voters.weights[fold.test].sum() for fold in folds)
    candidates = [Candidate(name, vote, k) for name in metrics for vote, k in rules(ks)]
    errors, log_losses = losses.reshape(-1, 2).T / total
    found = {task: result[0] for task, result in zip(names, results, strict=True)}
    return Scores(candidates, errors, log_losses, found)


def _losses(
    voters: VotingRows, test: IndexArray, neighbors: Neighbors, ks: Sequence[int]
) -> FloatArray:
    """(rules, 2) weighted sums of errors and of log-losses over the test rows, for every vote."""
    codes, weights = voters.codes[test], voters.weights[test]
    rows = np.arange(len(test))
    sums = []
    for _, _, P in all_votes(neighbors, voters, ks):
        wrong = P.argmax(axis=1) != codes
        sums.append((weights @ wrong, -weights @ np.log(np.maximum(P[rows, codes], TINY))))
    return np.array(sums)


def out_of_fold(
    samples: Samples, folds: Sequence[Fold], scores: Scores, candidate: Candidate
) -> FloatArray:
    """(n, c) the mean probabilities that a candidate gives to rows that it was not learned from."""
    voters, vote, k = samples.voters, candidate.vote, candidate.n_neighbors
    found = (scores.neighbors[candidate.metric, f] for f in range(len(folds)))
    weights = (vote_weights(neighbors, voters.weights, vote, k) for neighbors in found)
    predictions = (of_fold.class_probabilities(voters) for of_fold in weights)
    prior = np.tile(voters.prior, (len(samples.X), 1))
    return gather_out_of_fold(predictions, folds, prior)
