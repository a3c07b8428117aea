"""Results as CSV: one line a cell, or one line a record."""

from __future__ import annotations

import csv
import io
from dataclasses import fields
from pathlib import Path

from vicinal.experiments.records import Measurement, Result
from vicinal.experiments.store import Store
from vicinal.experiments.summary import Cell, Summary


def long_csv(summary: Summary) -> str:
    """One line a cell.

    Parameters
    ----------
    summary : of one protocol
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = [field.name for field in fields(Cell) if field.name != "paper"]
    writer.writerow(["dataset", "method", *names, "paper_mean", "paper_std"])
    for name in summary.datasets:
        for method in summary.methods:
            cell = summary.cells.get((name, method))
            if cell is None:
                continue
            values = [getattr(cell, column) for column in names]
            paper = (cell.paper.mean, cell.paper.std) if cell.paper else ("", "")
            shown = [f"{v:.6g}" if isinstance(v, float) else v for v in values]
            writer.writerow([name, method, *shown, *paper])
    return out.getvalue()


def dump(store: Store, out: Path) -> list[Path]:
    """Every record as CSV: results.csv and measurements.csv.

    Parameters
    ----------
    store : the file
    out : the folder
    """
    out.mkdir(parents=True, exist_ok=True)
    paths = []
    for kind, records in (
        (Result, store.records(Result)),
        (Measurement, store.records(Measurement)),
    ):
        path = out / f"{kind.table}.csv"
        with path.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([field.name for field in fields(kind)])
            writer.writerows(
                [getattr(record, field.name) for field in fields(kind)] for record in records
            )
        paths.append(path)
    return paths
