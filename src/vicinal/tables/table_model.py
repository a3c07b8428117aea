"""A model of a table: what is done to the columns, and the estimator of what they become."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from vicinal._typing import FloatArray, IndexArray
from vicinal.automatic.classifier import ANNClassifier
from vicinal.exceptions import TableError
from vicinal.fitted_model import FittedModel, anatomy
from vicinal.tables.columns import ColumnPlan, encode, restore
from vicinal.tables.training_table import ColumnRoles, prepare_training

if TYPE_CHECKING:
    import pandas as pd

    from vicinal.tables.selection import FitSettings


class TableColumns(TransformerMixin, BaseEstimator):
    """The columns of a table as features: a step that transforms, with nothing left to fit.

    Parameters
    ----------
    plans : tuple of ColumnPlan
    """

    def __init__(self, plans: tuple[ColumnPlan, ...]) -> None:
        self.plans = plans

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, frame: pd.DataFrame, y: object = None) -> TableColumns:
        """Nothing: the plans were made on the training table."""
        return self

    def transform(self, frame: pd.DataFrame, *, ignore_unseen: bool = False) -> FloatArray:
        """The features X (n, d) of a table; its columns are found by name, in any order.

        Parameters
        ----------
        frame : DataFrame
        ignore_unseen : bool
            Let a category that did not occur in training be none of the known ones.
        """
        used = [plan for plan in self.plans if plan.kind != "dropped"]
        absent = [repr(plan.name) for plan in used if plan.name not in frame.columns]
        if absent:
            there = ", ".join(map(repr, frame.columns[:12]))
            there += ", …" if len(frame.columns) > 12 else ""
            raise TableError(
                f"missing column(s) {', '.join(absent)}; the table has {there}: rename a column, "
                "or add it (empty, if the values are unknown: they are filled as in training)"
            )
        blocks = [encode(frame[plan.name], plan, ignore_unseen=ignore_unseen) for plan in used]
        return np.hstack(blocks)

    def restore(self, X: FloatArray) -> dict[str, NDArray[np.generic]]:
        """What the features X (n, d) were made of: column → (n,) values in its own units."""
        return {plan.name: restore(X[:, block], plan) for plan, block in self.blocks()}

    def blocks(self) -> Iterator[tuple[ColumnPlan, slice]]:
        """Every used column with its features."""
        start = 0
        for plan in self.plans:
            stop = start + len(plan.feature_names)
            if stop > start:
                yield plan, slice(start, stop)
            start = stop

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Of the d features that the columns become."""
        return tuple(name for plan in self.plans for name in plan.feature_names)

    def get_feature_names_out(self, names: object = None) -> NDArray[np.object_]:
        """The same as scikit-learn has them."""
        return np.asarray(self.feature_names, dtype=object)


