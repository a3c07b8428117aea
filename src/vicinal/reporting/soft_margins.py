"""The soft averages s_i, t_i of any rows under the learned metric: margins and effective K."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from vicinal._typing import FloatArray, IndexArray
from vicinal.objective.soft_average import k_for_gamma, soft_average


@dataclass(frozen=True)
class Sides:
    """How a learner averages: exponents, and how many of the class are similar."""

    alpha: float
    gamma: float
    similar: int | None
    """The k nearest of the class in the space of the features; None: all of it."""
    plain: bool = False
    """Soft averages without the 1/n, as NCA has them."""
    n_neighbors: int | None = None
    """K of a learner without soft averages: plain means of the K nearest; exponents unused."""


@dataclass(frozen=True)
class References:
    """The training rows that margins are measured against."""

    A: FloatArray
    """(n, d) features."""
    Z: FloatArray
    """(n, m) learned space."""
    codes: IndexArray


@dataclass(frozen=True)
class RowSides:
    """Of q rows: s_i, t_i and how many of either side count; NaN where a side is empty."""

    s: FloatArray
    t: FloatArray
    k_similar: FloatArray
    k_dissimilar: FloatArray


def sides_of(learner: Any, n_neighbors: int) -> Sides:
    """α, γ and the similar set of a learner; hard means of K neighbors if it has none."""
    if not hasattr(learner, "_configuration"):
        return Sides(np.inf, 1.0, None, n_neighbors=n_neighbors)
    configuration = learner._configuration()
    similar = configuration.similar
    return Sides(
        alpha=configuration.alpha,
        gamma=configuration.gamma,
        similar=int(similar) if isinstance(similar, int) else None,
        plain=configuration.plain,
    )


def row_sides(rows: References, own: IndexArray, to: References, sides: Sides) -> RowSides:
    """s_i = b(α; d_ij of the class) and t_i = b(1; d_il of the others), as the objective has them.

    Parameters
    ----------
    rows : the q rows
    own : (q,) their place among ``to``, which is left out; -1: not among them
    to : the training rows
    sides : exponents

    Returns
    -------
    RowSides
    """
    out = np.full((4, len(rows.codes)), np.nan)
    for i, code in enumerate(rows.codes):
        d = cdist(rows.Z[i : i + 1], to.Z, "sqeuclidean")[0]  # (n,)
        present = np.arange(len(d)) != own[i]
        similar = np.flatnonzero(present & (to.codes == code))
        if sides.similar is not None and len(similar) > sides.similar:
            near = cdist(rows.A[i : i + 1], to.A[similar], "sqeuclidean")[0]
            similar = similar[np.argsort(near, kind="stable")[: sides.similar]]
        dissimilar = d[to.codes != code]
        if len(similar) and len(dissimilar):
            averages = (_average(d[similar], sides.alpha, sides), _average(dissimilar, 1.0, sides))
            out[:, i] = [average for pair in zip(*averages, strict=True) for average in pair]
    return RowSides(*out)


def _average(d: FloatArray, exponent: float, sides: Sides) -> tuple[float, float]:
    """The average of the squared distances, and how many count."""
    if sides.n_neighbors is None:
        return float(soft_average(d, exponent, plain=sides.plain)), k_for_gamma(d, exponent)
    k = min(sides.n_neighbors, len(d))
    return float(np.partition(d, k - 1)[:k].mean()), float(k)
