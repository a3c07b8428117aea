"""Text files of rows: compression, encoding, separator, header, and cells with their types."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from vicinal.exceptions import TableError, TableWarning, warn_user

MISSING_CELLS = (
    *("", "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NaN", "nan", "-NaN", "-nan", "NULL", "null"),
    *("?", "#DIV/0!", "#VALUE!", "#REF!"),
)
"""What stands for no value in every column. "None" is a value: it names a level."""
SEPARATORS = ",;\t|"
ENCODINGS = ("utf-8-sig", "cp1252", "latin-1")
MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
SAMPLE = 1_000_000
"""Characters by which separator and header are judged."""
LEADING_ZERO = r"^[-+]?0\d"
WITH_COMMA = r"^[-+]?\d*,?\d*([eE][-+]?\d+)?$"
LARGEST_WHOLE = 2**53


@dataclass(frozen=True)
class ReadOptions:
    """Options for reading a file; what they leave open is found out.

    Attributes
    ----------
    separator, encoding : str or None
        Of text files.
    missing : tuple of str
        Further texts that stand for no value.
    as_text : collection of str
        Columns that stay as they are written: names of rows keep their leading zeros.
    numbers : collection of str or None
        The columns that are numbers, in a part of a table; None: to be found out.
    """

    separator: str | None = None
    encoding: str | None = None
    missing: tuple[str, ...] = ()
    as_text: Collection[str] = ()
    numbers: Collection[str] | None = None


@dataclass(frozen=True)
class Dialect:
    """The form of the rows of a text file."""

    encoding: str
    separator: str
    names: tuple[str, ...]
    n_trailing: int = 0
    """Fields at the end of every row that the header does not name, and that are empty."""
    skip_space: bool = False
    """Whether fields in quotes follow a blank."""


def open_binary(path: Path) -> Any:
    """The bytes of a file, decompressed by the ending of its name."""
    ending = path.suffix.lower()
    if ending == ".gz":
        return gzip.open(path, "rb")
    if ending == ".zst":
        return pa.input_stream(str(path), compression="zstd")
    return path.open("rb")


def open_text(path: Path, encoding: str) -> io.TextIOWrapper:
    """The text of a file, its line ends as they are."""
    return io.TextIOWrapper(open_binary(path), encoding=encoding, newline="")


def find_encoding(path: Path, given: str | None) -> str:
    """The encoding of the whole file: UTF-8, or another one with a warning that says so."""
    if given is not None:
        try:
            known = codecs.lookup(given).name
        except LookupError as error:
            raise TableError(f"the encoding {given!r} is unknown; use utf-8, latin-1, …") from error
        if not _is_written_in(path, known):
            raise TableError(f"{path.name} is not written in {given}; use another --encoding")
        return "utf-8-sig" if known == "utf-8" else known
    with open_binary(path) as file:
        start = file.read(4)
    for mark, encoding in MARKS.items():
        if start.startswith(mark):
            return encoding
    encoding = next(name for name in ENCODINGS if _is_written_in(path, name))
    if encoding != ENCODINGS[0]:
        warn_user(
            f"{path.name} is not UTF-8; it was read as {encoding}, use --encoding for another one",
            TableWarning,
        )
    return encoding


def _is_written_in(path: Path, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        with open_binary(path) as file:
            while block := file.read(1 << 22):
                decoder.decode(block)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def find_dialect(path: Path, options: ReadOptions) -> Dialect:
    """Encoding, separator and names of the columns; TableError where the header does not fit."""
    encoding = find_encoding(path, options.encoding)
    with open_text(path, encoding) as stream:
        sample = stream.read(SAMPLE)
    if "\0" in sample:
        raise TableError(f"{path.name} cannot be read as text: it has zero bytes")
    if not sample.strip():
        raise TableError(f"{path.name} cannot be read as csv: it is empty")
    lines = sample.splitlines(keepends=True)
    if len(sample) == SAMPLE and len(lines) > 1:
        lines.pop()  # cut in the middle
    separator = options.separator or _separator(path, lines)
    skip_space = re.search(rf'{re.escape(separator)} +"', sample) is not None
    rows = _rows(lines, separator, skip_space)
    header, *body = [row for row in rows if row] or [[]]
    if sample.count('"') % 2:  # of a quote that does not end, the reader of all rows tells
        body = []
    names, n_trailing = _names(path, header, body)
    return Dialect(encoding, separator, names, n_trailing, skip_space)


def _rows(lines: Sequence[str], separator: str, skip_space: bool) -> list[list[str]]:
    try:
        return list(csv.reader(lines, delimiter=separator, skipinitialspace=skip_space))
    except csv.Error:  # the reader of all rows tells what is wrong
        return [line.rstrip("\r\n").split(separator) for line in lines]


def _separator(path: Path, lines: Sequence[str]) -> str:
    """The one that divides the header into most fields; of equal ones, by most rows alike."""
    if ".tsv" in [suffix.lower() for suffix in path.suffixes]:
        return "\t"

    def fit(separator: str) -> tuple[bool, int, int]:
        rows = [row for row in _rows(lines[:200], separator, skip_space=True) if row]
        width = len(rows[0]) if rows else 1
        alike = [len(row) in (width, width + 1) for row in rows]
        return width > 1 and sum(alike) > len(alike) / 2, width, sum(alike)

    return max(SEPARATORS, key=fit)


def _names(
    path: Path, header: Sequence[str], body: Sequence[Sequence[str]]
) -> tuple[tuple[str, ...], int]:
    """Names of the columns, and how many empty fields at the end of each row have none."""
    names = [name.strip() or f"Unnamed: {j}" for j, name in enumerate(header)]
    widths = Counter(len(row) for row in body)
    longer = widths[len(names) + 1]
    if longer and longer == len(body):
        if all(row[-1].strip() == "" for row in body):
            return _distinct(names), 1
        warn_user(
            f"{path.name}: rows have one field more than the header; the first one is taken as "
            "the name of the row, in a column 'row_names'",
            TableWarning,
        )
        return _distinct(["row_names", *names]), 0
    if body and widths[len(names)] == 0:
        (width, count), *_ = widths.most_common(1)
        raise TableError(
            f"{path.name}: the header has {len(names)} fields, and {count} rows have {width}; "
            "correct the header, or name the --separator"
        )
    return _distinct(names), 0


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Names with .1, .2 and so on after those that repeat."""
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        found.append(f"{name}.{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return tuple(found)


def text_chunks(stream: IO[str], dialect: Dialect, size: int) -> Iterator[pa.Table]:
    """All rows, as they are written, in parts of up to `size` rows."""
    extra = [f"\0{j}" for j in range(dialect.n_trailing)]
    reader = pd.read_csv(
        stream,
        sep=dialect.separator,
        header=0,
        names=[*dialect.names, *extra],
        dtype=str,
        na_filter=False,
        skipinitialspace=dialect.skip_space,
        chunksize=size,
    )
    for part in reader:
        if not isinstance(part.index, pd.RangeIndex):
            raise TableError("its rows have more fields than the header")
        cells = part[list(dialect.names)]
        yield pa.table({name: pa.array(cells[name], pa.large_string()) for name in dialect.names})


def typed(cells: pa.Table, options: ReadOptions, separator: str = ",") -> pd.DataFrame:
    """Texts as numbers where all of a column are, and without a value where marks say so."""
    marks = pa.array([*MISSING_CELLS, *options.missing], pa.large_string())
    columns = {
        name: _typed_column(column, marks, options, name, separator)
        for name, column in zip(cells.column_names, cells.columns, strict=True)
    }
    return pd.DataFrame(columns)


def _typed_column(
    column: pa.ChunkedArray, marks: pa.Array, options: ReadOptions, name: str, separator: str
) -> pd.Series:
    trimmed = pc.utf8_trim_whitespace(column)
    missing = pc.is_in(trimmed, value_set=marks)
    as_number = options.numbers is None or name in options.numbers
    if name not in options.as_text and as_number:
        present = pc.if_else(missing, None, trimmed)
        has_codes = pc.any(pc.match_substring_regex(present, LEADING_ZERO)).as_py()
        found = None if has_codes and options.numbers is None else _numbers(present, separator)
        if found is None and options.numbers is not None:
            found = _truth(present)
        elif found is not None and pa.types.is_floating(found.type):
            _warn_of_commas(present, options, name)
        if found is not None:
            return found.to_pandas()
    if name not in options.as_text:
        _warn_of_merged(column, trimmed, options, name)
        column = trimmed
    return pc.if_else(missing, None, column).to_pandas()


def _warn_of_merged(
    column: pa.ChunkedArray, trimmed: pa.ChunkedArray, options: ReadOptions, name: str
) -> None:
    merged = pc.count_distinct(column).as_py() - pc.count_distinct(trimmed).as_py()
    if merged and options.numbers is None:
        warn_user(
            f"column {name!r}: {merged} value(s) differ from others only in white space, and are "
            "taken as the same",
            TableWarning,
        )


def _warn_of_commas(texts: pa.ChunkedArray, options: ReadOptions, name: str) -> None:
    marked = pc.filter(texts, pc.fill_null(pc.match_substring(texts, ","), False))
    if len(marked) and options.numbers is None:
        warn_user(
            f"column {name!r}: its commas were read as decimal marks, {marked[0]} as "
            f"{str(marked[0]).replace(',', '.')}",
            TableWarning,
        )


def _numbers(texts: pa.ChunkedArray, separator: str) -> pa.ChunkedArray | None:
    """Integers, numbers or truth values; None where some text is none of them."""
    if texts.null_count == len(texts):
        return pc.cast(texts, pa.float64())
    try:
        whole = pc.cast(texts, pa.int64())
    except pa.ArrowInvalid:
        return _fractions(texts, separator)
    largest = pc.max(pc.abs(whole)).as_py()
    if texts.null_count and largest > LARGEST_WHOLE:
        return None  # not all digits would survive beside missing values
    return whole


def _fractions(texts: pa.ChunkedArray, separator: str) -> pa.ChunkedArray | None:
    try:
        numbers = pc.cast(texts, pa.float64())
    except pa.ArrowInvalid:
        truth = _truth(texts)
        if truth is not None:
            return truth if not texts.null_count else None
        if separator == "," or not pc.all(pc.match_substring_regex(texts, WITH_COMMA)).as_py():
            return None
        return _fractions(pc.replace_substring(texts, ",", "."), ",")
    is_whole = pc.all(pc.match_substring_regex(texts, r"^[-+]?\d+$")).as_py()
    return None if is_whole else numbers  # integers beyond 64 bits are names


def _truth(texts: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Truth values, or none where the text is missing; None where some text is another one."""
    if set(pc.unique(texts).drop_null().to_pylist()[:7]) <= {"True", "False", "true", "false"}:
        return pc.equal(pc.utf8_lower(texts), "true")
    return None
