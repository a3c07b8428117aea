"""Lines and remarks of Table 2, for every format it is printed in."""

from __future__ import annotations

import math
from dataclasses import dataclass

from experiments.datasets import DATASETS
from experiments.methods import BUDGET, MAX_ITER, MAX_PASSES, MAX_ROUNDS, METHODS
from experiments.paper_values import MISPRINTS
from experiments.splits import NOISE
from experiments.summary import AUTO, Cell, Comparison, Summary
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
    """Remarks on some of the cells: differences, misprints, failures, samples.

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
    """Remarks on methods that were tuned on a sample of the training rows."""
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
