"""BFGS that can be continued on a changed objective."""

from __future__ import annotations

import math
from collections import deque
from typing import Protocol

import numpy as np

from vicinal._typing import FloatArray
from vicinal.solvers.problem import Callback, Problem, Solution, StopReason
from vicinal.solvers.run import FIRST_MOVE, Point, Run, norm, solve

MEMORY = 20
"""Steps that are remembered where there are many parameters."""
MAX_DENSE = 1000
"""Up to this many parameters the inverse Hessian is a matrix, and nothing is forgotten."""
MAX_TRIALS = 20
"""Trials per line search. They are bracketed, so that this many find a step where there is one."""
DECREASE = 1e-4
CURVATURE = 0.9


class ContinuedBfgs:
    """Minimize by BFGS; a later call starts with the curvature that the earlier ones have seen.

    Made for a sequence of similar objectives, each started where the one before ended. As for
    ``lbfgs``, every point must be feasible.

    A step satisfies the weak Wolfe conditions: J falls by at least 10⁻⁴ of what its tangent
    promises, and the slope along the step rises to 0.9 of what it was or more. For these, unlike
    for the strong ones, a bracket always shrinks onto a step, whether or not J has kinks (Lewis and
    Overton 2013).
    """

    def __init__(self) -> None:
        self._curvature: Curvature | None = None

    def __call__(
        self,
        problem: Problem,
        start: FloatArray,
        *,
        max_iter: int,
        tol: float,
        callback: Callback | None = None,
    ) -> Solution:
        """Minimize ``problem`` from ``start``; see ``vicinal.solvers``."""
        return solve(self._descend, problem, start, max_iter=max_iter, tol=tol, callback=callback)

    def _descend(self, run: Run) -> StopReason:
        here = run.start
        reason = run.stop(norm(here.gradient))
        while reason is None:
            arrived = self._search(run, here)
            if arrived is None and self._curvature is None:
                return "step"
            if arrived is None:
                self._curvature = None  # along the gradient, then
                continue
            move = norm(arrived.params - here.params)
            self._remember(here, arrived)
            here = arrived
            run.accept(here)
            if run.finish_iteration(here, move):
                return "callback"
            reason = run.stop(norm(here.gradient))
        return reason

    def _remember(self, here: Point, arrived: Point) -> None:
        """Learn from a step and the change of the gradient, where the curvature is positive."""
        step, change = _flat(arrived.params - here.params), _flat(arrived.gradient - here.gradient)
        if step @ change <= 1e-12 * norm(step) * norm(change):
            return
        if self._curvature is None:
            self._curvature = Dense() if len(step) <= MAX_DENSE else LimitedMemory()
        self._curvature.learn(step, change)

    def _direction(self, run: Run, here: Point) -> FloatArray:
        """−H∇J; without a memory along the gradient, the length of a first move."""
        direction = -_flat(here.gradient)
        if self._curvature is None:
            return direction * (FIRST_MOVE * run.scale / norm(direction))
        return self._curvature.solve(direction)

    def _search(self, run: Run, here: Point) -> Point | None:
        """The first point along the direction that satisfies both conditions.

        Where trials run out, the lowest that satisfies the first one, or None.
        """
        flat = self._direction(run, here)
        slope = float(flat @ _flat(here.gradient))
        if not slope < 0:
            return None
        direction = flat.reshape(here.params.shape).astype(run.dtype, copy=False)
        bracket = _Bracket(here.value, slope)
        lowest = None
        t = 1.0
        for _ in range(MAX_TRIALS):
            if run.vanishes(t * norm(flat)):
                break
            trial = run.evaluate(here.params + t * direction)
            if trial.value > here.value + DECREASE * t * slope:
                t = bracket.nearer(t, trial.value)
                continue
            steepness = float(flat @ _flat(trial.gradient))
            if steepness >= CURVATURE * slope:
                return trial
            lowest = trial
            t = bracket.farther(t, trial.value, steepness)
        return lowest


class Curvature(Protocol):
    """An inverse Hessian H, learned from steps and the changes of the gradient along them."""

    def learn(self, step: FloatArray, change: FloatArray) -> None:
        """Make H·change = step."""
        ...

    def solve(self, vector: FloatArray) -> FloatArray:
        """The product of the inverse Hessian H and a vector."""
        ...


class Dense:
    """H as a matrix.

    The first step, along the gradient, shows the largest curvatures, and the H made of it alone is
    too small almost everywhere. Until every direction may have been seen, H is therefore enlarged
    to what the newest step shows, but never reduced (Oren and Luenberger 1974, one-sided).
    """

    def __init__(self) -> None:
        self._H: FloatArray | None = None
        self._n_learned = 0

    def learn(self, step: FloatArray, change: FloatArray) -> None:
        """See `Curvature`; the update of Broyden, Fletcher, Goldfarb and Shanno."""
        product = step @ change
        if self._H is None:
            self._H = np.eye(len(step)) * (product / (change @ change))
        seen = self._H @ change
        if self._n_learned <= len(step):
            enlarged = max(1.0, float(product / (change @ seen)))
            self._H, seen = enlarged * self._H, enlarged * seen
        self._n_learned += 1
        crossed = np.outer(step, seen / product)
        weight = (1.0 + change @ seen / product) / product
        self._H = self._H - crossed - crossed.T + np.outer(weight * step, step)

    def solve(self, vector: FloatArray) -> FloatArray:
        """See `Curvature`."""
        return vector if self._H is None else self._H @ vector


class LimitedMemory:
    """H of the latest steps, by Nocedal's two loops."""

    def __init__(self) -> None:
        self._pairs: deque[tuple[FloatArray, FloatArray]] = deque(maxlen=MEMORY)

    def learn(self, step: FloatArray, change: FloatArray) -> None:
        """See `Curvature`."""
        self._pairs.append((step, change))

    def solve(self, vector: FloatArray) -> FloatArray:
        """See `Curvature`."""
        shares = []
        for step, change in reversed(self._pairs):
            share = (step @ vector) / (step @ change)
            vector = vector - share * change
            shares.append(share)
        step, change = self._pairs[-1]
        vector = vector * ((step @ change) / (change @ change))
        for (step, change), share in zip(self._pairs, reversed(shares), strict=True):
            vector = vector + (share - (change @ vector) / (step @ change)) * step
        return vector


class _Bracket:
    """An interval of step lengths that contains an acceptable one."""

    def __init__(self, value: float, slope: float) -> None:
        self._low, self._value, self._slope = 0.0, value, slope
        self._high, self._high_value = math.inf, math.inf

    def nearer(self, t: float, value: float) -> float:
        """The next trial, t being too long."""
        self._high, self._high_value = t, value
        return self._between()

    def farther(self, t: float, value: float, slope: float) -> float:
        """The next trial, t being too short: by secants of the slope, two to ten times as far."""
        before, self._low, self._value, self._slope = self._slope, t, value, slope
        if self._high < math.inf:
            return self._between()
        return t * min(max(2.0, slope / (slope - before) + 1 if slope > before else 10.0), 10.0)

    def _between(self) -> float:
        """The minimum of the parabola through both ends, if it is well inside; else the middle."""
        width = self._high - self._low
        bend = self._high_value - self._value - self._slope * width
        if not 0 < bend < math.inf:
            return self._low + 0.5 * width
        share = -self._slope * width / (2 * bend)
        return self._low + min(max(share, 0.1), 0.9) * width


def _flat(array: FloatArray) -> FloatArray:
    return array.ravel().astype(np.float64, copy=False)
