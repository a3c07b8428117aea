"""Rows to judge a model by: whether they fit it, before the work, and how it does, after it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from vicinal.tables.columns import as_texts, encode
from vicinal.tables.errors import TableError
from vicinal.tables.plan import MISSING, ColumnPlan
from vicinal.tables.preparation import check_columns, prepare_training
from vicinal.tables.table_model import TableModel
from vicinal.tables.target import labels_like


def check_test(
    train: pd.DataFrame,
    test: pd.DataFrame,
    target: str,
    no_features: Sequence[str | None],
    keep: Sequence[str],
) -> list[str]:
    """Refuse a test table that the model of `train` could not predict; remarks on the others.

    Parameters
    ----------
    train, test : DataFrame
    target : str
    no_features : sequence of str or None
        The id column and the group column.
    keep : sequence of str
        Columns to use although they look like identifiers.
    """
    id_column, group_column = no_features
    plans = prepare_training(train, target, id_column, group_column, keep).columns
    remarks: list[str] = []
    try:
        if len(test) == 0:
            raise TableError(f"no row has a class in {target!r}")
        for plan in plans:
            if plan.kind != "dropped":
                check_columns(test, [plan.name])
                encode(test[plan.name], plan, ignore_unseen=True)
                remarks += _unseen(test[plan.name], plan)
    except TableError as error:
        raise TableError(f"the test table does not fit the training table: {error}") from error
    return remarks


def _unseen(column: pd.Series, plan: ColumnPlan) -> Iterator[str]:
    new = set(as_texts(column)) - {*plan.categories, MISSING}
    if plan.kind == "category" and new:
        shown = ", ".join(map(repr, sorted(new)[:5])) + (", …" if len(new) > 5 else "")
        yield f"note: test column {plan.name!r}: {shown} not in training, taken as no known one"


def judge(model: TableModel, plain: TableModel, test: pd.DataFrame) -> dict[str, Any]:
    """Accuracy on held-out rows, with its 95 % interval, and that of plain K-NN.

    Plain K-NN is that of the page (its K by leave-one-out), so that both say the same; unless
    plain K-NN is what was asked for.
    """
    from vicinal.reporting.headline import wilson_interval
    from vicinal.reporting.plain_knn import plain_predictions

    truth = labels_like(test[model.target], model.classes)
    X = model.prepare(test, ignore_unseen=True)
    right = model.estimator.predict(X) == truth
    plain_right = right
    if model is not plain:
        labels, codes = np.unique(model.labels, return_inverse=True)
        predicted, _ = plain_predictions(model.training_rows, codes, X)
        plain_right = labels[predicted] == truth
    hits, n = int(right.sum()), len(truth)
    return {
        "rows": n,
        "accuracy": hits / n,
        "interval": list(wilson_interval(hits, n)),
        "plain_accuracy": float(plain_right.mean()),
    }
