"""Columns of any table (pandas, polars, pyarrow, arrays) as NumPy arrays of one of three kinds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from vicinal._typing import LabelArray, Table
from vicinal.exceptions import TableError

MISSING = "(missing)"
"""The level of the rows that have no value."""
MISSING_MARKS = frozenset({"", "na", "n/a", "nan", "null", "none", "-", "?", "."})
"""What stands for a missing value among numbers and dates; elsewhere only the empty text does."""
MAX_DENSE_BYTES = 2**32
LEADING_ZERO = re.compile(r"[-+]?0\d")
PLAIN_NUMBER = re.compile(r"-?(0|[1-9]\d{0,14})(\.\d+)?")
ISO_DATE = "ISO 8601"
DATE_FORMATS = ("%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%Y/%m/%d", "%d-%b-%Y", "%b-%Y", "%d %B %Y")
DATE_START = re.compile(
    r"\d{4}-\d|(19|20)\d{6}$|\d{1,2}[./]\d{1,2}[./]\d{4}|\d{4}/\d|(\d{1,2}[- ])?[A-Z][a-z]{2}"
)

Cells: TypeAlias = LabelArray


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a table.

    Attributes
    ----------
    name : str
    values : (n,) array
        float64 with NaN, datetime64 with NaT, or objects: texts without surrounding white space,
        and None where there is no value.
    levels : tuple of str
        The levels of an ordered category, in order.
    is_category : bool
        Declared as a category: its texts are never taken for numbers or dates.
    is_whole : bool
        Declared as integers.
    rows : index or None
        Numbers of the rows in the table that they are a part of; None: from 0.
    """

    name: str
    values: Cells
    levels: tuple[str, ...] = ()
    is_category: bool = False
    is_whole: bool = False
    rows: Any = None

    def row(self, i: int) -> int:
        """The number of a row in the whole table, for messages."""
        return i if self.rows is None else int(self.rows[i])

    @cached_property
    def missing(self) -> NDArray[np.bool_]:
        """(n,) where there is no value."""
        if self.values.dtype.kind == "O":
            return np.array([cell is None for cell in self.values], dtype=bool)
        return np.isnan(self.values) if self.values.dtype.kind == "f" else np.isnat(self.values)

    def without_marks(self) -> Column:
        """The column with the marks of missing values, such as "-" and "n/a", taken as missing."""
        if self.values.dtype.kind != "O":
            return self
        marked = [cell is not None and cell.lower() in MISSING_MARKS for cell in self.values]
        values = self.values.copy()
        values[marked] = None
        return replace(self, values=values)

    def as_texts(self) -> Column:
        """The same values as texts, None where there is no value."""
        values = self.texts()
        values[self.missing] = None
        return replace(self, values=values)

    def texts(self) -> Cells:
        """(n,) values as texts, "1" for 1, 1.0 and "1" alike; ``MISSING`` where there is none."""
        if self.values.dtype.kind == "O":
            texts = self.values
        else:
            texts = np.array([_number_text(cell) for cell in self.values.tolist()], dtype=object)
        return np.where(self.missing, MISSING, texts)


@dataclass(frozen=True)
class NumberFormat:
    """The form of the numbers in a column of texts: their decimal mark, and one unit, if any."""

    decimal: str = "."
    unit: str = ""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        groups = "[,'’ \u00a0]" if self.decimal == "." else "[.'’ \u00a0]"
        mark = re.escape(self.decimal)
        digits = rf"\d{{1,3}}(?:{groups}\d{{3}})+(?:{mark}\d+)?|\d+(?:{mark}\d*)?|{mark}\d+"
        return re.compile(
            rf"(?P<sign>[-+−]?)(?P<before>[$€£¥₹]?) ?(?P<digits>{digits})"
            rf"(?P<exponent>[eE][-+]?\d+)?\s*(?P<after>[$€£¥₹]|[%‰°µA-Za-z][A-Za-z/²³°%]{{0,9}})?"
        )

    def parse(self, text: str) -> tuple[float, str] | None:
        """Value and unit of a text; None if it is not a number of this format."""
        if text.lower() in MISSING_MARKS:
            return np.nan, ""
        found = self.pattern.fullmatch(text)
        if found is None:
            return None
        digits = re.sub(
            r"[,.'’ \u00a0]", lambda m: "." if m[0] == self.decimal else "", found["digits"]
        )
        value = float(f"{found['sign'].replace('−', '-')}{digits}{found['exponent'] or ''}")
        return value, found["before"] or found["after"] or ""

    def number(self, text: str) -> float | None:
        """The value, if the unit is that of the format or not written."""
        parsed = self.parse(text)
        return parsed[0] if parsed is not None and parsed[1] in ("", self.unit) else None


