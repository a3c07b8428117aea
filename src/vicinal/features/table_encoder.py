"""Encoder of tables: any column as numbers, decided on training rows and repeated on others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import (
    _check_feature_names,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from vicinal._typing import FloatArray, IndexArray, LabelArray, Table
from vicinal.exceptions import TableError, UnseenLevelWarning, warn_user
from vicinal.features.column_encoding import ColumnEncoding, ColumnKind, ColumnPlanner
from vicinal.features.table_values import Column, dense, is_plain, is_table, read_columns
from vicinal.features.target_statistics import (
    TARGET_TYPES,
    TargetCode,
    TargetColumn,
    TargetFeatures,
    Targets,
)
from vicinal.learners.fit_input import on_host, store_fit
from vicinal.learners.parameters import (
    COUNT,
    Instance,
    OneOf,
    ParameterConstraints,
    check_parameters,
)


@dataclass(frozen=True)
class EncodedSamples:
    """Training rows as numbers.

    Attributes
    ----------
    X : (n, e) array
        Features; those that depend on targets are cross-fitted.
    encoder : TableEncoder or None
        What made them; None of numbers without gaps, which stay as they are.
    target_features : TargetFeatures or None
        The features that are other ones in every fold; None if there are none.
    """

    X: FloatArray
    encoder: TableEncoder | None = None
    target_features: TargetFeatures | None = None


@dataclass(frozen=True)
class EncodedTable:
    """Rows of a table as numbers, and what in them was not as in training.

    Attributes
    ----------
    X : (n, e) array
    unseen : dict
        Column → level that did not occur in training → number of rows.
    missing : dict
        Column → number of rows without a value, where there are any.
    """

    X: FloatArray
    unseen: dict[str, dict[str, int]]
    missing: dict[str, int]

    def check_seen(self) -> None:
        """Raise a TableError that names the levels that did not occur in training."""
        for name, levels in self.unseen.items():
            shown = ", ".join(map(repr, sorted(levels)[:5])) + (", …" if len(levels) > 5 else "")
            raise TableError(
                f"column {name!r}: {shown} ({sum(levels.values())} row(s)) did not occur in "
                "training; correct the value, or let it be none of the known ones "
                "(--unseen ignore)"
            )


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode the columns of a table as numbers for which distances make sense.

    ==================  ===========================================================================
    column              features
    ==================  ===========================================================================
    numbers, booleans   standardized; also read from texts: 12.5%, $8,077.35, 9.4 kg, 1,5
    ordered categories  position in the order, standardized
    few levels          one feature per level
    many levels         the shares of the classes (or the mean of the target) among the rows of
                        the level, cross-fitted: no training row sees its own target
    dates and times     time elapsed; month, weekday and hour as points on circles if they vary
    constants, names    none
    ==================  ===========================================================================

    A missing number or date is filled with the median, and where missing values are not rare one
    more feature marks them; a missing category is a level of its own. The variances of the
    features of a column sum to 1, so that no column outweighs another before a metric is learned.

    Parameters
    ----------
    kinds : dict or None, default=None
        Kinds of columns by name, where they are not to be found out: "number", "category",
        "date", "text" (levels by target statistics, however few) or "drop".
    max_levels : int, default=30
        A column with more levels is encoded by target statistics.
    target_type : {"auto", "classes", "number"}, default="auto"
        What the targets are; "auto" takes numbers that are not all whole as numbers.
    random_state : int, RandomState or None, default=0
        Deals rows into the folds of cross-fitting.

    Attributes
    ----------
    columns_ : list of ColumnEncoding
        What is done to each column.
    feature_columns_ : (n_features_out,) array
        The number of the column that each feature belongs to.
    n_features_in_, feature_names_in_

    See Also
    --------
    sklearn.preprocessing.TargetEncoder : Target statistics alone.

    Examples
    --------
    >>> import pandas as pd
    >>> import vicinal as vc
    >>> table = pd.DataFrame(
    ...     {
    ...         "price": ["$1,200", "$950", None, "$2,100"],
    ...         "color": ["red", "blue", "red", "green"],
    ...     }
    ... )
    >>> encoder = vc.TableEncoder()
    >>> encoder.fit_transform(table).shape
    (4, 5)
    >>> list(encoder.get_feature_names_out())
    ['price', 'price=(missing)', 'color=blue', 'color=green', 'color=red']
    >>> encoder.feature_columns_
    array([0, 0, 1, 1, 1])
    """

    columns_: list[ColumnEncoding]
    KINDS: ClassVar[tuple[str, ...]] = ("number", "category", "date", "text", "drop")
    _constraints: ClassVar[ParameterConstraints] = {
        "kinds": OneOf((None,), Instance(Mapping, "a dict of column names and kinds")),
        "max_levels": COUNT,
        "target_type": OneOf(TARGET_TYPES),
    }

    def __init__(
        self,
        kinds: Mapping[str, ColumnKind] | None = None,
        *,
        max_levels: int = 30,
        target_type: Literal["auto", "classes", "number"] = "auto",
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.kinds = kinds
        self.max_levels = max_levels
        self.target_type = target_type
        self.random_state = random_state

    def fit(self, X: Table, y: ArrayLike | None = None) -> Self:
        """Decide what becomes of each column.

        Parameters
        ----------
        X : data frame (pandas, polars), pyarrow table or array of shape (n_samples, n_columns)
        y : array-like of shape (n_samples,) or None
            Classes or numbers; without them, columns of many levels are dropped.

        Returns
        -------
        self
        """
        self._fit(X, y)
        return self

    def fit_transform(self, X: Table, y: ArrayLike | None = None) -> Any:
        """Fit, and encode the training rows without their own targets.

        Differs from ``fit(X, y).transform(X)`` in columns that are encoded by target statistics.

        Parameters
        ----------
        X : data frame (pandas, polars), pyarrow table or array of shape (n_samples, n_columns)
        y : array-like of shape (n_samples,) or None

        Returns
        -------
        features : (n_samples, n_features_out) array
        """
        return self.fit_samples(X, y).X

    def fit_samples(self, X: Table, y: ArrayLike | None = None) -> EncodedSamples:
        """Fit, and encode the training rows, with what cross-validation needs to know of them.

        Parameters
        ----------
        X : data frame (pandas, polars), pyarrow table or array of shape (n_samples, n_columns)
        y : array-like of shape (n_samples,) or None

        Returns
        -------
        samples : EncodedSamples
        """
        features, target_features = self._fit(X, y)
        return EncodedSamples(features, self, target_features)

    def transform(self, X: Table) -> Any:
        """Encode a table with the columns of the training table.

        Levels that did not occur in training are none of the known ones; a
        :class:`~vicinal.exceptions.UnseenLevelWarning` counts them.

        Parameters
        ----------
        X : data frame (pandas, polars), pyarrow table or array of shape (n_samples, n_columns)

        Returns
        -------
        features : (n_samples, n_features_out) array
        """
        encoded = self.encode(X)
        counts = {name: sum(levels.values()) for name, levels in encoded.unseen.items()}
        counted = ", ".join(f"{name!r} ({count} rows)" for name, count in counts.items())
        if counted:
            warn_user(
                f"levels that did not occur in training, taken as none of the known: {counted}",
                UnseenLevelWarning,
            )
        return encoded.X

    def encode(self, X: Table) -> EncodedTable:
        """Encode a table as :meth:`transform` does, and count what was not as in training.

        Parameters
        ----------
        X : data frame (pandas, polars), pyarrow table or array of shape (n_samples, n_columns)

        Returns
        -------
        encoded : EncodedTable
        """
        check_is_fitted(self)
        columns, dtype = self._read(X, reset=False)
        used = [pair for pair in zip(self.columns_, columns, strict=True) if pair[0].is_used]
        unseen, missing = {}, {}
        for encoding, column in used:
            if count := int(encoding.as_read(column).missing.sum()):
                missing[column.name] = count
            new = encoding.code.unseen(column)
            if new.any():
                unseen[column.name] = dict(Counter(column.texts()[new].tolist()))
        features = np.hstack([e.features(c) for e, c in used]).astype(dtype, copy=False)
        return EncodedTable(features, unseen, missing)

    def restore(self, X: FloatArray) -> dict[str, LabelArray]:
        """The values that features X (n, e) were made of: column → (n,) values, of columns in use.

        Missing values are restored as what they were filled with, unless a feature marks them; of
        columns by target statistics, a level that has such statistics.
        """
        starts = np.searchsorted(self.feature_columns_, np.arange(len(self.columns_) + 1))
        blocks = zip(self.columns_, starts[:-1], starts[1:], strict=True)
        return {e.name: e.restore(X[:, a:b]) for e, a, b in blocks if e.is_used}

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Names of the features: that of the column, with a level where there are several."""
        check_is_fitted(self)
        return np.array([n for e in self.columns_ for n in e.feature_names], dtype=object)

    @property
    def input_attributes(self) -> dict[str, object]:
        """``n_features_in_`` and, where the columns have names, ``feature_names_in_``."""
        names = ("n_features_in_", "feature_names_in_")
        return {name: value for name, value in vars(self).items() if name in names}

    @property
    def feature_columns_(self) -> IndexArray:
        """(n_features_out,) the number of the column that each feature belongs to."""
        return np.repeat(
            np.arange(len(self.columns_)), [len(e.feature_names) for e in self.columns_]
        )

    def sum_by_column(self, parts: FloatArray) -> FloatArray:
        """(k, n_columns) sums over the features of each column, of parts (k, n_features_out)."""
        check_is_fitted(self)
        return np.asarray(parts @ np.eye(len(self.columns_))[self.feature_columns_])

    def describe(self) -> str:
        """One line per column: its kind, what is done to it, how many values are missing."""
        check_is_fitted(self)
        kinds = [f"{e.name}: {e.code.kind}, " for e in self.columns_]
        return "\n".join(kind + str(e) for kind, e in zip(kinds, self.columns_, strict=True))

    def _fit(self, X: Table, y: ArrayLike | None) -> tuple[FloatArray, TargetFeatures | None]:
        """The features of the training rows, and those among them that depend on targets."""
        check_parameters(self)
        scratch = copy(self)
        columns, dtype = scratch._read(X, reset=True)
        kinds = self._checked_kinds([column.name for column in columns])
        targets = None
        if y is not None:
            check_consistent_length(columns[0].values, y)
            targets = Targets.of(y, self.target_type, self.random_state)
        plan = ColumnPlanner(targets, self.max_levels)
        encodings = [plan.encoding(c, kinds.get(c.name)) for c in columns]
        if not any(e.feature_names for e in encodings):
            reasons = "; ".join(f"{e.name}: {e}" for e in encodings[:5])
            raise TableError(f"no column is left to learn from ({reasons})")
        store_fit(self, {**scratch.input_attributes, "columns_": encodings})
        features = np.hstack([e.features(c) for e, c in zip(encodings, columns, strict=True)])
        fitted = [] if targets is None else _target_columns(encodings, columns)
        if targets is None or not fitted:
            return features.astype(dtype, copy=False), None
        by_target = TargetFeatures(targets, fitted)
        return by_target.cross_fitted(features).astype(dtype, copy=False), by_target

    def _read(self, X: Table, *, reset: bool) -> tuple[list[Column], Any]:
        """The columns, and the type of the features."""
        if is_table(X):
            _check_feature_names(self, X, reset=reset)
            if X.shape[0] < (2 if reset else 1):
                raise ValueError(f"Found array with {X.shape[0]} sample(s): too few")
            if reset:
                self.n_features_in_ = X.shape[1]
            if X.shape[1] != self.n_features_in_ or X.shape[1] == 0:
                raise ValueError(
                    f"X has {X.shape[1]} features, but {type(self).__name__} is expecting "
                    f"{self.n_features_in_} features as input"
                )
            return read_columns(X), np.float64
        X = validate_data(
            self, dense(X), reset=reset, dtype=None, ensure_all_finite=False,
            ensure_min_samples=2 if reset else 1,
        )  # fmt: skip
        columns = read_columns(X)
        names = getattr(self, "feature_names_in_", None)
        if names is not None:
            columns = [Column(str(n), c.values) for n, c in zip(names, columns, strict=True)]
        return columns, np.float32 if X.dtype == np.float32 else np.float64

    def _checked_kinds(self, names: Sequence[str]) -> Mapping[str, ColumnKind]:
        kinds = self.kinds or {}
        for name, kind in kinds.items():
            if name not in names:
                raise TableError(f"kinds: there is no column {name!r}")
            if kind not in self.KINDS:
                raise ValueError(f"kinds[{name!r}] must be one of {self.KINDS}, not {kind!r}")
        return kinds

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _target_columns(
    encodings: Sequence[ColumnEncoding], columns: Sequence[Column]
) -> list[TargetColumn]:
    """The columns that are encoded by target statistics, and where their features are."""
    found, start = [], 0
    for encoding, column in zip(encodings, columns, strict=True):
        stop, code = start + len(encoding.feature_names), encoding.code
        if isinstance(code, TargetCode):
            codes, n_levels = code.codes(column), len(code.levels)
            found.append(TargetColumn(slice(start, stop), codes, n_levels, encoding.weight))
        start = stop
    return found


def encode_samples(
    X: Table, y: ArrayLike | None, target_type: Literal["auto", "classes", "number"] = "auto"
) -> EncodedSamples:
    """Samples as numbers, with the encoder that made them of a table or of data with gaps.

    Numbers without gaps stay as they are, and there is no encoder. Sparse matrices become dense.
    Samples that are encoded already stay what they are.
    """
    if isinstance(X, EncodedSamples):
        return X
    X = dense(on_host(X))
    if is_plain(X):
        return EncodedSamples(X)
    return TableEncoder(target_type=target_type).set_output(transform="default").fit_samples(X, y)
