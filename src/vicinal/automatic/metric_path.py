"""Metrics that the automatic models choose from: iterates along short descents.

Where a descent is stopped is a choice like any other, and the most important one: the first
iterations find directions, the later ones fit the training rows. So the iterates are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from vicinal._typing import FloatArray, IndexArray
from vicinal.automatic.tuning_rows import Descent, TuningRows
from vicinal.features.expansion import Expansion
from vicinal.features.spaces import FeatureSpace, SpaceName, make_spaces
from vicinal.learners.initialization import scale_for_perplexity
from vicinal.learners.labeled_data import LabeledData
from vicinal.solvers import Progress
from vicinal.solvers.lbfgs import lbfgs
from vicinal.validation.schedule import Schedule, run_tasks

START_PERPLEXITY = 10.0
TOL = 1e-7
SINGLE_PRECISION_ROWS = 2000
"""From here on descents run in float32, twice as fast: they are stopped long before it matters."""
EUCLID = "euclid"
STARTS: dict[str, SpaceName] = {
    EUCLID: "standardized",
    "centered": "centered",
    "whitened": "whitened",
    "unfolded": "unfolded",
    "kernel": "kernel",
    "whitened kernel": "whitened kernel",
}
"""The metrics that descents start from are candidates too."""


@dataclass(frozen=True)
class MetricName:
    """An iterate of a descent; every fold has its own metric of that name."""

    configuration: str
    iterate: int


@dataclass(frozen=True)
class TrainingPart:
    """The rows that metrics are learned from, mapped into a feature space."""

    space: FeatureSpace
    voters: TuningRows
    data: LabeledData

    @classmethod
    def of(
        cls, space: FeatureSpace, X: FloatArray, voters: TuningRows, groups: IndexArray | None
    ) -> TrainingPart:
        """The rows X (n, d), mapped into the space."""
        transformed = space.transform(X)
        if len(X) >= SINGLE_PRECISION_ROWS:
            transformed = transformed.astype(np.float32)
        return cls(space, voters, voters.data(transformed, groups))

    def start(self, perplexity: float = START_PERPLEXITY) -> FloatArray:
        """L = √c I (m, m), with c such that a row sees about `perplexity` neighbors."""
        X = self.data.X
        scale = np.sqrt(scale_for_perplexity(X, perplexity)) if len(X) > 1 else 1.0
        return np.asarray(np.eye(X.shape[1]) * scale, dtype=X.dtype)

    def components(self, L: FloatArray) -> FloatArray:
        """(m, d) a factor of ``data.X`` in the units of the samples."""
        return np.asarray(L.astype(np.float64) / self.data.scale @ self.space.axes)


Parts: TypeAlias = dict[SpaceName, TrainingPart]


@dataclass(frozen=True)
class Samples:
    """The rows that are tuned on."""

    X: FloatArray
    """(n, p) the columns of the expansion."""
    voters: TuningRows
    groups: IndexArray | None
    expansion: Expansion
    X_by_fold: Sequence[FloatArray] = ()
    """The same for each fold, where features depend on the targets of its training rows."""

    def in_fold(self, fold: int | None) -> FloatArray:
        """X as it is for a fold; None is all rows."""
        return self.X_by_fold[fold] if fold is not None and self.X_by_fold else self.X

    def parts(self, rows: IndexArray, fold: int | None = None) -> Parts:
        """These rows of a fold as training data of metrics, in every space."""
        X, voters = self.in_fold(fold)[rows], self.voters[rows]
        groups = None if self.groups is None else self.groups[rows]
        return {
            name: TrainingPart.of(space, X, voters, groups)
            for name, space in make_spaces(X, voters.strata, self.expansion).items()
        }


@dataclass(frozen=True)
class MetricPath:
    """The kept iterates of one descent, and the objective of every iteration."""

    iterates: dict[int, FloatArray]
    history: FloatArray


def metric_path(
    part: TrainingPart,
    descent: Descent,
    *,
    iterates: tuple[int, ...],
    stop: Callable[[], bool] = lambda: False,
) -> MetricPath:
    """Descend, and keep the iterates asked for.

    Where the descent converges sooner, its end stands for the later iterates; where `stop` ends
    it, they are missing. Where no row has both a similar and a dissimilar one (every class has one
    row, say), there is nothing to descend, and no iterate.
    """
    objective = part.voters.objective(part.data, descent)
    if objective.n_rows == 0:
        return MetricPath({}, np.empty(0))
    kept: dict[int, FloatArray] = {}

    def keep(progress: Progress) -> bool:
        if progress.n_iter in iterates:
            kept[progress.n_iter] = part.components(progress.params)
        return stop()

    solution = lbfgs(
        objective,
        part.start(descent.perplexity),
        max_iter=iterates[-1],
        tol=TOL,
        callback=keep,
    )
    if solution.stop_reason == "interrupted":
        raise KeyboardInterrupt
    if solution.stop_reason != "callback":
        end = part.components(solution.params)
        kept |= {iterate: end for iterate in iterates if iterate > solution.n_iter}
    return MetricPath(kept, np.asarray(solution.history) / part.data.weights.sum())


@dataclass(frozen=True)
class Paths:
    """The metrics that the descents of all folds have reached."""

    metrics: dict[MetricName, list[FloatArray]]
    """Factors (m, p), one per fold; p columns of samples, with their hats if expanded."""
    histories: dict[str, FloatArray]
    """Mean objective per row, by iteration, over the folds."""


def descents_in(parts: Parts) -> list[Descent]:
    """The descents whose space exists for these rows."""
    descents = next(iter(parts.values())).voters.descents
    return [descent for descent in descents if descent.space in parts]


def starts_in(parts: Parts) -> dict[str, SpaceName]:
    """The starting metrics whose space exists for these rows."""
    return {name: space for name, space in STARTS.items() if space in parts}


def run_descents(
    folds: Sequence[Parts],
    descents: Sequence[Descent],
    schedule: Schedule,
    done: Callable[[str, int], object],
) -> Paths:
    """Run the descents on all folds, and keep the iterates that every fold has reached.

    They run descent by descent, so that the first ones are complete when time is up.
    """

    def descend(task: tuple[Descent, int]) -> MetricPath:
        if deadline.is_over():
            return MetricPath({}, np.empty(0))
        part = folds[task[1]][task[0].space]
        return metric_path(part, task[0], iterates=iterates, stop=deadline.is_over)

    deadline, iterates = schedule.deadline, next(iter(folds[0].values())).voters.iterates
    tasks = [(descent, fold) for descent in descents for fold in range(len(folds))]
    found = run_tasks(descend, tasks, schedule, lambda task, path: done(task[0].name, task[1]))
    metrics = {
        MetricName(name, 0): [starting_metric(parts[space]) for parts in folds]
        for name, space in starts_in(folds[0]).items()
    }
    histories = {}
    for i, descent in enumerate(descents):
        paths = found[i * len(folds) : (i + 1) * len(folds)]
        for iterate in iterates:
            if all(iterate in path.iterates for path in paths):
                name = MetricName(descent.name, iterate)
                metrics[name] = [path.iterates[iterate] for path in paths]
        length = min(len(path.history) for path in paths)
        histories[descent.name] = np.mean([path.history[:length] for path in paths], axis=0)
    return Paths(metrics, histories)


def starting_metric(part: TrainingPart) -> FloatArray:
    """(m, p) the metric of the space itself."""
    return part.components(part.start())
