"""Results, brought together: one cell a data set and method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vicinal.experiments.manifest import DATASETS
from vicinal.experiments.methods import METHODS
from vicinal.experiments.paper_values import TABLE2, PaperValue
from vicinal.experiments.records import Result
from vicinal.experiments.statistics import Duel, Friedman, critical_difference, duel, friedman
from vicinal.experiments.statistics import mean_ranks as ranks_of
from vicinal.experiments.store import Store

FloatArray: TypeAlias = NDArray[np.floating[Any]]
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
    paper: PaperValue | None = None
    sampled: tuple[int, int] | None = None
    """Rows tuned on and training rows, where the first is a sample of the second."""


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
    protocol : "honest" or "paper"
    """
    results = store.records(Result, protocol=protocol)
    if protocol == "paper":
        results += store.records(Result, protocol="honest", method=AUTO)
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result.dataset, result.method), []).append(result)
    cells = {key: _cell(key, group) for key, group in groups.items()}
    present = {name for name, method in cells if protocol == "honest" or method != AUTO}
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


def _cell(key: tuple[str, str], results: list[Result]) -> Cell:
    good = [result for result in results if result.accuracy is not None]
    accuracies = 100 * np.array([result.accuracy for result in good], dtype=float)
    n = len(good)

    def seconds(part: str) -> float:
        return float(np.mean([getattr(r, f"{part}_seconds") for r in good])) if n else np.nan

    return Cell(
        mean=float(accuracies.mean()) if n else np.nan,
        std=float(accuracies.std(ddof=1)) if n > 1 else np.nan,
        n=n,
        failed=len(results) - n,
        tune_seconds=seconds("tune"),
        fit_seconds=seconds("fit"),
        predict_seconds=seconds("predict"),
        paper=TABLE2.get(key),
        sampled=_sampled(good),
    )


def _sampled(results: Sequence[Result]) -> tuple[int, int] | None:
    pairs = {
        (result.tuning_rows, result.n_train)
        for result in results
        if result.tuning_rows is not None and result.n_train is not None
    }
    return min(((t, n) for t, n in pairs if t < n), default=None)


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
        return Comparison(chosen, complete, nothing, None, np.nan, {}, chosen[0] if chosen else "")
    scores = np.round(summary.scores(complete, chosen), 2)
    ranks = ranks_of(scores)
    champion = AUTO if AUTO in chosen else chosen[int(ranks.argmin())]
    column = chosen.index(champion)
    duels = {m: duel(scores[:, column], scores[:, i]) for i, m in enumerate(chosen) if i != column}
    tested = friedman(scores) if len(chosen) > 2 and len(complete) > 1 else None
    difference = critical_difference(len(chosen), len(complete))
    return Comparison(chosen, complete, ranks, tested, difference, duels, champion)
