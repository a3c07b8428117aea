"""The explanation of one prediction: its neighbors, and what each column adds to the distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vicinal._typing import FloatArray

if TYPE_CHECKING:
    from vicinal.tables.table_model import TableModel


@dataclass(frozen=True)
class ExplainedNeighbor:
    """One neighbor: its name, class, part in the vote, distance, and what that consists of."""

    id: Any
    label: Any
    weight: float
    distance: float
    values: dict[str, Any]
    """Column → value, in its own units."""
    shares: dict[str, float]
    """Column → what it adds to the squared distance; they sum to distance²."""


@dataclass(frozen=True)
class ExplainedRow:
    """What a row is said to be, and because of whom."""

    prediction: Any
    probabilities: dict[Any, float]
    values: dict[str, Any]
    neighbors: tuple[ExplainedNeighbor, ...]


def explain_row(model: TableModel, x: FloatArray, n_neighbors: int = 5) -> ExplainedRow:
    """Explain the prediction of one prepared row.

    The share of column C in d² = δᵀMδ is Σ_{j∈C} δ_j (Mδ)_j, over the features of the column. It
    may be negative: where columns vary together, one can make up for another.

    Parameters
    ----------
    model : TableModel
    x : (d,) array
        The row, from ``model.prepare``.
    n_neighbors : int
    """
    X = x[None]
    probabilities = model.estimator.predict_proba(X)[0]
    neighbors = []
    for vote in model.fitted.explain(x, model.training_rows, n_neighbors):
        values = model.restore(model.training_rows[vote.row][None])
        neighbors.append(
            ExplainedNeighbor(
                id=model.ids[vote.row],
                label=vote.label,
                weight=vote.weight,
                distance=vote.distance,
                values={name: value[0] for name, value in values.items()},
                shares={p.name: float(vote.contributions[b].sum()) for p, b in model.blocks()},
            )
        )
    return ExplainedRow(
        prediction=model.estimator.predict(X)[0],
        probabilities=dict(zip(model.classes.tolist(), probabilities.tolist(), strict=True)),
        values={name: value[0] for name, value in model.restore(X).items()},
        neighbors=tuple(neighbors),
    )
