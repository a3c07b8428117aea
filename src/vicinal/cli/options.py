"""Arguments that several commands share."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from vicinal.atomic_write import check_place
from vicinal.exceptions import TableError
from vicinal.tables.training_table import check_columns

SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0}
PATTERN = re.compile(r"(?:([\d.]+)h)?(?:([\d.]+)m(?:in)?)?(?:([\d.]+)s?)?")
FILES = "CSV, TSV, Parquet, Arrow/Feather or NPZ"

TrainFile = Annotated[
    Path, typer.Argument(exists=True, dir_okay=False, help=f"Training table: {FILES}.")
]
NewFile = Annotated[
    Path, typer.Argument(exists=True, dir_okay=False, help=f"Table of new rows: {FILES}.")
]
ModelPath = Annotated[
    Path, typer.Argument(exists=True, dir_okay=False, help="Model, written by vicinal fit.")
]
Target = Annotated[str, typer.Option(help="Column with the classes (of an NPZ file: y).")]
GroupColumn = Annotated[
    str | None,
    typer.Option(
        "--group", help="Column of groups, such as patients: never on both sides of a split."
    ),
]
MaxTime = Annotated[
    str | None, typer.Option(metavar="TIME", help="90s, 5m, 1h30m: then the best so far is taken.")
]
Seed = Annotated[int, typer.Option(help="Seed of everything random.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout, for programs.")]
Unseen = Annotated[
    str,
    typer.Option(
        metavar="error|ignore",
        help="A category that training did not have: an error, or taken as none of the known.",
    ),
]


def parse_duration(text: str) -> float:
    """Seconds of "90", "90s", "5m" or "1h30m".

    Examples
    --------
    >>> parse_duration("1h30m"), parse_duration("45")
    (5400.0, 45.0)
    """
    match = PATTERN.fullmatch(text.replace(" ", "").lower())
    try:
        parts = [float(part) if part else 0.0 for part in match.groups()] if match else []
    except ValueError:  # 1.2.3
        parts = []
    seconds = sum(part * unit for part, unit in zip(parts, SECONDS.values(), strict=False))
    if seconds <= 0:
        raise ValueError(f"{text!r} is not a time; write 90s, 5m or 1h30m")
    return seconds


def seconds_of(max_time: str | None) -> float | None:
    """Seconds of --max-time; a text that is not a time is a usage error."""
    try:
        return None if max_time is None else parse_duration(max_time)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--max-time") from error


def ignores_unseen(unseen: str) -> bool:
    """Whether --unseen says ignore; neither is a usage error."""
    if unseen not in ("error", "ignore"):
        raise typer.BadParameter("use error or ignore", param_hint="--unseen")
    return unseen == "ignore"


def require_column(frame: Any, name: str | None, option: str) -> None:
    """A name that is not a column is a usage error."""
    try:
        check_columns(frame, [] if name is None else [name])
    except TableError as error:
        raise typer.BadParameter(str(error), param_hint=option) from error


def require_place(path: Path | None, option: str, *inputs: Path | None) -> None:
    """Refuse, before any work, a place that cannot be written to, or that is an input."""
    if path is None:
        return
    if not path.absolute().parent.is_dir():
        raise typer.BadParameter(f"there is no folder {path.parent}", param_hint=option)
    try:
        check_place(path)
    except OSError as error:
        raise typer.BadParameter(
            f"cannot write {path}: {error.strerror}", param_hint=option
        ) from error
    if any(read is not None and path.resolve() == read.resolve() for read in inputs):
        raise typer.BadParameter(
            f"{path} is another file of this command, and would be replaced; choose another name",
            param_hint=option,
        )
