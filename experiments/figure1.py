r"""Figure 1: the hard region, computed.

A metric puts x_l outside the neighborhood of x_i when it is farther from x_i than both targets:
d(x_l) > max(d(a), d(b)), all taken from x_i, with a, b the differences to the targets. For x_l in
the triangle of x_i and the targets, and for no other reason than convexity, that cannot be:
‖L(s a + t b)‖ ≤ s‖L a‖ + t‖L b‖ ≤ max(‖L a‖, ‖L b‖) for s, t ≥ 0, s + t ≤ 1. The same holds for
|s| + |t| ≤ 1: the hard region is the whole parallelogram of ±a and ±b, of which the paper's
triangle is a quarter. Outside of it a metric of rank one, M = v vᵀ, does it: v is the normal of
a line that separates x_l from the parallelogram.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from experiments.figures import COLORS, new_figure, save
from vicinal._typing import FloatArray

TARGETS = np.array([[1.0, 0.25], [0.35, 1.05]])
"""Differences a, b from x_i to its two targets."""
IMPOSTORS = np.array([[0.42, 0.4], [0.95, 0.95]])
"""x_l¹ inside the triangle, x_l² outside."""


def largest_ratio(
    impostors: FloatArray, targets: FloatArray, n_directions: int = 360
) -> FloatArray:
    """sup over metrics M of d(x_l) / max_j d(x_j), squared distances from x_i; (q,).

    Above 1 some metric puts x_l outside, at 1 or below none does. Metrics of rank one suffice (see
    above): directions v all around are looked at, and those where two targets are equally far.

    Parameters
    ----------
    impostors : (q, 2) differences x_l − x_i
    targets : (k, 2) differences x_j − x_i
    n_directions : how many directions to look at
    """
    angles = np.linspace(0.0, np.pi, n_directions, endpoint=False)
    # Between directions where two targets are equally far the ratio is monotone: they matter.
    pairs = [targets[i] + sign * targets[j]
             for i in range(len(targets)) for j in range(i) for sign in (1, -1)]  # fmt: skip
    equal = [np.arctan2(p[0], -p[1]) for p in pairs if np.any(p)]
    angles = np.append(angles, equal)
    v = np.stack([np.cos(angles), np.sin(angles)])  # (2, directions)
    reach = np.max((targets @ v) ** 2, axis=0)  # (directions,)
    usable = reach > 1e-12 * reach.max()
    return np.asarray(np.max((impostors @ v[:, usable]) ** 2 / reach[usable], axis=1))


def draw() -> Any:
    """The figure: neighborhoods of several metrics, and where an impostor cannot be put out."""
    figure = new_figure(10, 4.6)
    left, right = figure.subplots(1, 2)
    _draw_neighborhoods(left)
    _draw_region(figure, right)
    for axes in (left, right):
        axes.set_aspect("equal")
        axes.set(xlim=(-1.7, 1.7), ylim=(-1.55, 1.55), xticks=[], yticks=[])
        _draw_points(axes)
    return figure


def _draw_neighborhoods(axes: Any) -> None:
    """Ellipses {x : d(x) ≤ max_j d(x_j)} of some metrics."""
    circle = np.linspace(0, 2 * np.pi, 400)
    for angle in (None, *np.linspace(0, np.pi, 6, endpoint=False)):
        L = np.eye(2) if angle is None else _stretched(float(angle))
        radius = np.linalg.norm(TARGETS @ L.T, axis=1).max()
        edge = np.linalg.solve(L, radius * np.stack([np.cos(circle), np.sin(circle)]))
        color, width = ("black", 1.6) if angle is None else (COLORS[6], 0.8)
        axes.plot(*edge, color=color, lw=width, zorder=1)
    axes.fill(*np.vstack([[0, 0], TARGETS]).T, color=COLORS[0], alpha=0.18, zorder=0)
    axes.set_title("neighborhoods of the Euclidean metric (black) and of six others", fontsize=9)


def _stretched(angle: float) -> FloatArray:
    """L of a metric that sees one direction twice as long."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[2 * c, 2 * s], [-s, c]])


def _draw_region(figure: Any, axes: Any) -> None:
    """The largest ratio on a grid; at 1 and below lies the hard region."""
    x, y = np.meshgrid(np.linspace(-1.7, 1.7, 171), np.linspace(-1.55, 1.55, 156))
    ratio = largest_ratio(np.stack([x.ravel(), y.ravel()], axis=1), TARGETS).reshape(x.shape)
    shown = axes.pcolormesh(
        x, y, np.log2(np.maximum(ratio, 1e-9)), cmap="RdBu", vmin=-3, vmax=3, rasterized=True
    )
    axes.contour(x, y, ratio, levels=[1.0], colors="black", linewidths=1.4)
    axes.plot(*np.vstack([[0, 0], TARGETS, [0, 0]]).T, color="black", lw=1, ls="--")
    bar = figure.colorbar(shown, ax=axes, shrink=0.8)
    bar.set_label("log₂ of the largest $d(x_l)$ / max $d(x_j)$ over all metrics", fontsize=8)
    axes.set_title(
        "no metric puts $x_l$ outside: computed (red), the triangle (dashed)", fontsize=9
    )


def _draw_points(axes: Any) -> None:
    axes.plot(0, 0, "o", color="black", ms=7, zorder=4)
    axes.plot(*TARGETS.T, "o", color=COLORS[0], ms=8, zorder=4)
    axes.plot(*IMPOSTORS.T, "s", color="#e3b505", mec="black", ms=8, zorder=4)
    names = ["$x_i$", "$x_j^1$", "$x_j^2$", "$x_l^1$", "$x_l^2$"]
    for name, point in zip(names, [np.zeros(2), *TARGETS, *IMPOSTORS], strict=True):
        label = axes.annotate(name, point, xytext=(8, -12), textcoords="offset points", zorder=5)
        label.set_bbox({"facecolor": "white", "alpha": 0.6, "edgecolor": "none", "pad": 1})


def write(out: Path) -> list[Path]:
    """Write figure1.png and figure1.svg.

    Parameters
    ----------
    out : the folder
    """
    return save(draw(), out, "figure1")
