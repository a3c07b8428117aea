"""Columns of a table as features: decided once on the training table, redone on every other."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, fields
from math import isfinite
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vicinal._typing import FloatArray
from vicinal.exceptions import TableError

Kind = Literal["number", "category", "dropped"]

MAX_CATEGORIES = 100
LARGEST = 1e30  # of numbers and their inverse deviations: products of two stay far from overflow
MANY_ROWS, MOST_GAPS = 30, 2.5
FEW_VALUES = 20  # up to here, different values are categories rather than names or measurements
DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([T ].*)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}")
ID_NAME = re.compile(r"(.*[_\W])?(id|index|key|nr|no|uuid|guid)|unnamed: ?\d+", re.IGNORECASE)
MISSING = "(missing)"
"""The category of the rows that have none."""


@dataclass(frozen=True)
class ColumnPlan:
    """How a column becomes features.

    .. code-block:: text

        number    x → (x − mean) / scale, a missing x being ``fill``      one feature
        category  x → 1 where x is the category, else 0                   one feature a category
        dropped   –                                                       no feature

    Attributes
    ----------
    name : str
        Of the column.
    kind : {"number", "category", "dropped"}
    n_rows, n_missing : int
        Rows of the training table, and how many of them had no value.
    fill : float
        What a missing number becomes: the median of the others.
    mean, scale : float
        Of the numbers, after filling.
    categories : tuple of str
        In the order of the features; ``MISSING`` is one of them if the training table had such
        rows.
    reason : str
        Why the column was dropped.
    """

    name: str
    kind: Kind
    n_rows: int
    n_missing: int
    fill: float = 0.0
    mean: float = 0.0
    scale: float = 1.0
    categories: tuple[str, ...] = ()
    reason: str = ""

    def __post_init__(self) -> None:
        """Refuse what no table leads to; a plan may come from somebody else's file."""
        texts: tuple[object, ...] = (self.name, self.reason, *self.categories)
        numbers: tuple[object, ...] = (self.fill, self.mean, self.scale)
        sound = (
            all(isinstance(text, str) for text in texts)
            and all(isinstance(number, float) and isfinite(number) for number in numbers)
            and all(type(count) is int and count >= 0 for count in (self.n_rows, self.n_missing))
            and self.kind in ("number", "category", "dropped")
            and self.scale > 0
            and len(set(self.categories)) == len(self.categories)
            and (self.kind == "category") == bool(self.categories)
        )
        if not sound:
            raise ValueError(f"the plan of column {self.name!r} is not a valid one")

    @property
    def feature_names(self) -> tuple[str, ...]:
        """``name`` of a number, ``name=value`` for every category."""
        if self.kind == "number":
            return (self.name,)
        return tuple(f"{self.name}={category}" for category in self.categories)

    def __str__(self) -> str:
        if self.kind == "dropped":
            return f"dropped: {self.reason}"
        if self.kind == "category":
            shown = ", ".join(self.categories[:6]) + (", …" if len(self.categories) > 6 else "")
            return f"one-hot, {len(self.categories)} categories: {shown}"
        filled = f", {self.n_missing} missing filled with {self.fill:.6g}" if self.n_missing else ""
        return f"standardized, mean {self.mean:.6g}, deviation {self.scale:.6g}{filled}"

    def to_state(self) -> dict[str, Any]:
        """The plan as JSON-able values."""
        return {**asdict(self), "categories": list(self.categories)}

    @classmethod
    def from_state(cls, state: Any) -> ColumnPlan:
        """The plan of a ``state``; ValueError if that is none."""
        names = {field.name for field in fields(cls)}
        if not isinstance(state, dict) or set(state) != names:
            raise ValueError(f"a column plan has the entries {', '.join(sorted(names))}")
        if not isinstance(state["categories"], list):
            raise ValueError("the categories of a column plan are a list")
        return cls(**{**state, "categories": tuple(state["categories"])})


def plan_column(column: pd.Series, *, keep: bool = False) -> ColumnPlan:
    """Decide what becomes of a training column.

    Parameters
    ----------
    column : Series
    keep : bool
        Use it although it looks like an identifier.
    """
    if pd.api.types.is_datetime64_any_dtype(column) or column.dtype.kind == "m":
        return _dropped(column, "it holds dates; give numbers, such as days since an event")
    numbers = _numbers(column)
    plan = _plan_texts(column) if numbers is None else _plan_numbers(column, numbers)
    if plan.kind == "number" and not keep and _counts_rows(column):
        return _dropped(column, "it numbers the rows; --keep uses it, --id names rows by it")
    return plan


def encode(column: pd.Series, plan: ColumnPlan, *, ignore_unseen: bool = False) -> FloatArray:
    """The features (n, width) of a column, as planned.

    Parameters
    ----------
    column : Series
    plan : ColumnPlan
    ignore_unseen : bool
        Let a category that is not in the plan be none of the known ones (all zeros), where
        otherwise it is an error. A missing value is never an error.
    """
    if plan.kind == "number":
        numbers = _numbers(column)
        if numbers is None:
            raise TableError(_not_a_number(column))
        _check_finite(column, numbers)
        filled = np.where(np.isnan(numbers), plan.fill, numbers)
        return ((filled - plan.mean) / plan.scale)[:, None]
    texts = as_texts(column)
    known = np.array(plan.categories, dtype=object)
    unseen = ~np.isin(texts, [*plan.categories, MISSING])
    if unseen.any() and not ignore_unseen:
        raise TableError(_unseen(str(column.name), texts[unseen], plan))
    return (texts[:, None] == known).astype(np.float64)


