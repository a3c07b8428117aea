"""Section 4: the settings that were tried, and the course of the objective."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vicinal.automatic.classifier import ANNClassifier
from vicinal.automatic.regressor import ANNRegressor
from vicinal.fitted_model import FittedModel
from vicinal.reporting.findings import Curve, Surface, Tuning
from vicinal.reporting.headline import error_of, number
from vicinal.search.search_cv import ANNSearchCV
from vicinal.voting.votes import LEAVES, OF_TREES

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


def _curve(name: str, values: ArrayLike) -> Curve:
    values = np.asarray(values, dtype=np.float64)
    if len(values) > CURVE_LENGTH:
        values = values[np.linspace(0, len(values) - 1, CURVE_LENGTH).astype(np.intp)]
    return Curve(name, values)


def _search_surfaces(model: ANNSearchCV) -> tuple[Surface, ...]:
    """α × γ and α × K: at every cell the lowest error over what it leaves open."""
    alpha, gamma, k = model.alphas_, model.gammas_, model.n_neighbors_
    tried = {"alpha": alpha, "gamma": gamma, "n_neighbors": k}
    at = {name: values.tolist().index(model.best_params_[name]) for name, values in tried.items()}
    note = "Cross-validated error"
    surfaces = (
        Surface(
            "α × γ", "γ", "α", _names(gamma), _names(alpha),
            model.error_alpha_gamma_, ((at["alpha"], at["gamma"]),), note,
        ),
        Surface(
            "α × K", "K", "α", _names(k), _names(alpha),
            model.error_alpha_k_, ((at["alpha"], at["n_neighbors"]),), note,
        ),
    )  # fmt: skip
    return surfaces if len(gamma) > 1 else surfaces[1:]


def _committee_surfaces(model: ANNClassifier | ANNRegressor) -> tuple[Surface, ...]:
    """One surface per vote: metrics (configuration and iterate) × K."""
    votes = dict.fromkeys(model.cv_results_["vote"].tolist())
    return tuple(_vote_surface(model, vote) for vote in votes)


def _vote_surface(model: ANNClassifier | ANNRegressor, vote: str) -> Surface:
    results = model.cv_results_
    here = results["vote"] == vote
    names, iterates, ks, errors = (
        results[name][here].tolist()
        for name in ("configuration", "iterate", "n_neighbors", error_of(model))
    )
    metrics = list(zip(names, iterates, strict=True))
    rows, columns = list(dict.fromkeys(metrics)), sorted(set(ks))
    if vote == LEAVES:  # a forest has one number of rows per leaf, which its iterate names
        columns, ks = columns[:1], columns[:1] * len(ks)
    error = np.full((len(rows), len(columns)), np.nan)
    for metric, k, value in zip(metrics, ks, errors, strict=True):
        error[rows.index(metric), columns.index(k)] = value
    chosen = tuple(
        (
            rows.index((choice.configuration, choice.iterate)),
            0 if vote == LEAVES else columns.index(choice.n_neighbors),
        )
        for choice in model.chosen_
        if choice.vote == vote
    )
    labels = tuple(map(str, columns))
    if vote in OF_TREES:
        labels = ("per leaf",) if vote == LEAVES else ("trees",)
    of_numbers = isinstance(model, ANNRegressor)
    note = "Out-of-fold squared error, of the variance" if of_numbers else "Out-of-fold error"
    return Surface(
        f"Metric × K, {vote} vote", "K", "metric @ iterate",
        labels,
        tuple(f"{name} @ {iterate}" for name, iterate in rows),
        error, chosen, note,
    )  # fmt: skip


def _names(values: NDArray[np.generic]) -> tuple[str, ...]:
    return tuple(number(value) for value in values)
