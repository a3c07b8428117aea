"""Arguments that several commands share."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import pandas as pd
import typer

from vicinal.atomic_write import check_place
from vicinal.exceptions import TableError
from vicinal.features.column_encoding import ColumnKind
from vicinal.features.table_encoder import TableEncoder
from vicinal.tables.reading import STANDARD_INPUT
from vicinal.tables.text_files import ReadOptions
from vicinal.tables.training_table import check_columns
from vicinal.tables.writing import check_writable

SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0}
PATTERN = re.compile(r"(?:([\d.]+)h)?(?:([\d.]+)m(?:in)?)?(?:([\d.]+)s?)?")
FILES = "CSV, TSV, JSON lines, Excel, Parquet, Arrow/Feather or NPZ; - is the standard input"


def _existing(path: Path) -> Path:
    """A file, or - for the standard input; anything else is a usage error."""
    if path != STANDARD_INPUT and not path.exists():
        raise typer.BadParameter(f"File {str(path)!r} does not exist.")
    if path.is_dir():
        raise typer.BadParameter(f"File {str(path)!r} is a directory.")
    return path


TrainFile = Annotated[Path, typer.Argument(callback=_existing, help=f"Training table: {FILES}.")]
NewFile = Annotated[Path, typer.Argument(callback=_existing, help=f"Table of new rows: {FILES}.")]
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
        metavar="ignore|error",
        help="A category that training did not have: none of the known, and counted; or an error.",
    ),
]
Separator = Annotated[
    str | None, typer.Option(help="Of text files, such as ';' or tab; found out if absent.")
]
Encoding = Annotated[
    str | None, typer.Option(help="Of text files, such as latin-1; found out if absent.")
]
Missing = Annotated[
    str | None,
    typer.Option(help="Further texts that mean no value, separated by commas, such as '-,.'."),
]
Types = Annotated[
    list[str] | None,
    typer.Option(
        "--type",
        metavar="COLUMN=KIND",
        help=f"Kind of a column ({', '.join(TableEncoder.KINDS)}); may be repeated.",
    ),
]


def reading_of(separator: str | None, encoding: str | None, missing: str | None) -> ReadOptions:
    """Options for reading files; a separator that is not one character is a usage error."""
    separator = {"tab": "\t", "\\t": "\t"}.get(separator or "", separator)
    if separator is not None and len(separator) != 1:
        raise typer.BadParameter("use one character, or tab", param_hint="--separator")
    marks = () if missing is None else tuple(mark.strip() for mark in missing.split(","))
    return ReadOptions(separator, encoding, marks)


def with_reading_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with --separator, --encoding and --missing in place of its `reading`."""
    hints = get_type_hints(command, include_extras=True)
    shared = {"separator": Separator, "encoding": Encoding, "missing": Missing}
    parameters = []
    for parameter in signature(command).parameters.values():
        if parameter.name == "reading":
            parameters += [
                Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=option)
                for name, option in shared.items()
            ]
        else:
            hint = hints[parameter.name]
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hint))

    @wraps(command)
    def run(**given: Any) -> None:
        texts = [given.pop(name) for name in shared]
        command(reading=reading_of(*texts), **given)

    del run.__wrapped__  # whose parameters would be taken for those of run
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def kinds_of(types: list[str] | None) -> dict[str, ColumnKind]:
    """Column → kind of --type; what is not COLUMN=KIND is a usage error."""
    kinds: dict[str, ColumnKind] = {}
    for text in types or ():
        name, sign, kind = text.rpartition("=")
        if not sign or kind not in TableEncoder.KINDS:
            raise typer.BadParameter(
                f"{text!r}: use COLUMN=KIND, with one of {', '.join(TableEncoder.KINDS)}",
                param_hint="--type",
            )
        kinds[name] = kind  # type: ignore[assignment]
    return kinds


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


def require_column(frame: pd.DataFrame, name: str | None, option: str) -> None:
    """A name that is not a column is a usage error."""
    try:
        check_columns(frame, [] if name is None else [name])
    except TableError as error:
        raise typer.BadParameter(str(error), param_hint=option) from error


def require_table_place(path: Path | None, *inputs: Path | None) -> None:
    """Refuse, before any work, a place where no table can be written."""
    if path is None:
        return
    require_place(path, "--out", *inputs)
    try:
        check_writable(path)
    except TableError as error:
        raise typer.BadParameter(str(error), param_hint="--out") from error


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
