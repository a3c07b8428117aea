"""The values that a search tries: given ones, checked, or defaults that suit the estimator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from vicinal._typing import FloatArray, IndexArray
from vicinal.learners.ann import ANN
from vicinal.learners.neighbor_learner import NeighborLearner
from vicinal.search.search_scores import Rule
from vicinal.validation.folds import Fold

ALPHAS = 2.0 ** np.arange(-4, 5)
GAMMAS = 2.0 ** np.arange(-3, 4)
N_NEIGHBORS = np.arange(1, 47, 3)


@dataclass(frozen=True)
class Grid:
    """Ascending values of α (a,) and γ (g,), and the γ that the search along α is made at."""

    alphas: FloatArray
    gammas: FloatArray
    gamma: float


def check_learner(estimator: Any) -> NeighborLearner:
    """The estimator to search with, None being ANN."""
    if estimator is None:
        return ANN()
    if isinstance(estimator, NeighborLearner) and "alpha" in estimator.get_params(deep=False):
        return estimator
    name = type(estimator).__name__
    hint = "; for NCA's objective with a free α use vc.PNCA()" if name == "NCA" else ""
    raise ValueError(f"estimator must be vc.ANN(...) or vc.PNCA(...), got {name}{hint}")


def make_grid(estimator: NeighborLearner, alphas: Any, gammas: Any, *, separate: bool) -> Grid:
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


def make_n_neighbors(n_neighbors: Any, rule: Rule, folds: list[Fold]) -> IndexArray:
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


def _ascending(name: str, values: Any) -> FloatArray:
    array = np.unique(np.asarray(values, dtype=np.float64))
    if len(array) == 0 or np.isnan(array).any():
        raise ValueError(f"{name}={values!r} must be at least one real number, and none NaN")
    return array
