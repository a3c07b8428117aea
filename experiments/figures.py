"""Shared parts of the figures: colors, saving, the rank diagram."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.statistics import cliques
from experiments.summary import Comparison

COLORS = ("#1f6feb", "#d1495b", "#2a9d5c", "#8a63d2", "#c9822b", "#4b9fb5", "#6b7280")


def new_figure(width: float, height: float) -> Any:
    """An empty matplotlib figure without a window.

    Parameters
    ----------
    width, height : in inches
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("figures need matplotlib: pip install 'vicinal[report]'") from error
    return Figure(figsize=(width, height), layout="constrained")


def save(figure: Any, out: Path, name: str) -> list[Path]:
    """Write ``name.png`` and ``name.svg``; the same figure gives the same bytes.

    Parameters
    ----------
    figure : of matplotlib
    out : the folder, made if it is not there
    name : without ending
    """
    import matplotlib

    out.mkdir(parents=True, exist_ok=True)
    paths = [out / f"{name}.png", out / f"{name}.svg"]
    with matplotlib.rc_context({"svg.hashsalt": name}):
        figure.savefig(paths[0], dpi=150)
        figure.savefig(paths[1], metadata={"Date": None})
    return paths


def rank_diagram(comparison: Comparison, labels: Sequence[str]) -> Any:
    """Demšar's critical-difference diagram: bars join methods that the test cannot tell apart.

    Parameters
    ----------
    comparison : with mean ranks
    labels : of its methods
    """
    order = np.argsort(comparison.ranks, kind="stable")
    ranks = comparison.ranks[order]
    k = len(ranks)
    half = -(-k // 2)
    figure = new_figure(8.5, 1.6 + 0.27 * half)
    axes = figure.subplots()
    axes.axis("off")
    axes.hlines(0, 1, k, color="black", lw=1)
    for tick in range(1, k + 1):
        axes.vlines(tick, 0, 0.15, color="black", lw=1)
        axes.text(tick, 0.3, str(tick), ha="center", fontsize=9)
    bars = cliques(ranks, comparison.critical_difference)
    top = -0.7 - 0.2 * len(bars)
    for place, rank in enumerate(ranks):
        left = place < half
        depth = top - 0.8 * (place if left else k - 1 - place)
        end = 0.75 if left else k + 0.25
        axes.plot([rank, rank, end], [0, depth, depth], color="black", lw=0.8)
        text = f"{labels[order[place]]} {rank:.2f}"
        axes.text(end, depth, f"{text} " if left else f" {text}", fontsize=9, va="center",
                  ha="right" if left else "left")  # fmt: skip
    for number, (first, last) in enumerate(bars):
        height = -0.35 - 0.2 * number
        ends = ranks[first] - 0.05, ranks[last] + 0.05
        axes.hlines(height, *ends, color=COLORS[0], lw=3)
    axes.hlines(1.4, 1, 1 + comparison.critical_difference, color=COLORS[0], lw=2)
    text = f"critical difference {comparison.critical_difference:.2f}"
    axes.text(1, 1.6, f"{text} (Nemenyi, 5 %, {len(comparison.datasets)} data sets)", fontsize=9)
    axes.set(xlim=(-1.6, k + 2.6), ylim=(top - 0.8 * half, 2.3))
    return figure
