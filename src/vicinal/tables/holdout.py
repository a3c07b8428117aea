"""A model judged by rows that took no part in the fit, as many as the time allows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline
from sklearn.utils import gen_batches

from vicinal._typing import Document, FloatArray, IndexArray
from vicinal.tables.table_model import TableModel
from vicinal.tables.training_table import labels_like, target_numbers
from vicinal.validation.schedule import FitStage, Schedule
from vicinal.validation.scores import classification_scores, number_scores

FIRST_ROWS = 500
"""Rows that are judged whatever time it takes; the next parts are larger where they are fast."""


def judge(
    model: TableModel, plain: Pipeline | None, test: pd.DataFrame, schedule: Schedule
) -> Document:
    """Scores on held-out rows, and those of plain K-NN on the same rows.

    Rows are judged in random order until the time is up.

    Parameters
    ----------
    model : TableModel
    plain : Pipeline or None
        Plain K-NN, of the codes of the classes; None where that is the model itself.
    test : DataFrame
    schedule : Schedule
        Of it, the deadline and the listener.

    Returns
    -------
    scores : dict
        JSON-able: of the model, with those of plain K-NN as "plain", and "of_rows", all that
        there are.
    """
    if model.task == "regression":
        return _judge_numbers(model, test, schedule)
    order = np.random.default_rng(0).permutation(len(test))
    X = model.prepare(test, ignore_unseen=True)[order]
    known = {label: code for code, label in enumerate(model.classes.tolist())}
    truth = labels_like(test[model.target], model.classes)[order]
    codes = np.array([known.get(label, -1) for label in truth], dtype=np.intp)
    found: list[list[tuple[FloatArray, IndexArray]]] = [[], []]
    stage = FitStage("held-out rows", schedule)
    for part in _parts(len(X), schedule):
        stage.tell(part.start / len(X))
        P, predicted = model.answers(X[part])
        found[0].append((P, np.searchsorted(model.classes, predicted)))
        if plain is not None:
            found[1].append((plain.predict_proba(X[part]), plain.predict(X[part])))
    scores = [_scores(judged, codes, model) for judged in found if judged]
    n = scores[0]["rows"]
    return {
        **scores[0],
        "plain": scores[-1],
        "plain_accuracy": scores[-1]["accuracy"],
        "rows": n,
        "of_rows": len(X),
    }


def _judge_numbers(model: TableModel, test: pd.DataFrame, schedule: Schedule) -> Document:
    order = np.random.default_rng(0).permutation(len(test))
    X = model.prepare(test, ignore_unseen=True)[order]
    truth = target_numbers(test[model.target])[order]
    parts = _parts(len(X), schedule)
    found = [(model.predicted(X[part]), model.intervals(X[part])) for part in parts]
    predicted, intervals = (np.concatenate(of_parts) for of_parts in zip(*found, strict=True))
    scores = number_scores(truth[: len(predicted)], predicted, intervals)
    return {**asdict(scores), "of_rows": len(X)}


def _parts(n: int, schedule: Schedule) -> Iterator[slice]:
    """Parts of n rows, until the time is up."""
    for part in gen_batches(n, FIRST_ROWS):
        yield part
        if schedule.deadline.is_over():
            return


def _scores(
    judged: list[tuple[FloatArray, IndexArray]], codes: IndexArray, model: TableModel
) -> Document:
    P, predicted = (np.concatenate(parts) for parts in zip(*judged, strict=True))
    return asdict(classification_scores(codes[: len(P)], predicted, P, model.classes))
