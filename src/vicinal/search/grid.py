"""The values that a search tries, their order, and from which solution each fit starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from vicinal._typing import FloatArray, IndexArray
from vicinal.learners.ann import ANN
from vicinal.learners.neighbor_learner import NeighborLearner
from vicinal.validation.folds import Fold
from vicinal.validation.out_of_fold import Rule

ALPHAS = 2.0 ** np.arange(-4, 5)
GAMMAS = 2.0 ** np.arange(-3, 4)
N_NEIGHBORS = np.arange(1, 47, 3)


@dataclass(frozen=True)
class Grid:
    """Ascending values of α (a,) and γ (g,), and the γ that the search along α is made at."""

    alphas: FloatArray
    gammas: FloatArray
    gamma: float


def check_learner(estimator: object) -> NeighborLearner:
    """The estimator to search with, None being ANN."""
    if estimator is None:
        return ANN()
    if isinstance(estimator, NeighborLearner) and "alpha" in estimator.get_params(deep=False):
        return estimator
    name = type(estimator).__name__
    hint = "; for NCA's objective with a free α use vc.PNCA()" if name == "NCA" else ""
    raise ValueError(f"estimator must be vc.ANN(...) or vc.PNCA(...), got {name}{hint}")


def make_grid(
    estimator: NeighborLearner,
    alphas: ArrayLike | None,
    gammas: ArrayLike | None,
    *,
    separate: bool,
) -> Grid:
    """The (α, γ) to try; None is 2⁻⁴ … 2⁴ with the sign of the estimator's α, and 2⁻³ … 2³.

    A separate search tries the estimator's own γ too. A learner without γ has γ = 1.
    """
    parameters = estimator.get_params(deep=False)
    if alphas is None:
        alphas = -ALPHAS if parameters["alpha"] < 0 else ALPHAS
    if "gamma" not in parameters:
        if gammas is not None:
            name = type(estimator).__name__
            raise ValueError(f"{name} has no gamma to search: leave gammas=None")
        return Grid(_ascending("alphas", alphas), np.ones(1), 1.0)
    values = _ascending("gammas", GAMMAS if gammas is None else gammas)
    if not (values[0] > 0 and np.isfinite(values[-1])):
        raise ValueError(f"gammas={gammas!r} must be positive and finite: γ divides the margin")
    own = float(parameters["gamma"])
    if separate:
        values = np.union1d(values, [own])
    return Grid(_ascending("alphas", alphas), values, own)


def make_n_neighbors(n_neighbors: ArrayLike | None, rule: Rule, folds: list[Fold]) -> IndexArray:
    """The K to try, ascending; None is 1, 4, …, 46, as far as there are so many voters."""
    n_voters = min(len(fold.train) for fold in folds)
    if n_neighbors is None:
        return N_NEIGHBORS[n_voters >= N_NEIGHBORS] if rule == "vote" else N_NEIGHBORS
    ks = np.unique(n_neighbors)
    if ks.dtype.kind not in "iu" or len(ks) == 0 or ks[0] < 1:
        raise ValueError(f"n_neighbors={n_neighbors!r} must be integers ≥ 1")
    if rule == "vote" and ks[-1] > n_voters:
        raise ValueError(
            f"n_neighbors={ks[-1]} cannot vote: the smallest training part of the folds has "
            f"{n_voters} samples. Leave out what is larger, or use rule='class_mean'"
        )
    return np.asarray(ks, dtype=np.intp)


def _ascending(name: str, values: ArrayLike) -> FloatArray:
    try:
        array = np.unique(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError, OverflowError):
        array = np.empty(0)
    if len(array) == 0 or np.isnan(array).any():
        raise ValueError(f"{name}={values!r} must be at least one real number, and none NaN")
    return array


@dataclass(frozen=True, order=True)
class GridPoint:
    """One setting of the objective."""

    alpha: float
    gamma: float


@dataclass(frozen=True)
class Step:
    """One fit: where, and the point whose solution it starts from (None: from the beginning)."""

    point: GridPoint
    start: GridPoint | None


def alpha_steps(alphas: Sequence[float], gamma: float) -> Iterator[Step]:
    """Fits along α at one γ.

    Each sign for itself, from 0 outward: there the soft average of the similar side goes from the
    mean, which is smooth, to the extreme one. Solutions follow easily in this direction and badly
    in the other: at large α the metric grows large, and a fit at small α cannot come back from it.
    """
    for side in ([a for a in alphas if a >= 0], [a for a in alphas if a < 0]):
        before: GridPoint | None = None
        for alpha in sorted(side, key=abs):
            point = GridPoint(alpha, gamma)
            yield Step(point, before)
            before = point


def gamma_steps(alpha: float, gammas: Sequence[float], origin: float) -> Iterator[Step]:
    """Fits along γ at one α, outward from the origin, which has been visited and is left out."""
    below = sorted((g for g in gammas if g < origin), reverse=True)
    above = sorted(g for g in gammas if g > origin)
    for side in (below, above):
        before = GridPoint(alpha, origin)
        for gamma in side:
            point = GridPoint(alpha, gamma)
            yield Step(point, before)
            before = point


def grid_steps(alphas: Sequence[float], gammas: Sequence[float], gamma: float) -> Iterator[Step]:
    """All (α, γ): along α at the grid's γ that is nearest to the given one, and from there along γ.

    Nearest by ratio.
    """
    origin = min(sorted(gammas), key=lambda g: max(g / gamma, gamma / g))
    for step in alpha_steps(alphas, origin):
        yield step
        yield from gamma_steps(step.point.alpha, gammas, origin)


def warm_start_chain(steps: Sequence[Step], point: GridPoint) -> list[Step]:
    """The steps that lead to a point by warm starts, the first one first."""
    by_point = {step.point: step for step in steps}
    path = []
    current: GridPoint | None = point
    while current is not None:
        path.append(by_point[current])
        current = path[-1].start
    return path[::-1]
