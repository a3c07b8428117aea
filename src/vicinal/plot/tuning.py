"""What was tried, and how the objective went down."""

from __future__ import annotations

from typing import Any

import numpy as np

from vicinal.plot.axes import ORANGE, axes_or_new, bare, class_style, pick


def tuning_surface(findings: Any, which: int = 0, *, ax: Any = None) -> Any:
    """Draw the cross-validated error over two settings; what was chosen is framed.

    Parameters
    ----------
    findings : Findings
        What ``vicinal.reporting.examine`` returns.
    which : int, default=0
        Of ANNSearchCV: 0 is α × γ, 1 is α × K. Of ANNClassifier: one surface a vote.
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


def convergence(findings: Any, *, ax: Any = None) -> Any:
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


def _frame(row: int, column: int) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=ORANGE, linewidth=2)
