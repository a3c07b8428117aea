"""A model over the parts of a table: predictions of any number of rows in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pandas as pd

from vicinal._typing import FloatArray, LabelArray
from vicinal.tables.table_model import TableCounts, TableModel
from vicinal.tables.training_table import labels_like

CHUNK_ROWS = 8_192
"""Rows that are predicted at a time."""

ChunkWork: TypeAlias = Callable[[TableModel, FloatArray], Mapping[str, LabelArray]]
"""What is computed from encoded rows (n, e): named columns (n,)."""


@dataclass
class Hits:
    """Right predictions, counted class by class."""

    rows: Counter[object] = field(default_factory=Counter)
    right: Counter[object] = field(default_factory=Counter)

    def add(self, truth: LabelArray, predicted: LabelArray) -> None:
        """Count more rows."""
        self.rows.update(truth.tolist())
        self.right.update(truth[truth == predicted].tolist())

    @property
    def accuracy(self) -> float:
        """Share of all rows."""
        return self.right.total() / self.rows.total()

    @property
    def balanced_accuracy(self) -> float:
        """Mean over the classes of the shares of their rows."""
        known = [label for label in self.rows if label is not None]
        return float(np.mean([self.right[label] / self.rows[label] for label in known]))


def map_chunks(
    model: TableModel,
    chunks: Iterable[pd.DataFrame],
    work: ChunkWork,
    counts: TableCounts,
    *,
    hits: Hits | None = None,
    ignore_unseen: bool = True,
) -> Iterator[pd.DataFrame]:
    """The results for each part of a table, in order, after a column that names the rows.

    Parameters
    ----------
    model : TableModel
    chunks : iterable of DataFrame
        The parts of the table.
    work : callable
        What is computed.
    counts : TableCounts
        Counts what was not as in training.
    hits : Hits or None
        Counts the right predictions, where the table has the target.
    ignore_unseen : bool
        Let a level that did not occur in training be none of the known ones, where otherwise it is
        a TableError.
    """
    for chunk in chunks:
        encoded = model.encode(chunk)
        if not ignore_unseen:
            encoded.check_seen()
        counts.add(encoded)
        table = _with_names(model, chunk, work(model, np.asarray(encoded.X)))
        if hits is not None and model.task == "regression":
            hits = None
        if hits is not None and model.target in chunk.columns:
            known = chunk[model.target].notna().to_numpy()
            truth = labels_like(chunk[model.target][known], model.classes)
            hits.add(truth, table["prediction"].to_numpy()[known])
        yield table


def predictions(n_neighbors: int) -> ChunkWork:
    """Class and probabilities, or number and its 90 % interval, and the neighbors that decided."""

    def predict(model: TableModel, X: FloatArray) -> dict[str, LabelArray]:
        if model.task == "regression":
            low, high = model.intervals(X).T
            numbers = {"prediction": model.predicted(X), "low": low, "high": high}
            return numbers | _neighbors(model, X, n_neighbors)
        probabilities, predicted = model.answers(X)
        columns: dict[str, LabelArray] = {"prediction": predicted}
        columns |= {f"p({c})": probabilities[:, j] for j, c in enumerate(model.classes)}
        return columns | _neighbors(model, X, n_neighbors)

    return predict


def coordinates(model: TableModel, X: FloatArray) -> dict[str, LabelArray]:
    """Coordinates in which Euclidean distances are the learned ones."""
    return {f"z{j}": column for j, column in enumerate(model.embed(X).T)}


def _neighbors(model: TableModel, X: FloatArray, k: int) -> dict[str, LabelArray]:
    if not k:
        return {}
    distances, rows = model.nearest(X, k)
    labels, columns = model.labels, {}
    what = "class" if model.task == "classification" else "value"
    for j in range(rows.shape[1]):
        columns[f"neighbor_{j + 1}"] = model.ids[rows[:, j]]
        columns[f"neighbor_{j + 1}_{what}"] = labels[rows[:, j]]
        columns[f"neighbor_{j + 1}_distance"] = distances[:, j]
    return columns


def _with_names(
    model: TableModel, frame: pd.DataFrame, columns: Mapping[str, LabelArray]
) -> pd.DataFrame:
    """The columns after one that names the rows, under a name that is not among theirs."""
    name = model.roles.id_column
    if name is None or name not in frame.columns:
        name = "row"
    while name in columns:
        name += "_id"
    return pd.DataFrame({name: model.roles.ids(frame), **columns})
