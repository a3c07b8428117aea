"""Section 5: where the model errs, and which rows are close to it."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import confusion_matrix

from vicinal._typing import FloatArray, IndexArray
from vicinal.reporting.evaluation import Evaluation
from vicinal.reporting.findings import AtRisk, Calibration, Errors, Histogram

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
    """Confusion, figures a class, calibration, and the points of the smallest margins.

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
