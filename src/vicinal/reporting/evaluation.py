"""The predictions that a report is measured by: held out, or out of fold."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from vicinal._typing import FloatArray, IndexArray
from vicinal.automatic.classifier import ANNClassifier
from vicinal.exceptions import ExcludedRowsWarning
from vicinal.fitted_model import FittedModel
from vicinal.reporting.plain_knn import plain_predictions
from vicinal.validation.folds import Fold, stratified_folds
from vicinal.validation.out_of_fold import gather_out_of_fold

N_FOLDS = 5
SEED = 0  # the same data give the same page


@dataclass(frozen=True)
class ReportRows:
    """Rows as given to the model, as features of the metric, and their class codes."""

    X: Any
    A: FloatArray
    """(n, d) what the leading steps make of X."""
    codes: IndexArray
    """(n,)"""


@dataclass(frozen=True)
class Evaluation:
    """Predictions for rows that the model, or its fold, has not seen."""

    protocol: str
    held_out: bool
    """Whether ``rows`` are rows of the held-out data; else of the training data."""
    rows: IndexArray
    """(q,)"""
    truth: IndexArray
    probabilities: FloatArray
    """(q, c)"""
    plain: IndexArray
    """(q,) classes that plain K-NN predicts for the same rows."""
    plain_note: str
    majority: IndexArray
    """(q,) the most frequent class of the training rows."""

    @property
    def predicted(self) -> IndexArray:
        return np.argmax(self.probabilities, axis=1)


def evaluate(
    fitted: FittedModel, classes: NDArray[Any], train: ReportRows, test: ReportRows | None
) -> Evaluation:
    """Held-out predictions where there are held-out rows, out-of-fold ones else."""
    if test is not None:
        return _held_out(fitted, classes, train, test)
    if fitted.committee is not None:
        return _out_of_fold(fitted.committee, classes, train)
    return _cross_validated(fitted, classes, train)


def aligned(probabilities: FloatArray, known: NDArray[Any], classes: NDArray[Any]) -> FloatArray:
    """(q, c) over all the classes from columns of the ``known`` ones."""
    full = np.zeros((len(probabilities), len(classes)))
    full[:, np.searchsorted(classes, known)] = probabilities
    return full


def _held_out(
    fitted: FittedModel, classes: NDArray[Any], train: ReportRows, test: ReportRows
) -> Evaluation:
    votes = fitted.voting().fitted_to(train.A, classes[train.codes])
    plain, k = plain_predictions(train.A, train.codes, test.A)
    return Evaluation(
        protocol=f"Measured on {len(test.codes):,} held-out rows that took no part in the fit.",
        held_out=True,
        rows=np.arange(len(test.codes)),
        truth=test.codes,
        probabilities=aligned(votes.probabilities(test.A), votes.classes, classes),
        plain=plain,
        plain_note=f"standardized, Euclidean, K = {k} by leave-one-out on the training rows",
        majority=np.full(len(test.codes), np.bincount(train.codes).argmax()),
    )


def _out_of_fold(model: ANNClassifier, classes: NDArray[Any], train: ReportRows) -> Evaluation:
    rows = np.asarray(model.oof_rows_, dtype=np.intp)
    codes = train.codes[rows]
    return Evaluation(
        protocol=f"Out-of-fold predictions of {len(rows):,} training rows: each is predicted by "
        "metrics that did not see it. The settings were chosen on the same folds, so expect "
        "slightly less on new data.",
        held_out=False,
        rows=rows,
        truth=codes,
        probabilities=aligned(np.asarray(model.oof_proba_), model.classes_, classes),
        plain=_plain_out_of_fold(train.A[rows], codes, _folds(codes)),
        plain_note=f"standardized, Euclidean, {N_FOLDS}-fold on the same rows, K by leave-one-out",
        majority=np.full(len(rows), np.bincount(train.codes).argmax()),
    )


def _cross_validated(fitted: FittedModel, classes: NDArray[Any], train: ReportRows) -> Evaluation:
    n, codes = len(train.codes), train.codes
    folds = _folds(codes)

    def predict(fold: Fold) -> FloatArray:
        model = _refitted(fitted, train.X, classes[codes], fold.train)
        queries = _safe_indexing(train.X, fold.test)
        return aligned(model.predict_proba(queries), model.classes_, classes)

    def most_frequent(fold: Fold) -> IndexArray:
        return np.full(len(fold.test), np.bincount(codes[fold.train]).argmax())

    tuned = fitted.search is not None
    return Evaluation(
        protocol=f"{N_FOLDS}-fold cross-validation of {n:,} rows: each is predicted by a metric "
        "learned without it."
        + (" The settings were chosen on all the rows, so expect slightly less." if tuned else ""),
        held_out=False,
        rows=np.arange(n),
        truth=codes,
        probabilities=gather_out_of_fold(map(predict, folds), folds, np.zeros((n, len(classes)))),
        plain=_plain_out_of_fold(train.A, codes, folds),
        plain_note="standardized, Euclidean, the same folds, K by leave-one-out",
        majority=gather_out_of_fold(map(most_frequent, folds), folds, np.zeros_like(codes)),
    )


def _folds(codes: IndexArray) -> list[Fold]:
    return stratified_folds(N_FOLDS, codes, None, SEED)


def _plain_out_of_fold(A: FloatArray, codes: IndexArray, folds: list[Fold]) -> IndexArray:
    """(n,) classes that plain K-NN predicts for the rows A (n, d), by the folds without them."""
    predictions = (
        plain_predictions(A[fold.train], codes[fold.train], A[fold.test])[0] for fold in folds
    )
    return gather_out_of_fold(predictions, folds, np.zeros_like(codes))


def _refitted(fitted: FittedModel, X: Any, y: NDArray[Any], rows: IndexArray) -> Pipeline:
    """The model, fitted to some of the rows."""
    with warnings.catch_warnings():  # the fit of all the rows has said so already
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", ExcludedRowsWarning)
        return fitted.unfitted().fit(_safe_indexing(X, rows), y[rows])
