"""One look for the pictures of the gallery, readable on light and on dark pages."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
from sphinx.application import Sphinx

STYLE = {
    "figure.figsize": (7.2, 4.2),
    "figure.dpi": 100,
    "savefig.facecolor": "white",
    "figure.constrained_layout.use": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": mpl.cycler(
        color=["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#888888"]
    ),
    "axes.titlesize": 11,
    "axes.labelsize": 10,
    "legend.frameon": False,
    "lines.markersize": 4,
}


def reset_style(gallery_conf: dict[str, Any], fname: str) -> None:
    """Before every example: the style, and nothing that the one before has set."""
    mpl.rcParams.update(STYLE)


def setup(app: Sphinx) -> dict[str, bool]:
    """Only to be importable as an extension."""
    return {"parallel_read_safe": True, "parallel_write_safe": True}
