"""The metrics that the automatic classifier chooses from: iterates along short descents.

Where a descent is stopped is a choice like any other, and the most important one: the first
iterations find directions, the later ones fit the training rows. So the iterates are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from vicinal._typing import FloatArray, IndexArray
from vicinal.features.spaces import FeatureSpace, SpaceName
from vicinal.kernels import make_kernel
from vicinal.learners.initialization import scale_for_perplexity
from vicinal.learners.labeled_data import LabeledData, sort_by_class
from vicinal.objective.losses import get_loss
from vicinal.objective.neighbor_objective import NeighborObjective, plain_shift
from vicinal.objective.neighbor_sets import build_comparisons
from vicinal.objective.parametrization import Factor
from vicinal.solvers import Progress
from vicinal.solvers.lbfgs import lbfgs

ITERATES = (2, 5, 10, 20, 40)
START_PERPLEXITY = 10.0
TOL = 1e-7
SINGLE_PRECISION_ROWS = 2000
"""From here on descents run in float32, twice as fast: they are stopped long before it matters."""


@dataclass(frozen=True)
class Descent:
    """One way down the objective with γ = α = 1, λ = 0 and the whole class similar."""

    name: str
    space: SpaceName
    loss: str
    plain: bool
    perplexity: float
    """Mean number of neighbors that a row sees at the start, which sets its scale."""


DESCENTS = (
    Descent("logistic", "standardized", "logistic", True, 30.0),
    Descent("whitened logistic", "whitened", "logistic", True, 30.0),
    Descent("centered logistic", "centered", "logistic", True, 30.0),
    Descent("whitened hinge", "whitened", "hinge", False, 10.0),
    Descent("unfolded logistic", "unfolded", "logistic", True, 30.0),
)


@dataclass(frozen=True)
class TrainingPart:
    """The rows that metrics are learned from, mapped into a feature space and sorted by class."""

    space: FeatureSpace
    data: LabeledData

    @classmethod
    def of(
        cls,
        space: FeatureSpace,
        X: FloatArray,
        codes: IndexArray,
        weights: FloatArray,
        groups: IndexArray | None,
    ) -> TrainingPart:
        """The rows X (n, d) of classes `codes`, mapped into the space."""
        transformed = space.transform(X)
        if len(X) >= SINGLE_PRECISION_ROWS:
            transformed = transformed.astype(np.float32)
        return cls(space, sort_by_class(transformed, codes, sample_weight=weights, groups=groups))

    def start(self, perplexity: float = START_PERPLEXITY) -> FloatArray:
        """L = √c I (m, m), with c such that a row sees about `perplexity` neighbors."""
        X = self.data.X
        scale = np.sqrt(scale_for_perplexity(X, perplexity))
        return np.asarray(np.eye(X.shape[1]) * scale, dtype=X.dtype)

    def components(self, L: FloatArray) -> FloatArray:
        """(m, d) a factor of ``data.X`` in the units of the samples."""
        return np.asarray(L.astype(np.float64) / self.data.scale @ self.space.axes)


@dataclass(frozen=True)
class MetricPath:
    """The kept iterates of one descent, and the objective of every iteration."""

    iterates: dict[int, FloatArray]
    history: FloatArray


def metric_path(
    part: TrainingPart,
    descent: Descent,
    *,
    iterates: tuple[int, ...] = ITERATES,
    stop: Callable[[], bool] = lambda: False,
) -> MetricPath:
    """Descend, and keep the iterates asked for.

    Where the descent converges sooner, its end stands for the later iterates; where `stop` ends
    it, they are missing. Where no row has both a similar and a dissimilar one (every class has one
    row, say), there is nothing to descend, and no iterate.
    """
    objective = _objective(part.data, descent)
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


def _objective(data: LabeledData, descent: Descent) -> NeighborObjective:
    comparisons = build_comparisons(data.X, data.offsets, groups=data.groups, may_be_empty=True)
    n, m = data.X.shape
    return NeighborObjective(
        X=data.X,
        comparisons=comparisons,
        kernel=make_kernel(comparisons, "auto"),
        parametrization=Factor(),
        loss=get_loss(descent.loss),
        alpha=1.0,
        gamma=1.0,
        shift=plain_shift(comparisons, 1.0) if descent.plain else np.zeros(n),
        weights=data.weights,
        pull=np.zeros((m, m)),
    )
