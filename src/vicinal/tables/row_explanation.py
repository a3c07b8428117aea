"""The explanation of one prediction: its neighbors, and what each column adds to the distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from vicinal._typing import FloatArray
from vicinal.features.table_values import read_columns
from vicinal.features.target_statistics import TargetCode

if TYPE_CHECKING:
    import pandas as pd

    from vicinal.tables.table_model import TableModel


@dataclass(frozen=True)
class ExplainedNeighbor:
    """One neighbor: its name, class, part in the vote, distance, and what that consists of."""

    id: object
    label: object
    weight: float
    distance: float
    values: dict[str, object]
    """Column → value, in its own units."""
    shares: dict[str, float]
    """Column → what it adds to the squared distance; they sum to distance²."""


@dataclass(frozen=True)
class ExplainedRow:
    """The prediction for a row, and the neighbors that it follows from."""

    prediction: object
    probabilities: dict[object, float]
    values: dict[str, object]
    neighbors: tuple[ExplainedNeighbor, ...]
    interval: tuple[float, ...] | None = None
    """Of a number, the ends between which 90 % of such targets lie."""


def explain_row(
    model: TableModel, row: pd.DataFrame, n_neighbors: int = 5, *, ignore_unseen: bool = False
) -> ExplainedRow:
    """Explain the prediction of one row of a table.

    The share of column C in d² = δᵀMδ is Σ_{j∈C} δ_j (Mδ)_j, over the features of the column. It
    may be negative: where columns vary together, one can make up for another.

    Parameters
    ----------
    model : TableModel
    row : DataFrame of one row
    n_neighbors : int
    ignore_unseen : bool
        Let a level that did not occur in training be none of the known ones.
    """
    X = model.prepare(row, ignore_unseen=ignore_unseen)
    votes = model.fitted.explain(X[0], model.training_rows, n_neighbors)
    values = model.training_values(np.array([vote.row for vote in votes], dtype=np.intp))
    probabilities, interval = {}, None
    if model.task == "regression":
        interval = tuple(model.intervals(X)[0].tolist())
        predicted = model.predicted(X)
    else:
        P, predicted = model.answers(X)
        probabilities = dict(zip(model.classes.tolist(), P[0].tolist(), strict=True))
    return ExplainedRow(
        prediction=predicted[0],
        probabilities=probabilities,
        interval=interval,
        values=_row_values(model, row, X),
        neighbors=tuple(
            ExplainedNeighbor(
                id=model.ids[vote.row],
                label=vote.label,
                weight=vote.weight,
                distance=vote.distance,
                values={name: column[i] for name, column in values.items()},
                shares=_by_column(model, vote.contributions),
            )
            for i, vote in enumerate(votes)
        ),
    )


def _by_column(model: TableModel, contributions: FloatArray) -> dict[str, float]:
    sums = model.encoder.sum_by_column(contributions[None])[0].tolist()
    return {e.name: share for e, share in zip(model.columns, sums, strict=True) if e.is_used}


def _row_values(model: TableModel, row: pd.DataFrame, X: FloatArray) -> dict[str, object]:
    """The values of the row; where a level cannot be restored, as the table has it."""
    values = {name: column[0] for name, column in model.values(X).items()}
    by_target = [e.name for e in model.columns if isinstance(e.code, TargetCode)]
    return values | {c.name: c.texts()[0] for c in read_columns(row[by_target])}
