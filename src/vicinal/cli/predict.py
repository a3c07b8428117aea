"""``vicinal predict`` and ``vicinal transform``: new rows through a model."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray

from vicinal._typing import FloatArray
from vicinal.cli.options import AsJson, ModelPath, NewFile, Unseen, ignores_unseen, require_place
from vicinal.cli.output import Output, percent, remarks
from vicinal.model_file import load
from vicinal.tables.reading import read_table, safe, write_table, write_text
from vicinal.tables.table_model import TableCounts, TableModel
from vicinal.tables.training_table import labels_like

SafeCells = Annotated[
    bool,
    typer.Option(
        "--safe-cells",
        help="Put ' before texts that start with =, +, - or @, which spreadsheets would compute.",
    ),
]
OutFile = Annotated[
    Path | None, typer.Option(help="Where to: .csv, .tsv, .parquet or .feather; stdout if absent.")
]


def predict(
    model: ModelPath,
    new: NewFile,
    out: OutFile = None,
    neighbors: Annotated[
        int, typer.Option(min=0, help="How many of the neighbors that decided are listed.")
    ] = 5,
    unseen: Unseen = "error",
    safe_cells: SafeCells = False,
    as_json: AsJson = False,
) -> None:
    """Predict the class of new rows: class, probabilities, and the neighbors that decided.

    Columns are found by name, in any order. Neighbors are named by the id column of the training
    table, or by their row numbers in it, from 0. If the new table has the target column too, the
    accuracy is told.

    [bold]Examples[/bold]

    vicinal predict model.vicinal new.csv --out predicted.csv

    vicinal predict model.vicinal new.parquet --neighbors 0 --unseen ignore | head
    """
    require_place(out, "--out", model, new)
    output, ignore = Output(as_json), ignores_unseen(unseen)
    fitted, frame = load_both(model, new)
    X = _encoded(fitted, frame, output, ignore)
    table = _predictions(fitted, frame, X, neighbors)
    if fitted.target in frame.columns:
        truth = labels_like(frame[fitted.target], fitted.classes)
        right = float(np.mean(table["prediction"].to_numpy() == truth))
        output.remark(f"{percent(right)} of the {len(frame)} rows are right")
    deliver(safe(table) if safe_cells else table, out, output)


def transform(
    model: ModelPath,
    new: NewFile,
    out: OutFile = None,
    unseen: Unseen = "error",
    safe_cells: SafeCells = False,
    as_json: AsJson = False,
) -> None:
    """Embed new rows so that Euclidean distances are the learned ones.

    The coordinates are columns z0, z1, …, for other programs: clustering, search, maps. A
    committee (--method auto) has several metrics: there they are those of the weighted mean.

    [bold]Example[/bold]

    vicinal transform model.vicinal new.csv --out embedded.parquet
    """
    require_place(out, "--out", model, new)
    output, ignore = Output(as_json), ignores_unseen(unseen)
    fitted, frame = load_both(model, new)
    Z = fitted.embed(_encoded(fitted, frame, output, ignore))
    columns = {f"z{j}": Z[:, j] for j in range(Z.shape[1])}
    table = _with_names(fitted, frame, columns)
    deliver(safe(table) if safe_cells else table, out, output)


def _encoded(
    fitted: TableModel, frame: pd.DataFrame, output: Output, ignore_unseen: bool
) -> FloatArray:
    """The rows as numbers, with a remark on what was not as in training."""
    encoded, counts = fitted.encode(frame), TableCounts()
    if not ignore_unseen:
        encoded.check_seen()
    counts.add(encoded)
    for text in remarks(fitted, list(frame.columns), counts):
        output.remark(text)
    return np.asarray(encoded.X)


def load_both(model: Path, new: Path) -> tuple[TableModel, pd.DataFrame]:
    """The model of a table, and the new rows."""
    fitted = load_table_model(model)
    return fitted, read_table(new, fitted.roles.names)


def load_table_model(path: Path) -> TableModel:
    """The model in a file; a ValueError if it is not a model of a table."""
    fitted = load(path)
    if not isinstance(fitted, TableModel):
        raise ValueError(
            f"{path} holds an estimator ({type(fitted).__name__}) without the columns of a table; "
            "use it from Python (vicinal.load), or make a model of a table with vicinal fit"
        )
    return fitted


def deliver(table: pd.DataFrame, out: Path | None, output: Output) -> None:
    """Write the table to its file, or to stdout as CSV or JSON."""
    if out is not None:
        write_table(table, out)
        output.say(f"{len(table)} rows written to {out}")
        output.document({"rows": len(table), "out": str(out)})
    elif output.as_json:
        output.document(table.to_dict(orient="records"))
    else:
        write_text(table, sys.stdout)


def _predictions(fitted: TableModel, frame: pd.DataFrame, X: FloatArray, k: int) -> pd.DataFrame:
    probabilities = fitted.probabilities(X)
    columns: dict[str, NDArray[np.generic]] = {"prediction": fitted.predicted(X)}
    columns |= {f"p({c})": probabilities[:, j] for j, c in enumerate(fitted.classes)}
    if k:
        distances, rows = fitted.nearest(X, k)
        labels = fitted.labels
        for j in range(rows.shape[1]):
            columns[f"neighbor_{j + 1}"] = fitted.ids[rows[:, j]]
            columns[f"neighbor_{j + 1}_class"] = labels[rows[:, j]]
            columns[f"neighbor_{j + 1}_distance"] = distances[:, j]
    return _with_names(fitted, frame, columns)


def _with_names(
    fitted: TableModel, frame: pd.DataFrame, columns: Mapping[str, NDArray[np.generic]]
) -> pd.DataFrame:
    """The columns after one that names the rows, under a name that is not among theirs."""
    name = fitted.roles.id_column
    if name is None or name not in frame.columns:
        name = "row"
    while name in columns:
        name += "_id"
    return pd.DataFrame({name: fitted.roles.ids(frame), **columns})
