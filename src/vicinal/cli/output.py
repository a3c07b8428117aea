"""Text for people and JSON for programs, and the progress of a fit."""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import isfinite
from types import TracebackType
from typing import Any, Self

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

from vicinal.features.column_codes import LevelCode, NumberCode
from vicinal.features.column_encoding import ColumnEncoding
from vicinal.features.table_values import MISSING
from vicinal.features.target_statistics import TargetCode
from vicinal.tables.table_model import TableCounts, TableModel

CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
SHOWN_COLUMNS = 20
PIPE_WIDTH = 200  # nobody wraps lines in a pipe


class Output:
    """Text for people, or one JSON document for programs, on stdout; remarks on stderr.

    Texts come from tables and models of strangers: none is taken for markup, and none can send
    commands to the terminal.
    """

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self._out = _console(sys.stdout)
        self._err = _console(sys.stderr)

    def say(self, text: str = "") -> None:
        """A line for people."""
        if not self.as_json:
            self._out.print(visible(text), soft_wrap=True)

    def remark(self, text: str) -> None:
        """A line on stderr, beside a result on stdout that does not say it."""
        self._err.print(visible(text), soft_wrap=True)

    def flush(self) -> None:
        """Let a pipe have what was said so far."""
        sys.stdout.flush()

    def table(self, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """A table for people: numbers to the right, the rest to the left."""
        if self.as_json:
            return
        table = Table(box=None, pad_edge=False)
        for j, name in enumerate(names):
            numeric = all(isinstance(row[j], int | float) for row in rows) and bool(rows)
            table.add_column(visible(name), justify="right" if numeric else "left", overflow="fold")
        for row in rows:
            table.add_row(*(one_line(str(value)) for value in row))
        self._out.print(table)

    def document(self, value: Any) -> None:
        """The JSON document, if that is what is wanted."""
        if self.as_json:
            text = json.dumps(_plain(value), ensure_ascii=False, indent=2)
            print(text.encode("utf-8", errors="backslashreplace").decode("utf-8"))


@contextmanager
def remarked_warnings(output: Output) -> Iterator[None]:
    """Warnings as remarks, at the end."""
    with collected_warnings() as texts:
        yield
    for text in texts:
        output.remark(f"note: {text}")


@contextmanager
def collected_warnings() -> Iterator[list[str]]:
    """Warnings as texts, each once, filled in at the end; none is printed."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            yield texts
        finally:
            texts += dict.fromkeys(" ".join(str(warning.message).split()) for warning in caught)


def visible(text: str) -> str:
    r"""Characters that a terminal would obey as \\x1b and the like; lines stay lines.

    These are control characters, marks that change the direction of text, and halves of surrogate
    pairs, which stand for bytes of a file name that are not UTF-8.
    """
    return CONTROL.sub(lambda match: _escaped(match[0]), text)


def one_line(text: str) -> str:
    r"""The same in one line: a line break in a cell is shown as \\n."""
    return visible(text.replace("\r\n", "\n").replace("\n", "\\n"))


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def percent(share: float) -> str:
    """0.9722 as 97.2 %."""
    return f"{100 * share:.1f} %"


def _console(stream: Any) -> Console:
    width = None if stream.isatty() else PIPE_WIDTH
    return Console(file=stream, markup=False, highlight=False, emoji=False, width=width)


def _plain(value: Any) -> Any:
    """What JSON can hold, whatever a file of somebody else holds; NaN and infinity are null."""
    if isinstance(value, np.generic | np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)


class ProgressBar:
    """One bar on stderr, new with every stage; nothing where that is not a terminal."""

    def __init__(self) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=Console(stderr=True, markup=False),
            disable=not sys.stderr.isatty(),
            transient=True,
        )
        self._stage = ""
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def __call__(self, stage: str, done: float | None) -> None:
        """Show a stage and how much of it is done, 0 to 1; None where that is unknown."""
        if self._task is None or stage != self._stage:
            if self._task is not None:
                self._progress.remove_task(self._task)
            self._stage, self._task = stage, self._progress.add_task(stage, total=None)
        total = None if done is None else 1.0
        self._progress.update(self._task, completed=done or 0.0, total=total)


def column_lines(columns: Sequence[ColumnEncoding]) -> Iterator[str]:
    """Every column that was not simply standardized, and how many were."""
    plain = [e for e in columns if _is_plain(e)]
    if plain:
        yield f"columns   {len(plain)} of numbers: standardized"
    others = [e for e in columns if not _is_plain(e)]
    for encoding in others[:SHOWN_COLUMNS]:
        yield f"column    {encoding.name}: {column_text(encoding)}"
    if len(others) > SHOWN_COLUMNS:
        yield f"          and {len(others) - SHOWN_COLUMNS} more; vicinal info lists them all"


def _is_plain(encoding: ColumnEncoding) -> bool:
    code = encoding.code
    return isinstance(code, NumberCode) and not code.is_text and not encoding.n_missing


def column_text(encoding: ColumnEncoding) -> str:
    """What is done to a column."""
    return str(encoding) if encoding.is_used else f"dropped: {encoding}"


def column_documents(columns: Sequence[ColumnEncoding]) -> list[dict[str, Any]]:
    """The same for programs: what the features are made from."""
    return [
        {
            "name": e.name,
            "kind": e.code.kind,
            "done": column_text(e),
            "n_rows": e.n_rows,
            "n_missing": e.n_missing,
            "features": list(e.feature_names),
            "has_indicator": e.has_indicator,
            "weight": e.weight,
            **vars(e.code),
        }
        for e in columns
    ]


def dropped_rows(number: int, target: str) -> str:
    """Rows without a class."""
    return f"rows      {number} without {target}: left out"


def remarks(model: TableModel, names: Sequence[str], counts: TableCounts) -> Iterator[str]:
    """What was done to new rows beyond the ordinary."""
    for encoding in model.columns:
        missing = counts.missing[encoding.name]
        if missing:
            yield f"note: column {encoding.name!r}: {missing} missing, {filled(encoding)}"
        unseen = counts.unseen.get(encoding.name)
        if unseen:
            shown = ", ".join(map(repr, [level for level, _ in unseen.most_common(5)]))
            more = ", …" if len(unseen) > 5 else ""
            yield (
                f"note: column {encoding.name!r}: {shown}{more} ({unseen.total()} rows) not in "
                "training, taken as none of the known"
            )
    known = {encoding.name for encoding in model.columns} | set(model.roles.names)
    extra = [repr(name) for name in names if name not in known]
    if extra:
        yield f"note: not in the model, ignored: {', '.join(extra[:10])}"


def filled(encoding: ColumnEncoding) -> str:
    """What becomes of missing values of new rows."""
    code = encoding.code
    if isinstance(code, NumberCode):
        return f"filled with {code.fill:.6g}"
    if isinstance(code, LevelCode | TargetCode):
        known = MISSING in code.levels
        return "a level of their own" if known else "taken as none of the known"
    return "filled with the median"


def show_duration(seconds: float) -> str:
    """Seconds as a short text."""
    if seconds < 0.1:
        return "< 0.1 s"
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.1f} min"
