"""Summary of results: one cell per data set and method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import gmean

from experiments.datasets import DATASETS
from experiments.methods import METHODS
from experiments.paper_values import TABLE2, PaperValue
from experiments.records import Result
from experiments.statistics import Duel, Friedman, critical_difference, duel, friedman
from experiments.statistics import mean_ranks as ranks_of
from experiments.store import Store
from vicinal._typing import FloatArray

AUTO = "auto"


@dataclass(frozen=True)
class Cell:
    """A method on a data set, over its splits; accuracies in percent."""

    mean: float
    std: float
    n: int
    """Splits with a result."""
    failed: int
    tune_seconds: float
    fit_seconds: float
    """Means, as the next."""
    predict_seconds: float
    cpu_seconds: float
    tuning_rows: int | None = None
    """Rows tuned on, the fewest."""
    n_train: int | None = None
    sampled: bool = False
    """Whether some of it was tuned on a sample of the training rows."""
    machines: frozenset[str] = frozenset()
    on_gpu: bool = False
    """Whether a GPU computed some of it."""
    paper: PaperValue | None = None


@dataclass(frozen=True)
class Comparison:
    """The methods on the data sets where all of them have a result."""

    methods: tuple[str, ...]
    datasets: tuple[str, ...]
    ranks: FloatArray
    friedman: Friedman | None
    """None for fewer than three methods or two data sets."""
    critical_difference: float
    duels: dict[str, Duel]
    """The automatic classifier (or the best-ranked method, without it) against each other one."""
    champion: str
    timed: tuple[str, ...]
    """Data sets for which one machine without a GPU computed everything."""
    cpu_seconds: FloatArray
    """Per split, tuning included: the geometric mean over these; empty without one."""


@dataclass(frozen=True)
class Summary:
    """Everything that a table shows."""

    protocol: str
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    cells: dict[tuple[str, str], Cell]

    def scores(self, datasets: Sequence[str], methods: Sequence[str]) -> FloatArray:
        """(N, k) mean accuracies in percent.

        Parameters
        ----------
        datasets, methods : of which all cells exist
        """
        return np.array([[self.cells[d, m].mean for m in methods] for d in datasets])

    def complete(self, methods: Sequence[str]) -> tuple[str, ...]:
        """The data sets where every one of these methods has a result.

        Parameters
        ----------
        methods : names
        """
        return tuple(
            name
            for name in self.datasets
            if all((name, m) in self.cells and self.cells[name, m].n for m in methods)
        )

    def best(self, dataset: str) -> float:
        """The largest mean, as printed.

        Parameters
        ----------
        dataset : the row
        """
        means = [cell.mean for (name, _), cell in self.cells.items() if name == dataset and cell.n]
        return round(max(means), 2) if means else np.nan


def summarize(store: Store, protocol: str) -> Summary:
    """The results of a protocol, those of unknown data sets and methods last.

    The paper's protocol shows the automatic classifier's honest results, as it takes nothing from
    the test part.

    Parameters
    ----------
    store : the results
    protocol : "honest", "paper" or "noisy"
    """
    results = store.records(Result, protocol=protocol)
    if protocol == "paper":
        results += store.records(Result, protocol="honest", method=AUTO)
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result.dataset, result.method), []).append(result)
    printed = {} if protocol == "noisy" else TABLE2
    cells = {key: _cell(group, printed.get(key)) for key, group in groups.items()}
    present = {name for name, method in cells if protocol != "paper" or method != AUTO}
    cells = {key: cell for key, cell in cells.items() if key[0] in present}
    return Summary(
        protocol,
        tuple(_ordered(present, DATASETS)),
        tuple(_ordered({method for _, method in cells}, METHODS)),
        cells,
    )


def _ordered(names: set[str], order: Any) -> list[str]:
    known = list(order)
    return sorted(names, key=lambda name: (known.index(name) if name in known else 99, name))


def _cell(results: list[Result], paper: PaperValue | None) -> Cell:
    good = [result for result in results if result.accuracy is not None]
    accuracies = 100 * np.array([result.accuracy for result in good], dtype=float)
    n = len(good)

    def seconds(part: str) -> float:
        known = [s for r in good if (s := getattr(r, f"{part}_seconds")) is not None]
        return float(np.mean(known)) if known else np.nan

    return Cell(
        mean=float(accuracies.mean()) if n else np.nan,
        std=float(accuracies.std(ddof=1)) if n > 1 else np.nan,
        n=n,
        failed=len(results) - n,
        tune_seconds=seconds("tune"),
        fit_seconds=seconds("fit"),
        predict_seconds=seconds("predict"),
        cpu_seconds=seconds("cpu"),
        tuning_rows=min((r.tuning_rows for r in good if r.tuning_rows is not None), default=None),
        n_train=max((r.n_train for r in good if r.n_train is not None), default=None),
        sampled=any(r.sampled for r in good),
        machines=frozenset(r.machine for r in good),
        on_gpu=any(r.backend for r in good),
        paper=paper,
    )


def compare(summary: Summary, methods: Sequence[str] | None = None) -> Comparison:
    """Ranks, tests and duels on the data sets where every method has a result.

    Parameters
    ----------
    summary : of one protocol
    methods : which; None is all
    """
    chosen = tuple(summary.methods if methods is None else methods)
    complete = summary.complete(chosen)
    if not complete or len(chosen) < 2:
        nothing: FloatArray = np.full(len(chosen), np.nan)
        first = chosen[0] if chosen else ""
        return Comparison(chosen, complete, nothing, None, np.nan, {}, first, (), np.empty(0))
    scores = np.round(summary.scores(complete, chosen), 2)
    ranks = ranks_of(scores)
    champion = AUTO if AUTO in chosen else chosen[int(ranks.argmin())]
    column = chosen.index(champion)
    duels = {m: duel(scores[:, column], scores[:, i]) for i, m in enumerate(chosen) if i != column}
    tested = friedman(scores) if len(chosen) > 2 and len(complete) > 1 else None
    difference = critical_difference(len(chosen), len(complete))
    timed = tuple(name for name in complete if _of_one_machine(summary, name, chosen))
    cpu = np.array([[summary.cells[d, m].cpu_seconds for m in chosen] for d in timed])
    took = gmean(cpu, axis=0) if timed else np.empty(0)
    return Comparison(chosen, complete, ranks, tested, difference, duels, champion, timed, took)


def _of_one_machine(summary: Summary, dataset: str, methods: Sequence[str]) -> bool:
    """Whether the CPU times of a data set can be compared: one machine, no GPU, none missing."""
    cells = [summary.cells[dataset, method] for method in methods]
    machines = frozenset().union(*(cell.machines for cell in cells))
    known = all(cell.cpu_seconds > 0 for cell in cells)
    return known and len(machines) == 1 and not any(cell.on_gpu for cell in cells)
