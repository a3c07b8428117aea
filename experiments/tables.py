"""Table 2 as Markdown, LaTeX, CSV and HTML."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path

from experiments.figures import rank_diagram, save
from experiments.page import page
from experiments.store import Store
from experiments.summary import Cell, Comparison, Summary, compare, summarize
from experiments.table_lines import (
    EXPLAINED,
    TITLES,
    friedman_sentence,
    lines_of,
    method_label,
    rank_lines,
    remarks,
)


def markdown(summary: Summary) -> str:
    """The table, the tests and the remarks.

    Parameters
    ----------
    summary : of one protocol
    """
    comparison = compare(summary)
    header = ["data set (splits)", *map(method_label, summary.methods)]
    rows = [
        [line.name, *(f"**{text}**" if best else text for text, best in line.cells)]
        for line in [*lines_of(summary), *rank_lines(comparison)]
    ]
    parts = [
        f"# {TITLES[summary.protocol]}",
        EXPLAINED[summary.protocol],
        markdown_table(header, rows),
        friedman_sentence(comparison),
        "\n".join(f"* {remark}" for remark in remarks(summary)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]], align: str = "") -> str:
    """A Markdown table; the first column to the left, the others to the right.

    Parameters
    ----------
    header, rows : texts
    align : what stands below the header instead, "---" or "---:" a column, separated by spaces
    """
    marks = align.split() or ["---", *["---:"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, marks, *rows])


def latex(summary: Summary) -> str:
    """A ``tabular`` (booktabs); the tests and the remarks follow as comments.

    Parameters
    ----------
    summary : of one protocol
    """

    def tex(text: str) -> str:
        pairs = (("±", r"$\pm$"), ("⁺", "$^{+}$"), ("⁻", "$^{-}$"), ("–", "--"), ("%", r"\%"))
        for old, new in pairs:
            text = text.replace(old, new)
        return text

    comparison = compare(summary)
    rows = [
        [line.name, *(rf"\textbf{{{text}}}" if best else text for text, best in line.cells)]
        for line in [*lines_of(summary), *rank_lines(comparison)]
    ]
    header = ["Data set (splits)", *map(method_label, summary.methods)]
    body = [rf"\begin{{tabular}}{{l{'r' * len(summary.methods)}}}", r"\toprule"]
    body += [" & ".join(map(tex, header)) + r" \\", r"\midrule"]
    body += [" & ".join(map(tex, row)) + r" \\" for row in rows]
    notes = [f"% {_ascii(note)}" for note in [friedman_sentence(comparison), *remarks(summary)]]
    return "\n".join([*body, r"\bottomrule", r"\end{tabular}", *notes]) + "\n"


def _ascii(text: str) -> str:
    """For a comment: what has no letter in ASCII is left out or spelled."""
    for old, new in (("χ²", "chi2"), ("⁺", "+"), ("⁻", "-"), ("–", "-")):
        text = text.replace(old, new)
    return text.encode("ascii", "ignore").decode()


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
    """One line per method: its mean rank, and the champion's duel against it.

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


def write(store: Store, protocol: str, out: Path) -> list[Path]:
    """All forms of the table, and the rank diagram; nothing where there are no results.

    Parameters
    ----------
    store : the results
    protocol : "honest", "paper" or "noisy"
    out : the folder
    """
    summary = summarize(store, protocol)
    if not summary.cells:
        return []
    out.mkdir(parents=True, exist_ok=True)
    comparison = compare(summary)
    name = f"table2-{protocol}"
    figures: list[Path] = []
    if comparison.duels and find_spec("matplotlib"):  # the table itself needs no extra
        labels = [method_label(method) for method in comparison.methods]
        figures = save(rank_diagram(comparison, labels), out, f"ranks-{protocol}")
    texts = {
        "md": markdown(summary),
        "tex": latex(summary),
        "csv": long_csv(summary),
        "html": page(summary, comparison, figures),
    }
    paths = []
    for ending, text in texts.items():
        paths.append(out / f"{name}.{ending}")
        paths[-1].write_text(text, encoding="utf-8")
    if comparison.duels:
        paths.append(out / f"ranks-{protocol}.csv")
        paths[-1].write_text(ranks_csv(comparison), encoding="utf-8")
    return [*paths, *figures]
