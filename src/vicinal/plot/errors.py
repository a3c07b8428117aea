"""Where the model errs: confusion, margins, calibration; and how many neighbors it uses."""

from __future__ import annotations

from typing import Any

import numpy as np

from vicinal.plot.axes import BLUE, GRAY, ORANGE, axes_or_new, bare, pick

COUNTS_SHOWN = 20
"""Classes up to which the cells carry their numbers."""


def confusion(findings: Any, *, ax: Any = None) -> Any:
    """Draw the confusion matrix: rows are true, columns predicted, shade is the part of the row.

    Parameters
    ----------
    findings : Findings
        What ``vicinal.reporting.examine`` returns.
    ax : matplotlib Axes, default=None
        Where to draw; None makes a new figure.

    Returns
    -------
    ax : matplotlib Axes
    """
    counts, names = findings.errors.confusion, findings.classes
    ax = axes_or_new(ax)
    parts = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    ax.imshow(parts, cmap="Blues", vmin=0, vmax=1)
    if len(names) <= COUNTS_SHOWN:
        for (i, j), count in np.ndenumerate(counts):
            shade = "white" if parts[i, j] > 0.5 else "black"
            ax.text(j, i, count or "", ha="center", va="center", color=shade, fontsize="small")
    ax.set_xticks(range(len(names)), names, rotation=90, fontsize="small")
    ax.set_yticks(range(len(names)), names, fontsize="small")
    ax.set_xlabel("predicted")
    ax.set_ylabel("true")
    ax.set_title("Confusion")
    return ax


def margins(findings: Any, *, ax: Any = None) -> Any:
    """Draw the distribution of the margins; below 0 a row is nearer to another class.

    Parameters
    ----------
    findings : Findings
        What ``vicinal.reporting.examine`` returns.
    ax : matplotlib Axes, default=None
        Where to draw; None makes a new figure.

    Returns
    -------
    ax : matplotlib Axes
    """
    histogram = findings.errors.margins
    ax = _histogram(axes_or_new(ax), histogram)
    ax.axvline(0, color=ORANGE, linewidth=1)
    ax.set_xlabel(findings.errors.margin_name)
    return ax


def effective_neighbors(findings: Any, which: int = 0, *, ax: Any = None) -> Any:
    """Draw how many neighbors count: the effective K of every row (Lemma 3).

    Parameters
    ----------
    findings : Findings
        What ``vicinal.reporting.examine`` returns.
    which : int, default=0
        Of a learner with soft averages: 0 for the row's own class, 1 for the others.
    ax : matplotlib Axes, default=None
        Where to draw; None makes a new figure.

    Returns
    -------
    ax : matplotlib Axes
    """
    histogram = pick(findings.neighbors.histograms, which, "distributions of K")
    ax = _histogram(axes_or_new(ax), histogram)
    ax.set_xlabel("effective K")
    return ax


def calibration(findings: Any, *, ax: Any = None) -> Any:
    """Draw what the probability of the predicted class promised against what came true.

    Parameters
    ----------
    findings : Findings
        What ``vicinal.reporting.examine`` returns.
    ax : matplotlib Axes, default=None
        Where to draw; None makes a new figure.

    Returns
    -------
    ax : matplotlib Axes
    """
    bins = findings.errors.calibration
    ax = bare(axes_or_new(ax))
    ax.plot([0, 1], [0, 1], color=GRAY, linestyle=":")
    sizes = 12 + 160 * bins.counts / bins.counts.max()
    ax.scatter(bins.promised, bins.came_true, s=sizes, color=BLUE, alpha=0.6)
    low = max(0.0, min(bins.promised.min(), bins.came_true.min()) - 0.05)
    ax.set_xlim(low, 1.02)
    ax.set_ylim(low, 1.02)
    ax.set_xlabel("promised")
    ax.set_ylabel("came true")
    ax.set_title("Calibration")
    return ax


def _histogram(ax: Any, histogram: Any) -> Any:
    ax.stairs(histogram.counts, histogram.edges, fill=True, color=BLUE)
    if np.isfinite(histogram.median):
        label = f"median {histogram.median:.3g}"
        ax.axvline(histogram.median, color=GRAY, linestyle=":", label=label)
        ax.legend(frameon=False, fontsize="small")
    ax.set_ylabel("rows")
    ax.set_title(histogram.name)
    return bare(ax)
