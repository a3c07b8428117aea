"""Figure 2: accuracy on German as a function of α, γ and K, for ANN⁻ and ANN⁺."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.datasets import Dataset
from experiments.figures import COLORS, new_figure, save
from experiments.methods import METHODS, Method, powers_of_two
from experiments.records import Measurement
from experiments.splits import prepare
from experiments.store import Store
from vicinal._typing import FloatArray
from vicinal.validation.out_of_fold import Rows, correct_votes

DATASET = "german"
EXPONENTS = tuple(range(-9, 11))
VALUES = powers_of_two(EXPONENTS[0], EXPONENTS[-1])
NEIGHBORS = tuple(range(1, 51))
SMOOTHED = 5
"""The paper's r̂e(·, K) is the mean of re(·, K + 1) … re(·, K + 5)."""
CURVES = (-9, -4, 5, 10)
"""Exponents of the curves; the paper's text names these."""
SIGNS = {"ann-": -1.0, "ann+": 1.0}
"""Method → sign of its α, in the order of the figure."""


@dataclass(frozen=True)
class PathTask:
    """All γ for one α on one split: a path of warm starts."""

    data: Dataset
    method: str
    alpha: float
    split: int
    gammas: tuple[float, ...] = VALUES

    @property
    def key(self) -> str:
        return f"figure2/{self.data.name}/{self.method}/alpha={self.alpha:g}/{self.split}"

    @property
    def kind(self) -> str:
        return "figure2"

    @property
    def dataset_name(self) -> str:
        return self.data.name

    def compute(self) -> Measurement:
        """Accuracies on the test part, (γ, K); γ from the largest, the mildest problem, down."""
        start = time.perf_counter()
        parts = prepare(self.data, self.split)
        method = METHODS[self.method]
        assert isinstance(method, Method)
        voters, asked = Rows(parts.X_train, parts.y_train), Rows(parts.X_test, parts.y_test)
        accuracies, factor = {}, None
        for gamma in sorted(self.gammas, reverse=True):
            learner = method.make(
                {"alpha": self.alpha, "gamma": gamma}, "honest", self.split, factor
            )
            factor = learner.fit(parts.X_train, parts.y_train).components_
            hits = correct_votes(learner.transform, voters, asked, np.array(NEIGHBORS))
            accuracies[gamma] = [round(float(h) / len(parts.y_test), 6) for h in hits]
        value = {
            "alpha": self.alpha,
            "gammas": list(self.gammas),
            "accuracy": [accuracies[gamma] for gamma in self.gammas],
        }
        return self._record(value=json.dumps(value), seconds=time.perf_counter() - start)

    def failure(self, error: str) -> Measurement:
        """The row of a path that raised."""
        return self._record(error=error)

    def _record(self, **columns: Any) -> Measurement:
        return Measurement(self.key, "figure2", self.data.name, self.method, **columns)


def tasks(data: Dataset, n_splits: int) -> list[PathTask]:
    """20 values of α, both signs, on every split.

    Parameters
    ----------
    data : the paper takes German
    n_splits : accuracies are means over so many splits
    """
    return [
        PathTask(data, method, sign * alpha, split)
        for split in range(n_splits)
        for method, sign in SIGNS.items()
        for alpha in VALUES
    ]


@dataclass(frozen=True)
class Study:
    """re(α, γ, K) of one method: mean accuracies (20, 20, 50), axes in ascending order of |α|."""

    accuracy: FloatArray
    n_splits: int

    @property
    def alpha_k(self) -> FloatArray:
        """re(α, K), the best over γ, smoothed: (20, 45)."""
        return _smooth(self.accuracy.max(axis=1))

    @property
    def gamma_k(self) -> FloatArray:
        """re(γ, K), the best over α, smoothed: (20, 45)."""
        return _smooth(self.accuracy.max(axis=0))

    @property
    def alpha_gamma(self) -> FloatArray:
        """re(α, γ), the best over K: (20, 20)."""
        return np.asarray(self.accuracy.max(axis=2))


def _smooth(curves: FloatArray) -> FloatArray:
    windows = np.lib.stride_tricks.sliding_window_view(curves[:, 1:], SMOOTHED, axis=1)
    return np.asarray(windows.mean(axis=2))


def study(store: Store, method: str) -> Study | None:
    """Measurements of one method; None unless every α was measured on some split.

    Parameters
    ----------
    store : with the measurements
    method : "ann+" or "ann-"
    """
    found: dict[float, list[Any]] = {}
    for row in store.records(Measurement, figure="figure2", method=method):
        if row.error is None:
            value = json.loads(row.value)
            found.setdefault(abs(value["alpha"]), []).append(value["accuracy"])
    if any(alpha not in found for alpha in VALUES):
        return None
    n_splits = min(map(len, found.values()))
    accuracy = np.array([np.mean(found[alpha][:n_splits], axis=0) for alpha in VALUES])
    return Study(accuracy, n_splits)


def both(store: Store) -> dict[str, Study] | None:
    """Method → what was measured; None unless both have been.

    Parameters
    ----------
    store : with the measurements
    """
    found = {method: study(store, method) for method in SIGNS}
    complete = {method: measured for method, measured in found.items() if measured is not None}
    return complete if len(complete) == len(SIGNS) else None


def draw(studies: dict[str, Study]) -> Any:
    """Six panels, ANN⁻ above ANN⁺.

    Parameters
    ----------
    studies : of both methods
    """
    figure = new_figure(12, 7)
    rows = figure.subplots(2, 3)
    splits = min(measured.n_splits for measured in studies.values())
    figure.suptitle(f"German, mean of {splits} splits; curves smoothed over five K", fontsize=10)
    for axes, (method, measured) in zip(rows, studies.items(), strict=True):
        label = METHODS[method].label
        sign = "−" if method == "ann-" else ""
        _draw_curves(axes[0], measured.alpha_k, f"{label}: re(α, K)", f"α = {sign}")
        _draw_curves(axes[1], measured.gamma_k, f"{label}: re(γ, K)", "γ = ")
        _draw_map(figure, axes[2], measured.alpha_gamma, f"{label}: re(α, γ)", sign)
    return figure


def _draw_curves(axes: Any, curves: FloatArray, title: str, name: str) -> None:
    for color, exponent in zip(COLORS, CURVES, strict=False):
        curve = 100 * curves[EXPONENTS.index(exponent)]
        axes.plot(
            np.arange(1, len(curve) + 1), curve, color=color, label=f"{name}$2^{{{exponent}}}$"
        )
    axes.set(title=title, xlabel="K", ylabel="accuracy, %")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)


def _draw_map(figure: Any, axes: Any, accuracy: FloatArray, title: str, sign: str) -> None:
    edges = np.array([*EXPONENTS, EXPONENTS[-1] + 1]) - 0.5
    shown = axes.pcolormesh(edges, edges, 100 * accuracy.T, cmap="viridis")
    figure.colorbar(shown, ax=axes, label="accuracy, %")
    best = np.unravel_index(accuracy.argmax(), accuracy.shape)
    axes.plot(EXPONENTS[best[0]], EXPONENTS[best[1]], "r+", ms=12, mew=2)
    ticks = EXPONENTS[1::4]
    axes.set(title=title, xlabel=f"log₂ {sign}α", ylabel="log₂ γ", xticks=ticks, yticks=ticks)


def write(store: Store, out: Path) -> list[Path]:
    """Write figure2.png and figure2.svg, if everything has been measured.

    Parameters
    ----------
    store : with the measurements
    out : the folder
    """
    studies = both(store)
    return [] if studies is None else save(draw(studies), out, "figure2")
