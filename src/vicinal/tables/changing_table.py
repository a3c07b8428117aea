"""Rows of a table that come and go after a fit: the metrics stay, the voters change."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from vicinal._typing import FloatArray, IndexArray, LabelArray
from vicinal.exceptions import TableError
from vicinal.features.table_values import read_columns
from vicinal.features.target_statistics import TargetCode
from vicinal.fitted_model import plain_arrays
from vicinal.tables.table_model import NamedColumns, TableModel
from vicinal.tables.training_table import labels_like

if TYPE_CHECKING:
    import pandas as pd


def with_rows(model: TableModel, frame: pd.DataFrame) -> TableModel:
    """The model in which further rows vote too, as if it had been prepared with them.

    Parameters
    ----------
    model : TableModel
    frame : DataFrame
        With the column of the target, and that of the names where the model has one.
    """
    needed = [name for name in (model.target, model.roles.id_column) if name is not None]
    absent = [repr(name) for name in needed if name not in frame.columns]
    if absent:
        raise TableError(f"added rows need the column(s) {', '.join(absent)}")
    y, X = _targets(model, frame), model.prepare(frame)
    last = _voter(model)
    table = NamedColumns.of(model.encoder).select(frame)
    with plain_arrays():
        changed = copy(last).add_rows(_input_of_last(model, table), y)
    ids = model.roles.ids(frame)
    if model.roles.id_column is None:
        ids = np.arange(len(frame)) + int(model.ids.max()) + 1
    levels = [
        encoding.code.codes(column)
        for encoding, column in zip(model.columns, read_columns(table), strict=True)
        if isinstance(encoding.code, TargetCode)
    ]
    return replace(
        model,
        estimator=_with_last(model.estimator, changed),
        ids=np.concatenate([model.ids, ids]),
        rows=None if model.rows is None else np.concatenate([model.rows, X]),
        levels=None if model.levels is None else np.r_[model.levels, np.column_stack(levels)],
    )


def without_rows(model: TableModel, rows: IndexArray) -> TableModel:
    """The model without some training rows.

    Parameters
    ----------
    model : TableModel
    rows : (k,) their numbers in it
    """
    changed = copy(_voter(model)).forget_rows(rows)
    kept = np.ones(len(model.ids), dtype=bool)
    kept[rows] = False
    return replace(
        model,
        estimator=_with_last(model.estimator, changed),
        ids=model.ids[kept],
        rows=None if model.rows is None else model.rows[kept],
        levels=None if model.levels is None else model.levels[kept],
    )


def _voter(model: TableModel) -> BaseEstimator:
    """The estimator whose rows change."""
    last = model.estimator[-1] if isinstance(model.estimator, Pipeline) else model.estimator
    if not hasattr(last, "add_rows"):
        raise TableError(
            f"the rows of a {type(last).__name__} cannot be changed; use a model of "
            "vicinal fit --method auto, single, plain or a learner"
        )
    return last


def _input_of_last(model: TableModel, table: pd.DataFrame) -> FloatArray | pd.DataFrame:
    if isinstance(model.estimator, Pipeline):
        return np.asarray(model.estimator[:-1].transform(table))
    return table


def _with_last(estimator: BaseEstimator, last: BaseEstimator) -> BaseEstimator:
    if not isinstance(estimator, Pipeline):
        return last
    *before, (name, _) = estimator.steps
    return Pipeline([*before, (name, last)])


def _targets(model: TableModel, frame: pd.DataFrame) -> LabelArray:
    """(n,) classes of the model, or numbers."""
    column = frame[model.target]
    if not hasattr(model.estimator, "classes_"):
        try:
            return column.to_numpy(dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise TableError(f"column {model.target!r} takes numbers: {error}") from error
    labels = labels_like(column, model.classes)
    strange = [row for row, label in enumerate(labels) if label is None]
    if strange:
        known = ", ".join(map(repr, model.classes.tolist()[:10]))
        raise TableError(
            f"column {model.target!r}: {str(column.iloc[strange[0]])[:50]!r} in row {strange[0]} "
            f"is not one of the classes {known}; fit again to have a new class"
        )
    return np.asarray(labels.tolist())
