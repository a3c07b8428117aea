"""Figures of the metric: feature weights, the matrix, directions, tuning, convergence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vicinal._typing import FloatArray
from vicinal.reporting.figure_axes import BLUE, GRAY, ORANGE, axes_or_new, bare, class_style, pick
from vicinal.reporting.findings import Findings, MetricFindings

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import Rectangle


def feature_weights(findings: Findings, *, ax: Axes | None = None) -> Axes:
    """Draw each feature's own part of the distance, M_ff σ_f², as a fraction of all.

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
    metric = _metric(findings)
    ax = _bars(axes_or_new(ax), metric.weights, _names(findings, metric))
    places = np.arange(len(metric.plain))
    ax.vlines(
        metric.plain, places - 0.5, places + 0.5, color=GRAY, linestyle=":", label="plain K-NN"
    )
    ax.legend(frameon=False, fontsize="small")
    ax.set_xlabel("fraction of the diagonal of M, features standardized")
    ax.set_title("Feature weights")
    return ax


def metric_heatmap(findings: Findings, *, ax: Axes | None = None) -> Axes:
    """Draw M in standard deviations of the features, relative to its largest entry.

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
    from matplotlib.colors import LinearSegmentedColormap

    metric = _metric(findings)
    ax = axes_or_new(ax)
    names = _names(findings, metric)
    colors = LinearSegmentedColormap.from_list("metric", [ORANGE, "#fbfaf6", BLUE])
    image = ax.imshow(metric.matrix, cmap=colors, vmin=-1, vmax=1)
    ax.set_xticks(range(len(names)), names, rotation=90, fontsize="small")
    ax.set_yticks(range(len(names)), names, fontsize="small")
    ax.figure.colorbar(image, ax=ax, shrink=0.7)
    ax.set_title("M")
    return ax


def directions(findings: Findings, which: int = 0, *, ax: Axes | None = None) -> Axes:
    """Draw what a leading direction of the transformed data is made of.

    Parameters
    ----------
    findings : Findings
        What ``vicinal.reporting.examine`` returns.
    which : int, default=0
        0 is the direction of the largest variance; the first two span the map.
    ax : matplotlib Axes, default=None
        Where to draw; None makes a new figure.

    Returns
    -------
    ax : matplotlib Axes
    """
    metric = _metric(findings)
    direction = pick(metric.directions, which, "directions")
    ax = _bars(axes_or_new(ax), direction.loadings[:10], list(direction.names[:10]))
    ax.axvline(0, color=GRAY, linewidth=0.8)
    ax.set_xlabel("loading, features standardized")
    ax.set_title(f"Direction {which + 1}: {100 * direction.spread:.0f} % of the variance")
    return ax


def _metric(findings: Findings) -> MetricFindings:
    if findings.metric is None:
        raise ValueError(
            "this model has no matrix M: its distance is not a quadratic form of the features"
        )
    return findings.metric


def _names(findings: Findings, metric: MetricFindings) -> list[str]:
    return [findings.features[f] for f in metric.features]


def _bars(ax: Axes, values: FloatArray, names: list[str]) -> Axes:
    places = np.arange(len(values))
    ax.barh(places, values, color=[ORANGE if v < 0 else BLUE for v in values], height=0.7)
    ax.set_yticks(places, names, fontsize="small")
    ax.invert_yaxis()
    return bare(ax)


def tuning_surface(findings: Findings, which: int = 0, *, ax: Axes | None = None) -> Axes:
    """Draw the cross-validated error over two settings; what was chosen is framed.

    Parameters
    ----------
    findings : Findings
        What ``vicinal.reporting.examine`` returns.
    which : int, default=0
        Of ANNSearchCV: 0 is α × γ, 1 is α × K. Of ANNClassifier: one surface per vote.
    ax : matplotlib Axes, default=None
        Where to draw; None makes a new figure.

    Returns
    -------
    ax : matplotlib Axes
    """
    surface = pick(findings.tuning.surfaces, which, "tuning surfaces")
    ax = axes_or_new(ax)
    image = ax.imshow(100 * np.asarray(surface.error), cmap="Blues_r", aspect="auto")
    for row, column in surface.chosen:
        ax.add_patch(_frame(row, column))
    ax.set_xticks(range(len(surface.x)), surface.x, fontsize="small")
    ax.set_yticks(range(len(surface.y)), surface.y, fontsize="small")
    ax.set_xlabel(surface.x_name)
    ax.set_ylabel(surface.y_name)
    ax.figure.colorbar(image, ax=ax, label=f"{surface.note}, %")
    ax.set_title(surface.title)
    return ax


def convergence(findings: Findings, *, ax: Axes | None = None) -> Axes:
    """Draw the objective of every iterate; of several descents, relative to their start.

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
    curves = findings.tuning.curves
    pick(curves, 0, "convergence curves")
    ax = bare(axes_or_new(ax))
    for i, curve in enumerate(curves):
        start = abs(curve.values[0]) if len(curves) > 1 and curve.values[0] else 1.0
        ax.plot(curve.values / start, color=class_style(i)["color"], label=curve.name)
    ax.set_xlabel("iterate")
    ax.set_ylabel("objective" if len(curves) == 1 else "objective, relative to its start")
    ax.set_title("Convergence")
    if len(curves) > 1:
        ax.legend(frameon=False, fontsize="small")
    return ax


def _frame(row: int, column: int) -> Rectangle:
    from matplotlib.patches import Rectangle

    return Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=ORANGE, linewidth=2)
