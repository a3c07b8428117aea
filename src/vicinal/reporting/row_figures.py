"""Figures of the rows: maps, confusion, margins, calibration, effective neighbors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vicinal.reporting.figure_axes import BLUE, GRAY, ORANGE, axes_or_new, bare, class_style, pick
from vicinal.reporting.findings import Errors, Findings, Histogram

if TYPE_CHECKING:
    from matplotlib.axes import Axes


LEGEND_LENGTH = 30
COUNTS_SHOWN = 20
"""Classes up to which the cells carry their numbers."""


def maps(findings: Findings, when: str = "after", *, ax: Axes | None = None) -> Axes:
    """Draw one of the two maps: the rows in two directions of largest variance.

    Parameters
    ----------
    findings : Findings
        What ``vicinal.reporting.examine`` returns.
    when : {"before", "after"}, default="after"
        Standardized features, or the learned metric.
    ax : matplotlib Axes, default=None
        Where to draw; None makes a new figure.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import vicinal as vc
    >>> from vicinal import plot
    >>> from vicinal.reporting import examine
    >>> X, y = load_iris(return_X_y=True)
    >>> findings = examine(vc.RVML().fit(X, y), X, y)
    >>> plot.maps(findings, "before").get_title()
    'Before: standardized features'
    """
    if when not in ("before", "after"):
        raise ValueError(f"when={when!r} is not possible; use 'before' or 'after'")
    ax = axes_or_new(ax)
    rows = findings.maps
    points, spread = getattr(rows, when), getattr(rows, f"{when}_spread")
    size = float(np.clip(900 / np.sqrt(len(points)), 8, 40))
    if not findings.classes:
        fill = ax.scatter(
            points[:, 0], points[:, 1], s=size, c=rows.labels, cmap="plasma_r", alpha=0.8
        )
        ax.figure.colorbar(fill, ax=ax, shrink=0.7)
    for code, name in enumerate(findings.classes):
        style = class_style(code)
        for held_out in (False, True):
            here = (rows.labels == code) & (rows.held_out == held_out)
            faces = "none" if held_out else style["color"]
            ax.scatter(
                points[here, 0], points[here, 1], s=size, marker=style["marker"], facecolors=faces,
                edgecolors=style["color"], linewidths=0.8, alpha=0.8,
                label=None if held_out else name,
            )  # fmt: skip
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_xticks([])
    ax.set_yticks([])
    directions = "two directions" if spread[1] > 0 else "one direction"
    ax.set_xlabel(f"{directions} with {100 * sum(spread):.0f} % of the variance")
    ax.set_title("Before: standardized features" if when == "before" else "After: learned metric")
    if 0 < len(findings.classes) <= LEGEND_LENGTH:
        ax.legend(frameon=False, fontsize="small", ncols=1 + len(findings.classes) // 11)
    return ax


def _of_classes(findings: Findings) -> Errors:
    """The errors; TypeError where numbers are predicted."""
    if not isinstance(findings.errors, Errors):
        raise TypeError("this figure is about classes, and the model predicts numbers")
    return findings.errors


def confusion(findings: Findings, *, ax: Axes | None = None) -> Axes:
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
    counts, names = _of_classes(findings).confusion, findings.classes
    ax = axes_or_new(ax)
    parts = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    ax.imshow(parts, cmap="Blues", vmin=0, vmax=1)
    if len(names) <= COUNTS_SHOWN:
        for (i, j), count in np.ndenumerate(counts):
            shade = "white" if parts[i, j] > 0.5 else "black"
            ax.text(j, i, str(count or ""), ha="center", va="center", color=shade, fontsize="small")
    ax.set_xticks(range(len(names)), names, rotation=90, fontsize="small")
    ax.set_yticks(range(len(names)), names, fontsize="small")
    ax.set_xlabel("predicted")
    ax.set_ylabel("true")
    ax.set_title("Confusion")
    return ax


def margins(findings: Findings, *, ax: Axes | None = None) -> Axes:
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
    errors = _of_classes(findings)
    histogram = errors.margins
    ax = _histogram(axes_or_new(ax), histogram)
    ax.axvline(0, color=ORANGE, linewidth=1)
    ax.set_xlabel(errors.margin_name)
    return ax


def effective_neighbors(findings: Findings, which: int = 0, *, ax: Axes | None = None) -> Axes:
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


def calibration(findings: Findings, *, ax: Axes | None = None) -> Axes:
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
    bins = _of_classes(findings).calibration
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


def _histogram(ax: Axes, histogram: Histogram) -> Axes:
    ax.stairs(histogram.counts, histogram.edges, fill=True, color=BLUE)
    if np.isfinite(histogram.median):
        label = f"median {histogram.median:.3g}"
        ax.axvline(histogram.median, color=GRAY, linestyle=":", label=label)
        ax.legend(frameon=False, fontsize="small")
    ax.set_ylabel("rows")
    ax.set_title(histogram.name)
    return bare(ax)
