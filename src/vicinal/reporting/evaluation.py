"""The predictions that a report is measured by, and those of plain K-NN for comparison."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing

from vicinal._typing import FloatArray, IndexArray, Table
from vicinal.automatic.classifier import ANNClassifier
from vicinal.exceptions import ExcludedRowsWarning
from vicinal.fitted_model import FittedModel
from vicinal.kernels.cpu.class_neighbors import NeighborIndex
from vicinal.validation.folds import Fold, stratified_folds, stratified_sample
from vicinal.validation.out_of_fold import gather_out_of_fold
from vicinal.voting.class_mean import ClassMeanKNN
from vicinal.voting.neighbor_search import all_search
from vicinal.voting.votes import majorities

LabelValues: TypeAlias = NDArray[np.generic]

N_FOLDS = 5
LARGEST_K = 31
N_QUERIES = 5_000
"""Rows whose left-out votes choose K; more would not change it."""
SEED = 0  # the same data give the same page


@dataclass(frozen=True)
class ReportRows:
    """Rows as given to the model, as features of the metric, and their targets."""

    X: Table
    A: FloatArray
    """(n, d) what the leading steps make of X."""
    codes: IndexArray
    """(n,) classes; of numbers the intervals that samples and folds are to spread evenly."""
    numbers: FloatArray | None = None
    """(n,) where numbers are predicted."""
    of_features: IndexArray | None = None
    """(d,) the column that each feature was made of; None: every feature is one."""


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
    fitted: FittedModel, classes: LabelValues, train: ReportRows, test: ReportRows | None
) -> Evaluation:
    """Held-out predictions where there are held-out rows, out-of-fold ones else."""
    if test is not None:
        return _held_out(fitted, classes, train, test)
    if fitted.committee is not None:
        return _out_of_fold(fitted.committee, classes, train)
    return _cross_validated(fitted, classes, train)


def aligned(probabilities: FloatArray, known: LabelValues, classes: LabelValues) -> FloatArray:
    """(q, c) over all the classes from columns of the ``known`` ones."""
    full = np.zeros((len(probabilities), len(classes)))
    full[:, np.searchsorted(classes, known)] = probabilities
    return full


def _held_out(
    fitted: FittedModel, classes: LabelValues, train: ReportRows, test: ReportRows
) -> Evaluation:
    votes = fitted.voting().fitted_to(train.A, classes[train.codes])
    plain, k = plain_predictions(train.A, train.codes, test.A, train.of_features)
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


def _out_of_fold(model: ANNClassifier, classes: LabelValues, train: ReportRows) -> Evaluation:
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
        plain=_plain_out_of_fold(train.A[rows], codes, _folds(codes), train.of_features),
        plain_note=f"standardized, Euclidean, {N_FOLDS}-fold on the same rows, K by leave-one-out",
        majority=np.full(len(rows), np.bincount(train.codes).argmax()),
    )


def _cross_validated(fitted: FittedModel, classes: LabelValues, train: ReportRows) -> Evaluation:
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
        plain=_plain_out_of_fold(train.A, codes, folds, train.of_features),
        plain_note="standardized, Euclidean, the same folds, K by leave-one-out",
        majority=gather_out_of_fold(map(most_frequent, folds), folds, np.zeros_like(codes)),
    )


def _folds(codes: IndexArray) -> list[Fold]:
    return stratified_folds(N_FOLDS, codes, None, SEED)


def _plain_out_of_fold(
    A: FloatArray, codes: IndexArray, folds: list[Fold], of_features: IndexArray | None
) -> IndexArray:
    """(n,) classes that plain K-NN predicts for the rows A (n, d), by the folds without them."""
    predictions = (
        plain_predictions(A[fold.train], codes[fold.train], A[fold.test], of_features)[0]
        for fold in folds
    )
    return gather_out_of_fold(predictions, folds, np.zeros_like(codes))


def _refitted(fitted: FittedModel, X: Table, y: LabelValues, rows: IndexArray) -> Pipeline:
    """The model, fitted to some of the rows."""
    with warnings.catch_warnings():  # the fit of all the rows has said so already
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", ExcludedRowsWarning)
        return fitted.unfitted().fit(_safe_indexing(X, rows), y[rows])


def plain_predictions(
    A: FloatArray, codes: IndexArray, Q: FloatArray, of_features: IndexArray | None = None
) -> tuple[IndexArray, int]:
    """Codes that plain K-NN on the rows A (n, d) predicts for Q (q, d), and its K."""
    voter = plain_voter(A, codes, of_features)
    return np.asarray(voter.predict(Q), dtype=np.intp), int(voter[-1].n_neighbors)


def plain_voter(
    A: FloatArray, codes: IndexArray, of_features: IndexArray | None = None
) -> Pipeline:
    """Plain K-NN on the rows A (n, d), standardized, with K by leave-one-out."""
    scaler = column_scaler(A, of_features)
    S = scaler.transform(A)
    k = left_out_k(S, codes)
    return make_pipeline(scaler, ClassMeanKNN(k, rule="vote").fit(S, codes))


def column_scaler(A: FloatArray, of_features: IndexArray | None) -> StandardScaler:
    """A scaler fitted to the rows A (n, d): the variances of the features of a column sum to 1."""
    scaler = StandardScaler().fit(A)
    if of_features is not None:
        variances = np.bincount(of_features, scaler.var_)[of_features]
        scaler.scale_ = np.sqrt(np.where(variances > 0, variances, 1.0))
    return scaler


def left_out_k(S: FloatArray, codes: IndexArray) -> int:
    """The odd K up to 31 with the fewest leave-one-out errors; the smallest of equals."""
    largest = min(LARGEST_K, len(S) - 1)
    if largest < 1:
        return 1
    rows = stratified_sample(codes, N_QUERIES)
    candidates = range(1, largest + 1, 2)
    predicted = majorities(codes[left_out_neighbors(S, rows, largest)], candidates)
    return candidates[int(np.argmax((predicted == codes[rows]).sum(axis=1)))]


def left_out_neighbors(S: FloatArray, rows: IndexArray, k: int) -> IndexArray:
    """(q, k) nearest others of some of the rows of S, nearest first."""
    return all_search(NeighborIndex(S), "auto")(S[rows], k=k, exclude=rows).ids


def left_out_votes(Z: FloatArray, codes: IndexArray, rows: IndexArray, k: int) -> IndexArray:
    """(q,) class of most of the k nearest others; ties go to the class with the nearest of them."""
    k = min(k, len(Z) - 1)
    return majorities(codes[left_out_neighbors(Z, rows, k)], [k])[0]
