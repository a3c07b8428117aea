"""The maps of the rows before and after learning the metric."""

from __future__ import annotations

from typing import Any

import numpy as np

from vicinal.plot.axes import axes_or_new, class_style

LEGEND_LENGTH = 30


def maps(findings: Any, when: str = "after", *, ax: Any = None) -> Any:
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
    for code, name in enumerate(findings.classes):
        style = class_style(code)
        for held_out in (False, True):
            here = (rows.labels == code) & (rows.held_out == held_out)
            faces = "none" if held_out else style["color"]
            ax.scatter(
                *points[here].T, s=size, marker=style["marker"], facecolors=faces,
                edgecolors=style["color"], linewidths=0.8, alpha=0.8,
                label=None if held_out else name,
            )  # fmt: skip
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_xticks([])
    ax.set_yticks([])
    directions = "two directions" if spread[1] > 0 else "one direction"
    ax.set_xlabel(f"{directions} with {100 * sum(spread):.0f} % of the variance")
    ax.set_title("Before: standardized features" if when == "before" else "After: learned metric")
    if len(findings.classes) <= LEGEND_LENGTH:
        ax.legend(frameon=False, fontsize="small", ncols=1 + len(findings.classes) // 11)
    return ax
