"""Encoding of one column of a table, chosen from its training values."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from vicinal._typing import FloatArray
from vicinal.exceptions import TableError
from vicinal.features.column_codes import (
    LARGEST,
    PERIODS,
    ColumnCode,
    DateCode,
    DroppedCode,
    LevelCode,
    NumberCode,
    OrderedCode,
    days_of,
    in_period,
    level_codes,
    numbers_of,
)
from vicinal.features.table_values import (
    MISSING,
    Cells,
    Column,
    NumberFormat,
    find_date_format,
    find_number_format,
)
from vicinal.features.target_statistics import TargetCode, Targets

ColumnKind = Literal["number", "category", "date", "text", "drop"]

FEW_VALUES = 20
"""Up to here, different texts are categories rather than names or measurements."""
MIN_MISSING = 0.01
"""Share of missing values from which a feature says where they are."""
MANY_ROWS, MOST_GAPS = 30, 2.5
ID_NAME = re.compile(r"(.*[_\W])?(id|index|key|nr|no|uuid|guid)|unnamed: ?\d+", re.IGNORECASE)


@dataclass(frozen=True)
class ColumnEncoding:
    """Encoding of one column.

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
    def is_used(self) -> bool:
        """Whether there are features of the column."""
        return bool(self.feature_names)

    @property
    def feature_names(self) -> tuple[str, ...]:
        names = tuple(f"{self.name}{suffix}" for suffix in self.code.suffixes)
        return (*names, f"{self.name}={MISSING}") if self.has_indicator else names

    def features(self, column: Column) -> FloatArray:
        """(n, k) of the column of another table."""
        column = self.as_read(column)
        return self._with_indicator(self.code.features(column), column) * self.weight

    def as_read(self, column: Column) -> Column:
        """The column of another table; among numbers and dates, marks such as "-" are missing."""
        return column.without_marks() if self.code.kind in ("number", "date") else column

    def restore(self, block: FloatArray) -> Cells:
        """(n,) values that have the features (n, k); those that were missing as ``MISSING``."""
        values = self.code.restore(block[:, : len(self.code.suffixes)] / self.weight)
        if self.has_indicator:
            values = np.where(block[:, -1] > 0, MISSING, values.astype(object))
        return values

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
class ColumnPlanner:
    """Decides what becomes of the columns of a training table."""

    targets: Targets | None
    max_levels: int

    def encoding(self, column: Column, kind: ColumnKind | None) -> ColumnEncoding:
        """The encoding of a column; its kind is found out where it is None."""
        code = self._code(column, kind)
        if code.kind in ("number", "date"):
            column = column.without_marks()
        n, missing = len(column.values), int(column.missing.sum())
        by_levels = isinstance(code, LevelCode | TargetCode | DroppedCode)
        marked = not by_levels and MIN_MISSING * n <= missing > 0
        plain = ColumnEncoding(column.name, code, n, missing, marked)
        variance = float(plain.features(column).var(axis=0).sum())
        weight = 1.0 if variance <= 0 else variance**-0.5
        return replace(plain, weight=weight)

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
        if kind == "date" and column.values.dtype.kind == "f":  # 20140131
            return _date(column.as_texts())
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
        return TargetCode.of(column, self.targets)


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
