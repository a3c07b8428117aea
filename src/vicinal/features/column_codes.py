"""Codes of a column: the numbers that its values become, one class per kind of column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from vicinal._typing import FloatArray, IndexArray
from vicinal.exceptions import TableError
from vicinal.features.table_values import (
    MISSING,
    Cells,
    Column,
    NumberFormat,
    parse_date,
    shortest_number,
)

LARGEST = 1e30
"""Of numbers and their inverse deviations: products of two stay far from overflow."""
OTHER_LEVEL = "(none of the known)"
"""What a level that did not occur in training is restored as."""
PERIODS = {"month": 12.0, "weekday": 7.0, "hour": 24.0}
"""Units of each period, from the time in that unit."""
EPOCH = datetime(1970, 1, 1)


class ColumnCode(Protocol):
    """Rule by which the values of a column become features."""

    kind: ClassVar[str]

    def features(self, column: Column) -> FloatArray:
        """(n, k) numbers, a missing value being filled."""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """(k,) what is added to the name of the column to name a feature."""

    def unseen(self, column: Column) -> NDArray[np.bool_]:
        """(n,) where a value is a level that did not occur in training."""

    def restore(self, block: FloatArray) -> Cells:
        """(n,) values that have the features (n, k)."""

    def __str__(self) -> str: ...


class _WithoutLevels:
    """Of codes that take every value."""

    def unseen(self, column: Column) -> NDArray[np.bool_]:
        return np.zeros(len(column.values), dtype=bool)


@dataclass(frozen=True)
class NumberCode(_WithoutLevels):
    """x → (x − mean) / scale, a missing x being ``fill``, the median of the others."""

    fill: float
    mean: float
    scale: float
    decimal: str = "."
    unit: str = ""
    is_text: bool = False
    kind: ClassVar[str] = "number"

    @property
    def suffixes(self) -> tuple[str, ...]:
        return ("",)

    def features(self, column: Column) -> FloatArray:
        numbers = numbers_of(column, NumberFormat(self.decimal, self.unit))
        filled = np.where(np.isnan(numbers), self.fill, numbers)
        return ((filled - self.mean) / self.scale)[:, None]

    def restore(self, block: FloatArray) -> Cells:
        return np.asarray(block[:, 0] * self.scale + self.mean)

    def __str__(self) -> str:
        text = f"standardized, mean {self.mean:.6g}, deviation {self.scale:.6g}"
        if not self.is_text:
            return text
        unit = f", unit {self.unit}" if self.unit else ""
        return f"numbers read from text (decimal {self.decimal!r}{unit}), {text}"


@dataclass(frozen=True)
class OrderedCode:
    """x → the position of x among its levels, standardized."""

    levels: tuple[str, ...]
    fill: float
    mean: float
    scale: float
    kind: ClassVar[str] = "ordered"

    @property
    def suffixes(self) -> tuple[str, ...]:
        return ("",)

    def features(self, column: Column) -> FloatArray:
        ranks = level_codes(column, self.levels).astype(np.float64)
        filled = np.where(ranks == len(self.levels), self.fill, ranks)
        return ((filled - self.mean) / self.scale)[:, None]

    def unseen(self, column: Column) -> NDArray[np.bool_]:
        return unknown_levels(column, self.levels)

    def restore(self, block: FloatArray) -> Cells:
        ranks = np.rint(block[:, 0] * self.scale + self.mean).astype(np.intp)
        return np.array(self.levels, dtype=object)[np.clip(ranks, 0, len(self.levels) - 1)]

    def __str__(self) -> str:
        return f"{' < '.join(self.levels[:6])}{' < …' if len(self.levels) > 6 else ''}"


@dataclass(frozen=True)
class LevelCode:
    """x → 1 for its level and 0 for all others; a level that is not known is none of them."""

    levels: tuple[str, ...]
    kind: ClassVar[str] = "category"

    @property
    def suffixes(self) -> tuple[str, ...]:
        return tuple(f"={level}" for level in self.levels)

    def features(self, column: Column) -> FloatArray:
        return np.eye(len(self.levels) + 1)[level_codes(column, self.levels)][:, :-1]

    def unseen(self, column: Column) -> NDArray[np.bool_]:
        return unknown_levels(column, self.levels)

    def restore(self, block: FloatArray) -> Cells:
        levels = np.array([*self.levels, OTHER_LEVEL], dtype=object)
        return np.asarray(levels[np.where(block.any(axis=1), block.argmax(axis=1), -1)])

    def __str__(self) -> str:
        shown = ", ".join(self.levels[:6]) + (", …" if len(self.levels) > 6 else "")
        return f"one-hot, {len(self.levels)} categories: {shown}"


@dataclass(frozen=True)
class DateCode(_WithoutLevels):
    """x → the time elapsed, standardized, and the periods that vary as points on circles."""

    form: str
    fill: float
    mean: float
    scale: float
    periods: tuple[str, ...] = ()
    kind: ClassVar[str] = "date"

    @property
    def suffixes(self) -> tuple[str, ...]:
        circles = (f" {part} of {period}" for period in self.periods for part in ("cos", "sin"))
        return ("", *circles)

    def features(self, column: Column) -> FloatArray:
        days = days_of(column, self.form)
        days = np.where(np.isnan(days), self.fill, days)
        angles = [2 * np.pi * in_period(days, name) for name in self.periods]
        circles = [wave(angle) for angle in angles for wave in (np.cos, np.sin)]
        return np.column_stack([(days - self.mean) / self.scale, *circles])

    def restore(self, block: FloatArray) -> Cells:
        days = block[:, 0] * self.scale + self.mean
        seconds = np.rint(days * 86400.0).astype("timedelta64[s]")
        times = np.datetime64(0, "s") + seconds
        whole = (days == np.floor(days)).all()
        return np.asarray(times.astype("datetime64[D]") if whole else times)

    def __str__(self) -> str:
        parts = "".join(f", {period}" for period in self.periods)
        form = f" (read as {self.form})" if self.form else ""
        return f"time elapsed{parts}{form}"


@dataclass(frozen=True)
class DroppedCode(_WithoutLevels):
    """No feature, for a reason."""

    reason: str
    kind: ClassVar[str] = "dropped"

    @property
    def suffixes(self) -> tuple[str, ...]:
        return ()

    def features(self, column: Column) -> FloatArray:
        return np.empty((len(column.values), 0))

    def restore(self, block: FloatArray) -> Cells:
        return np.full(len(block), MISSING, dtype=object)

    def __str__(self) -> str:
        return self.reason


# ------------------------------------------------------------------------------ values of a column


def numbers_of(column: Column, form: NumberFormat) -> FloatArray:
    """(n,) with NaN where missing; TableError where a value is not a number, or not finite."""
    if column.values.dtype.kind == "f":
        numbers = column.values
    else:
        texts = column.texts()
        values = {text: form.number(text) for text in set(texts.tolist()) - {MISSING}}
        bad = np.array([text != MISSING and values[text] is None for text in texts])
        if bad.any():
            row = int(np.argmax(bad))
            raise TableError(
                f"column {column.name!r} holds numbers, but {int(bad.sum())} value(s) are not, "
                f"first {texts[row]!r} in row {column.row(row)}; correct them, or leave them empty "
                "to have them filled"
            )
        values[MISSING] = np.nan
        numbers = np.array([values[text] for text in texts], dtype=np.float64)
    rows = np.flatnonzero(np.abs(numbers) > LARGEST)
    if len(rows):
        raise TableError(
            f"column {column.name!r}: infinite or beyond {LARGEST:g} in {len(rows)} row(s), "
            f"first in row {column.row(int(rows[0]))}; leave such values empty, or use other units"
        )
    return numbers


def days_of(column: Column, form: str) -> FloatArray:
    """(n,) days since 1970, with NaN where missing; TableError where a value is not a date."""
    if column.values.dtype.kind == "M":
        return (column.values - np.datetime64(0, "us")) / np.timedelta64(1, "D")
    if column.values.dtype.kind == "f" and not form:
        return column.values
    texts = column.texts()
    values: dict[str, float] = {MISSING: np.nan}
    for text in set(texts.tolist()) - {MISSING}:
        found = parse_date(text, form)
        if found is None:
            row = int(np.argmax(texts == text))
            raise TableError(
                f"column {column.name!r} holds dates ({form}), but {text!r} in row "
                f"{column.row(row)} is not; correct it, or leave it empty"
            )
        values[text] = (found - EPOCH) / timedelta(days=1)
    return np.array([values[text] for text in texts], dtype=np.float64)


def in_period(days: FloatArray, period: str) -> FloatArray:
    """(n,) where in its period each time is, from 0 to 1."""
    if period == "hour":
        return np.floor(days * 24 + 1e-9) % 24 / PERIODS[period]
    if period == "weekday":
        return (np.floor(days) + 3) % 7 / PERIODS[period]  # 1970 began on a Thursday
    months = np.floor(days).astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    return months % 12 / PERIODS[period]


def level_codes(column: Column, levels: Sequence[str]) -> IndexArray:
    """(n,) indices of levels; their number where a value is not one of them.

    Where all levels are numbers, other ways of writing one of them mean the same: 1.50 is 1.5.
    """
    index = {level: code for code, level in enumerate(levels)}
    texts = column.texts().tolist()
    others = set(texts) - set(index)
    if others and all(shortest_number(level) == level for level in levels if level != MISSING):
        index |= {text: index[n] for text in others if (n := shortest_number(text)) in index}
    return np.array([index.get(text, len(levels)) for text in texts], dtype=np.intp)


def unknown_levels(column: Column, levels: Sequence[str]) -> NDArray[np.bool_]:
    """(n,) where a value is none of the levels, and not missing."""
    return (level_codes(column, levels) == len(levels)) & ~column.missing