def find_number_format(texts: Iterable[str], at_least: float = 1.0) -> NumberFormat | None:
    """The format by which at least this share of the texts are numbers; None without one.

    Numbers that begin with a zero, as in 007, are codes: they have no format.
    """
    texts = [text for text in texts if text.lower() not in MISSING_MARKS]
    if not texts or any(LEADING_ZERO.match(text) for text in texts):
        return None
    for decimal in (".", ","):
        parsed = [NumberFormat(decimal).parse(text) for text in texts]
        units = [unit for _, unit in filter(None, parsed) if unit]
        unit = max(set(units), key=units.count) if units else ""
        fits = [found is not None and found[1] in ("", unit) for found in parsed]
        if sum(fits) >= at_least * len(texts):
            return NumberFormat(decimal, unit)
    return None


def find_date_format(texts: Sequence[str]) -> str | None:
    """The format by which all texts are dates; None without one."""
    texts = [text for text in texts if text.lower() not in MISSING_MARKS]
    if not texts or not all(DATE_START.match(text) for text in texts):
        return None
    formats = (ISO_DATE, *DATE_FORMATS)
    return next((form for form in formats if all(parse_date(t, form) for t in texts)), None)


def parse_date(text: str, form: str) -> datetime | None:
    """The time that a text means, in UTC where it has a zone; None if it has another format."""
    try:
        found = datetime.fromisoformat(text) if form == ISO_DATE else datetime.strptime(text, form)
    except ValueError:
        return None
    return found.astimezone(UTC).replace(tzinfo=None) if found.tzinfo else found


def is_table(X: object) -> bool:
    """Whether X is a data frame of pandas or polars, or a table of pyarrow."""
    return _library(X) in _COLUMN_AT and hasattr(X, "shape")


def column_names(X: Table) -> list[str] | None:
    """Names of the columns of a table; None of an array."""
    return [str(name) for name in getattr(X, "column_names", getattr(X, "columns", ()))] or None


def read_columns(X: Table) -> list[Column]:
    """All columns of a table, or of an array (n, d), where they are called x0, x1 and so on."""
    if is_table(X):
        at, names = _COLUMN_AT[_library(X)], column_names(X) or []
        index = getattr(X, "index", None)
        rows = index if getattr(index, "dtype", None) == np.int64 else None
        return [replace(at(X, j, name), rows=rows) for j, name in enumerate(names)]
    return [column_of(f"x{j}", X[:, j]) for j in range(X.shape[1])]


def dense(X: Table) -> Table:
    """A sparse matrix as an array, where it fits in memory; anything else as it is."""
    if not issparse(X):
        return X
    size = X.shape[0] * X.shape[1] * 8
    if size > MAX_DENSE_BYTES:
        raise ValueError(
            f"X is sparse, and would take {size / 2**30:.1f} GiB as a dense array: the distances "
            "that are learned need all features of a row; reduce them first (TruncatedSVD)"
        )
    return X.toarray()


def is_plain(X: Table) -> bool:
    """Whether X consists of numbers without gaps, so that there is nothing to encode."""
    if is_table(X):
        return all(c.values.dtype.kind == "f" and not c.missing.any() for c in read_columns(X))
    if hasattr(X, "detach"):
        return True  # a tensor
    try:
        values = np.asarray(X)
    except ValueError:
        return True  # ragged: scikit-learn says so
    if values.ndim != 2 or values.dtype.kind in "biuc":
        return True
    if values.dtype.kind == "f":
        return not np.isnan(values).any()
    return values.dtype.kind == "O" and not any(
        isinstance(cell, str | date | np.datetime64) or cell is None or cell != cell
        for cell in values.flat
    )


def column_of(name: str, values: Cells, **declared: Any) -> Column:
    """A column of an array (n,) of any type; ``None``, NaN and NaT are missing values."""
    kind = values.dtype.kind
    if kind == "c":
        raise TableError(f"Complex data not supported: column {name!r}; split it in two")
    if kind in "biuf":
        whole = kind in "iu"
        return Column(name, values.astype(np.float64), is_whole=whole, **declared)
    if kind == "M":
        return Column(name, values.astype("datetime64[us]"), **declared)
    if kind == "m":
        return Column(name, values.astype("timedelta64[us]") / np.timedelta64(1, "s"), **declared)
    return _column_of_objects(name, values.astype(object), declared)


