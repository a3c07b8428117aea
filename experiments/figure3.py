"""Figure 3: fit times of ANN⁺, ANN⁻ and LMNN with 4 … 7 targets, on all data sets."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from experiments.datasets import DATASETS, Dataset
from experiments.figures import COLORS, new_figure, save
from experiments.methods import Method
from experiments.records import Measurement
from experiments.splits import prepare
from experiments.store import Store

LMNN = tuple(f"lmnn-{k}" for k in (4, 5, 6, 7))
_ANN = "vicinal.learners.ann:ANN"
_TIMED = (
    # All samples in S_i and D_i, also for α < 0; λ = 1/n² is the default.
    Method("ann+", "ANN⁺", _ANN, fixed={"alpha": 1.0, "gamma": 1.0, "similar": "all"}),
    Method("ann-", "ANN⁻", _ANN, fixed={"alpha": -1.0, "gamma": 1.0, "similar": "all"}),
    *(
        Method(
            name,
            f"LMNN-{name[-1]}",
            "vicinal.learners.lmnn:LMNN",
            fixed={"n_neighbors": int(name[-1]), "push_weight": 0.5},
        )
        for name in LMNN
    ),
)
TIMED = {method.name: method for method in _TIMED}

LONG = 60.0
"""Seconds: where one fit takes longer, `FEW_RUNS` runs have to do."""
FEW_RUNS = 3


@dataclass(frozen=True)
class TimingTask:
    """One fit on the training part of one split."""

    data: Dataset
    method: str
    run: int

    @property
    def key(self) -> str:
        return f"figure3/{self.data.name}/{self.method}/{self.run}"

    @property
    def kind(self) -> str:
        return "figure3"

    @property
    def dataset_name(self) -> str:
        return self.data.name

    def compute(self) -> Measurement:
        """Seconds of the fit, on one thread, with the learner's own stopping rule."""
        parts = prepare(self.data, self.run)
        _compile(self.method)
        learner = TIMED[self.method].make({}, "honest", self.run)
        start = time.perf_counter()
        learner.fit(parts.X_train, parts.y_train)
        seconds = time.perf_counter() - start
        value = {
            "fit_seconds": seconds,
            "iterations": int(learner.n_iter_),
            "stop_reason": learner.stop_reason_,
        }
        return self._record(value=json.dumps(value), seconds=seconds)

    def failure(self, error: str) -> Measurement:
        """The row of a fit that raised."""
        return self._record(error=error)

    def _record(self, **columns: Any) -> Measurement:
        return Measurement(self.key, "figure3", self.data.name, self.method, **columns)


