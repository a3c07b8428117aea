"""Limited-memory BFGS, for problems in which every point is feasible (the factor L of M = LᵀL)."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize

from vicinal.solvers.problem import Callback, Problem, Solution, StopReason
from vicinal.solvers.run import FIRST_MOVE, Point, Run, norm, solve

MEMORY = 10
MAX_LINE_SEARCH = 8
"""Trials a line search: at the kink of a hinge, where they run out, more find nothing either."""

Vector: TypeAlias = NDArray[np.float64]


def lbfgs(
    problem: Problem,
    start: ArrayLike,
    *,
    max_iter: int = 200,
    tol: float = 1e-5,
    callback: Callback | None = None,
) -> Solution:
    """Minimize by SciPy's L-BFGS-B without bounds, under the stopping rule of all solvers.

    ``problem.project`` must be the identity; it is applied to the start only.

    SciPy works on φ(u) = J(ℓu)/(ℓ‖∇J(θ0)‖) with ℓ = 0.1‖θ0‖: its first trial, one unit long, then
    moves θ by a tenth of its norm, and no scale of J or of θ changes the path. The problem itself
    is evaluated in the dtype of the start, as often as SciPy asks and never besides.

    The history is J of the accepted iterates, and does not increase. Where a line search fails
    (usual at the kinks of a hinge) but has seen a lower point, that point is the next iterate, and
    SciPy starts from it anew; where it has seen none, the run ends ("step").
    """
    return solve(_quasi_newton, problem, start, max_iter=max_iter, tol=tol, callback=callback)


def _quasi_newton(run: Run) -> StopReason:
    if reason := run.stop(norm(run.start.gradient)):
        return reason
    base, length = run.start, FIRST_MOVE * run.scale
    while True:
        search = _Search(run, base, length)
        try:
            _minimize(search, run.max_iter)
        finally:
            found = search.lowest.value < run.best.value
            run.keep(search.lowest)
        if search.reason is not None:
            return search.reason
        if not found:
            return "step"
        # The line search failed, but not without descending: go on from there, without memory.
        length = norm(search.lowest.params - base.params)
        base = search.lowest
        if run.finish_iteration(base, length):
            return "callback"
        if reason := run.stop(norm(base.gradient)):
            return reason


def _minimize(search: _Search, max_iter: int) -> None:
    """Run SciPy. Its own stopping rules are out of the way: the shared one stops before they do."""
    options = {
        "maxcor": MEMORY,
        "maxls": MAX_LINE_SEARCH,
        "maxiter": max_iter + 1,
        "maxfun": 10 * (MAX_LINE_SEARCH + 2) * (max_iter + 2),
        "ftol": 0.0,
        "gtol": 0.0,
    }
    minimize(
        search.value,
        search.start,
        jac=search.gradient,
        method="L-BFGS-B",
        callback=search.finish_iteration,
        options=options,
    )


class _Search:
    """Functions for SciPy to call: they scale, keep the last evaluation, and report iterations."""

    def __init__(self, run: Run, base: Point, length: float) -> None:
        self._run = run
        self._length = length
        self._height = length * norm(base.gradient)
        self._iterate = self._last = self.lowest = base
        self.start = self._last_unit = self.unit(base)
        self.reason: StopReason | None = None

    def unit(self, point: Point) -> Vector:
        """u = θ/ℓ, flat and in float64."""
        return point.params.ravel().astype(np.float64) / self._length

    def value(self, unit: Vector) -> float:
        """The value of φ at u."""
        point = self._at(unit)
        return point.value / self._height if math.isfinite(point.value) else self._wall(point)

    def gradient(self, unit: Vector) -> Vector:
        """∇φ at u; zero at a wall."""
        point = self._at(unit)
        if not math.isfinite(point.value):
            return np.zeros_like(unit)
        return point.gradient.ravel().astype(np.float64) * (self._length / self._height)

    def _at(self, unit: Vector) -> Point:
        """The point at u, which is known if it is the last one, or the start."""
        if not (unit == self._last_unit).all():
            shape = self._iterate.params.shape
            params = (unit * self._length).reshape(shape).astype(self._run.dtype, copy=False)
            self._last, self._last_unit = self._run.evaluate(params), unit.copy()
            if self._last.value < self.lowest.value:
                self.lowest = self._last
        return self._last

    def _wall(self, point: Point) -> float:
        """A finite φ in place of +∞ that makes the line search come back by about three quarters.

        Above the tangent at the last iterate by twice the decrease that it promised: interpolation,
        which is what the line search does next, then has a sensible minimum well before the point.
        """
        move = point.params - self._iterate.params
        promised = abs(float(np.vdot(self._iterate.gradient, move)))
        return (self._iterate.value + promised) / self._height

    def finish_iteration(self, unit: Vector) -> None:
        """SciPy's callback, with the iterate that it has accepted."""
        run, point = self._run, self._at(unit)
        move = norm(point.params - self._iterate.params)
        self._iterate = point
        run.accept(point)
        if run.finish_iteration(point, move):
            self.reason = "callback"
        else:
            self.reason = run.stop(norm(point.gradient))
        if self.reason is not None:
            raise StopIteration