def restore(block: FloatArray, plan: ColumnPlan) -> NDArray[np.generic]:
    """The column (n,) that ``encode`` made a block of, up to missing values and rounding."""
    if plan.kind == "number":
        return np.asarray(block[:, 0] * plan.scale + plan.mean)
    values = np.array([*plan.categories, "(none of the known)"], dtype=object)
    return np.asarray(values[np.where(block.any(axis=1), block.argmax(axis=1), -1)])


def as_texts(column: pd.Series) -> NDArray[np.generic]:
    """Values as texts, "1" for 1, 1.0 and "1" alike, MISSING where there is none."""
    texts = [str(int(v)) if _is_integral(v) else str(v) for v in column.astype(object)]
    return np.where(column.isna(), MISSING, np.array(texts, dtype=object))


def _is_integral(value: object) -> bool:
    return isinstance(value, float | np.floating) and float(value).is_integer()


def _numbers(column: pd.Series) -> FloatArray | None:
    """(n,) with NaN where missing; None if some value is not a number."""
    if pd.api.types.is_bool_dtype(column) or pd.api.types.is_numeric_dtype(column):
        if column.dtype.kind == "c":
            raise TableError(f"column {str(column.name)!r} holds complex numbers: split it in two")
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    if isinstance(column.dtype, pd.CategoricalDtype):
        return None
    present = column[column.notna()].astype(object)
    if not all(isinstance(value, str | bool | int | float | np.generic) for value in present):
        return None
    numbers = np.full(len(column), np.nan)
    try:
        numbers[column.notna().to_numpy()] = [float(value) for value in present]
    except ValueError:
        return None
    return numbers


def _plan_numbers(column: pd.Series, numbers: FloatArray) -> ColumnPlan:
    _check_finite(column, numbers)
    present = numbers[~np.isnan(numbers)]
    if len(present) == 0:
        return _dropped(column, "it is empty")
    if present.min() == present.max():
        return _dropped(column, f"it is constant, {present[0]:.6g} in every row")
    fill = float(np.median(present))
    filled = np.where(np.isnan(numbers), fill, numbers)
    mean, scale = float(filled.mean()), float(filled.std())
    if scale < 1 / LARGEST:
        raise TableError(
            f"column {str(column.name)!r}: its values ({present.min():g} to {present.max():g}) "
            "cannot be standardized; give it in other units"
        )
    missing = len(numbers) - len(present)
    return ColumnPlan(str(column.name), "number", len(numbers), missing, fill, mean, scale)


def _plan_texts(column: pd.Series) -> ColumnPlan:
    texts = as_texts(column)
    present = texts[texts != MISSING]
    values = sorted(set(present.tolist()), key=_in_order)
    if all(DATE.fullmatch(value) for value in values):
        return _dropped(column, "it holds dates; give numbers, such as days since an event")
    if len(values) > FEW_VALUES and sum(map(_parses, present)) >= 0.9 * len(present):
        raise TableError(_not_a_number(column))
    if len(values) > max(FEW_VALUES, len(present) / 2):
        return _dropped(column, f"it looks like an identifier: {len(values)} different texts")
    if len(values) > MAX_CATEGORIES:
        return _dropped(column, f"it has {len(values)} categories, more than {MAX_CATEGORIES}")
    missing = len(texts) - len(present)
    if missing:
        values.append(MISSING)
    if len(values) == 1:
        return _dropped(column, f"it is constant, {values[0]} in every row")
    name = str(column.name)
    return ColumnPlan(name, "category", len(texts), missing, categories=tuple(values))


def _counts_rows(column: pd.Series) -> bool:
    """Different integers that follow each other, or that the name calls an identifier.

    Of a table that was split they follow each other with gaps: 30 or more different ones in a
    range of 2.5 times as many are not measurements.
    """
    n = len(column)
    if not pd.api.types.is_integer_dtype(column) or n < 10 or column.isna().any():
        return False
    values = np.sort(column.to_numpy(dtype=np.float64))
    if (values[1:] == values[:-1]).any():
        return False
    span = values[-1] - values[0] + 1
    dense = span == n or (n >= MANY_ROWS and span <= MOST_GAPS * n)
    return bool(dense) or ID_NAME.fullmatch(str(column.name)) is not None


def _dropped(column: pd.Series, reason: str) -> ColumnPlan:
    missing = int(column.isna().sum())
    return ColumnPlan(str(column.name), "dropped", len(column), missing, reason=reason)


def _in_order(value: str) -> tuple[bool, float, str]:
    """2 before 10, and numbers before words."""
    number = _parses(value)
    return (not number, float(value) if number else 0.0, value)


def _parses(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def _check_finite(column: pd.Series, numbers: FloatArray) -> None:
    rows = np.flatnonzero(np.abs(numbers) > LARGEST)
    if len(rows):
        raise TableError(
            f"column {str(column.name)!r}: infinite or beyond {LARGEST:g} in {len(rows)} row(s), "
            f"first in row {rows[0]}; leave such values empty, or use other units"
        )


def _not_a_number(column: pd.Series) -> str:
    texts = as_texts(column)
    bad = np.array([text != MISSING and not _parses(text) for text in texts])
    row = int(np.argmax(bad))
    return (
        f"column {str(column.name)!r} holds numbers, but {int(bad.sum())} value(s) are none, first "
        f"{texts[row]!r} in row {row}; correct them, or leave them empty to have them filled"
    )


def _unseen(name: str, texts: NDArray[np.generic], plan: ColumnPlan) -> str:
    values = sorted(set(texts.tolist()))
    shown = ", ".join(map(repr, values[:5])) + (", …" if len(values) > 5 else "")
    known = ", ".join(plan.categories[:8]) + (", …" if len(plan.categories) > 8 else "")
    return (
        f"column {name!r}: {shown} ({len(texts)} row(s)) did not occur in training, which knew "
        f"{known}; correct the value, or use --unseen ignore to treat it as none of these"
    )
