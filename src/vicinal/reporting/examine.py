"""From a fitted model and its data to what a report says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from vicinal._typing import FloatArray, IndexArray
from vicinal.reporting.choices import choices
from vicinal.reporting.errors import errors, probability_margins
from vicinal.reporting.evaluation import Evaluation, LabeledRows, evaluate
from vicinal.reporting.findings import Errors, Findings, Headline, Metric, NeighborsUsed
from vicinal.reporting.headline import headline
from vicinal.reporting.inputs import Inputs, check_inputs
from vicinal.reporting.maps import Projection, Shown, Voters, maps, project
from vicinal.reporting.metric import metric_findings
from vicinal.reporting.neighbors_used import committee_neighbors, learner_neighbors
from vicinal.reporting.plain_knn import left_out_votes
from vicinal.reporting.provenance import Lines, check_provenance, provenance
from vicinal.reporting.soft_margins import References, row_sides, sides_of
from vicinal.reporting.subject import Subject, subject_of
from vicinal.reporting.tuning import tuning
from vicinal.validation.folds import stratified_sample

POINTS_SHOWN = 2_000
EFFECTIVE_ROWS = 200
"""Rows whose effective K a committee is asked for: it takes time, and a histogram needs no more."""
FEWEST_NEIGHBORS, MOST_NEIGHBORS = 5, 10


def examine(
    model: Any,
    X: Any,
    y: Any,
    *,
    X_test: Any = None,
    y_test: Any = None,
    feature_names: Any = None,
    ids: Any = None,
    title: str | None = None,
    provenance: Lines | None = None,
    reasons: Mapping[str, str] | None = None,
) -> Findings:
    """What a report says about a fitted model, for :func:`report` and ``vicinal.plot``.

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
    subject = subject_of(model)
    inputs = check_inputs(subject, X, y, X_test, y_test, feature_names, ids)
    evaluation = evaluate(subject, inputs.labels, inputs.train, inputs.test)
    summary = headline(evaluation, choices(subject, reasons))
    return _findings(subject, inputs, evaluation, summary, title, provenance)


def _findings(
    subject: Subject,
    inputs: Inputs,
    evaluation: Evaluation,
    summary: Headline,
    title: str | None,
    given: Lines | None,
) -> Findings:
    picked = stratified_sample(inputs.pooled_codes, POINTS_SHOWN)  # training rows, then held-out
    shown = _shown(subject, inputs, evaluation, picked)
    M = subject.metric()
    train = ~shown.held_out
    before = project(shown.A / shown.scale, train, shown.labels)
    after = project(shown.Z, train, shown.labels)
    k = min(max(subject.n_neighbors, FEWEST_NEIGHBORS), MOST_NEIGHBORS)
    where, used = _errors_and_neighbors(subject, inputs, evaluation, shown, picked)
    shapes, counts = inputs.shapes(), inputs.class_counts()
    return Findings(
        title=title or "What the metric learned",
        summary=inputs.summary(type(subject.learner or subject.estimator).__name__),
        classes=inputs.classes,
        features=inputs.features,
        headline=summary,
        maps=maps(shown, (before, after), subject.measured(shown.A), k),
        metric=None if M is None else _metric(subject, M, inputs.train.A, after),
        tuning=tuning(subject),
        errors=where,
        neighbors=used,
        provenance=provenance(subject, given, shapes, counts),
    )


def _shown(subject: Subject, inputs: Inputs, evaluation: Evaluation, picked: IndexArray) -> Shown:
    """The picked rows with their predictions."""
    n = len(inputs.train.codes)
    A = inputs.pooled_features()[picked]
    scale = inputs.train.A.std(axis=0)
    predictions = np.full(len(inputs.pooled_codes), -1, dtype=np.intp)
    plain = predictions.copy()
    if subject.voter is None:
        known = np.searchsorted(inputs.labels, subject.estimator.classes_)
        winners = np.argmax(subject.estimator.oof_proba_, axis=1)
        predictions[subject.estimator.oof_rows_] = known[winners]
    elif evaluation.held_out:  # the training rows are left out of their own vote
        rows = picked[picked < n]
        Z = subject.embed(inputs.train.A)
        predictions[rows] = left_out_votes(Z, inputs.train.codes, rows, subject.n_neighbors)
    evaluated = evaluation.rows + n * evaluation.held_out
    predictions[evaluated], plain[evaluated] = evaluation.predicted, evaluation.plain
    return Shown(
        ids=tuple(inputs.ids[row] for row in picked),
        labels=inputs.pooled_codes[picked],
        predictions=predictions[picked],
        plain=plain[picked],
        held_out=picked >= n,
        A=A,
        scale=np.where(scale > 0, scale, 1.0),
        Z=subject.embed(A),
        n_rows=len(inputs.pooled_codes),
        voters=_voters(subject),
    )


def _voters(subject: Subject) -> Voters:
    if subject.voter is None:
        numbers = {choice.n_neighbors for choice in subject.estimator.chosen_}
        return Voters(max(numbers), fewer_too=len(numbers) > 1)
    of_each_class = getattr(subject.voter, "rule", "vote") == "class_mean"
    return Voters(subject.n_neighbors, of_each_class=of_each_class)


def _errors_and_neighbors(
    subject: Subject,
    inputs: Inputs,
    evaluation: Evaluation,
    shown: Shown,
    picked: IndexArray,
) -> tuple[Errors, NeighborsUsed]:
    """Margins and effective K of the shown rows that the headline is about."""
    n = len(inputs.train.codes)
    evaluated = evaluation.rows + n * evaluation.held_out  # rows of the pool
    points = np.flatnonzero(np.isin(picked, evaluated))
    if subject.voter is None:
        where = np.searchsorted(evaluated, picked[points])
        margins = probability_margins(evaluation.truth, evaluation.probabilities)[where]
        name = "p(own class) − p(next class)"
        few = points[stratified_sample(shown.labels[points], EFFECTIVE_ROWS)]
        used = committee_neighbors(subject.effective_neighbors(shown.A[few]))
        return errors(evaluation, margins, points, name), used
    sides = sides_of(subject.learner, subject.n_neighbors)
    rows = References(subject.learner_rows(shown.A[points]), shown.Z[points], shown.labels[points])
    train: LabeledRows = inputs.train
    to = References(subject.learner_rows(train.A), subject.embed(train.A), train.codes)
    own = np.where(shown.held_out[points], -1, picked[points])
    averages = row_sides(rows, own, to, sides)
    margins = (averages.t - averages.s) / sides.gamma
    name = "−z = (t − s)/γ, the margin of the objective"
    if sides.n_neighbors is not None:
        name = f"t − s, from the {sides.n_neighbors} nearest of other classes and of its own"
    return errors(evaluation, margins, points, name), learner_neighbors(averages, sides)


def _metric(subject: Subject, M: FloatArray, A: FloatArray, after: Projection) -> Metric:
    unfolded = None if subject.knots is None else subject.measured(A)
    directions = subject.directions(after.axes, A)
    return metric_findings(M, A.std(axis=0), directions, after.spreads, unfolded)
