"""The metric: weights of the features, the matrix, its leading directions."""

from __future__ import annotations

from typing import Any

import numpy as np

from vicinal.plot.axes import BLUE, GRAY, ORANGE, axes_or_new, bare, pick


def feature_weights(findings: Any, *, ax: Any = None) -> Any:
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
    ax.axvline(1 / metric.n_features, color=GRAY, linestyle=":", label="plain K-NN")
    ax.legend(frameon=False, fontsize="small")
    ax.set_xlabel("fraction of the diagonal of M, features standardized")
    ax.set_title("Feature weights")
    return ax


def metric_heatmap(findings: Any, *, ax: Any = None) -> Any:
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


def directions(findings: Any, which: int = 0, *, ax: Any = None) -> Any:
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
    order = np.argsort(-np.abs(direction.loadings), kind="stable")[:10]
    names = _names(findings, metric)
    ax = _bars(axes_or_new(ax), direction.loadings[order], [names[f] for f in order])
    ax.axvline(0, color=GRAY, linewidth=0.8)
    ax.set_xlabel("loading, features standardized")
    ax.set_title(f"Direction {which + 1}: {100 * direction.spread:.0f} % of the variance")
    return ax


def _metric(findings: Any) -> Any:
    if findings.metric is None:
        raise ValueError(
            "this model has no matrix M: its distance is no quadratic form of the features"
        )
    return findings.metric


def _names(findings: Any, metric: Any) -> list[str]:
    return [findings.features[f] for f in metric.features]


def _bars(ax: Any, values: Any, names: list[str]) -> Any:
    places = np.arange(len(values))
    ax.barh(places, values, color=[ORANGE if v < 0 else BLUE for v in values], height=0.7)
    ax.set_yticks(places, names, fontsize="small")
    ax.invert_yaxis()
    return bare(ax)
