"""The record that every solver keeps of its run, so that a solver is only its steps.

A solver is a function ``descend(run) -> StopReason``. It evaluates and projects through the run,
tells it of every accepted point and every finished iteration, and asks it whether to stop;
``solve`` turns what the run has seen into a ``Solution``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vicinal._typing import FloatArray
from vicinal.solvers.problem import Callback, Problem, Progress, Solution, StopReason
from vicinal.solvers.stopping import stop_reason

FIRST_MOVE = 0.1
"""The first step moves θ by this fraction of its norm: no step size is asked of the user."""

SHORTEST_MOVE = 1e-12
"""A move by less than this fraction of θ (or the precision of its dtype) counts as none."""

BOTTOM = 1e50
"""An objective this many times below its first value is taken to have no minimum."""


class Point(NamedTuple):
    """An evaluated point: θ, J(θ), ∇J(θ)."""

    params: FloatArray
    value: float
    gradient: FloatArray


class Run:
    """One run: where it started, the best point so far, the history, and when to stop."""

    def __init__(
        self,
        problem: Problem,
        start: ArrayLike,
        *,
        max_iter: int,
        tol: float,
        callback: Callback | None,
    ) -> None:
        if max_iter < 0 or not tol >= 0:
            raise ValueError(f"max_iter and tol must not be negative, got {max_iter} and {tol}.")
        self.problem = problem
        self.max_iter = max_iter
        self.tol = tol
        self._callback = callback

        params = np.array(start)  # a copy: the caller's start is never written to
        self.dtype = params.dtype if params.dtype.kind == "f" else np.dtype(np.float64)
        params = params.astype(self.dtype, copy=False)
        finite = bool(np.isfinite(params).all())  # else there is nothing to project
        self.start = (
            self.evaluate(self._feasible(params)) if finite else Point(params, math.inf, params)
        )
        if not math.isfinite(self.start.value):
            raise ValueError(
                "The objective or its gradient is not finite at the start. Look for NaN, infinite"
                " or huge values in the data and in the initial parameters."
            )
        self.best = self.start
        self.history = [self.start.value]
        self._lowest = [self.start.value]
        self.n_iter = 0
        self.scale = self._first_scale()
        slope = norm(self.start.gradient) * self.scale
        self._bottom = -BOTTOM * max(abs(self.start.value), slope)

    def evaluate(self, params: FloatArray, rows: NDArray[np.intp] | None = None) -> Point:
        """J and ∇J at ``params``; where either is not finite J counts as +∞: no step goes there."""
        value, gradient = self.problem.value_and_gradient(params, rows)
        finite = math.isfinite(value) and bool(np.isfinite(gradient).all())
        return Point(params, float(value) if finite else math.inf, gradient)

    def project(self, params: FloatArray) -> FloatArray:
        """ψ(params): the nearest feasible point, in the dtype of the start."""
        projected = self.problem.project(params.astype(self.dtype, copy=False))
        return np.asarray(projected, dtype=self.dtype)

    def first_step(self, gradient: FloatArray) -> float:
        """The step η along −∇J that moves θ by a fixed fraction of its norm."""
        length = norm(gradient)
        return FIRST_MOVE * self.scale / length if length > 0 else 1.0

    def pg_norm(self, point: Point) -> float:
        """‖(θ − ψ(θ − η∇J))/η‖, the norm of the projected gradient, for a step of that length."""
        eta = self.first_step(point.gradient)
        return norm(point.params - self.project(point.params - eta * point.gradient)) / eta

    def vanishes(self, move: float) -> bool:
        """Whether a move of this length is lost in the rounding of the parameters."""
        return move <= max(SHORTEST_MOVE, float(np.finfo(self.dtype).eps)) * self.scale

    def accept(self, point: Point) -> None:
        """Make ``point`` the newest iterate."""
        if point.value < self.best.value:
            self.best = point
        self.history.append(point.value)
        self._lowest.append(self.best.value)
        self.scale = max(self.scale, norm(point.params))

    def keep(self, point: Point) -> None:
        """Remember a point that is not an iterate, if it is the best."""
        if point.value < self.best.value:
            self.accept(point)

    def finish_iteration(self, point: Point, step: float) -> bool:
        """Count one iteration that ended at ``point``; whether the callback wants no more.

        It may say so by ``StopIteration`` too, as the callbacks of SciPy do.
        """
        self.n_iter += 1
        if self._callback is None:
            return False
        progress = Progress(self.n_iter, point.value, point.params.copy(), step)
        try:
            return bool(self._callback(progress))
        except StopIteration:
            return True

    def stop(self, pg_norm: float) -> StopReason | None:
        """The shared stopping rule, at the newest iterate with this projected-gradient norm."""
        if self.best.value < self._bottom:
            return "unbounded"
        return stop_reason(
            pg_norm=pg_norm,
            scale=self.scale,
            lowest=self._lowest,
            n_iter=self.n_iter,
            max_iter=self.max_iter,
            tol=self.tol,
        )

    def solution(self, reason: StopReason) -> Solution:
        """The best point, and how it was found."""
        best, history = self.best, np.array(self.history)
        return Solution(best.params, best.value, self.n_iter, reason, history)

    def _feasible(self, params: FloatArray) -> FloatArray:
        """The start itself, to the last bit, unless more than rounding makes it infeasible."""
        projected = self.project(params)
        rounding = 100 * float(np.finfo(self.dtype).eps) * norm(params)
        return params if norm(projected - params) <= rounding else projected

    def _first_scale(self) -> float:
        """‖θ‖, the length that moves are compared with; kept as the largest ‖θ‖ of the run.

        A start at zero has no length: then the distance |J|/‖∇J‖ at which the tangent of J falls to
        zero, or 1 where that is zero too.
        """
        slope = norm(self.start.gradient)
        tangent = abs(self.start.value) / slope if slope > 0 else 0.0
        return norm(self.start.params) or tangent or 1.0


Descent: TypeAlias = Callable[[Run], StopReason]


def solve(
    descend: Descent,
    problem: Problem,
    start: ArrayLike,
    *,
    max_iter: int,
    tol: float,
    callback: Callback | None,
) -> Solution:
    """Minimize ``problem`` from ``start`` with one method; Ctrl-C keeps the best point so far.

    An interrupt before the start is evaluated leaves nothing to keep, and is passed on.
    """
    run = Run(problem, start, max_iter=max_iter, tol=tol, callback=callback)
    try:
        reason = descend(run)
    except KeyboardInterrupt:
        reason = "interrupted"
    return run.solution(reason)


def norm(params: FloatArray) -> float:
    """The Euclidean (Frobenius) norm, summed in float64: float32 overflows beyond 10¹⁹."""
    flat = params.ravel().astype(np.float64, copy=False)
    return math.sqrt(flat @ flat)