def _column_of_objects(name: str, cells: Cells, declared: dict[str, Any]) -> Column:
    missing = np.array([cell is None or _is_nan(cell) for cell in cells], dtype=bool)
    present = cells[~missing].tolist()
    for row, cell in zip(np.flatnonzero(~missing).tolist(), present, strict=True):
        if isinstance(cell, list | dict | set | tuple | np.ndarray):
            raise TypeError(
                f"column {name!r}, row {row}: argument must be a string or a number, not "
                f"{type(cell).__name__}"
            )
    if not declared and present:
        if all(isinstance(cell, bool | int | float | np.generic | Decimal) for cell in present):
            numbers = np.full(len(cells), np.nan)
            numbers[~missing] = [float(cell) for cell in present]
            return Column(name, numbers)
        if all(isinstance(cell, date | np.datetime64) for cell in present):
            times = np.full(len(cells), "NaT", dtype="datetime64[us]")
            times[~missing] = [_naive(cell) for cell in present]
            return Column(name, times)
    texts = np.full(len(cells), None, dtype=object)
    texts[~missing] = [cell_text(cell) or None for cell in present]
    return Column(name, texts, **declared)


def _is_nan(cell: object) -> bool:
    return isinstance(cell, float | np.generic | Decimal | datetime) and bool(cell != cell)


def _naive(cell: Any) -> Any:
    in_zone = isinstance(cell, datetime) and cell.tzinfo is not None
    return np.datetime64(cell.astimezone(UTC).replace(tzinfo=None) if in_zone else cell, "us")


def cell_text(cell: object) -> str:
    """The text of a value that is there, without surrounding white space."""
    return _number_text(cell) if isinstance(cell, float | np.floating) else str(cell).strip()


def _number_text(cell: Any) -> str:
    is_integral = isinstance(cell, float | np.floating) and float(cell).is_integer()
    return str(int(cell)) if is_integral else str(cell)


def shortest_number(text: str) -> str | None:
    """The text that a number has in a column of numbers: "1.5" for "1.50"; None of other texts."""
    is_number = PLAIN_NUMBER.fullmatch(text) is not None
    return _number_text(float(text)) if is_number else None


def _library(X: object) -> str:
    return type(X).__module__.partition(".")[0]


def _pandas_column(X: Table, j: int, name: str) -> Column:
    series = X.iloc[:, j]
    dtype = series.dtype
    if hasattr(dtype, "ordered") and hasattr(dtype, "categories"):
        levels = tuple(cell_text(level) for level in dtype.categories) if dtype.ordered else ()
        cells = series.astype(object).to_numpy(dtype=object, na_value=None)
        return column_of(name, cells, levels=levels, is_category=True)
    if hasattr(dtype, "freq"):  # of periods; a column of another type has none
        return column_of(name, series.dt.to_timestamp().to_numpy(dtype="datetime64[us]"))
    kind = getattr(dtype, "kind", "O")
    if kind in "biuf":
        numbers = series.to_numpy(dtype=np.float64, na_value=np.nan)
        return Column(name, numbers, is_whole=kind in "iu")
    if kind == "M":
        return column_of(name, series.to_numpy(dtype="datetime64[us]"))
    if kind in "mc":
        return column_of(name, series.to_numpy())
    return column_of(name, series.to_numpy(dtype=object, na_value=None))


def _polars_column(X: Table, j: int, name: str) -> Column:
    series = X.to_series(j)
    kind = str(series.dtype).partition("(")[0]
    if kind in ("Enum", "Categorical"):
        levels = tuple(series.dtype.categories.to_list()) if kind == "Enum" else ()
        cells = np.array(series.to_list(), dtype=object)
        return column_of(name, cells, levels=levels, is_category=True)
    if series.dtype.is_numeric():
        numbers = np.asarray(series.to_numpy(), dtype=np.float64)
        return Column(name, numbers, is_whole=series.dtype.is_integer())
    if series.dtype.is_temporal() and kind != "Time":
        return column_of(name, series.to_numpy())
    return column_of(name, np.array([*series.to_list(), None], dtype=object)[:-1])


def _pyarrow_column(X: Table, j: int, name: str) -> Column:
    column = X.column(j)
    kind = str(column.type)
    if kind.startswith("dictionary"):
        ordered = column.type.ordered and column.num_chunks == 1
        levels = tuple(map(str, column.chunk(0).dictionary.to_pylist())) if ordered else ()
        cells = np.array([*column.to_pylist(), None], dtype=object)[:-1]
        return column_of(name, cells, levels=levels, is_category=True)
    if kind.startswith(("timestamp", "date", "duration", "float", "double", "int", "uint")):
        values = np.asarray(column.to_numpy())
        return column_of(name, values)
    return column_of(name, np.array([*column.to_pylist(), None], dtype=object)[:-1])


_COLUMN_AT: dict[str, Callable[[Table, int, str], Column]] = {
    "pandas": _pandas_column,
    "polars": _polars_column,
    "pyarrow": _pyarrow_column,
}
