"""What a person sees, and what a program sees."""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import isfinite
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
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

    def table(self, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """A table for people: numbers to the right, the rest to the left."""
        if self.as_json:
            return
        table = Table(box=None, pad_edge=False)
        for j, name in enumerate(names):
            numeric = all(isinstance(row[j], int | float) for row in rows) and bool(rows)
            table.add_column(visible(name), justify="right" if numeric else "left", overflow="fold")
        for row in rows:
            table.add_row(*(visible(str(value)) for value in row))
        self._out.print(table)

    def document(self, value: Any) -> None:
        """The JSON document, if that is what is wanted."""
        if self.as_json:
            print(json.dumps(_plain(value), ensure_ascii=False, indent=2))


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
    r"""Control characters, which a terminal would obey, as \\x1b and the like; lines stay lines."""
    return CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


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
