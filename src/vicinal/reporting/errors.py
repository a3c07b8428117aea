"""Sections 5 and 6: errors, margins, and how many neighbors count (Lemma 3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator
from sklearn.metrics import confusion_matrix

from vicinal._typing import FloatArray, IndexArray
from vicinal.objective.soft_average import k_for_gamma, soft_average
from vicinal.reporting.evaluation import Evaluation
from vicinal.reporting.findings import AtRisk, Calibration, Errors, Histogram, NeighborsUsed
from vicinal.reporting.headline import number

AT_RISK_SHOWN = 12
BINS = 24


def probability_margins(truth: IndexArray, probabilities: FloatArray) -> FloatArray:
    """(q,) p_true − max of the others: negative where the row is taken for another class."""
    own = probabilities[np.arange(len(truth)), truth]
    others = probabilities.copy()
    others[np.arange(len(truth)), truth] = -np.inf
    return np.asarray(own - others.max(axis=1))


def histogram(values: FloatArray, name: str, note: str) -> Histogram:
    """Counts over at most 24 equal bins; values that are not finite are left out."""
    values = values[np.isfinite(values)]
    if not len(values):
        return Histogram(name, note, np.array([0.0, 1.0]), np.zeros(1, dtype=np.intp), np.nan)
    distinct = len(np.unique(values))
    counts, edges = np.histogram(values, bins=max(1, min(BINS, distinct)))
    return Histogram(name, note, edges, counts, float(np.median(values)))


def calibration(truth: IndexArray, probabilities: FloatArray) -> Calibration:
    """Rows by the probability of their predicted class, in ten equal steps; empty ones dropped."""
    confidence = probabilities.max(axis=1)
    right = np.argmax(probabilities, axis=1) == truth
    step = np.minimum((confidence * 10).astype(np.intp), 9)
    members = [np.flatnonzero(step == s) for s in np.unique(step)]
    return Calibration(
        promised=np.array([confidence[rows].mean() for rows in members]),
        came_true=np.array([right[rows].mean() for rows in members]),
        counts=np.array([len(rows) for rows in members], dtype=np.intp),
    )


def errors(evaluation: Evaluation, margins: FloatArray, points: IndexArray, name: str) -> Errors:
    """Confusion, figures per class, calibration, and the points of the smallest margins.

    Parameters
    ----------
    evaluation : predictions of the rows of the headline
    margins, points : (p,) margins of the points on the map that they are known for
    name : what the margins are
    """
    truth, c = evaluation.truth, evaluation.probabilities.shape[1]
    confusion = confusion_matrix(truth, evaluation.predicted, labels=np.arange(c))
    hits = np.diag(confusion).astype(float)
    with np.errstate(invalid="ignore"):
        precision, recall = hits / confusion.sum(axis=0), hits / confusion.sum(axis=1)
    known = np.flatnonzero(np.isfinite(margins))
    smallest = known[np.argsort(margins[known], kind="stable")[:AT_RISK_SHOWN]]
    return Errors(
        confusion=confusion,
        precision=precision,
        recall=recall,
        support=confusion.sum(axis=1),
        margin_name=name,
        margins=histogram(margins, "Margin", name),
        at_risk=tuple(AtRisk(int(points[i]), float(margins[i])) for i in smallest),
        calibration=calibration(truth, evaluation.probabilities),
    )


def committee_neighbors(effective: FloatArray) -> NeighborsUsed:
    """The effective K of every row, (q,), mean over the members."""
    note = (
        f"{len(effective):,} rows; exponent 1: the mean over so many of the nearest, averaged over "
        "the metrics."
    )
    return NeighborsUsed((histogram(effective, "Of the predicted class", note),), "")


def learner_neighbors(used: RowSides, sides: Sides) -> NeighborsUsed:
    """The K of the K-nearest mean that each row's soft average equals, on both sides."""
    if sides.n_neighbors is not None:
        return NeighborsUsed(
            (),
            f"This method has no soft average: every row uses the same K = {sides.n_neighbors}.",
        )
    ends = "nearest" if sides.alpha > 0 else "farthest"
    among = "" if sides.similar is None else f" of the {sides.similar} nearest"
    return NeighborsUsed(
        (
            histogram(
                used.k_similar,
                "Of the row's own class",
                f"α = {number(sides.alpha)}: the mean over so many of the {ends}{among}.",
            ),
            histogram(
                used.k_dissimilar,
                "Of the other classes",
                "Exponent 1: the mean over so many of the nearest.",
            ),
        ),
        "",
    )


@dataclass(frozen=True)
class Sides:
    """The averages of a learner: exponents, and how many of the class are similar."""

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


def sides_of(learner: BaseEstimator, n_neighbors: int) -> Sides:
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
