"""The text about a fitted automatic model: what was tried, and what was chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from vicinal.automatic.committee import Choice
from vicinal.voting.votes import WITHOUT_K

if TYPE_CHECKING:
    from vicinal.automatic.classifier import ANNClassifier
    from vicinal.automatic.regressor import ANNRegressor


def describe(model: ANNClassifier) -> str:
    """The report of a fitted :class:`~vicinal.ANNClassifier`."""
    results = model.cv_results_
    euclid = results["configuration"] == "euclid"
    single = 1.0 - float(results["mean_test_error"][results["rank_test_score"] == 1][0])
    scores = [
        "Out-of-fold accuracy:",
        f"  {'committee' if model.mode == 'committee' else 'chosen':<24} {model.best_score_:.4f}",
        f"  {'best single candidate':<24} {single:.4f}",
        f"  {'best Euclidean K-NN':<24} {1.0 - results['mean_test_error'][euclid].min():.4f}",
        f"  {'largest class':<24} {float(np.max(model.prior_)):.4f}",
        *_calibration(model),
    ]
    return _description(model, f", {len(model.classes_)} classes", scores)


def describe_numbers(model: ANNRegressor) -> str:
    """The report of a fitted :class:`~vicinal.ANNRegressor`."""
    results = model.cv_results_
    euclid = results["configuration"] == "euclid"
    errors = results["mean_test_squared_error"]
    scores = [
        "Out-of-fold R²:",
        f"  {'committee' if model.mode == 'committee' else 'chosen':<24} {model.best_score_:.4f}",
        f"  {'best single candidate':<24} {1.0 - errors.min():.4f}",
        f"  {'best Euclidean K-NN':<24} {1.0 - errors[euclid].min():.4f}",
    ]
    if model.shrinkage_ > 0:
        scores.append(f"Every prediction has the mean target in it with {model.shrinkage_:.1%}.")
    return _description(model, "", scores)


def _description(model: ANNClassifier | ANNRegressor, targets: str, scores: Sequence[str]) -> str:
    """The lines about what was tried, the scores, and what was chosen."""
    results = model.cv_results_
    n_metrics = len(set(zip(results["configuration"], results["iterate"], strict=True)))
    n_tried, n, d = len(results["vote"]), model.n_samples_fit_, model.n_features_in_
    lines = [
        f"{type(model).__name__}, {model.mode}: {n} rows, {d} features{targets}",
        f"Fitted in {model.fit_time_:.1f} s, tuned on {len(model.oof_rows_)} rows.",
        f"Tried {n_tried} candidates: {n_metrics} metrics with every K and vote.",
        *scores,
        "Chosen:",
        *_table(model.chosen_),
    ]
    if model.timed_out_:
        lines.append("The time limit ended the search early: this is the best found until then.")
    return "\n".join(lines)


def _calibration(model: ANNClassifier) -> list[str]:
    if model.exponent_ == 1.0 or model.calibration_error_ is None:
        return []
    before, after = model.calibration_error_
    gained = f"out-of-fold calibration error {before:.4f} before, {after:.4f} after"
    return [f"Probabilities: exponent {model.exponent_:.2f}, {gained}."]


def _table(chosen: Sequence[Choice]) -> list[str]:
    head = f"  {'weight':>6}  {'configuration':<24} {'iterate':>7}  {'vote':<18} {'K':>3}"
    rows = [
        f"  {c.weight:>6.3f}  {c.configuration:<24} {c.iterate:>7}  {c.vote:<18} "
        + ("" if c.vote in WITHOUT_K else f"{c.n_neighbors:>3}")
        for c in chosen
    ]
    return [head, *(row.rstrip() for row in rows)]
