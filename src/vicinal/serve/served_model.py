"""A fitted model that answers rows by column name: of a table, or an estimator of numbers."""

from __future__ import annotations

from copy import copy
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from vicinal._typing import Document, FloatArray, IndexArray, LabelArray, Table
from vicinal.exceptions import TableError
from vicinal.fitted_model import FittedModel, anatomy, plain_arrays
from vicinal.tables.changing_table import with_rows, without_rows
from vicinal.tables.remarks import column_documents, remarks
from vicinal.tables.row_explanation import explain_row
from vicinal.tables.table_model import TableCounts, TableModel
from vicinal.tables.writing import plain
from vicinal.voting.explanation import Explanation

WARM_ROWS = 100


@dataclass(frozen=True)
class Answer:
    """One document per row, and remarks on what was not as in training."""

    rows: list[Document]
    remarks: list[str]


class ServedModel(Protocol):
    """Answers about the rows of a table, whose columns are found by name."""

    def warm_up(self) -> None:
        """Ask once, so that the first request does not wait for compilation and preparation."""

    def predict(self, frame: pd.DataFrame, ignore_unseen: bool) -> Answer:
        """Prediction, and probabilities where there are classes."""

    def neighbors(self, frame: pd.DataFrame, k: int, ignore_unseen: bool) -> Answer:
        """The k training rows that count most: id, label and distance."""

    def explain(self, frame: pd.DataFrame, k: int, ignore_unseen: bool) -> Answer:
        """The same with their part in the vote, and what each column adds to the distance."""

    def info(self) -> Document:
        """Facts about the model, and its columns."""

    def add_rows(self, frame: pd.DataFrame) -> ServedModel:
        """A model in which these rows, with their targets, vote too."""

    def forget_rows(self, ids: list[str | int]) -> ServedModel:
        """A model without the training rows of these names."""


def served(model: object) -> ServedModel:
    """The model of a file as one that is served; TypeError where it does not predict."""
    if isinstance(model, TableModel):
        model.fitted.voting()
        return ServedTable(model)
    if not isinstance(model, BaseEstimator) or not hasattr(model, "predict"):
        raise TypeError(f"a {type(model).__name__} does not predict; serve a classifier")
    if anatomy(model).votes is None and not hasattr(model, "kneighbors"):
        raise TypeError(f"a {type(model).__name__} does not predict by neighbors")
    return ServedEstimator(model)


@dataclass(frozen=True, eq=False)
class ServedTable:
    """A model of a table."""

    model: TableModel

    def warm_up(self) -> None:
        for n in (1, WARM_ROWS):  # few rows and many may be computed in different ways
            rows = self.model.training_rows[:n]
            self._probabilities(rows)
            self.model.predicted(rows)
            self.model.nearest(rows, 1)

    def predict(self, frame: pd.DataFrame, ignore_unseen: bool) -> Answer:
        X, notes = self._encoded(frame, ignore_unseen)
        rows = _predictions(self.model.predicted(X), self._probabilities(X), self._classes)
        return Answer(self._named(frame, rows), notes)

    def neighbors(self, frame: pd.DataFrame, k: int, ignore_unseen: bool) -> Answer:
        X, notes = self._encoded(frame, ignore_unseen)
        distances, rows = self.model.nearest(X, k)
        found = _neighbors(self.model.ids, self.model.labels, distances, rows)
        return Answer(self._named(frame, [{"neighbors": near} for near in found]), notes)

    def explain(self, frame: pd.DataFrame, k: int, ignore_unseen: bool) -> Answer:
        _, notes = self._encoded(frame, ignore_unseen)
        explained = [
            explain_row(self.model, frame.iloc[[i]], k, ignore_unseen=ignore_unseen)
            for i in range(len(frame))
        ]
        return Answer(self._named(frame, [plain(asdict(row)) for row in explained]), notes)

    def info(self) -> Document:
        model = self.model
        return {
            "target": model.target,
            "estimator": type(model.fitted.estimator).__name__,
            "classes": plain(self._classes),
            "rows": len(model.ids),
            "id_column": model.roles.id_column,
            "columns": plain([d for d in column_documents(model.columns) if d["features"]]),
            "provenance": plain(model.provenance),
            "example": self._example,
        }

    def add_rows(self, frame: pd.DataFrame) -> ServedTable:
        return ServedTable(with_rows(self.model, frame))

    def forget_rows(self, ids: list[str | int]) -> ServedTable:
        return ServedTable(without_rows(self.model, _rows_called(ids, self.model.ids)))

    @property
    def _classes(self) -> list[object] | None:
        known = getattr(self.model.estimator, "classes_", None)
        return None if known is None else np.asarray(known).tolist()

    @cached_property
    def _example(self) -> Document:
        """The first training row."""
        values = self.model.training_values(np.zeros(1, dtype=np.intp))
        used = {e.name for e in self.model.columns if e.is_used}
        return {name: plain(cell[0]) for name, cell in values.items() if name in used}

    def _encoded(self, frame: pd.DataFrame, ignore_unseen: bool) -> tuple[FloatArray, list[str]]:
        encoded, counts = self.model.encode(frame), TableCounts()
        if not ignore_unseen:
            encoded.check_seen()
        counts.add(encoded)
        return np.asarray(encoded.X), list(remarks(self.model, list(frame.columns), counts))

    def _probabilities(self, X: FloatArray) -> FloatArray | None:
        return None if self._classes is None else self.model.probabilities(X)

    def _named(self, frame: pd.DataFrame, rows: list[Document]) -> list[Document]:
        ids = plain(self.model.roles.ids(frame))
        return [{"id": name, **row} for name, row in zip(ids, rows, strict=True)]


