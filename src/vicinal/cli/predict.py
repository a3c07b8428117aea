"""``vicinal predict`` and ``vicinal transform``: new rows through a model."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path
from typing import Annotated, TypeAlias

import pandas as pd
import typer

from vicinal.cli.options import (
    AsJson,
    ModelPath,
    NewFile,
    Unseen,
    ignores_unseen,
    require_table_place,
    with_reading_options,
)
from vicinal.cli.output import Output, ProgressBar, VisibleText, percent, remarked_warnings
from vicinal.features.column_codes import NumberCode
from vicinal.model_file import load
from vicinal.tables.reading import read_chunks
from vicinal.tables.remarks import remarks
from vicinal.tables.streaming import (
    CHUNK_ROWS,
    ChunkWork,
    Hits,
    coordinates,
    map_chunks,
    predictions,
)
from vicinal.tables.table_model import TableCounts, TableModel
from vicinal.tables.text_files import ReadOptions
from vicinal.tables.writing import TextWriter, json_records, safe, table_writer

SafeCells = Annotated[
    bool,
    typer.Option(
        "--safe-cells",
        help="Put ' before texts that start with =, +, - or @, which spreadsheets would compute.",
    ),
]
OutFile = Annotated[
    Path | None,
    typer.Option(help="Where to: .csv, .tsv, .jsonl, .parquet or .feather; stdout if absent."),
]
Write: TypeAlias = Callable[[pd.DataFrame], None]


@with_reading_options
def predict(
    model: ModelPath,
    new: NewFile,
    out: OutFile = None,
    neighbors: Annotated[
        int, typer.Option(min=0, help="How many of the neighbors that decided are listed.")
    ] = 5,
    unseen: Unseen = "ignore",
    *,
    reading: ReadOptions,
    safe_cells: SafeCells = False,
    as_json: AsJson = False,
) -> None:
    """Predict new rows: class and probabilities, or number and interval, and the neighbors.

    Columns are found by name, in any order. Neighbors are named by the id column of the training
    table, or by their row numbers in it, from 0. If the new table has the target column too, the
    accuracy is told. CSV, JSON lines and Parquet of any length are read, predicted and written
    part by part.

    [bold]Examples[/bold]

    vicinal predict model.vicinal new.csv --out predicted.csv

    vicinal predict model.vicinal new.parquet --neighbors 0 --unseen error | head

    zcat new.csv.gz | vicinal predict model.vicinal - --out predicted.parquet
    """
    require_table_place(out, model, new)
    output = Output(as_json)
    ignore, fitted, hits = ignores_unseen(unseen), load_table_model(model), Hits()
    _through(fitted, new, out, output, reading, predictions(neighbors), hits, ignore, safe_cells)
    if hits.rows:
        n = hits.rows.total()
        output.remark(
            f"{percent(hits.accuracy)} of the {n} rows are right "
            f"(balanced accuracy {percent(hits.balanced_accuracy)})"
        )


@with_reading_options
def transform(
    model: ModelPath,
    new: NewFile,
    out: OutFile = None,
    unseen: Unseen = "ignore",
    *,
    reading: ReadOptions,
    safe_cells: SafeCells = False,
    as_json: AsJson = False,
) -> None:
    """Embed new rows so that Euclidean distances are the learned ones.

    The coordinates are columns z0, z1, …, for other programs: clustering, search, maps. A
    committee (--method auto) has several metrics: there they are those of the weighted mean.

    [bold]Example[/bold]

    vicinal transform model.vicinal new.csv --out embedded.parquet
    """
    require_table_place(out, model, new)
    output = Output(as_json)
    ignore, fitted = ignores_unseen(unseen), load_table_model(model)
    _through(fitted, new, out, output, reading, coordinates, None, ignore, safe_cells)


def _through(
    fitted: TableModel,
    new: Path,
    out: Path | None,
    output: Output,
    options: ReadOptions,
    work: ChunkWork,
    hits: Hits | None,
    ignore_unseen: bool,
    safe_cells: bool,
) -> None:
    """Read, compute and write part by part; what was not as in training is said at the end."""
    counts, names, n_rows = TableCounts(), [], 0
    options = reading_for(fitted, options)
    with (
        remarked_warnings(output),
        read_chunks(new, fitted.roles.names, options, CHUNK_ROWS) as chunks,
        _destination(out, output) as write,
        ProgressBar() as bar,
    ):
        tables = map_chunks(
            fitted, chunks.frames, work, counts, hits=hits, ignore_unseen=ignore_unseen
        )
        for table in tables:
            write(safe(table) if safe_cells else table)
            n_rows += len(table)
            bar(f"{n_rows:,} rows", chunks.share())
        names = chunks.names
    for text in remarks(fitted, names, counts):
        output.remark(text)
    if out is not None:
        output.say(f"{n_rows} rows written to {out}")
        output.document({"rows": n_rows, "out": str(out)})


@contextmanager
def _destination(out: Path | None, output: Output) -> Iterator[Write]:
    """A function that writes the next rows to the file, or to stdout as CSV or one JSON list."""
    if out is not None:
        with table_writer(out) as write:
            yield write
    elif not output.as_json:
        yield TextWriter(VisibleText(sys.stdout) if sys.stdout.isatty() else sys.stdout).write
    else:
        yield from _json_list()


def _json_list() -> Iterator[Write]:
    marks = chain(["["], repeat(",\n"))

    def write(table: pd.DataFrame) -> None:
        for record in json_records(table):
            text = json.dumps(record, ensure_ascii=sys.stdout.isatty())
            print(next(marks), text, sep="", end="")

    yield write
    print("[]" if next(marks) == "[" else "]")


def reading_for(fitted: TableModel, options: ReadOptions) -> ReadOptions:
    """Options for reading new rows: numbers where training had them, all else as it is written."""
    numbers = [
        e.name for e in fitted.columns if isinstance(e.code, NumberCode) and not e.code.is_text
    ]
    target = [fitted.target] if fitted.labels.dtype.kind in "iuf" else []
    return replace(options, numbers=[*numbers, *target])


def load_table_model(path: Path) -> TableModel:
    """The model in a file; a ValueError if it is not a model of a table."""
    fitted = load(path)
    if not isinstance(fitted, TableModel):
        raise ValueError(
            f"{path} holds an estimator ({type(fitted).__name__}) without the columns of a table; "
            "use it from Python (vicinal.load), or make a model of a table with vicinal fit"
        )
    return fitted
