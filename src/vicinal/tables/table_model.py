"""A model of a table: what is done to the columns, and the estimator of what they become."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.pipeline import Pipeline

from vicinal._typing import Document, FloatArray, IndexArray, LabelArray
from vicinal.exceptions import TableError
from vicinal.features.column_encoding import ColumnEncoding
from vicinal.features.table_encoder import EncodedTable, TableEncoder
from vicinal.features.table_values import read_columns
from vicinal.features.target_statistics import TargetCode
from vicinal.fitted_model import FittedModel, NumberVotes, anatomy
from vicinal.tables.training_table import ColumnRoles, Task, TrainingTable, prepare_training

if TYPE_CHECKING:
    import pandas as pd

    from vicinal.tables.selection import CandidateModel, FitSettings

Values: TypeAlias = dict[str, LabelArray]


class NamedColumns(TransformerMixin, BaseEstimator):
    """An encoder for tables whose columns are found by name, in any order.

    Parameters
    ----------
    encoder : TableEncoder
    names : tuple of str
        The columns that it takes.
    """

    encoder_: TableEncoder

    def __init__(self, encoder: TableEncoder, names: tuple[str, ...]) -> None:
        self.encoder = encoder
        self.names = names

    @classmethod
    def of(cls, encoder: TableEncoder) -> Self:
        """With a fitted encoder."""
        columns = cls(encoder, tuple(encoding.name for encoding in encoder.columns_))
        columns.encoder_ = encoder
        return columns

    def fit(self, frame: pd.DataFrame, y: object = None) -> Self:
        """Decide anew what becomes of the columns."""
        self.encoder_ = clone(self.encoder).fit(frame[list(self.names)], y)
        return self

    def select(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The columns in the order of the training table; TableError where one is missing."""
        used = {encoding.name: encoding.is_used for encoding in self.encoder_.columns_}
        absent = [repr(name) for name in used if used[name] and name not in frame.columns]
        if absent:
            there = ", ".join(map(repr, frame.columns[:12]))
            there += ", …" if len(frame.columns) > 12 else ""
            raise TableError(
                f"missing column(s) {', '.join(absent)}; the table has {there}: rename a column, "
                "or add it (empty, if the values are unknown: they are filled as in training)"
            )
        return frame.reindex(columns=list(used))

    def transform(self, frame: pd.DataFrame) -> FloatArray:
        """The features X (n, e) of a table."""
        return np.asarray(self.encoder_.encode(self.select(frame)).X)

    def get_feature_names_out(self, names: object = None) -> NDArray[np.object_]:
        """Names of the features."""
        return self.encoder_.get_feature_names_out()


@dataclass(frozen=True)
class TableCounts:
    """Counts, over all parts of a table, of what was not as in training.

    Attributes
    ----------
    missing : Counter
        Column → rows without a value.
    unseen : dict of Counter
        Column → level that did not occur in training → rows.
    """

    missing: Counter[str] = field(default_factory=Counter)
    unseen: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, encoded: EncodedTable) -> None:
        """Count another part of the table."""
        self.missing.update(encoded.missing)
        for name, levels in encoded.unseen.items():
            self.unseen.setdefault(name, Counter()).update(levels)


