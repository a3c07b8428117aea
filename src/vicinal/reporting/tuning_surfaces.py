"""Section 4: the settings that were tried, and the course of the objective."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.automatic.classifier import ANNClassifier
from vicinal.fitted_model import FittedModel
from vicinal.reporting.findings import Curve, Surface, Tuning
from vicinal.reporting.headline import number
from vicinal.search.search_cv import ANNSearchCV

CURVE_LENGTH = 400
"""Iterates drawn; longer histories are thinned."""


def tuning(fitted: FittedModel) -> Tuning:
    """The surfaces of a search or a committee, none for a learner; the curves of each."""
    if fitted.committee is not None:
        histories = fitted.committee.histories_.items()
        surfaces = _committee_surfaces(fitted.committee)
        return Tuning(surfaces, tuple(_curve(*item) for item in histories))
    surfaces = () if fitted.search is None else _search_surfaces(fitted.search)
    history = getattr(fitted.learner, "history_", None)  # methods in closed form have none
    name = type(fitted.learner).__name__
    return Tuning(surfaces, () if history is None else (_curve(name, history),))


def _curve(name: str, values: Any) -> Curve:
    values = np.asarray(values, dtype=np.float64)
    if len(values) > CURVE_LENGTH:
        values = values[np.linspace(0, len(values) - 1, CURVE_LENGTH).astype(np.intp)]
    return Curve(name, values)


def _search_surfaces(model: ANNSearchCV) -> tuple[Surface, ...]:
    """α × γ and α × K: at every cell the lowest error over what it leaves open."""
    best = model.best_params_
    alpha, gamma = np.asarray(model.alphas_), np.asarray(model.gammas_)
    k = np.asarray(model.n_neighbors_)
    at = [_position(values, best[name]) for values, name in
          ((alpha, "alpha"), (gamma, "gamma"), (k, "n_neighbors"))]  # fmt: skip
    note = "Cross-validated error"
    surfaces = (
        Surface(
            "α × γ", "γ", "α", _names(gamma), _names(alpha),
            np.asarray(model.error_alpha_gamma_, dtype=float), ((at[0], at[1]),), note,
        ),
        Surface(
            "α × K", "K", "α", _names(k), _names(alpha),
            np.asarray(model.error_alpha_k_, dtype=float), ((at[0], at[2]),), note,
        ),
    )  # fmt: skip
    return surfaces if len(gamma) > 1 else surfaces[1:]


def _committee_surfaces(model: ANNClassifier) -> tuple[Surface, ...]:
    """One surface per vote: metrics (configuration and iterate) × K."""
    results = {name: np.asarray(values) for name, values in model.cv_results_.items()}
    return tuple(_vote_surface(model, results, str(vote)) for vote in _in_order(results["vote"]))


def _vote_surface(
    model: ANNClassifier, results: dict[str, NDArray[np.generic]], vote: str
) -> Surface:
    here = results["vote"] == vote
    pairs = zip(results["configuration"][here], results["iterate"][here], strict=True)
    metrics = [(str(name), int(iterate)) for name, iterate in pairs]
    rows = list(dict.fromkeys(metrics))
    columns = sorted({int(k) for k in results["n_neighbors"][here]})
    error = np.full((len(rows), len(columns)), np.nan)
    values = zip(metrics, results["n_neighbors"][here], results["mean_test_error"][here],
                 strict=True)  # fmt: skip
    for metric, k, value in values:
        error[rows.index(metric), columns.index(int(k))] = value
    chosen = tuple(
        (rows.index((choice.configuration, choice.iterate)), columns.index(choice.n_neighbors))
        for choice in model.chosen_
        if choice.vote == vote
    )
    return Surface(
        f"Metric × K, {vote} vote", "K", "metric @ iterate",
        tuple(map(str, columns)), tuple(f"{name} @ {iterate}" for name, iterate in rows),
        error, chosen, "Out-of-fold error",
    )  # fmt: skip


def _names(values: NDArray[np.generic]) -> tuple[str, ...]:
    return tuple(number(value) for value in values)


def _position(values: NDArray[np.generic], value: Any) -> int:
    return int(np.flatnonzero(values == value)[0])


def _in_order(values: NDArray[np.generic]) -> list[Any]:
    """The distinct values in the order of their first appearance."""
    return list(dict.fromkeys(values.tolist()))
