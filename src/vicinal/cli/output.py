"""Text for people and JSON for programs, and the progress of a fit."""

from __future__ import annotations

import io
import json
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Self, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

from vicinal.features.column_codes import NumberCode
from vicinal.features.column_encoding import ColumnEncoding
from vicinal.tables.remarks import column_text
from vicinal.tables.writing import plain

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

    def table(self, names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
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

    def document(self, value: object) -> None:
        """The JSON document, if that is what is wanted."""
        if self.as_json:
            text = json.dumps(plain(value), ensure_ascii=sys.stdout.isatty(), indent=2)
            print(text.encode("utf-8", errors="backslashreplace").decode("utf-8"))


class VisibleText(io.TextIOBase):
    """A stream that writes control characters out, for a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(visible(text))


class _PipedConsole(Console):
    """A console that leaves it to the caller what happens when nobody reads its output."""

    def on_broken_pipe(self) -> None:
        """Raise the error again, which is being handled."""
        raise


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
    r"""The text with control characters written out, as \\x1b; line ends stay.

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


def _console(stream: TextIO) -> Console:
    width = None if stream.isatty() else PIPE_WIDTH
    return _PipedConsole(file=stream, markup=False, highlight=False, emoji=False, width=width)


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
        if not self._progress.disable:  # rich 13 ends a disabled bar with an empty line
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
    plain = [e for e in columns if _isplain(e)]
    if plain:
        yield f"columns   {len(plain)} of numbers: standardized"
    others = [e for e in columns if not _isplain(e)]
    for encoding in others[:SHOWN_COLUMNS]:
        yield f"column    {encoding.name}: {column_text(encoding)}"
    if len(others) > SHOWN_COLUMNS:
        yield f"          and {len(others) - SHOWN_COLUMNS} more; vicinal info lists them all"


def _isplain(encoding: ColumnEncoding) -> bool:
    code = encoding.code
    return isinstance(code, NumberCode) and not code.is_text and not encoding.n_missing


def dropped_rows(number: int, target: str) -> str:
    """Rows without a class."""
    return f"rows      {number} without {target}: left out"


def show_duration(seconds: float) -> str:
    """Seconds as a short text."""
    if seconds < 0.1:
        return "< 0.1 s"
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.1f} min"
