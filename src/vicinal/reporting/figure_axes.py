"""Helpers of all figures: matplotlib on demand, an Axes, and the colors of the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from vicinal.exceptions import missing_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Item = TypeVar("Item")

BLUE, ORANGE, GRAY = "#0b5fa5", "#b3500a", "#66645e"
CLASS_COLORS = ("#0072b2", "#d55e00", "#009e73", "#c4679a", "#d18f00", "#3fa3dc", "#7a2a5c")
"""After Okabe and Ito: told apart by readers with any kind of color vision."""
CLASS_MARKERS = ("o", "^", "s", "D", "P")
"""A class is a color and, from the eighth on, another marker."""


def axes_or_new(ax: Axes | None) -> Axes:
    """The given Axes, or that of a new figure."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise missing_extra("vicinal.plot", "matplotlib", "report") from error
    return pyplot.subplots(layout="constrained")[1]


def class_style(code: int) -> dict[str, str]:
    """Color and marker of a class."""
    return {
        "color": CLASS_COLORS[code % len(CLASS_COLORS)],
        "marker": CLASS_MARKERS[code // len(CLASS_COLORS) % len(CLASS_MARKERS)],
    }


def bare(ax: Axes) -> Axes:
    """Remove spines that carry no information; returns the Axes."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def pick(items: Sequence[Item], which: int, what: str) -> Item:
    """One of several figures of a kind, or an error that says how many there are."""
    if not 0 <= which < len(items):
        raise ValueError(f"which={which}: this model has {len(items)} {what}, counted from 0")
    return items[which]
