"""Results as CSV: one line a cell, or one line a record."""

from __future__ import annotations

import csv
import io
from dataclasses import fields
from pathlib import Path

from experiments.dumps import write_records
from experiments.records import Measurement, Result
from experiments.store import Store
from experiments.summary import Cell, Comparison, Summary


def long_csv(summary: Summary) -> str:
    """One line a cell.

    Parameters
    ----------
    summary : of one protocol
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    hidden = ("paper", "sampled", "machines", "on_gpu")
    names = [field.name for field in fields(Cell) if field.name not in hidden]
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


def ranks_csv(comparison: Comparison) -> str:
    """One line a method: its mean rank, and the champion's duel against it.

    Parameters
    ----------
    comparison : of the methods of a table
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        ["method", "mean_rank", "cpu_seconds", "champion", "wins", "ties", "losses", "p"]
    )
    took = [f"{s:.6g}" for s in comparison.cpu_seconds] or [""] * len(comparison.methods)
    for method, rank, seconds in zip(comparison.methods, comparison.ranks, took, strict=True):
        found = comparison.duels.get(method)
        against = (
            ["", "", "", ""] if found is None else [found.wins, found.ties, found.losses, found.p]
        )
        writer.writerow([method, f"{rank:.6g}", seconds, comparison.champion, *against])
    return out.getvalue()


def dump(store: Store, out: Path) -> list[Path]:
    """Every record as CSV: results.csv and measurements.csv.

    Parameters
    ----------
    store : the file
    out : the folder
    """
    out.mkdir(parents=True, exist_ok=True)
    paths = [out / f"{kind.table}.csv" for kind in (Result, Measurement)]
    write_records(paths[0], Result, store.records(Result))
    write_records(paths[1], Measurement, store.records(Measurement))
    return paths
