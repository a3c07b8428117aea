"""Tables on disk: CSV, Excel, JSON lines, Parquet, Arrow/Feather and NPZ, whole or in parts."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from vicinal._typing import Document, LabelArray
from vicinal.exceptions import TableError, TableWarning, missing_extra, warn_user
from vicinal.tables.text_files import (
    ReadOptions,
    find_dialect,
    open_binary,
    open_text,
    text_chunks,
    typed,
)

TEXT = {".csv", ".tsv", ".txt"}
LINES = {".jsonl", ".ndjson"}
ARROW = {".arrow", ".feather", ".ipc"}
PACKED = {".gz", ".zst"}
READABLE = (
    ".csv, .tsv, .jsonl (these also with .gz or .zst), .xlsx, .parquet, .arrow, .feather or .npz"
)
STANDARD_INPUT = Path("-")
FIRST_BYTES = {
    b"PAR1": ".parquet",
    b"ARRO": ".arrow",
    b"\x28\xb5\x2f\xfd": ".csv.zst",
    b"\x1f\x8b": ".csv.gz",
}
CHUNK_ROWS = 50_000
GIVEN_ON = (TableError, ImportError, FileNotFoundError, PermissionError, IsADirectoryError)


@dataclass(frozen=True)
class TableChunks:
    """A table in parts, in order, its rows numbered through.

    Attributes
    ----------
    names : list of str
        The columns.
    frames : iterator of DataFrame
    share : callable
        How much has been read, 0 to 1; None where that is not known.
    """

    names: list[str]
    frames: Iterator[pd.DataFrame]
    share: Callable[[], float | None]


def read_table(
    path: Path, arrays: Collection[str] = (), options: ReadOptions | None = None
) -> pd.DataFrame:
    """The table of a file, by the ending of its name; - is the standard input.

    Parameters
    ----------
    path : Path
    arrays : collection of str
        Of an NPZ file, which 1-D arrays are wanted as columns beside those of ``X`` (n, d). The
        columns of X are called ``feature_names``, or x0, x1, …; those where the array
        ``categorical`` is true are categories. ``y`` becomes ``class_names[y]`` where there are
        such names.
    options : ReadOptions or None

    Returns
    -------
    table : DataFrame
        With unique column names, and rows numbered from 0.
    """
    options = options or ReadOptions()
    with regular_file(path) as file, _named_errors(file):
        if _ending(file) in TEXT:
            dialect = find_dialect(file, options)
            with open_text(file, dialect.encoding) as stream:
                parts = list(text_chunks(stream, dialect, CHUNK_ROWS))
            if not parts:
                raise TableError(f"{file.name} has no rows")
            table = typed(pa.concat_tables(parts), options, dialect.separator)
        else:
            table = _marked_missing(_read_whole(file, arrays), options)
        return _checked(table, file)


@contextmanager
def read_chunks(
    path: Path,
    arrays: Collection[str] = (),
    options: ReadOptions | None = None,
    size: int = CHUNK_ROWS,
) -> Iterator[TableChunks]:
    """The table of a file in parts, in memory one at a time where the format allows it.

    Parameters
    ----------
    path, arrays, options : as of :func:`read_table`
    size : int
        Most rows of a part.
    """
    options = options or ReadOptions()
    with regular_file(path) as file, ExitStack() as opened:
        with _named_errors(file):
            frames, share = _open_frames(file, arrays, options, size, opened)
            chunks = _numbered(frames, file, share)
        yield chunks


def _open_frames(
    file: Path, arrays: Collection[str], options: ReadOptions, size: int, opened: ExitStack
) -> tuple[Iterator[pd.DataFrame], Callable[[], float | None]]:
    """The parts of a file that stays open, and how much has been read."""
    ending = _ending(file)
    if ending in TEXT:
        dialect = find_dialect(file, options)
        stream = opened.enter_context(open_text(file, dialect.encoding))
        parts = text_chunks(stream, dialect, size)
        return (typed(part, options, dialect.separator) for part in parts), bytes_read(file, stream)
    if ending in LINES:
        binary = opened.enter_context(open_binary(file))
        lines = _read_lines(binary, size)
        return (_marked_missing(frame, options) for frame in lines), bytes_read(file, binary)
    if ending == ".parquet":
        parquet = opened.enter_context(pq.ParquetFile(file))
        count = _RowCount(parquet.metadata.num_rows)
        batches = (batch.to_pandas() for batch in parquet.iter_batches(size))
    else:
        table = _read_whole(file, arrays)
        count = _RowCount(len(table))
        batches = (table[i : i + size] for i in range(0, len(table), size))
    return (_marked_missing(count.add(frame), options) for frame in batches), count.share


class _RowCount:
    """Counts the rows that have been read."""

    def __init__(self, total: int) -> None:
        self._total, self._done = total, 0

    def add(self, frame: pd.DataFrame) -> pd.DataFrame:
        self._done += len(frame)
        return frame

    def share(self) -> float:
        return self._done / max(1, self._total)


def bytes_read(file: Path, stream: IO[bytes] | IO[str]) -> Callable[[], float | None]:
    """The share of the bytes on disk; of compressed files where that is known."""
    binary = getattr(stream, "buffer", stream)
    raw = getattr(binary, "fileobj", binary)  # what gzip reads
    size = max(1, file.stat().st_size)
    if file.suffix.lower() == ".zst":
        return lambda: None
    return lambda: min(1.0, raw.tell() / size)


def _numbered(
    frames: Iterator[pd.DataFrame], file: Path, share: Callable[[], float | None]
) -> TableChunks:
    """The parts with checked names, at least one, and rows numbered through."""
    first = next(frames, None)
    if first is None or len(first) == 0:
        raise TableError(f"{file.name} has no rows")

    def numbered() -> Iterator[pd.DataFrame]:
        start = 0
        with _named_errors(file):
            for frame in chain([first], frames):
                table = _checked(frame, file)
                table.index = pd.RangeIndex(start, start + len(table))
                start += len(table)
                yield table

    return TableChunks(list(_checked(first, file).columns), numbered(), share)


@contextmanager
def regular_file(path: Path) -> Iterator[Path]:
    """The file itself; the standard input and pipes as a temporary one."""
    if path != STANDARD_INPUT and (path.is_file() or path.is_dir() or not path.exists()):
        if path.is_dir():
            raise IsADirectoryError(f"{path} is a folder")
        yield path
        return
    opened = nullcontext(sys.stdin.buffer) if path == STANDARD_INPUT else path.open("rb")
    with tempfile.TemporaryDirectory(prefix="vicinal-") as folder, opened as source:
        start = source.read(4)
        ending = next((e for b, e in FIRST_BYTES.items() if start.startswith(b)), None)
        if ending is None:
            ending = ".jsonl" if start.lstrip()[:1] == b"{" else ".csv"
        name = "standard-input" if path == STANDARD_INPUT else path.stem
        file = Path(folder) / f"{name}{ending}"
        with file.open("wb") as copy:
            copy.write(start)
            while block := source.read(1 << 20):
                copy.write(block)
        yield file


@contextmanager
def _named_errors(path: Path) -> Iterator[None]:
    """Errors of a damaged file with its name; parsers raise whatever they come across."""
    try:
        yield
    except GIVEN_ON:
        raise
    except Exception as error:
        if type(error).__module__.startswith("vicinal"):
            raise
        kind = _ending(path).removeprefix(".")
        raise TableError(f"{path.name} cannot be read as {kind}: {error}") from error


def _ending(path: Path) -> str:
    """The ending that says the format, in small letters; TableError of unknown ones."""
    endings = [suffix.lower() for suffix in path.suffixes]
    packed = bool(endings) and endings[-1] in PACKED
    ending = "".join(endings[-2:-1] if packed else endings[-1:])
    known = TEXT | LINES | ARROW | {".parquet", ".npz", ".xlsx"}
    if ending not in (TEXT | LINES if packed else known):
        raise TableError(f"{path.name}: this ending is unknown; use {READABLE}")
    return ending


def _read_whole(path: Path, arrays: Collection[str]) -> pd.DataFrame:
    ending = _ending(path)
    if ending == ".parquet":
        return pd.read_parquet(path)
    if ending in ARROW:
        return _read_arrow(path)
    if ending == ".npz":
        return _read_npz(path, arrays)
    if ending == ".xlsx":
        return _read_excel(path)
    with open_binary(path) as binary:
        return pd.concat(list(_read_lines(binary, CHUNK_ROWS)))


def _read_excel(path: Path) -> pd.DataFrame:
    """The first sheet; cells of text stay texts, with their leading zeros."""
    try:
        with pd.ExcelFile(path, engine="openpyxl") as book:
            if len(book.sheet_names) > 1:
                first = book.sheet_names[0]
                warn_user(f"{path.name} has several sheets; {first!r} was read", TableWarning)
            return pd.read_excel(book, dtype=object).infer_objects()
    except ImportError as error:
        raise missing_extra("reading .xlsx", "openpyxl", "cli") from error


def _read_lines(binary: IO[bytes], size: int) -> Iterator[pd.DataFrame]:
    """Objects of JSON, one per line; texts stay texts, names of columns stay once they occur."""
    lines, names = enumerate(binary, start=1), pd.Index([])
    while part := list(islice(lines, size)):
        records = [_json_object(line, number) for number, line in part if line.strip()]
        if records:
            frame = pd.DataFrame(records)
            names = names.append(frame.columns.difference(names, sort=False))
            yield frame.reindex(columns=names)


def _json_object(line: bytes, number: int) -> Document:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise TableError(f"line {number} is not JSON: {error}") from error
    if not isinstance(record, dict):
        raise TableError(f"line {number} is not a JSON object, of column names and values")
    return record


def _marked_missing(table: pd.DataFrame, options: ReadOptions) -> pd.DataFrame:
    """The table without the texts that stand for no value, where such were named."""
    marks = set(options.missing)
    if not marks:
        return table
    texts = table.select_dtypes(include=["object", "string"]).columns
    return table.assign(**{name: table[name].mask(table[name].isin(marks)) for name in texts})


def _read_arrow(path: Path) -> pd.DataFrame:
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


def _load_npz(path: Path) -> dict[str, LabelArray]:
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


def _named_classes(arrays: dict[str, LabelArray]) -> LabelArray:
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