@dataclass(frozen=True, eq=False)
class ServedEstimator:
    """An estimator of numbers, or of the columns that its encoder knows."""

    model: BaseEstimator

    def warm_up(self) -> None:
        if getattr(self.model, "encoder_", None) is None:
            row = pd.DataFrame(np.zeros((1, len(self._names))), columns=self._names)
            self.predict(row, ignore_unseen=True)
            self.neighbors(row, 1, ignore_unseen=True)

    def predict(self, frame: pd.DataFrame, ignore_unseen: bool) -> Answer:
        X, notes = self._features(frame)
        with plain_arrays():
            P = self.model.predict_proba(X) if self._classes is not None else None
            rows = _predictions(self.model.predict(X), P, self._classes)
        return Answer(_numbered(rows), notes)

    def neighbors(self, frame: pd.DataFrame, k: int, ignore_unseen: bool) -> Answer:
        X, notes = self._features(frame)
        with plain_arrays():
            distances, rows = self._nearest(X, k)
        labels = self._labels
        found = _neighbors(np.arange(len(labels)), labels, distances, rows)
        return Answer(_numbered([{"neighbors": near} for near in found]), notes)

    def explain(self, frame: pd.DataFrame, k: int, ignore_unseen: bool) -> Answer:
        if not hasattr(self.model, "explain"):
            raise TableError(
                f"{type(self.model).__name__} does not explain; ask for its neighbors, or serve an "
                "automatic model or a model of a table"
            )
        X, notes = self._features(frame)
        with plain_arrays():
            explained = self.model.explain(X, n_neighbors=k)
        return Answer(_numbered([self._explained(e) for e in explained]), notes)

    def info(self) -> Document:
        return {
            "target": "target",
            "estimator": type(self.model).__name__,
            "classes": plain(self._classes),
            "rows": len(self._labels),
            "id_column": None,
            "columns": [{"name": name, "kind": "number"} for name in self._names],
            "provenance": {},
            "example": None,
        }

    def add_rows(self, frame: pd.DataFrame) -> ServedEstimator:
        self._check_changes()
        if "target" not in frame.columns:
            raise TableError("added rows need a column 'target'")
        X, _ = self._features(frame)
        target = frame["target"].to_numpy()
        kind = getattr(self.model, "classes_", np.zeros(0)).dtype.kind
        y = target.astype(str) if kind == "U" else target
        with plain_arrays():
            return ServedEstimator(copy(self.model).add_rows(X, y))

    def forget_rows(self, ids: list[str | int]) -> ServedEstimator:
        self._check_changes()
        n = len(self._labels)
        return ServedEstimator(copy(self.model).forget_rows(_rows_called(ids, np.arange(n))))

    def _check_changes(self) -> None:
        if not hasattr(self.model, "add_rows"):
            raise TableError(f"rows of a {type(self.model).__name__} cannot be changed")

    @cached_property
    def _fitted(self) -> FittedModel:
        return anatomy(self.model)

    def _nearest(self, X: Table, k: int) -> tuple[FloatArray, IndexArray]:
        if self._fitted.votes is not None:
            return self._fitted.votes.nearest(self._fitted.prepare(X), k)
        distances, rows = self.model.kneighbors(X, min(k, self.model.n_samples_fit_))
        return distances, rows

    @property
    def _labels(self) -> LabelArray:
        """(n,) classes of the training rows, or the numbers that they vote for."""
        votes = self._fitted.votes
        return np.asarray(self.model.y_fit_) if votes is None else votes.labels()

    @property
    def _classes(self) -> list[object] | None:
        known = getattr(self.model, "classes_", None)
        return None if known is None else np.asarray(known).tolist()

    @property
    def _names(self) -> list[str]:
        names = getattr(self.model, "feature_names_in_", None)
        if names is None:
            return [f"x{j}" for j in range(self.model.n_features_in_)]
        return [str(name) for name in names]

    def _features(self, frame: pd.DataFrame) -> tuple[Table, list[str]]:
        """The columns in the order of the fit: a table for an encoder, else numbers."""
        absent = [repr(name) for name in self._names if name not in frame.columns]
        if absent:
            there = ", ".join(map(repr, frame.columns[:12]))
            raise TableError(f"missing column(s) {', '.join(absent)}; the table has {there}")
        extra = [repr(name) for name in frame.columns if name not in {*self._names, "target"}]
        notes = [f"note: not in the model, ignored: {', '.join(extra[:10])}"] if extra else []
        table = frame[self._names]
        if getattr(self.model, "encoder_", None) is not None:
            return table, notes
        return _numbers(table), notes

    def _explained(self, explanation: Explanation) -> Document:
        labels = np.asarray([near.label for near in explanation.neighbors], dtype=object)
        return {
            "prediction": plain(explanation.prediction),
            "probabilities": plain(getattr(explanation, "probabilities", None)),
            "neighbors": [
                {
                    "id": near.row,
                    "label": plain(label),
                    "weight": plain(near.weight),
                    "distance": plain(near.distance),
                    "shares": dict(
                        zip(explanation.feature_names, plain(near.contributions), strict=True)
                    ),
                }
                for near, label in zip(explanation.neighbors, labels, strict=True)
            ],
        }


