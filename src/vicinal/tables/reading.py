"""Tables on disk: CSV, TSV, Parquet, Arrow/Feather and NPZ."""

from __future__ import annotations

import io
from collections.abc import Collection
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pandas as pd

from vicinal.atomic_write import whole_file
from vicinal.exceptions import TableError

TEXT = {".csv", ".tsv", ".txt"}
ARROW = {".arrow", ".feather", ".ipc"}
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
READABLE = ".csv, .tsv, .parquet, .arrow, .feather or .npz"


def read_table(path: Path, arrays: Collection[str] = ()) -> pd.DataFrame:
    """The table of a file, by the ending of its name.

    Parameters
    ----------
    path : Path
    arrays : collection of str
        Of an NPZ file, which 1-D arrays are wanted as columns beside those of ``X`` (n, d). The
        columns of X are called ``feature_names``, or x0, x1, …; those where the array
        ``categorical`` is true are categories. ``y`` becomes ``class_names[y]`` where there are
        such names.

    Returns
    -------
    table : DataFrame
        With unique column names, and rows numbered from 0.
    """
    ending = path.suffix.lower()
    try:
        if ending in TEXT:
            table = _read_text(path)
        elif ending == ".parquet":
            table = pd.read_parquet(path)
        elif ending in ARROW:
            table = _read_arrow(path)
        elif ending == ".npz":
            table = _read_npz(path, arrays)
        else:
            raise TableError(f"{path.name}: this ending is unknown; use {READABLE}")
    except UnicodeDecodeError as error:
        raise TableError(
            f"{path.name} is not UTF-8 text ({error.reason}); save it as UTF-8"
        ) from error
    except (TableError, ImportError, FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except Exception as error:  # of a damaged file, parsers raise whatever they come across
        raise TableError(f"{path.name} cannot be read as {ending[1:]}: {error}") from error
    return _checked(table, path)


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a table, by the ending of the name; complete or not at all."""
    ending = path.suffix.lower()
    with whole_file(path) as unfinished:
        if ending in TEXT:
            with unfinished.open("w", encoding="utf-8", newline="") as stream:
                write_text(table, stream, separator="\t" if ending == ".tsv" else ",")
        elif ending == ".parquet":
            table.to_parquet(unfinished, index=False)
        elif ending in ARROW:
            table.to_feather(unfinished)
        else:
            raise TableError(
                f"{path.name}: this ending is unknown; use .csv, .tsv, .parquet or .feather"
            )


def write_text(table: pd.DataFrame, stream: TextIO, separator: str = ",") -> None:
    """Write a table as CSV; cells with line breaks of any kind are quoted."""
    table.to_csv(_Lines(stream), index=False, sep=separator, lineterminator="\r\n")


class _Lines(io.TextIOBase):
    r"""Ends lines with \n that come with \r\n, for which the writer quotes \r and \n in cells."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(text.removesuffix("\r\n") + "\n")


def safe(table: pd.DataFrame) -> pd.DataFrame:
    """The table with texts that a spreadsheet would compute marked as text by an apostrophe."""
    texts = table.select_dtypes(exclude=["number", "bool"]).columns
    marked = {name: [_marked(cell) for cell in table[name]] for name in texts}
    return table.assign(**marked).rename(columns=_marked)


def _marked(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA_STARTS) else cell


def _read_text(path: Path) -> pd.DataFrame:
    with path.open(encoding="utf-8-sig") as lines:
        header = lines.readline()
    separator = "\t" if path.suffix.lower() == ".tsv" else max(",;\t", key=header.count)
    return pd.read_csv(
        path,
        sep=separator,
        decimal="," if separator == ";" and _decimal_commas(path) else ".",
        na_values=["?"],
        skipinitialspace=True,
        encoding="utf-8-sig",
        low_memory=False,
        index_col=False,
    )


def _decimal_commas(path: Path) -> bool:
    """Whether a file with semicolons writes 1,5: it has commas and no points beyond its header."""
    with path.open(encoding="utf-8-sig") as lines:
        lines.readline()
        beginning = lines.read(100_000)
    return "," in beginning and "." not in beginning


def _read_arrow(path: Path) -> pd.DataFrame:
    import pyarrow as pa

    try:
        return pd.read_feather(path)
    except pa.ArrowInvalid:
        with pa.OSFile(str(path)) as source:  # the streaming format has no footer
            return pa.ipc.open_stream(source).read_pandas()


def _read_npz(path: Path, wanted: Collection[str]) -> pd.DataFrame:
    arrays = _load_npz(path)
    X = arrays.get("X")
    if X is None or X.ndim != 2:
        raise TableError(f"{path.name} needs an array X of shape (rows, features)")
    n, d = X.shape
    names = arrays.get("feature_names", np.array([f"x{j}" for j in range(d)]))
    categorical = arrays.get("categorical", np.zeros(d, dtype=bool))
    if names.shape != (d,) or categorical.shape != (d,):
        raise TableError(f"{path.name}: feature_names and categorical must have {d} entries, as X")
    table = pd.DataFrame(X, columns=names.astype(str))
    for name in names[categorical.astype(bool)].astype(str):
        table[name] = table[name].astype("category")
    for name in wanted:
        column = arrays.get(name)
        if column is not None and column.shape == (n,):
            table[name] = _named_classes(arrays) if name == "y" else column
    return table


def _load_npz(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    import zipfile

    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, zipfile.BadZipFile) as error:
        if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
            raise
        raise TableError(f"{path.name} is not an NPZ archive: {error}") from error
    except ValueError as error:  # NumPy would go on to advise unpickling
        raise TableError(
            f"{path.name} is not an NPZ archive of numbers and texts; save arrays of such with "
            "numpy.savez, no Python objects"
        ) from error


def _named_classes(arrays: dict[str, np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    y, names = arrays["y"], arrays.get("class_names")
    codes = y.dtype.kind in "iu" and len(y) > 0 and y.min() >= 0
    if names is None or names.ndim != 1 or not codes or y.max() >= len(names):
        return y
    return names[y].astype(str)


def _checked(table: pd.DataFrame, path: Path) -> pd.DataFrame:
    table = table.reset_index(drop=True)
    table.columns = [str(name).strip() for name in table.columns]
    repeated = table.columns[table.columns.duplicated()]
    if len(repeated):
        raise TableError(f"{path.name} has more than one column {repeated[0]!r}; rename one")
    if len(table) == 0:
        raise TableError(f"{path.name} has no rows")
    return table
