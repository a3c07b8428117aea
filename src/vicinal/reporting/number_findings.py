"""Headline and errors of a report about numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from vicinal._typing import FloatArray, IndexArray
from vicinal.features.table_values import MISSING
from vicinal.features.target_statistics import TargetCode
from vicinal.reporting.errors import AT_RISK_SHOWN, histogram
from vicinal.reporting.findings import (
    Chosen,
    Coverage,
    ErrorScore,
    NumberErrors,
    NumberHeadline,
    ResidualGroup,
    ResidualsByFeature,
)
from vicinal.reporting.headline import number
from vicinal.reporting.inputs import Inputs
from vicinal.reporting.number_evaluation import COVERAGES, NumberEvaluation
from vicinal.validation.scores import number_scores, wilson_interval

FEATURES_SHOWN = 6
GROUPS_SHOWN = 10


def number_headline(evaluation: NumberEvaluation, chosen: tuple[Chosen, ...]) -> NumberHeadline:
    """Errors of the three on the same rows, and the sign test of the first two."""
    truth = evaluation.truth
    mean = np.full(len(truth), evaluation.mean)
    learned, plain = np.abs(truth - evaluation.predicted), np.abs(truth - evaluation.plain)
    gained, lost = int((learned < plain).sum()), int((plain < learned).sum())
    return NumberHeadline(
        protocol=evaluation.protocol,
        scores=(
            _score("Learned metric", "this model", truth, evaluation.predicted),
            _score("Plain K-NN", evaluation.plain_note, truth, evaluation.plain),
            _score("Mean", "always that of the training rows", truth, mean),
        ),
        total=len(truth),
        gained=gained,
        lost=lost,
        p_value=float(binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0,
        chosen=chosen,
    )


def _score(name: str, note: str, truth: FloatArray, predicted: FloatArray) -> ErrorScore:
    """The interval of the mean squared error is a normal one."""
    scores, squared = number_scores(truth, predicted), (truth - predicted) ** 2
    reach = 1.96 * float(squared.std()) / len(squared) ** 0.5
    low, high = (max(float(squared.mean()) + side * reach, 0.0) ** 0.5 for side in (-1, 1))
    return ErrorScore(name, note, scores.rmse, low, high, scores.mae, scores.r2)


def worst_rows(evaluation: NumberEvaluation) -> IndexArray:
    """Places among the evaluated rows of the largest errors, the largest first."""
    errors = np.abs(evaluation.truth - evaluation.predicted)
    return np.argsort(-errors, kind="stable")[:AT_RISK_SHOWN]


def number_errors(
    evaluation: NumberEvaluation, inputs: Inputs, picked: IndexArray, heaviest: IndexArray
) -> NumberErrors:
    """Intervals and residuals of the rows of the headline.

    Parameters
    ----------
    evaluation : predictions and intervals
    inputs : the arguments of the report
    picked : (n,) rows of the pool that are points of the map
    heaviest : columns, those of the largest weight first
    """
    n = len(inputs.train.codes)
    evaluated = evaluation.rows + n * evaluation.held_out
    residuals = evaluation.truth - evaluation.predicted
    places = np.flatnonzero(np.isin(evaluated, picked))  # ascending, as the rows are
    points = np.searchsorted(picked, evaluated[places])
    low, high = evaluation.intervals[places].T
    worst = worst_rows(evaluation)
    return NumberErrors(
        points=points,
        low=low,
        high=high,
        coverage=tuple(_coverages(evaluation)),
        coverage_note=evaluation.coverage_note,
        width=float(np.mean(evaluation.intervals[:, 1] - evaluation.intervals[:, 0])),
        residuals=histogram(residuals, "Residual", "actual less predicted"),
        by_feature=tuple(_by_feature(inputs, evaluated, residuals, heaviest)),
        worst=np.searchsorted(places, worst),
    )


def _coverages(evaluation: NumberEvaluation) -> Iterator[Coverage]:
    truth = evaluation.truth[:, None]
    inside = (truth >= evaluation.bands[:, :, 0]) & (truth <= evaluation.bands[:, :, 1])
    for nominal, count in zip(COVERAGES, inside.sum(axis=0).tolist(), strict=True):
        yield Coverage(nominal, count / len(truth), *wilson_interval(count, len(truth)))


def _by_feature(
    inputs: Inputs, evaluated: IndexArray, residuals: FloatArray, heaviest: IndexArray
) -> Iterator[ResidualsByFeature]:
    values = _values(inputs, evaluated)
    names = [inputs.columns.names[column] for column in heaviest]
    for name in [name for name in names if name in values][:FEATURES_SHOWN]:
        groups = tuple(_groups(values[name], residuals))
        if len(groups) > 1:
            yield ResidualsByFeature(name, groups)


def _values(inputs: Inputs, evaluated: IndexArray) -> dict[str, NDArray[Any]]:
    """What the rows were made of: column → (q,) values in its own units."""
    A, names = inputs.pooled_features()[evaluated], inputs.columns.names
    if inputs.encoder is None:
        return dict(zip(names, A.T, strict=True))
    used = [encoding for encoding in inputs.encoder.columns_ if encoding.is_used]
    restored = inputs.encoder.restore(A)
    return {
        name: restored[encoding.name]
        for name, encoding in zip(names, used, strict=True)
        if not isinstance(encoding.code, TargetCode)
    }


def _groups(values: NDArray[Any], residuals: FloatArray) -> Iterator[ResidualGroup]:
    """Rows with like values: of one value, or of many between quantiles; missing ones last."""
    missing = values == MISSING
    known = _comparable(values[~missing])
    for name, rows in _intervals(known) if known.dtype.kind in "fM" else _levels(known):
        yield _group(name, residuals[~missing][rows])
    if missing.any():
        yield _group(MISSING, residuals[missing])


def _comparable(values: NDArray[Any]) -> NDArray[Any]:
    """Numbers without the rounding errors of their encoding, times, or texts."""
    if values.dtype.kind == "M":
        return values
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError):
        return values.astype(str)
    digits = 12 - int(np.ceil(np.log10(max(float(np.abs(numbers).max(initial=0.0)), 1e-300))))
    return np.round(numbers, min(max(digits, -300), 300))


def _intervals(values: NDArray[Any]) -> Iterator[tuple[str, IndexArray]]:
    """Every value by itself, or tenths of many."""
    distinct, codes = np.unique(values, return_inverse=True)
    if len(distinct) > GROUPS_SHOWN:
        first = np.searchsorted(np.sort(codes), codes)  # the same for equal values
        codes = first * GROUPS_SHOWN // len(values)
    for code in np.unique(codes):
        rows = np.flatnonzero(codes == code)
        low, high = _text(values[rows].min()), _text(values[rows].max())
        yield low if low == high else f"{low} to {high}", rows


def _levels(values: NDArray[Any]) -> Iterator[tuple[str, IndexArray]]:
    """The levels with the most rows, and all others."""
    levels, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    shown = order if len(order) <= GROUPS_SHOWN else order[: GROUPS_SHOWN - 1]
    for code in shown:
        yield str(levels[code]), np.flatnonzero(codes == code)
    if len(shown) < len(order):
        yield f"{len(order) - len(shown)} others", np.flatnonzero(~np.isin(codes, shown))


def _text(value: Any) -> str:
    return str(value) if isinstance(value, np.datetime64) else number(float(value))


def _group(name: str, residuals: FloatArray) -> ResidualGroup:
    low, high = np.quantile(residuals, [0.1, 0.9]).tolist()
    return ResidualGroup(name, len(residuals), float(residuals.mean()), low, high)
