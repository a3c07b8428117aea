"""Scores of predictions: of classes with their probabilities, and of numbers with intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest, rankdata

from vicinal._typing import FloatArray, IndexArray

RARE_SHARE = 0.2
"""A class is rare below this part of the share that it would have if all were equally frequent."""
LEAST = 1e-15
"""A probability of 0 counts as this in the log-loss."""


@dataclass(frozen=True)
class ScoresOfClass:
    """Scores of one class; None where they are not defined."""

    label: object
    rows: int
    precision: float | None
    """Share of the rows said to be of the class that are."""
    recall: float | None
    """Share of the rows of the class that are said to be."""
    f1: float | None


@dataclass(frozen=True)
class ClassificationScores:
    """Scores of the predicted classes of some rows.

    Attributes
    ----------
    rows : int
    accuracy : float
    interval : list of two floats
        95 % Wilson interval of the accuracy.
    balanced_accuracy : float
        Mean recall of the classes that occur.
    roc_auc : float or None
        Of two classes the area under the ROC curve, of more the mean over each against the rest;
        None with one class.
    log_loss : float
    classes : list of ScoresOfClass
    """

    rows: int
    accuracy: float
    interval: list[float]
    balanced_accuracy: float
    roc_auc: float | None
    log_loss: float
    classes: list[ScoresOfClass]

    @property
    def rarest(self) -> ScoresOfClass | None:
        """The rarest class that occurs, if it is so rare that accuracy says little about it."""
        there = [one for one in self.classes if one.rows]
        rarest = min(there, key=lambda one: one.rows)
        is_rare = rarest.rows * len(there) < RARE_SHARE * self.rows
        return rarest if is_rare else None


def wilson_interval(correct: int, total: int) -> tuple[float, float]:
    """The 95 % Wilson score interval of the proportion correct/total."""
    interval = binomtest(correct, total).proportion_ci(method="wilson")
    return float(interval.low), float(interval.high)


def classification_scores(
    truth: IndexArray, predicted: IndexArray, P: FloatArray, labels: NDArray[np.generic]
) -> ClassificationScores:
    """Scores of predicted classes and probabilities.

    Parameters
    ----------
    truth : (n,) codes of the classes; -1 where a row is of none of them
    predicted : (n,) codes
    P : (n, c) probabilities
    labels : (c,) the classes
    """
    n, right = len(truth), predicted == truth
    classes = [
        _scores_of_class(label, truth == code, predicted == code)
        for code, label in enumerate(labels.tolist())
    ]
    recalls = [one.recall for one in classes if one.recall is not None]
    own = np.where(truth >= 0, P[np.arange(n), truth], 0.0)
    return ClassificationScores(
        rows=n,
        accuracy=float(right.mean()),
        interval=list(wilson_interval(int(right.sum()), n)),
        balanced_accuracy=float(np.mean(recalls)) if recalls else 0.0,
        roc_auc=_roc_auc(truth, P),
        log_loss=float(-np.log(np.maximum(own, LEAST)).mean()),
        classes=classes,
    )


def _scores_of_class(
    label: object, there: NDArray[np.bool_], said: NDArray[np.bool_]
) -> ScoresOfClass:
    hits = int((there & said).sum())
    rows, calls = int(there.sum()), int(said.sum())
    return ScoresOfClass(
        label,
        rows,
        hits / calls if calls else None,
        hits / rows if rows else None,
        2 * hits / (rows + calls) if rows + calls else None,
    )


def _roc_auc(truth: IndexArray, P: FloatArray) -> float | None:
    """The mean over the classes, each against all others, by ranks (ties count a half)."""
    codes = [1] if P.shape[1] == 2 else range(P.shape[1])
    areas = []
    for code in codes:
        there = truth == code
        positive, negative = int(there.sum()), int((~there).sum())
        if positive and negative:
            ranks = rankdata(P[:, code])[there].sum()
            areas.append((ranks - positive * (positive + 1) / 2) / (positive * negative))
    return float(np.mean(areas)) if areas else None


@dataclass(frozen=True)
class NumberScores:
    """Scores of predicted numbers.

    Attributes
    ----------
    rows : int
    rmse, mae : float
        Root of the mean squared error, and mean absolute error, in units of the target.
    r2 : float
        1 − squared error / variance.
    coverage : float or None
        Share of the rows inside of their 90 % intervals.
    """

    rows: int
    rmse: float
    mae: float
    r2: float
    coverage: float | None = None


def number_scores(
    truth: FloatArray, predicted: FloatArray, intervals: FloatArray | None = None
) -> NumberScores:
    """Scores of predictions (n,), and of intervals (n, 2) where there are any."""
    errors = truth - predicted
    spread = float(((truth - truth.mean()) ** 2).mean())
    squared = float((errors**2).mean())
    inside = None
    if intervals is not None:
        inside = float(((truth >= intervals[:, 0]) & (truth <= intervals[:, 1])).mean())
    r2 = 1.0 - squared / spread if spread > 0 else 0.0
    return NumberScores(len(truth), squared**0.5, float(np.abs(errors).mean()), r2, inside)
