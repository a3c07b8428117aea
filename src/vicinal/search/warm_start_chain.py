"""Which (α, γ) a search visits, in which order, and from whose solution each fit starts.

Along α, each sign for itself, from 0 outward: there the soft average of the similar side goes from
the mean, which is smooth, to the extreme one. Solutions follow easily in this direction and badly
in the other: at large α the metric grows large, and a fit at small α cannot come back from it.
Along γ, from the estimator's own value outward; either direction is easy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Point:
    """One setting of the objective."""

    alpha: float
    gamma: float


@dataclass(frozen=True)
class Step:
    """One fit: where, and the point whose solution it starts from (None: from the beginning)."""

    point: Point
    start: Point | None


def alpha_steps(alphas: Sequence[float], gamma: float) -> Iterator[Step]:
    """Along α at one γ."""
    for side in ([a for a in alphas if a >= 0], [a for a in alphas if a < 0]):
        before: Point | None = None
        for alpha in sorted(side, key=abs):
            point = Point(alpha, gamma)
            yield Step(point, before)
            before = point


def gamma_steps(alpha: float, gammas: Sequence[float], origin: float) -> Iterator[Step]:
    """Along γ at one α, outward from the origin, which has been visited and is left out."""
    below = sorted((g for g in gammas if g < origin), reverse=True)
    above = sorted(g for g in gammas if g > origin)
    for side in (below, above):
        before = Point(alpha, origin)
        for gamma in side:
            point = Point(alpha, gamma)
            yield Step(point, before)
            before = point


def grid_steps(alphas: Sequence[float], gammas: Sequence[float], gamma: float) -> Iterator[Step]:
    """All (α, γ): along α at the grid's γ that is nearest to the given one, and from there along γ.

    Nearest by ratio.
    """
    origin = min(sorted(gammas), key=lambda g: max(g / gamma, gamma / g))
    for step in alpha_steps(alphas, origin):
        yield step
        yield from gamma_steps(step.point.alpha, gammas, origin)


def lineage(steps: Sequence[Step], point: Point) -> list[Step]:
    """The steps that lead to a point, in the order of walking."""
    by_point = {step.point: step for step in steps}
    path = []
    current: Point | None = point
    while current is not None:
        path.append(by_point[current])
        current = path[-1].start
    return path[::-1]
