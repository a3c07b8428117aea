"""``vicinal explain``: why a row is what it is said to be."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import numpy as np
import typer

from vicinal._typing import Document
from vicinal.cli.options import (
    AsJson,
    ModelPath,
    NewFile,
    Unseen,
    ignores_unseen,
    with_reading_options,
)
from vicinal.cli.output import Output, percent, remarked_warnings
from vicinal.cli.predict import load_table_model, reading_for
from vicinal.tables.reading import read_table
from vicinal.tables.row_explanation import ExplainedNeighbor, ExplainedRow, explain_row
from vicinal.tables.text_files import ReadOptions

SHOWN_COLUMNS = 12


@with_reading_options
def explain(
    model: ModelPath,
    new: NewFile,
    row: Annotated[int, typer.Option(min=0, help="Which row of the table, from 0.")],
    neighbors: Annotated[int, typer.Option(min=1, help="How many neighbors are shown.")] = 5,
    unseen: Unseen = "ignore",
    *,
    reading: ReadOptions,
    as_json: AsJson = False,
) -> None:
    """Explain one prediction: the neighbors, and what each column adds to each distance.

    For every neighbor: its part in the vote and its distance; then, column by column, its value and
    the share of the squared distance that comes from the difference in this column. Shares of a
    neighbor sum to 100 %. One can be negative, where columns vary together and one makes up for
    another.

    [bold]Example[/bold]

    vicinal explain model.vicinal new.csv --row 17 --neighbors 3
    """
    output, ignore = Output(as_json), ignores_unseen(unseen)
    fitted = load_table_model(model)
    options = reading_for(fitted, reading)
    with remarked_warnings(output):
        frame = read_table(new, fitted.roles.names, options)
    if row >= len(frame):
        raise typer.BadParameter(f"{new.name} has rows 0 to {len(frame) - 1}", param_hint="--row")
    chosen = frame.iloc[[row]]
    explained = explain_row(fitted, chosen, neighbors, ignore_unseen=ignore)
    name = fitted.roles.ids(chosen)[0]
    _tell(explained, name, fitted.target, output)
    output.document({"row": row, "id": name, "target": fitted.target, **_document(explained)})


def _tell(explained: ExplainedRow, name: object, target: str, output: Output) -> None:
    ranked = sorted(explained.probabilities.items(), key=lambda item: -item[1])
    shares = ", ".join(f"{label} {percent(p)}" for label, p in ranked[:5])
    if explained.interval is not None:
        low, high = explained.interval
        shares = f"90 % of such rows from {low:.5g} to {high:.5g}"
    output.say(f"row {name}: {target} = {_short(explained.prediction)} ({shares})")
    output.say()
    output.table(
        ["neighbor", target, "part in the vote", "distance"],
        [
            (near.id, _short(near.label), percent(near.weight), f"{near.distance:.4g}")
            for near in explained.neighbors
        ],
    )
    output.say(
        "\nvalues of the neighbors, and the share of the squared distance that is due to each"
    )
    output.table(
        ["column", "this row", *(f"{near.id}" for near in explained.neighbors)],
        [
            (
                column,
                _short(explained.values[column]),
                *(_cell(near, column) for near in explained.neighbors),
            )
            for column in _most_telling(explained)
        ],
    )
    hidden = len(explained.values) - SHOWN_COLUMNS
    if hidden > 0:
        output.say(f"and {hidden} columns that add less; --json lists them all")


def _most_telling(explained: ExplainedRow) -> list[str]:
    def weight(column: str) -> float:
        return sum(abs(_share(near, column)) for near in explained.neighbors)

    return sorted(explained.values, key=weight, reverse=True)[:SHOWN_COLUMNS]


def _share(near: ExplainedNeighbor, column: str) -> float:
    return near.shares[column] / near.distance**2 if near.distance > 0 else 0.0


def _cell(near: ExplainedNeighbor, column: str) -> str:
    share = round(100 * _share(near, column))  # an integer: there is no -0
    return f"{_short(near.values[column])} ({share} %)"


def _short(value: object) -> str:
    if isinstance(value, np.datetime64):
        return str(value).replace("T", " ")
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def _document(explained: ExplainedRow) -> Document:
    return {
        **asdict(explained),
        "probabilities": {str(label): p for label, p in explained.probabilities.items()},
    }