def _numbers(table: pd.DataFrame) -> FloatArray:
    """(n, d) float64; a TableError names the first cell that is not a number."""
    X = np.empty(table.shape)
    for j, name in enumerate(table.columns):
        for i, cell in enumerate(table[name].tolist()):
            try:
                X[i, j] = np.nan if cell is None else float(cell)
            except (TypeError, ValueError, OverflowError) as error:
                raise TableError(
                    f"column {name!r} takes numbers; row {i} has {str(cell)[:50]!r}"
                ) from error
    return X


def _predictions(
    predicted: LabelArray, P: FloatArray | None, classes: list[object] | None
) -> list[Document]:
    rows: list[Document] = [{"prediction": value} for value in plain(np.asarray(predicted))]
    if P is not None and classes is not None:
        names = [str(label) for label in classes]
        for row, p in zip(rows, P.tolist(), strict=True):
            row["probabilities"] = dict(zip(names, p, strict=True))
    return rows


def _neighbors(
    ids: LabelArray, labels: LabelArray, distances: FloatArray, rows: IndexArray
) -> list[list[Document]]:
    return [
        [
            {"id": plain(ids[row]), "label": plain(labels[row]), "distance": plain(distance)}
            for row, distance in zip(near.tolist(), far.tolist(), strict=True)
        ]
        for near, far in zip(rows, distances, strict=True)
    ]


def _numbered(rows: list[Document]) -> list[Document]:
    return [{"id": i, **row} for i, row in enumerate(rows)]


def _rows_called(ids: list[str | int], names: LabelArray) -> IndexArray:
    """Numbers of the training rows of these names; a TableError where there is none."""
    numbers: dict[str, list[int]] = {}
    for row, name in enumerate(names.tolist()):
        numbers.setdefault(str(name), []).append(row)
    strange = [name for name in ids if str(name) not in numbers]
    if strange:
        raise TableError(f"no training row is called {str(strange[0])[:50]!r}")
    return np.array(sorted({row for name in ids for row in numbers[str(name)]}), dtype=np.intp)
