"""Predicted numbers that a report is measured by, with intervals, and those of plain K-NN."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vicinal._typing import FloatArray, IndexArray
from vicinal.automatic.intervals import conformal_quantiles
from vicinal.automatic.regressor import ANNRegressor
from vicinal.fitted_model import plain_arrays
from vicinal.kernels.cpu.class_neighbors import NeighborIndex
from vicinal.reporting.evaluation import (
    LARGEST_K,
    N_FOLDS,
    N_QUERIES,
    SEED,
    ReportRows,
    column_scaler,
    left_out_neighbors,
)
from vicinal.validation.folds import stratified_folds, stratified_sample
from vicinal.validation.out_of_fold import gather_out_of_fold
from vicinal.voting.neighbor_search import all_search

COVERAGES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
SHOWN_COVERAGE = 0.9
"""Of the intervals that are drawn."""
CALIBRATION_FOLDS = 10


@dataclass(frozen=True)
class NumberEvaluation:
    """Predictions for q rows that the model, or its fold, has not seen."""

    protocol: str
    held_out: bool
    """Whether ``rows`` are rows of the held-out data; else of the training data."""
    rows: IndexArray
    """(q,)"""
    truth: FloatArray
    predicted: FloatArray
    bands: FloatArray
    """(q, s, 2) intervals of the s ``COVERAGES``."""
    coverage_note: str
    plain: FloatArray
    """(q,) what plain K-NN predicts for the same rows."""
    plain_note: str
    mean: float
    """Of the training rows."""

    @property
    def intervals(self) -> FloatArray:
        """(q, 2) the intervals that are drawn."""
        return self.bands[:, COVERAGES.index(SHOWN_COVERAGE)]


def evaluate_numbers(
    model: ANNRegressor, train: ReportRows, test: ReportRows | None
) -> NumberEvaluation:
    """Held-out predictions where there are held-out rows, out-of-fold ones else."""
    assert train.numbers is not None
    y = train.numbers
    if test is None or test.numbers is None:
        return _out_of_fold(model, train, y)
    plain, k = plain_averages(train.A, y, train.codes, test.A, train.of_features)
    with plain_arrays():
        quantiles = model.predict_quantiles(test.A, _shares().ravel())
        predicted = np.asarray(model.predict(test.A))
    return NumberEvaluation(
        protocol=f"Measured on {len(test.numbers):,} held-out rows that took no part in the fit.",
        held_out=True,
        rows=np.arange(len(test.numbers)),
        truth=test.numbers,
        predicted=predicted,
        bands=quantiles.reshape(len(test.numbers), -1, 2),
        coverage_note="on the held-out rows",
        plain=plain,
        plain_note=f"standardized, Euclidean, K = {k} by leave-one-out on the training rows",
        mean=float(y.mean()),
    )


def _out_of_fold(model: ANNRegressor, train: ReportRows, y: FloatArray) -> NumberEvaluation:
    rows = np.asarray(model.oof_rows_, dtype=np.intp)
    A, codes, truth = train.A[rows], train.codes[rows], y[rows]
    folds = stratified_folds(N_FOLDS, codes, None, SEED)
    plain = (
        plain_averages(
            A[fold.train], truth[fold.train], codes[fold.train], A[fold.test], train.of_features
        )[0]
        for fold in folds
    )
    predicted = np.asarray(model.oof_predictions_)
    return NumberEvaluation(
        protocol=f"Out-of-fold predictions of {len(rows):,} training rows: each is predicted by "
        "metrics that did not see it. The settings were chosen on the same folds, so expect "
        "slightly larger errors on new data.",
        held_out=False,
        rows=rows,
        truth=truth,
        predicted=predicted,
        bands=crossed_bands(truth - predicted, np.asarray(model.oof_scales_), predicted),
        coverage_note="out of fold, each tenth of the rows by intervals from the other nine",
        plain=gather_out_of_fold(plain, folds, np.zeros(len(rows))),
        plain_note=f"standardized, Euclidean, {N_FOLDS}-fold on the same rows, K by leave-one-out",
        mean=float(y.mean()),
    )


def crossed_bands(residuals: FloatArray, scales: FloatArray, centers: FloatArray) -> FloatArray:
    """(q, s, 2) intervals of q rows, each from the residuals of the rows of other parts.

    Parameters
    ----------
    residuals, scales, centers : (q,) arrays
    """
    n, scores = len(residuals), residuals / scales
    part = np.random.default_rng(SEED).permutation(n) % min(CALIBRATION_FOLDS, n)
    bands = np.empty((n, len(COVERAGES), 2))
    for fold in range(int(part.max()) + 1):
        here = part == fold
        known = scores[~here] if not here.all() else scores
        found = conformal_quantiles(known[:, None], _shares().ravel()).reshape(-1, 2)
        bands[here] = centers[here, None, None] + scales[here, None, None] * found
    return bands


def _shares() -> FloatArray:
    """(s, 2) shares of the targets below the ends of the intervals."""
    coverages = np.array(COVERAGES)
    return np.column_stack([(1 - coverages) / 2, (1 + coverages) / 2])


def plain_averages(
    A: FloatArray,
    y: FloatArray,
    codes: IndexArray,
    Q: FloatArray,
    of_features: IndexArray | None = None,
) -> tuple[FloatArray, int]:
    """Means of the K nearest of the rows A (n, d) to Q (q, d), standardized, and the K.

    K has the least squared error when each row is left out, of at most 31.

    Parameters
    ----------
    A : (n, d) rows
    y : (n,) their targets
    codes : (n,) intervals of the targets, which a sample is to spread evenly
    Q : (q, d) rows to predict
    of_features : (d,) columns that features were made of; None: every feature is one
    """
    scaler = column_scaler(A, of_features)
    S, largest = scaler.transform(A), min(LARGEST_K, len(A) - 1)
    if largest < 1:
        return np.full(len(Q), y.mean()), 1
    rows = stratified_sample(codes, N_QUERIES)
    counts = np.arange(1, largest + 1)
    means = np.cumsum(y[left_out_neighbors(S, rows, largest)], axis=1) / counts
    k = int(counts[((means - y[rows, None]) ** 2).sum(axis=0).argmin()])
    near = all_search(NeighborIndex(S), "auto")(scaler.transform(Q), k=k).ids
    return y[near].mean(axis=1), k
