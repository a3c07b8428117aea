"""Section 1: accuracies, what they are compared with, and the settings that were chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from vicinal.automatic.classifier import ANNClassifier
from vicinal.automatic.committee import Choice
from vicinal.automatic.regressor import ANNRegressor
from vicinal.fitted_model import FittedModel
from vicinal.learners.base import MetricLearner
from vicinal.reporting.evaluation import Evaluation
from vicinal.reporting.findings import AccuracyScore, Chosen, Headline
from vicinal.search.search_cv import ANNSearchCV
from vicinal.validation.scores import wilson_interval
from vicinal.voting.votes import BOOSTED, GLOBAL_LINES, OF_TREES

SYMBOLS = {"alpha": "α", "gamma": "γ", "n_neighbors": "K"}
MEANINGS = {
    "alpha": "how many of a row's own class count",
    "gamma": "how sharply the loss reacts to the margin",
    "n_neighbors": "how many neighbors decide",
}


def headline(evaluation: Evaluation, chosen: tuple[Chosen, ...]) -> Headline:
    """The three accuracies on the same rows, and the sign test of the first two."""
    truth = evaluation.truth
    learned = evaluation.predicted == truth
    plain = evaluation.plain == truth
    gained = int(np.sum(learned & ~plain))
    lost = int(np.sum(plain & ~learned))
    return Headline(
        protocol=evaluation.protocol,
        scores=(
            _score("Learned metric", "this model", learned),
            _score("Plain K-NN", evaluation.plain_note, plain),
            _score("Majority class", "always the most frequent", evaluation.majority == truth),
        ),
        gained=gained,
        lost=lost,
        p_value=float(binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0,
        chosen=chosen,
    )


def _score(name: str, note: str, right: NDArray[np.bool_]) -> AccuracyScore:
    correct, total = int(right.sum()), len(right)
    low, high = wilson_interval(correct, total)
    return AccuracyScore(name, note, correct, total, correct / total, low, high)


def choices(fitted: FittedModel, reasons: Mapping[str, str] | None = None) -> tuple[Chosen, ...]:
    """One entry per setting that matters; ``reasons`` are for settings that were given."""
    if fitted.committee is not None:
        return _committee_choices(fitted.committee)
    if fitted.search is not None:
        return _search_choices(fitted.search)
    given = _given_choices(fitted.estimator, fitted.voting().n_neighbors)
    known = reasons or {}
    return tuple(replace(one, why=known.get(one.name, one.why)) for one in given)


def number(value: object) -> str:
    """A setting as text: at most 4 significant digits, ∞ and − in their own letters."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.number)):
        return str(value)
    text = "∞" if abs(value) == np.inf else f"{abs(value):.4g}"
    return f"−{text}" if value < 0 else text


def percent(fraction: float) -> str:
    """0.1234 → '12.3 %'."""
    return f"{100 * fraction:.1f} %"


def _committee_choices(model: ANNClassifier | ANNRegressor) -> tuple[Chosen, ...]:
    results, of_numbers = model.cv_results_, isinstance(model, ANNRegressor)
    n_candidates = len(results["configuration"])
    by_weight = sorted(model.chosen_, key=lambda choice: -choice.weight)
    alone = len(by_weight) == 1
    entries = [
        Chosen(
            "Method",
            "one metric" if alone else f"committee of {len(by_weight)}",
            f"{n_candidates:,} candidates were cross-validated; "
            + ("this one did best." if alone else "these, voting together, did best.")
            + f" Out-of-fold {'R²' if of_numbers else 'accuracy'} {percent(model.best_score_)}.",
        )
    ]
    names = ("configuration", "iterate", "vote", "n_neighbors")
    tried = zip(*(results[name].tolist() for name in names), strict=True)
    errors = dict(zip(tried, results[error_of(model)].tolist(), strict=True))
    alone_it = (
        "alone its squared error is {} of the variance" if of_numbers else "alone it errs on {}"
    )
    total = sum(choice.weight for choice in by_weight) or 1.0
    for choice in by_weight:
        error = errors[tuple(getattr(choice, name) for name in names)]
        entries.append(
            Chosen(
                choice.configuration,
                _voters(choice),
                f"{percent(choice.weight / total)} of the vote; {alone_it.format(percent(error))}. "
                f"Iterate {choice.iterate}, {choice.vote} vote.",
            )
        )
    if model.landmarks_ is not None:
        why = f"Members use their nearness to {len(model.landmarks_)} landmarks."
        entries.insert(1, Chosen("Features", "kernel functions", why))
    if model.knots_ is not None:
        why = "Members use hat functions of them: equal steps need not count equally."
        entries.insert(1, Chosen("Features", "unfolded", why))
    if model.timed_out_:
        entries.append(Chosen("Time", "ran out", "The best so far was kept; more time may help."))
    return tuple(entries)


def error_of(model: ANNClassifier | ANNRegressor) -> str:
    """The entry of ``cv_results_`` with the error out of fold."""
    return "mean_test_squared_error" if isinstance(model, ANNRegressor) else "mean_test_error"


def _search_choices(model: ANNSearchCV) -> tuple[Chosen, ...]:
    error = 1 - float(model.best_score_)
    method = type(model.best_estimator_).__name__
    entries = [
        Chosen("Method", method, f"The search's own cross-validated error is {percent(error)}.")
    ]
    results = model.cv_results_
    scores = np.asarray(results["mean_test_score"], dtype=float)
    for name, value in model.best_params_.items():
        if name == "gamma" and len(model.gammas_) == 1:  # PNCA has none
            continue
        tried = np.asarray(results[f"param_{name}"])
        best = [scores[tried == each].max() for each in np.unique(tried)]
        meaning = MEANINGS.get(name, name)
        why = (
            f"The best of {len(best)} values tried for {meaning}; the worst of them, with all "
            f"else at its best, errs on {percent(1 - min(best))}."
            if len(best) > 1
            else f"The only value tried for {meaning}."
        )
        entries.append(Chosen(SYMBOLS.get(name, name), number(value), why))
    return tuple(entries)


def _voters(choice: Choice) -> str:
    """Which rows vote."""
    if choice.vote in OF_TREES:
        return f"{choice.iterate} trees" if choice.vote == BOOSTED else "forest"
    return "all rows" if choice.vote in GLOBAL_LINES else f"K = {choice.n_neighbors}"


def _given_choices(learner: MetricLearner, n_neighbors: int) -> tuple[Chosen, ...]:
    entries = [Chosen("Method", type(learner).__name__, "Given, not tuned.")]
    parameters = learner.get_params(deep=False)
    entries += [
        Chosen(SYMBOLS[name], number(parameters[name]), f"Given, not tuned: {MEANINGS[name]}.")
        for name in ("alpha", "gamma")
        if isinstance(parameters.get(name), (int, float))
    ]
    entries.append(Chosen("K", str(n_neighbors), f"Given, not tuned: {MEANINGS['n_neighbors']}."))
    return tuple(entries)
