"""The content of a report, computed from a fitted model and its data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from vicinal._typing import FloatArray, IndexArray, Table
from vicinal.automatic.regressor import ANNRegressor
from vicinal.fitted_model import CommitteeVotes, FittedModel, NeighborVotes, NumberVotes, anatomy
from vicinal.learners.mlkr import MLKR
from vicinal.reporting.errors import (
    References,
    committee_neighbors,
    errors,
    histogram,
    learner_neighbors,
    probability_margins,
    row_sides,
    sides_of,
)
from vicinal.reporting.evaluation import (
    Evaluation,
    ReportRows,
    column_scaler,
    evaluate,
    left_out_votes,
)
from vicinal.reporting.findings import (
    Errors,
    Findings,
    Headline,
    MetricFindings,
    NeighborsUsed,
    NumberErrors,
    NumberHeadline,
)
from vicinal.reporting.headline import choices, headline
from vicinal.reporting.inputs import Inputs, check_inputs
from vicinal.reporting.maps import MapProjection, Shown, VoterCounts, maps, project
from vicinal.reporting.metric import metric_findings
from vicinal.reporting.number_evaluation import NumberEvaluation, evaluate_numbers
from vicinal.reporting.number_findings import number_errors, number_headline, worst_rows
from vicinal.reporting.provenance import Lines, check_provenance
from vicinal.reporting.provenance import provenance as facts
from vicinal.reporting.tuning_surfaces import tuning
from vicinal.validation.folds import stratified_sample
from vicinal.voting.class_mean import ClassMeanKNN
from vicinal.voting.neighbor_regressor import NeighborRegressor

POINTS_SHOWN = 2_000
EFFECTIVE_ROWS = 200
"""Rows whose effective K a committee is asked for: it takes time, and a histogram needs no more."""
DEFAULT_K = 5
"""Votes for a learner that came without a classifier."""
FEWEST_NEIGHBORS, MOST_NEIGHBORS = 5, 10


def examine(
    model: BaseEstimator,
    X: Table,
    y: ArrayLike,
    *,
    X_test: Table | None = None,
    y_test: ArrayLike | None = None,
    feature_names: Sequence[object] | None = None,
    ids: Sequence[object] | None = None,
    title: str | None = None,
    provenance: Lines | None = None,
    reasons: Mapping[str, str] | None = None,
) -> Findings:
    """Compute what a report says about a fitted model, for :func:`report` and ``vicinal.plot``.

    Parameters
    ----------
    model, X, y, X_test, y_test, feature_names, ids, title, provenance, reasons
        As in :func:`report`.

    Returns
    -------
    Findings

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import vicinal as vc
    >>> from vicinal.reporting import examine
    >>> X, y = load_iris(return_X_y=True)
    >>> findings = examine(vc.NCA(max_iter=20, tol=1e-2).fit(X, y), X, y)
    >>> [score.name for score in findings.headline.scores]
    ['Learned metric', 'Plain K-NN', 'Majority class']
    >>> findings.headline.scores[0].accuracy > 0.9
    True
    """
    check_provenance(provenance)
    parts = anatomy(model)
    _refuse_others(parts)
    fitted = _with_votes(parts)
    inputs = check_inputs(fitted, X, y, X_test, y_test, feature_names, ids)
    chosen = choices(fitted, reasons)
    if isinstance(fitted.votes, NumberVotes):
        of_numbers = evaluate_numbers(fitted.votes.committee, inputs.train, inputs.test)
        found = _findings(fitted, inputs, of_numbers, number_headline(of_numbers, chosen), title)
    else:
        evaluation = evaluate(fitted, inputs.labels, inputs.train, inputs.test)
        found = _findings(fitted, inputs, evaluation, headline(evaluation, chosen), title)
    shapes, counts = inputs.shapes(), inputs.class_counts()
    return replace(found, provenance=facts(fitted, provenance, shapes, counts))


def _refuse_others(fitted: FittedModel) -> None:
    """An error for models of numbers other than an ANNRegressor with one target."""
    if isinstance(fitted.estimator, MLKR | NeighborRegressor):
        raise TypeError(
            f"of models whose targets are numbers, a page is about ANNRegressor, not about "
            f"{type(fitted.estimator).__name__}"
        )
    if isinstance(fitted.estimator, ANNRegressor) and fitted.estimator.y_fit_.ndim > 1:
        raise ValueError("a page is about one target, and the model has several")


def _with_votes(fitted: FittedModel) -> FittedModel:
    """The model, with the vote of 5 neighbors if it is a learner alone."""
    if fitted.committee is not None:
        return fitted
    if fitted.learner is None:
        raise TypeError(
            f"cannot report on a {type(fitted.estimator).__name__}: give a fitted ANNClassifier, "
            "ANNSearchCV, a metric learner of vicinal, or a Pipeline that ends in one of them "
            "(K-NN may follow)"
        )
    default = NeighborVotes(ClassMeanKNN(DEFAULT_K, rule="vote"), fitted.metric)
    return fitted if fitted.votes is not None else replace(fitted, votes=default)


def _findings(
    fitted: FittedModel,
    inputs: Inputs,
    evaluation: Evaluation | NumberEvaluation,
    summary: Headline | NumberHeadline,
    title: str | None,
) -> Findings:
    """All but the provenance."""
    picked = _picked(inputs, evaluation)
    shown = _shown(fitted, inputs, evaluation, picked)
    M = fitted.metric.matrix()
    train = ~shown.held_out
    before = project(shown.A / shown.scale, train, shown.labels)
    after = project(shown.Z, train, shown.labels)
    k = min(max(fitted.voting().n_neighbors, FEWEST_NEIGHBORS), MOST_NEIGHBORS)
    metric = None if M is None else _metric(fitted, M, inputs, after)
    if isinstance(evaluation, NumberEvaluation):
        columns = np.arange(len(inputs.columns.names)) if metric is None else metric.features
        where: Errors | NumberErrors = number_errors(evaluation, inputs, picked, columns)
        used = _neighbors_of_numbers(fitted, shown)
    else:
        where, used = _errors_and_neighbors(fitted, inputs, evaluation, shown, picked)
    return Findings(
        title=title or "What the metric learned",
        summary=inputs.summary(type(fitted.learner or fitted.estimator).__name__),
        classes=inputs.classes,
        features=inputs.columns.names,
        headline=summary,
        maps=maps(shown, (before, after), fitted.metric.measure(shown.A), k),
        metric=metric,
        tuning=tuning(fitted),
        errors=where,
        neighbors=used,
        provenance=(),
    )


def _picked(inputs: Inputs, evaluation: Evaluation | NumberEvaluation) -> IndexArray:
    """Rows of the pool (training rows, then held-out ones) to show, those of large errors too."""
    picked = stratified_sample(inputs.pooled_codes, POINTS_SHOWN)
    if isinstance(evaluation, Evaluation):
        return picked
    worst = evaluation.rows[worst_rows(evaluation)]
    return np.union1d(picked, worst + len(inputs.train.codes) * evaluation.held_out)


def _shown(
    fitted: FittedModel,
    inputs: Inputs,
    evaluation: Evaluation | NumberEvaluation,
    picked: IndexArray,
) -> Shown:
    """The picked rows with their predictions."""
    n = len(inputs.train.codes)
    A = inputs.pooled_features()[picked]
    if isinstance(evaluation, NumberEvaluation):
        labels: IndexArray | FloatArray = inputs.pooled_numbers()
        predictions: IndexArray | FloatArray = np.full(len(labels), np.nan)
    else:
        labels = inputs.pooled_codes
        predictions = np.full(len(labels), -1, dtype=np.intp)
    plain = predictions.copy()
    if isinstance(fitted.votes, NumberVotes):
        predictions[fitted.votes.committee.oof_rows_] = fitted.votes.committee.oof_predictions_
    elif fitted.committee is not None:
        known = np.searchsorted(inputs.labels, fitted.committee.classes_)
        winners = np.argmax(fitted.committee.oof_proba_, axis=1)
        predictions[fitted.committee.oof_rows_] = known[winners]
    elif evaluation.held_out:  # the training rows are left out of their own vote
        rows = picked[picked < n]
        Z, k = fitted.metric.embed(inputs.train.A), fitted.voting().n_neighbors
        predictions[rows] = left_out_votes(Z, inputs.train.codes, rows, k)
    evaluated = evaluation.rows + n * evaluation.held_out
    predictions[evaluated], plain[evaluated] = evaluation.predicted, evaluation.plain
    return Shown(
        ids=tuple(inputs.ids[row] for row in picked),
        labels=labels[picked],
        predictions=predictions[picked],
        plain=plain[picked],
        held_out=picked >= n,
        A=A,
        scale=column_scaler(inputs.train.A, inputs.columns.of_features).scale_,
        Z=fitted.metric.embed(A),
        n_rows=len(labels),
        voters=_voters(fitted),
        columns=inputs.columns,
    )


def _voters(fitted: FittedModel) -> VoterCounts:
    if fitted.committee is not None:
        numbers = {choice.n_neighbors for choice in fitted.committee.chosen_}
        return VoterCounts(max(numbers), fewer_too=len(numbers) > 1)
    votes = fitted.voting()
    of_each_class = isinstance(votes, NeighborVotes) and votes.of_each_class
    return VoterCounts(votes.n_neighbors, of_each_class=of_each_class)


def _errors_and_neighbors(
    fitted: FittedModel,
    inputs: Inputs,
    evaluation: Evaluation,
    shown: Shown,
    picked: IndexArray,
) -> tuple[Errors, NeighborsUsed]:
    """Margins and effective K of the shown rows that the headline is about."""
    n = len(inputs.train.codes)
    evaluated = evaluation.rows + n * evaluation.held_out  # rows of the pool
    points = np.flatnonzero(np.isin(picked, evaluated))
    votes, A, codes = fitted.voting(), shown.A[points], inputs.pooled_codes[picked[points]]
    if isinstance(votes, CommitteeVotes):
        where = np.searchsorted(evaluated, picked[points])
        margins = probability_margins(evaluation.truth, evaluation.probabilities)[where]
        name = "p(own class) − p(next class)"
        few = points[stratified_sample(codes, EFFECTIVE_ROWS)]
        used = committee_neighbors(votes.effective_neighbors(shown.A[few]))
        return errors(evaluation, margins, points, name), used
    sides = sides_of(fitted.learner, votes.n_neighbors)
    rows = References(fitted.learner_rows(A), shown.Z[points], codes)
    train: ReportRows = inputs.train
    to = References(fitted.learner_rows(train.A), fitted.metric.embed(train.A), train.codes)
    own = np.where(shown.held_out[points], -1, picked[points])
    averages = row_sides(rows, own, to, sides)
    margins = (averages.t - averages.s) / sides.gamma
    name = "−z = (t − s)/γ, the margin of the objective"
    if sides.n_neighbors is not None:
        name = f"t − s, from the {sides.n_neighbors} nearest of other classes and of its own"
    return errors(evaluation, margins, points, name), learner_neighbors(averages, sides)


def _neighbors_of_numbers(fitted: FittedModel, shown: Shown) -> NeighborsUsed:
    """Of some of the shown rows."""
    votes = fitted.voting()
    assert isinstance(votes, NumberVotes)
    few = np.unique(np.linspace(0, len(shown.A) - 1, EFFECTIVE_ROWS).astype(np.intp))
    note = f"{len(few):,} rows; 1/Σ w² of the weights of the training rows."
    effective = votes.effective_neighbors(shown.A[few])
    text = "A prediction is a weighted average over training rows; so many count in it."
    return NeighborsUsed((histogram(effective, "Rows averaged over", note),), text)


def _metric(
    fitted: FittedModel, M: FloatArray, inputs: Inputs, after: MapProjection
) -> MetricFindings:
    A = inputs.train.A
    measured = fitted.metric.measure(A)
    unfolded = None if measured is None or measured.expansion is None else measured
    directions = fitted.metric.directions(after.axes, A)
    return metric_findings(M, A, directions, after.spreads, inputs.columns, unfolded)