@cache
def _compile(method: str) -> None:
    """Make one small fit in this process, so that no time includes compilation."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    X = rng.standard_normal((60, 6)) + y[:, None]
    TIMED[method].make({"max_iter": 3}, "honest", 0).fit(X, y)


def tasks(data: Iterable[Dataset], first: int, last: int) -> list[TimingTask]:
    """Runs first … last − 1 of every method on every data set.

    Parameters
    ----------
    data : which data sets
    first, last : numbers of the runs
    """
    return [
        TimingTask(one, method, run)
        for one in data
        for run in range(first, last)
        for method in TIMED
    ]


@dataclass(frozen=True)
class Timing:
    """Fit times of one method on one data set."""

    seconds: tuple[float, ...]
    iterations: float
    """Mean."""

    @property
    def mean(self) -> float:
        return float(np.mean(self.seconds))

    @property
    def an_iteration(self) -> float:
        """Seconds."""
        return self.mean / max(self.iterations, 1.0)


def timings(store: Store) -> dict[tuple[str, str], Timing]:
    """(data set, method) → what was measured.

    Parameters
    ----------
    store : with the measurements
    """
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in store.records(Measurement, figure="figure3"):
        if row.error is None:
            found.setdefault((row.dataset, row.method), []).append(json.loads(row.value))
    return {
        key: Timing(
            tuple(value["fit_seconds"] for value in values),
            float(np.mean([value["iterations"] for value in values])),
        )
        for key, values in found.items()
    }


def long_fits(store: Store) -> set[tuple[str, str]]:
    """(data set, method) where a fit has taken over a minute.

    Parameters
    ----------
    store : with the first runs
    """
    return {key for key, timing in timings(store).items() if max(timing.seconds) > LONG}


def ratios(measured: dict[tuple[str, str], Timing], method: str) -> dict[str, float]:
    """Data set → mean time of LMNN (over 4 … 7 targets) by that of the method.

    Parameters
    ----------
    measured : by :func:`timings`
    method : "ann+" or "ann-"
    """
    names = [
        name for name in DATASETS if all((name, other) in measured for other in (method, *LMNN))
    ]
    return {
        name: float(np.mean([measured[name, k].mean for k in LMNN]) / measured[name, method].mean)
        for name in names
    }


def draw(measured: dict[tuple[str, str], Timing]) -> Any:
    """Times on a logarithmic scale above, ratios to LMNN below.

    Parameters
    ----------
    measured : by :func:`timings`
    """
    names = [name for name in DATASETS if any(key[0] == name for key in measured)]
    figure = new_figure(11, 7.5)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    for number, (method, color) in enumerate(zip(TIMED, COLORS, strict=False)):
        shown = [(i, measured[n, method]) for i, n in enumerate(names) if (n, method) in measured]
        x = [i + 0.12 * (number - 2.5) for i, _ in shown]
        lows = [timing.mean - min(timing.seconds) for _, timing in shown]
        highs = [max(timing.seconds) - timing.mean for _, timing in shown]
        upper.errorbar(
            x, [t.mean for _, t in shown], yerr=[lows, highs], label=TIMED[method].label,
            fmt="o" if method.startswith("ann") else "^", color=color, ms=5, lw=1,
        )  # fmt: skip
    for method, color in zip(("ann+", "ann-"), COLORS, strict=False):
        known = ratios(measured, method)
        lower.plot(
            [names.index(n) for n in known], list(known.values()), "o-", color=color, lw=1,
            label=f"LMNN / {TIMED[method].label}",
        )  # fmt: skip
    upper.set(yscale="log", ylabel="fit, seconds (mean, extremes)")
    lower.set(yscale="log", ylabel="ratio of times")
    lower.axhline(10, color="black", ls="--", lw=1, label='"an order of magnitude"')
    lower.axhline(1, color="black", lw=0.6)
    lower.set_xticks(range(len(names)), [DATASETS[n].label for n in names], rotation=30, ha="right")
    lower.set_xlabel(runs_in_words(measured), fontsize=8)
    for axes in (upper, lower):
        axes.grid(alpha=0.3, which="both", lw=0.5)
        # above the axes: data are everywhere in them
        axes.legend(
            fontsize=8, ncols=6, loc="lower right", bbox_to_anchor=(1.0, 1.0), frameon=False
        )
    return figure


def runs_in_words(measured: dict[tuple[str, str], Timing]) -> str:
    """Text about the number of runs: the most, and where there are fewer.

    Parameters
    ----------
    measured : by :func:`timings`
    """
    runs = {key: len(timing.seconds) for key, timing in measured.items()}
    most = max(runs.values())
    fewer: dict[str, list[str]] = {}
    for (name, method), n in runs.items():
        if n < most:
            fewer.setdefault(name, []).append(f"{TIMED[method].label} {n}")
    exceptions = "; ".join(
        f"{DATASETS[name].label}: {', '.join(fewer[name])}" for name in DATASETS if name in fewer
    )
    return f"{most} run{'s' * (most > 1)} each" + (f", but {exceptions}" if exceptions else "")


def write(store: Store, out: Path) -> list[Path]:
    """Write figure3.png and figure3.svg, and figure3.csv with the numbers.

    Parameters
    ----------
    store : with the measurements
    out : the folder
    """
    measured = timings(store)
    if not measured:
        return []
    out.mkdir(parents=True, exist_ok=True)
    lines = ["dataset,method,runs,mean_seconds,std_seconds,mean_iterations"]
    for (name, method), t in measured.items():
        spread = float(np.std(t.seconds, ddof=1)) if len(t.seconds) > 1 else float("nan")
        lines.append(
            f"{name},{method},{len(t.seconds)},{t.mean:.6g},{spread:.6g},{t.iterations:.1f}"
        )
    table = out / "figure3.csv"
    table.write_text("\n".join(lines) + "\n")
    return [*save(draw(measured), out, "figure3"), table]