@dataclass(frozen=True, eq=False)
class TableModel:
    """A fitted estimator of the columns of a table, from the table as it is on disk to classes.

    Attributes
    ----------
    estimator : fitted classifier
        ANNClassifier with an encoder, or a Pipeline: an encoder, then ANNSearchCV, ClassMeanKNN, or
        a learner and a ClassMeanKNN.
    roles : ColumnRoles
        The columns of classes, names and groups.
    ids : ndarray of shape (n_rows,)
        What the training rows are called: values of the id column, else their numbers from 0 in
        the training table.
    rows : ndarray of shape (n_rows, n_features) or None
        The encoded training rows; None if the estimator has them as ``X_fit_``.
    levels : ndarray of shape (n_rows, n_columns) or None
        The levels of the training rows in columns by target statistics, from which they could not
        be restored.
    provenance : dict
        Where it comes from: JSON-able.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from vicinal.tables.selection import FitSettings
    >>> from vicinal.tables.table_model import TableModel
    >>> table = load_iris(as_frame=True).frame
    >>> model = TableModel.fit(table, "target", settings=FitSettings(method="plain"))
    >>> model.prepare(table).shape
    (150, 4)
    >>> float((model.predict(table) == table["target"]).mean()) > 0.9
    True
    """

    estimator: BaseEstimator
    roles: ColumnRoles
    ids: NDArray[np.generic]
    rows: FloatArray | None = None
    levels: IndexArray | None = None
    provenance: Document = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse parts that do not fit together: a file may come from a stranger."""
        features, rows = len(self.encoder.feature_columns_), len(self.ids)
        if self.fitted.estimator.n_features_in_ != features:
            raise ValueError(
                f"the columns make {features} features, the estimator was fitted on "
                f"{self.fitted.estimator.n_features_in_}"
            )
        if self.training_rows.shape != (rows, features) or len(self.labels) != rows:
            raise ValueError(f"there are ids of {rows} rows, but not as many rows of {features}")
        if self.levels is not None:
            limits = np.array([len(code.levels) for _, code in self._by_target])
            if self.levels.shape != (rows, len(limits)) or (self.levels >= limits).any():
                raise ValueError("levels must be those of the columns by target statistics")

    @classmethod
    def fit(
        cls,
        frame: pd.DataFrame,
        target: str,
        *,
        id_column: str | None = None,
        group_column: str | None = None,
        keep: Sequence[str] = (),
        task: Task = "classification",
        settings: FitSettings | None = None,
    ) -> TableModel:
        """Fit a model of the column ``target``; the last of :meth:`candidates`.

        Parameters
        ----------
        frame : DataFrame
        target : str
            The column of the classes. Rows without one are left out.
        id_column : str or None
            The column that names the rows; not a feature.
        group_column : str or None
            Rows of one group are never on both sides of a split; not a feature.
        keep : sequence of str
            Columns to use although they look like identifiers.
        task : {"classification", "regression"}
        settings : FitSettings or None
            Method, seed, time.
        """
        roles = ColumnRoles(target, id_column, group_column, tuple(keep))
        *_, last = cls.candidates(prepare_training(frame, roles, task), roles, settings=settings)
        return last

    @classmethod
    def candidates(
        cls, data: TrainingTable, roles: ColumnRoles, *, settings: FitSettings | None = None
    ) -> Iterator[TableModel]:
        """Models, each better than the last.

        Parameters
        ----------
        data : TrainingTable
        roles : ColumnRoles
        settings : FitSettings or None
        """
        from vicinal.tables.selection import FitSettings, candidates

        settings = settings or FitSettings()
        levels = _levels(data)
        for found in candidates(data, settings):
            has_rows = anatomy(found.estimator).committee is not None
            yield cls(
                estimator=found.estimator,
                roles=roles,
                ids=data.ids,
                rows=None if has_rows else data.rows.X,
                levels=levels,
                provenance={
                    "method": settings.method,
                    "how": found.how,
                    **_evidence(data, found),
                    "timed_out": found.timed_out,
                    "seed": settings.seed,
                },
            )

    @property
    def task(self) -> Task:
        """Whether classes or numbers are predicted."""
        is_number = isinstance(self.fitted.votes, NumberVotes)
        return "regression" if is_number else "classification"

    @property
    def target(self) -> str:
        """The column that is predicted."""
        return self.roles.target

    @property
    def encoder(self) -> TableEncoder:
        """The encoder that makes numbers of the columns."""
        encoder, *others = anatomy(self.estimator).preparation or (None,)
        if others:
            raise ValueError("between the TableEncoder and the metric there may be no other step")
        if not isinstance(encoder, TableEncoder):
            raise TypeError("the estimator does not begin with a TableEncoder")
        return encoder

    @property
    def columns(self) -> list[ColumnEncoding]:
        """The encoding of each column, in the order of the training table."""
        return self.encoder.columns_

    @cached_property
    def fitted(self) -> FittedModel:
        """The estimator of the encoded rows, in its parts."""
        return replace(anatomy(self.estimator), preparation=())

    @property
    def of_features(self) -> BaseEstimator:
        """The estimator of the encoded rows."""
        if isinstance(self.estimator, Pipeline):
            return Pipeline(self.estimator.steps[1:])
        return self.fitted.estimator

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Of the e features that the columns become."""
        return tuple(self.encoder.get_feature_names_out())

    @property
    def classes(self) -> NDArray[np.generic]:
        """(c,) in the order of the probabilities."""
        return np.asarray(self.estimator.classes_)

    @property
    def labels(self) -> NDArray[np.generic]:
        """(n_rows,) the classes of the training rows."""
        return self.fitted.voting().labels()

    @property
    def training_rows(self) -> FloatArray:
        """(n_rows, e) the encoded training rows."""
        if self.rows is not None:
            return self.rows
        if self.fitted.committee is None:
            raise ValueError("the training rows are missing")
        return np.asarray(self.fitted.committee.X_fit_)

    def encode(self, frame: pd.DataFrame) -> EncodedTable:
        """The rows of a table as numbers; its columns are found by name, in any order."""
        return self.encoder.encode(NamedColumns.of(self.encoder).select(frame))

    def prepare(self, frame: pd.DataFrame, *, ignore_unseen: bool = False) -> FloatArray:
        """The features X (n, e) of a table; its columns are found by name, in any order.

        Parameters
        ----------
        frame : DataFrame
        ignore_unseen : bool
            Let a level that did not occur in training be none of the known ones, where otherwise
            it is a TableError.
        """
        encoded = self.encode(frame)
        if not ignore_unseen:
            encoded.check_seen()
        return np.asarray(encoded.X)

    def predict(self, frame: pd.DataFrame, *, ignore_unseen: bool = False) -> NDArray[np.generic]:
        """(n,) classes; parameters as of :meth:`prepare`."""
        return self.predicted(self.prepare(frame, ignore_unseen=ignore_unseen))

    def predict_proba(self, frame: pd.DataFrame, *, ignore_unseen: bool = False) -> FloatArray:
        """(n, c) probabilities; parameters as of :meth:`prepare`."""
        return self.probabilities(self.prepare(frame, ignore_unseen=ignore_unseen))

    def predicted(self, X: FloatArray) -> NDArray[np.generic]:
        """(n,) classes of encoded rows X (n, e)."""
        return self.fitted.voting().predict(self.fitted.prepare(X))

    def intervals(self, X: FloatArray, coverage: float = 0.9) -> FloatArray:
        """(n, 2) intervals of numbers, of encoded rows X (n, e)."""
        votes = self.fitted.votes
        if not isinstance(votes, NumberVotes):
            raise TypeError("a model of classes has probabilities, and no intervals")
        return votes.intervals(self.fitted.prepare(X), coverage)

    def answers(self, X: FloatArray) -> tuple[FloatArray, NDArray[np.generic]]:
        """Probabilities (n, c) and classes (n,) of encoded rows X (n, e)."""
        P = self.probabilities(X)
        if self.fitted.committee is None:
            return P, self.predicted(X)  # a vote decides among equals by itself
        return P, np.asarray(self.classes[P.argmax(axis=1)])

    def probabilities(self, X: FloatArray) -> FloatArray:
        """(n, c) of the classes, of encoded rows X (n, e)."""
        return self.fitted.voting().probabilities(self.fitted.prepare(X))

    def nearest(self, X: FloatArray, k: int) -> tuple[FloatArray, IndexArray]:
        """Distances and training rows, both (n, k), of the neighbors of encoded rows X (n, e)."""
        return self.fitted.voting().nearest(self.fitted.prepare(X), k)

    def embed(self, X: FloatArray) -> FloatArray:
        """(n, m) encoded rows X (n, e) where Euclidean distances are the learned ones."""
        return self.fitted.metric.embed(self.fitted.prepare(X))

    def values(self, X: FloatArray) -> Values:
        """The values behind encoded rows X (n, e): column → (n,) values in its own units."""
        return self.encoder.restore(X)

    def training_values(self, rows: IndexArray) -> Values:
        """The same of training rows (k,), with the levels of columns by target statistics."""
        values = self.values(self.training_rows[rows])
        if self.levels is not None:
            for (name, code), codes in zip(self._by_target, self.levels[rows].T, strict=True):
                values[name] = code.levels[codes]
        return values

    @property
    def _by_target(self) -> list[tuple[str, TargetCode]]:
        return [(e.name, e.code) for e in self.columns if isinstance(e.code, TargetCode)]

    def to_state(self) -> dict[str, Any]:
        """JSON-able values, the arrays "ids", "rows" and "levels", and the nested estimator."""
        return {
            "estimator": self.estimator,
            "target": self.roles.target,
            "ids": self.ids,
            "rows": self.rows,
            "levels": self.levels,
            "id_column": self.roles.id_column,
            "group_column": self.roles.group_column,
            "provenance": self.provenance,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> TableModel:
        """The model of a ``state`` of :meth:`to_state`; ValueError if it is not one."""
        roles = ColumnRoles(state["target"], state["id_column"], state["group_column"])
        parts = {name: state[name] for name in ("estimator", "ids", "rows", "provenance")}
        return cls(roles=roles, levels=state.get("levels"), **parts)


def _evidence(data: TrainingTable, found: CandidateModel) -> Document:
    """Scores out of fold, and those of plain K-NN on the same rows; JSON-able."""
    if found.numbers is not None:
        scores_of, plain_scores = (asdict(scores) for scores in found.numbers)
        return {
            "cross_validated_accuracy": None,
            "plain_cross_validated_accuracy": None,
            "cross_validated_r2": scores_of["r2"],
            "out_of_fold": scores_of,
            "plain_out_of_fold": plain_scores,
        }
    scores = {
        name: None if judged is None else asdict(judged.scores(data.classes))
        for name, judged in (("out_of_fold", found.judged), ("plain_out_of_fold", found.plain))
    }
    accuracy, plain = (None if of is None else of["accuracy"] for of in scores.values())
    return {
        "cross_validated_accuracy": accuracy,
        "plain_cross_validated_accuracy": plain,
        **scores,
    }


def _levels(data: TrainingTable) -> IndexArray | None:
    """(n_rows, t) the levels of the training rows in the columns by target statistics."""
    pairs = zip(data.encoder.columns_, read_columns(data.frame), strict=True)
    codes = [e.code.codes(column) for e, column in pairs if isinstance(e.code, TargetCode)]
    return np.column_stack(codes) if codes else None


@anatomy.register
def _(model: TableModel) -> FittedModel:
    """The estimator, after the columns of the table."""
    return replace(model.fitted, preparation=(NamedColumns.of(model.encoder),))
