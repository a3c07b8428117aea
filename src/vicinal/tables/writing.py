"""Tables to disk: complete or not at all, and row by row where they are long."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from vicinal._typing import Document
from vicinal.atomic_write import atomic_write
from vicinal.exceptions import TableError

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
WRITABLE = ".csv, .tsv (these also with .gz or .zst), .jsonl, .parquet or .feather"
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}


def check_writable(path: Path) -> None:
    """TableError where no table can be written to a file of that name."""
    _writer(path)


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a table, by the ending of the name; complete or not at all."""
    with table_writer(path) as write:
        write(table)


@contextmanager
def table_writer(path: Path) -> Iterator[Callable[[pd.DataFrame], None]]:
    """A function that writes the next rows of a table; the file is complete at the end, or absent.

    Parameters
    ----------
    path : Path
        The ending of the name decides the format.
    """
    opened = _writer(path)
    with atomic_write(path) as unfinished, opened(unfinished) as write:
        yield write


def _writer(path: Path) -> Callable[[Path], Any]:
    endings = [suffix.lower() for suffix in path.suffixes[-2:]]
    packing = COMPRESSIONS.get(endings[-1]) if endings else None
    ending = "".join(endings[-2:-1] if packing else endings[-1:])
    if ending in (".csv", ".txt", ".tsv"):
        return lambda file: _text_writer(file, "\t" if ending == ".tsv" else ",", packing)
    if packing is None and ending == ".jsonl":
        return _lines_writer
    if packing is None and ending in (".parquet", ".feather", ".arrow", ".ipc"):
        return _parquet_writer if ending == ".parquet" else _arrow_writer
    raise TableError(f"{path.name}: this ending is unknown; use {WRITABLE}")


@contextmanager
def _text_writer(
    file: Path, separator: str, packing: str | None
) -> Iterator[Callable[[pd.DataFrame], None]]:
    with (
        file.open("wb") as raw,  # not by its name, which Arrow takes only in UTF-8
        pa.output_stream(raw, compression=packing) as binary,
        io.TextIOWrapper(binary, encoding="utf-8", newline="") as stream,
    ):
        yield TextWriter(stream, separator).write


@contextmanager
def _lines_writer(file: Path) -> Iterator[Callable[[pd.DataFrame], None]]:
    with file.open("w", encoding="utf-8") as stream:

        def write(table: pd.DataFrame) -> None:
            for record in json_records(table):
                stream.write(json.dumps(record, ensure_ascii=False) + "\n")

        yield write


def json_records(table: pd.DataFrame) -> Iterator[Document]:
    """Every row as what JSON can hold: no value, NaN and infinity are null."""
    for record in table.to_dict(orient="records"):
        yield plain(record)


def plain(value: object) -> Any:
    """The value as JSON can hold it, whatever its type; NaN and infinity are null."""
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)


@contextmanager
def _parquet_writer(file: Path) -> Iterator[Callable[[pd.DataFrame], None]]:
    with (
        file.open("wb") as raw,
        _ArrowRows(lambda schema: pq.ParquetWriter(raw, schema)) as rows,
    ):
        yield rows.write


@contextmanager
def _arrow_writer(file: Path) -> Iterator[Callable[[pd.DataFrame], None]]:
    with (
        file.open("wb") as raw,
        _ArrowRows(lambda schema: pa.ipc.new_file(raw, schema)) as rows,
    ):
        yield rows.write


class _ArrowRows:
    """Writes tables one after the other, with the columns and types of the first."""

    def __init__(self, open_writer: Callable[[pa.Schema], Any]) -> None:
        self._open = open_writer
        self._writer: Any = None
        self._schema: pa.Schema = None

    def __enter__(self) -> _ArrowRows:
        return self

    def write(self, table: pd.DataFrame) -> None:
        if self._writer is None:
            rows = pa.Table.from_pandas(table, preserve_index=False)
            self._writer, self._schema = self._open(rows.schema), rows.schema
        else:
            rows = pa.Table.from_pandas(table, self._schema, preserve_index=False)
        self._writer.write_table(rows)

    def __exit__(self, *error: object) -> None:
        if self._writer is not None:
            self._writer.close()


class TextWriter:
    """Writes tables as CSV, one after the other; cells with line breaks of any kind are quoted."""

    def __init__(self, stream: TextIO | io.TextIOBase, separator: str = ",") -> None:
        self._lines, self._separator, self._begun = _Lines(stream), separator, False

    def write(self, table: pd.DataFrame) -> None:
        """Write the next rows, under one header."""
        table.to_csv(
            self._lines,
            index=False,
            header=not self._begun,
            sep=self._separator,
            lineterminator="\r\n",
        )
        self._begun = True


class _Lines(io.TextIOBase):
    r"""Ends lines with \n that come with \r\n, for which the writer quotes \r and \n in cells."""

    def __init__(self, stream: TextIO | io.TextIOBase) -> None:
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
