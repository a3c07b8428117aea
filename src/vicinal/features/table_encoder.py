"""Encoder of tables: any column as numbers, decided on training rows and repeated on others."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils import Tags
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import (
    _check_feature_names,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from vicinal._typing import FloatArray, IndexArray
from vicinal.exceptions import TableError, UnseenLevelWarning, warn_user
from vicinal.features.column_codes import (
    LARGEST,
    PERIODS,
    ColumnCode,
    DateCode,
    DroppedCode,
    LevelCode,
    NumberCode,
    OrderedCode,
    TargetCode,
    days_of,
    in_period,
    level_codes,
    numbers_of,
)
from vicinal.features.table_values import (
    MISSING,
    Column,
    NumberFormat,
    dense,
    find_date_format,
    find_number_format,
    is_plain,
    is_table,
    read_columns,
)
from vicinal.learners.fit_input import on_host, store_fit
from vicinal.learners.labeled_data import refuse_mixed_labels

ColumnKind = Literal["number", "category", "date", "text", "drop"]

FEW_VALUES = 20
"""Up to here, different texts are categories rather than names or measurements."""
MIN_MISSING = 0.01
"""Share of missing values from which a feature says where they are."""
MANY_ROWS, MOST_GAPS = 30, 2.5
N_FOLDS = 5
ID_NAME = re.compile(r"(.*[_\W])?(id|index|key|nr|no|uuid|guid)|unnamed: ?\d+", re.IGNORECASE)


@dataclass(frozen=True)
class ColumnEncoding:
    """What is done to one column.

    Attributes
    ----------
    name : str
    code : ColumnCode
        The kind of the column, and the numbers that its values become.
    n_rows, n_missing : int
        Rows of the training table, and how many of them had no value.
    has_indicator : bool
        Whether one more feature says where values are missing.
    weight : float
        What all features are multiplied by, so that their variances sum to 1.
    """

    name: str
    code: ColumnCode
    n_rows: int
    n_missing: int
    has_indicator: bool = False
    weight: float = 1.0

    @property
    def feature_names(self) -> tuple[str, ...]:
        names = tuple(f"{self.name}{suffix}" for suffix in self.code.suffixes)
        return (*names, f"{self.name}={MISSING}") if self.has_indicator else names

    def features(self, column: Column) -> FloatArray:
        """(n, k) of the column of another table."""
        if self.code.kind in ("number", "date"):
            column = column.without_marks()
        return self._with_indicator(self.code.features(column), column) * self.weight

    def cross_fitted(self, column: Column, targets: _Targets | None) -> FloatArray:
        """(n, k) of training rows; no row contributes its own target."""
        if targets is None or not isinstance(self.code, TargetCode):
            return self.features(column)
        return self.code.cross_fitted(column, targets.values, targets.folds) * self.weight

    def _with_indicator(self, block: FloatArray, column: Column) -> FloatArray:
        if not self.has_indicator:
            return block
        return np.column_stack([block, column.missing.astype(np.float64)])

    def __str__(self) -> str:
        if not self.n_missing or self.code.kind == "dropped":
            return str(self.code)
        return f"{self.code}; {self.n_missing} missing{self._filled()}"

    def _filled(self) -> str:
        if isinstance(self.code, LevelCode | TargetCode):
            return " are a level of their own"
        marked = ", marked by a feature" if self.has_indicator else ""
        return f" filled with the median{marked}"


@dataclass(frozen=True)
class _Targets:
    """Indicators (n, k) of classes, or numbers (n, 1), and the folds of cross-fitting."""

    values: FloatArray
    labels: tuple[str, ...]
    folds: list[tuple[IndexArray, IndexArray]]

    @classmethod
    def of(cls, y: Any, seed: Any) -> _Targets:
        y = column_or_1d(y, warn=True)
        refuse_mixed_labels(y)
        if type_of_target(y) == "continuous":
            folds = KFold(min(N_FOLDS, len(y)), shuffle=True, random_state=seed)
            return cls(y.astype(np.float64)[:, None], ("mean",), list(folds.split(y)))
        classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
        shown = np.arange(1 if len(classes) == 2 else 0, len(classes))
        values = (codes[:, None] == shown).astype(np.float64)
        n_folds = int(np.clip(counts.max(), 2, N_FOLDS))
        folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
        if counts.min() < n_folds:  # scikit-learn would warn
            folds = KFold(n_folds, shuffle=True, random_state=seed)
        return cls(values, tuple(str(classes[c]) for c in shown), list(folds.split(y, codes)))


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

    def __init__(
        self,
        kinds: Mapping[str, ColumnKind] | None = None,
        *,
        max_levels: int = 30,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.kinds = kinds
        self.max_levels = max_levels
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
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

    def fit_transform(self, X: Any, y: Any = None) -> Any:
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
        columns, targets, dtype = self._fit(X, y)
        blocks = [
            encoding.cross_fitted(column, targets)
            for encoding, column in zip(self.columns_, columns, strict=True)
        ]
        return np.hstack(blocks).astype(dtype, copy=False)

    def transform(self, X: Any) -> Any:
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
        check_is_fitted(self)
        columns, dtype = self._read(X, reset=False)
        pairs = list(zip(self.columns_, columns, strict=True))
        unseen = [(c.name, int(e.code.unseen(c).sum())) for e, c in pairs]
        counted = ", ".join(f"{name!r} ({count} rows)" for name, count in unseen if count)
        if counted:
            warn_user(
                f"levels that did not occur in training, taken as none of the known: {counted}",
                UnseenLevelWarning,
            )
        return np.hstack([e.features(c) for e, c in pairs]).astype(dtype, copy=False)

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

    def _fit(self, X: Any, y: Any) -> tuple[list[Column], _Targets | None, Any]:
        scratch = copy(self)
        columns, dtype = scratch._read(X, reset=True)
        kinds = self._checked_kinds([column.name for column in columns])
        targets = None
        if y is not None:
            check_consistent_length(columns[0].values, y)
            targets = _Targets.of(y, self.random_state)
        plan = _Planner(targets, self.max_levels)
        encodings = [plan.encoding(c, kinds.get(c.name)) for c in columns]
        if not any(e.feature_names for e in encodings):
            reasons = "; ".join(f"{e.name}: {e}" for e in encodings[:5])
            raise TableError(f"no column is left to learn from ({reasons})")
        store_fit(self, {**scratch.input_attributes, "columns_": encodings})
        return columns, targets, dtype

    def _read(self, X: Any, *, reset: bool) -> tuple[list[Column], Any]:
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


@dataclass(frozen=True)
class _Planner:
    """Decides what becomes of the columns of a training table."""

    targets: _Targets | None
    max_levels: int

    def encoding(self, column: Column, kind: ColumnKind | None) -> ColumnEncoding:
        """What is done to a column; its kind is found out where it is None."""
        code = self._code(column, kind)
        if code.kind in ("number", "date"):
            column = column.without_marks()
        n, missing = len(column.values), int(column.missing.sum())
        by_levels = isinstance(code, LevelCode | TargetCode | DroppedCode)
        marked = not by_levels and MIN_MISSING * n <= missing > 0
        plain = ColumnEncoding(column.name, code, n, missing, marked)
        variance = float(plain.features(column).var(axis=0).sum())
        weight = 1.0 if variance <= 0 else variance**-0.5
        return ColumnEncoding(column.name, code, n, missing, marked, weight)

    def _code(self, column: Column, kind: ColumnKind | None) -> ColumnCode:
        if kind == "drop":
            return DroppedCode("as asked for")
        if column.missing.all():
            return DroppedCode("it is empty")
        if kind in ("category", "text"):
            return self._levels(column, forced=kind)
        is_text = column.values.dtype.kind == "O"
        if kind == "number":
            form = find_number_format(_distinct(column), 0.5) if is_text else NumberFormat()
            return _number(column, form or NumberFormat(), is_id=False)
        if kind == "date" or column.values.dtype.kind == "M":
            return _date(column)
        if not is_text:
            return _number(column, NumberFormat(), is_id=_counts_rows(column))
        if column.is_category:
            return self._levels(column)
        return self._text(column)

    def _text(self, column: Column) -> ColumnCode:
        """Numbers, dates or levels that are written as texts."""
        values = _distinct(column)
        form = find_number_format(values)
        if form is None and len(values) > FEW_VALUES:
            form = find_number_format(values, at_least=0.9)  # an error names those that are none
        if form is not None:
            return _number(column, form, is_id=False)
        if find_date_format(values) is not None:
            return _date(column)
        return self._levels(column)

    def _levels(self, column: Column, forced: str | None = None) -> ColumnCode:
        levels = column.levels or tuple(sorted(_distinct(column), key=_in_order))
        present = int((~column.missing).sum())
        if column.missing.any() and not column.levels:
            levels = (*levels, MISSING)
        if len(levels) < 2:
            return DroppedCode(f"it is constant, {levels[0]} in every row")
        if column.levels and forced is None and len(np.unique(level_codes(column, levels))) > 1:
            return _ordered(column)
        if forced is None and len(levels) > max(FEW_VALUES, present / 2):
            return DroppedCode(f"it looks like an identifier: {len(levels)} different texts")
        if forced != "text" and len(levels) <= self.max_levels:
            return LevelCode(levels)
        if self.targets is None:
            return DroppedCode(f"it has {len(levels)} levels, and there is no target to rate them")
        return TargetCode.of(column, self.targets.values, self.targets.labels)


def _number(column: Column, form: NumberFormat, *, is_id: bool) -> ColumnCode:
    numbers = numbers_of(column.without_marks(), form)
    present = numbers[~np.isnan(numbers)]
    if len(present) == 0:
        return DroppedCode("it is empty")
    if present.min() == present.max() and len(present) == len(numbers):
        return DroppedCode(f"it is constant, {present[0]:.6g} in every row")
    if is_id:
        return DroppedCode("it numbers the rows")
    fill, mean, scale = _moments(numbers)
    if 0 < scale < 1 / LARGEST:
        raise TableError(
            f"column {column.name!r}: its values ({present.min():g} to {present.max():g}) "
            "cannot be standardized; give it in other units"
        )
    is_text = column.values.dtype.kind == "O"
    return NumberCode(fill, mean, scale or 1.0, form.decimal, form.unit, is_text)


def _ordered(column: Column) -> OrderedCode:
    ranks = level_codes(column, column.levels).astype(np.float64)
    fill, mean, scale = _moments(np.where(column.missing, np.nan, ranks))
    return OrderedCode(column.levels, fill, mean, scale or 1.0)


def _date(column: Column) -> ColumnCode:
    is_text = column.values.dtype.kind == "O"
    form = find_date_format(_distinct(column)) if is_text else ""
    if form is None:
        raise TableError(f"column {column.name!r} is not written as dates of one known format")
    days = days_of(column.without_marks(), form)
    present = days[~np.isnan(days)]
    span = float(np.ptp(present))
    if span == 0:
        return DroppedCode("it is the same time in every row")
    fill, mean, scale = _moments(days)
    shortest = {"month": 300.0, "weekday": 14.0, "hour": 2.0}  # days in which a period recurs
    varying = tuple(
        name
        for name in PERIODS
        if span >= shortest[name] and len(np.unique(in_period(present, name))) > 1
    )
    return DateCode(form, fill, mean, scale or 1.0, varying)


def _moments(numbers: FloatArray) -> tuple[float, float, float]:
    """Median, and mean and deviation once missing values are filled with it."""
    fill = float(np.nanmedian(numbers))
    filled = np.where(np.isnan(numbers), fill, numbers)
    return fill, float(filled.mean()), float(filled.std())


def _distinct(column: Column) -> list[str]:
    return list(dict.fromkeys(text for text in column.texts().tolist() if text != MISSING))


def _in_order(text: str) -> tuple[bool, float, str]:
    """2 before 10, and numbers before words."""
    number = NumberFormat().number(text)
    return (number is None, number or 0.0, text)


def _counts_rows(column: Column) -> bool:
    """Different integers that follow each other, or that the name calls an identifier.

    Of a table that was split they follow each other with gaps: 30 or more different ones in a
    range of 2.5 times as many are not measurements.
    """
    n = len(column.values)
    if not column.is_whole or n < 10 or column.missing.any():
        return False
    values = np.sort(column.values)
    if (values[1:] == values[:-1]).any():
        return False
    span = values[-1] - values[0] + 1
    is_dense = span == n or (n >= MANY_ROWS and span <= MOST_GAPS * n)
    return bool(is_dense) or ID_NAME.fullmatch(column.name) is not None


def encode_samples(X: Any, y: Any) -> tuple[Any, TableEncoder | None]:
    """Samples as numbers, and the encoder that made them of a table or of data with gaps.

    Numbers without gaps stay as they are, and there is no encoder. Sparse matrices become dense.
    """
    X = dense(on_host(X))
    if is_plain(X):
        return X, None
    encoder = TableEncoder().set_output(transform="default")
    return encoder.fit_transform(X, y), encoder
