"""Nesterov's acceleration of the projected gradient, for convex problems."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from vicinal._typing import FloatArray
from vicinal.solvers.problem import Callback, Problem, Solution, StopReason
from vicinal.solvers.run import Point, Run, norm, solve

SHRINK = 0.5
GROW = 1.1
LEAP = 2.0
"""The step doubles where the objective bends less than a quarter of what the step allows for."""


def accelerated_projected_gradient(
    problem: Problem,
    start: ArrayLike,
    *,
    max_iter: int = 200,
    tol: float = 1e-5,
    callback: Callback | None = None,
) -> Solution:
    """Minimize by FISTA with backtracking, adaptive restart and a monotone history.

    ::

        θ̂ = ψ(y − η ∇J(y))        y = θ_k + (t_{k−1} − 1)/t_k · (θ_k − θ_{k−1})
        t_{k+1} = (1 + √(1 + 4 t_k²))/2

    (Beck and Teboulle 2009). η follows the curvature of J both ways: it is halved until
    J(θ̂) ≤ J(y) + ⟨∇J(y), θ̂ − y⟩ + ‖θ̂ − y‖²/(2η), and grows after every success.

    A trial that is not below J(θ_k) is rejected, and the momentum dropped (the function restart of
    O'Donoghue and Candès 2015; their gradient restart gains nothing more here). So the history
    strictly decreases, and θ_k is the best point.

    At a kink (hinge loss) no η satisfies the inequality. After two halvings the lowest of the
    trials is taken instead if it lies below J(θ_k), as Algorithm 1 would; if none does, the step
    shrinks until it vanishes ("step").

    An iteration is one accelerated step: an evaluation at θ̂, one at y where there is momentum, and
    one for each halving.
    """
    return solve(_accelerate, problem, start, max_iter=max_iter, tol=tol, callback=callback)


class _Trial(NamedTuple):
    point: Point
    move: FloatArray
    eta: float
    bend: float
    """2η·(J(θ̂) − J(y) − ⟨∇J(y), θ̂ − y⟩)/‖θ̂ − y‖²: at most 1 where η suits the curvature."""

    @property
    def sound(self) -> bool:
        return self.bend <= 1.0

    @property
    def next_eta(self) -> float:
        """The step to try next, if this one is accepted."""
        if not self.sound:
            return self.eta
        return self.eta * (LEAP if self.bend <= 0.25 else GROW)


def _accelerate(run: Run) -> StopReason:
    if reason := run.stop(run.pg_norm(run.start)):
        return reason
    here = ahead = run.start
    eta, t, halvings = run.first_step(run.start.gradient), 1.0, 2
    while not (ahead is here and run.vanishes(eta * norm(here.gradient))):
        plain = ahead is here
        trial = _backtrack(run, ahead, eta, halvings)
        halvings = 2 if trial.sound else 1  # kinks come in rows: waste less on the next
        accepted = trial.point.value < here.value
        arrived = trial.point if accepted else here
        if accepted:
            run.accept(arrived)
        move = norm(trial.move)
        if run.finish_iteration(arrived, move):
            return "callback"
        # A step's pg bounds the error of the point that it leads to (for a convex J).
        if reason := run.stop(move / trial.eta if accepted or plain else math.inf):
            return reason
        if accepted:
            eta = trial.next_eta
            ahead, t = _look_ahead(run, here, trial, t)
        else:
            eta = SHRINK * trial.eta if plain else eta
            ahead, t = here, 1.0
        here = arrived
    return "step"


def _backtrack(run: Run, ahead: Point, eta: float, halvings: int) -> _Trial:
    """The first trial with a sound step, or the lowest one where a few halvings find none."""
    lowest = trial = _try(run, ahead, eta)
    while not trial.sound and halvings > 0:
        halvings -= 1
        eta *= SHRINK
        trial = _try(run, ahead, eta)
        if trial.sound or trial.point.value < lowest.point.value:
            lowest = trial
    return lowest


def _try(run: Run, ahead: Point, eta: float) -> _Trial:
    params = run.project(ahead.params - eta * ahead.gradient)
    point = run.evaluate(params)
    move = params - ahead.params
    slope = float(np.vdot(ahead.gradient, move))
    rounding = 10 * float(np.finfo(run.dtype).eps) * abs(ahead.value)
    rise = point.value - ahead.value - slope - rounding
    square = float(np.vdot(move, move))
    return _Trial(point, move, eta, 2 * eta * rise / square if rise > 0 and square > 0 else 0.0)


def _look_ahead(run: Run, here: Point, trial: _Trial, t: float) -> tuple[Point, float]:
    """y and t of the next step; y is the trial itself where there is no momentum."""
    travel = trial.point.params - here.params
    t_next = (1 + math.sqrt(1 + 4 * t * t)) / 2
    momentum = (t - 1) / t_next
    if momentum == 0:
        return trial.point, t_next
    ahead = run.evaluate(run.project(trial.point.params + momentum * travel))
    return (ahead, t_next) if math.isfinite(ahead.value) else (trial.point, 1.0)