@dataclass(frozen=True, eq=False)
class TableModel:
    """Column preparation and a fitted estimator, from the table as it is on disk to classes.

    Attributes
    ----------
    columns : tuple of ColumnPlan
        What becomes of each column, in the order of the training table.
    estimator : fitted classifier
        ANNClassifier, ANNSearchCV, ClassMeanKNN, or a Pipeline of a learner and a ClassMeanKNN.
    roles : ColumnRoles
        The columns of classes, names and groups.
    ids : ndarray of shape (n_rows,)
        What the training rows are called: values of the id column, else their numbers from 0 in
        the training table.
    rows : ndarray of shape (n_rows, n_features) or None
        The prepared training rows; None if the estimator has them as ``X_fit_``.
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

    columns: tuple[ColumnPlan, ...]
    estimator: Any
    roles: ColumnRoles
    ids: NDArray[np.generic]
    rows: FloatArray | None = None
    provenance: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse parts that do not fit together; they may come from somebody else's file."""
        features, rows = len(self.feature_names), len(self.ids)
        if self.estimator.n_features_in_ != features:
            raise ValueError(
                f"the columns make {features} features, the estimator was fitted on "
                f"{self.estimator.n_features_in_}"
            )
        if self.training_rows.shape != (rows, features) or len(self.labels) != rows:
            raise ValueError(f"there are ids of {rows} rows, but not as many rows of {features}")

    @classmethod
    def fit(
        cls,
        frame: pd.DataFrame,
        target: str,
        *,
        id_column: str | None = None,
        group_column: str | None = None,
        keep: Sequence[str] = (),
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
        settings : FitSettings or None
            Method, seed, time.
        """
        roles = ColumnRoles(target, id_column, group_column)
        *_, last = cls.candidates(frame, roles, keep=keep, settings=settings)
        return last

    @classmethod
    def candidates(
        cls,
        frame: pd.DataFrame,
        roles: ColumnRoles,
        *,
        keep: Sequence[str] = (),
        settings: FitSettings | None = None,
    ) -> Iterator[TableModel]:
        """Models, each better than the last; parameters as of :meth:`fit`."""
        from vicinal.tables.selection import FitSettings, candidates

        data = prepare_training(frame, roles, keep)
        settings = settings or FitSettings()
        for found in candidates(data.rows, settings):
            yield cls(
                columns=data.columns,
                estimator=found.estimator,
                roles=roles,
                ids=data.ids,
                rows=None if isinstance(found.estimator, ANNClassifier) else data.rows.X,
                provenance={
                    "method": settings.method,
                    "how": found.how,
                    "cross_validated_accuracy": found.accuracy,
                    "timed_out": found.timed_out,
                    "seed": settings.seed,
                },
            )

    @property
    def target(self) -> str:
        """The column that is predicted."""
        return self.roles.target

    @cached_property
    def fitted(self) -> FittedModel:
        """The estimator in its parts."""
        return anatomy(self.estimator)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Of the d features that the columns become."""
        return TableColumns(self.columns).feature_names

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
        """(n_rows, d) the prepared training rows."""
        if self.rows is not None:
            return self.rows
        if self.fitted.committee is None:
            raise ValueError("the training rows are missing")
        return np.asarray(self.fitted.committee.X_fit_)

    def prepare(self, frame: pd.DataFrame, *, ignore_unseen: bool = False) -> FloatArray:
        """The features X (n, d) of a table; its columns are found by name, in any order.

        Parameters
        ----------
        frame : DataFrame
        ignore_unseen : bool
            Let a category that did not occur in training be none of the known ones.
        """
        return TableColumns(self.columns).transform(frame, ignore_unseen=ignore_unseen)

    def restore(self, X: FloatArray) -> dict[str, NDArray[np.generic]]:
        """What the features X (n, d) were made of: column → (n,) values in its own units."""
        return TableColumns(self.columns).restore(X)

    def blocks(self) -> Iterator[tuple[ColumnPlan, slice]]:
        """Every used column with its features."""
        return TableColumns(self.columns).blocks()

    def predict(self, frame: pd.DataFrame, *, ignore_unseen: bool = False) -> NDArray[np.generic]:
        """(n,) classes; parameters as of :meth:`prepare`."""
        return np.asarray(self.estimator.predict(self.prepare(frame, ignore_unseen=ignore_unseen)))

    def predict_proba(self, frame: pd.DataFrame, *, ignore_unseen: bool = False) -> FloatArray:
        """(n, c) probabilities; parameters as of :meth:`prepare`."""
        X = self.prepare(frame, ignore_unseen=ignore_unseen)
        return np.asarray(self.estimator.predict_proba(X))

    def nearest(self, X: FloatArray, k: int) -> tuple[FloatArray, IndexArray]:
        """Distances and training rows, both (n, k), of the neighbors of prepared rows X (n, d)."""
        return self.fitted.voting().nearest(self.fitted.prepare(X), k)

    def embed(self, X: FloatArray) -> FloatArray:
        """(n, m) prepared rows X (n, d) where Euclidean distances are the learned ones."""
        return self.fitted.metric.embed(self.fitted.prepare(X))

    def to_state(self) -> dict[str, Any]:
        """JSON-able values, the arrays "ids" and "rows" (or None), and the nested estimator."""
        return {
            "columns": [plan.to_state() for plan in self.columns],
            "estimator": self.estimator,
            "target": self.roles.target,
            "ids": self.ids,
            "rows": self.rows,
            "id_column": self.roles.id_column,
            "group_column": self.roles.group_column,
            "provenance": self.provenance,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> TableModel:
        """The model of a ``state`` of :meth:`to_state`; ValueError if it is not one."""
        columns = tuple(ColumnPlan.from_state(plan) for plan in state["columns"])
        roles = ColumnRoles(state["target"], state["id_column"], state["group_column"])
        parts = {name: state[name] for name in ("estimator", "ids", "rows", "provenance")}
        return cls(columns=columns, roles=roles, **parts)


@anatomy.register
def _(model: TableModel) -> FittedModel:
    """The estimator, after the columns of the table."""
    columns = TableColumns(model.columns)
    return replace(model.fitted, preparation=(columns, *model.fitted.preparation))
