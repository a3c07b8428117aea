"""Table 2 in print: Markdown and LaTeX, and all forms written to a folder."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from experiments.figures import rank_diagram, save
from experiments.manifest import DATASETS
from experiments.methods import BUDGET, MAX_ITER, MAX_PASSES, MAX_ROUNDS, METHODS
from experiments.paper_values import MISPRINTS
from experiments.splits import NOISE
from experiments.store import Store
from experiments.summary import AUTO, Cell, Comparison, Summary, compare, summarize
from vicinal.automatic.automatic_fit import TUNING_ROWS

TITLES = {
    "honest": "Table 2, honest protocol",
    "paper": "Table 2, the paper's protocol",
    "noisy": "Table 2 with wrong labels, honest protocol",
}
_MEANS = "Accuracy in percent, mean ± standard deviation over the splits"
_SPLITS = (
    "70/30 splits, stratified; standardized, and beyond 150 features reduced by PCA, by the "
    "training part. Majority vote of K neighbors."
)
_PRINTED = f"{_MEANS}; in parentheses what the paper prints. {_SPLITS}"
_LIMITS = (
    f"of at most {MAX_ITER} iterations (ITML: {MAX_PASSES} passes, BoostMetric: {MAX_ROUNDS} "
    "rounds); after two folds, and after every later one, the worse half of a method's "
    "configurations is dropped"
)
_HONEST = (
    "Every choice, K included, by 5-fold cross-validation inside the training part, the same folds "
    f"for all: at most {BUDGET} configurations a method {_LIMITS}; K in {{1 … 10, 13, 16 … 46}}. "
    "The automatic classifier has no grid: it tunes itself, by cross-validation of its own on at "
    f"most about {TUNING_ROWS:,} training rows. The last line says what each takes, where one "
    "machine computed all (geometric mean)."
)
EXPLAINED = {
    "honest": f"{_PRINTED} {_HONEST}",
    "paper": f"{_PRINTED} The paper's grids, by 5-fold cross-validation, configurations {_LIMITS}; "
    "and then the best K on the *test* part, as its text suggests: these numbers are too good. The "
    "automatic classifier takes nothing from the test part and is shown with its honest result.",
    "noisy": f"{_MEANS}. {NOISE:.0%} of the training labels are wrong, those of the test part are "
    f"not. {_SPLITS} {_HONEST}",
}


@dataclass(frozen=True)
class Line:
    """A row of a printed table: cells as (text, whether it is the best)."""

    name: str
    cells: tuple[tuple[str, bool], ...]


def method_label(name: str) -> str:
    """As printed.

    Parameters
    ----------
    name : key of ``METHODS``, or any other name
    """
    return METHODS[name].label if name in METHODS else name


def dataset_label(name: str) -> str:
    """As printed.

    Parameters
    ----------
    name : key of ``DATASETS``, or any other name
    """
    return DATASETS[name].label if name in DATASETS else name


def _cell_text(cell: Cell | None) -> str:
    if cell is None:
        return "–"
    paper = f" ({cell.paper.mean:.2f})" if cell.paper else ""
    if not cell.n:
        return f"failed{paper}"
    spread = "" if math.isnan(cell.std) else f" ± {cell.std:.2f}"
    return f"{cell.mean:.2f}{spread}{paper}"


def lines_of(summary: Summary) -> list[Line]:
    """One line a data set, the largest mean of each marked.

    Parameters
    ----------
    summary : of one protocol
    """
    lines = []
    for name in summary.datasets:
        row = [summary.cells.get((name, method)) for method in summary.methods]
        best = summary.best(name)
        cells = tuple(
            (_cell_text(cell), cell is not None and round(cell.mean, 2) == best) for cell in row
        )
        runs = {cell.n for cell in row if cell is not None and cell.n}
        splits = f"{min(runs)}–{max(runs)}" if len(runs) > 1 else str(max(runs, default=0))
        lines.append(Line(f"{dataset_label(name)} ({splits})", cells))
    return lines


def rank_lines(comparison: Comparison) -> list[Line]:
    """Mean ranks, the duels of the champion, and what each took.

    Parameters
    ----------
    comparison : of the summary's methods, in their order
    """
    if not comparison.duels:
        return []
    best = comparison.ranks.min()
    ranks = tuple((f"{rank:.2f}", rank == best) for rank in comparison.ranks)
    duels = [comparison.duels.get(method) for method in comparison.methods]
    name = method_label(comparison.champion)
    return [
        Line("mean rank", ranks),
        Line(f"{name}: wins/ties/losses", tuple((str(d or "–"), False) for d in duels)),
        Line("Wilcoxon p", tuple((f"{d.p:.3g}" if d else "–", False) for d in duels)),
        *_cpu_lines(comparison),
    ]


def _cpu_lines(comparison: Comparison) -> list[Line]:
    n = len(comparison.timed)
    if not n:
        return []
    name = f"CPU, s a split ({n} data set{'s' * (n > 1)})"
    return [Line(name, tuple((f"{seconds:.2g}", False) for seconds in comparison.cpu_seconds))]


def friedman_sentence(comparison: Comparison) -> str:
    """The Friedman test in words.

    Parameters
    ----------
    comparison : whose test
    """
    k, n = len(comparison.methods), len(comparison.datasets)
    if comparison.friedman is None:
        return f"Too few to test: methods {k}, data sets that all have results for {n}."
    test = comparison.friedman
    return (
        f"Friedman test of {k} methods on the {n} data sets that all have results for: "
        f"χ² = {test.chi2:.1f}, p = {test.p:.2g}; Iman–Davenport F = {test.f:.2f}, "
        f"p = {test.p_f:.2g}. Critical difference of mean ranks (Nemenyi, 5 %): "
        f"{comparison.critical_difference:.2f}."
    )


def remarks(summary: Summary) -> list[str]:
    """What a reader must know about some of the cells.

    Parameters
    ----------
    summary : of one protocol
    """
    found = [
        f"{dataset_label(name)}: {DATASETS[name].differs}."
        for name in summary.datasets
        if name in DATASETS and DATASETS[name].differs
    ]
    found += [
        f"{dataset_label(name)}, {method_label(method)}: {text}."
        for (name, method), text in MISPRINTS.items()
        if (name, method) in summary.cells and summary.cells[name, method].paper
    ]
    failed = [
        f"{dataset_label(name)}, {method_label(method)}: {cell.failed} of "
        f"{cell.failed + cell.n} splits failed."
        for (name, method), cell in sorted(summary.cells.items())
        if cell.failed
    ]
    return found + failed + _samples(summary)


def _samples(summary: Summary) -> list[str]:
    """Where a sample of the training rows was tuned on, by data set."""
    remarks = []
    for name in summary.datasets:
        found = {
            (method == AUTO, cell.tuning_rows, cell.n_train)
            for (dataset, method), cell in summary.cells.items()
            if dataset == name and cell.sampled
        }
        remarks += [
            f"{dataset_label(name)}{f', {method_label(AUTO)}' if automatic else ''}: tuned on a "
            f"stratified sample of {few:,} of the {all_rows:,} training rows, fitted to all."
            for automatic, few, all_rows in sorted(found)
        ]
    return remarks


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


def write(store: Store, protocol: str, out: Path) -> list[Path]:
    """All forms of the table, and the rank diagram; nothing where there are no results.

    Parameters
    ----------
    store : the results
    protocol : "honest", "paper" or "noisy"
    out : the folder
    """
    from experiments.exports import long_csv, ranks_csv
    from experiments.page import page

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
