"""The stopping rule: one for all solvers, so that ``tol`` means the same in each.

Both tests are free of units. Neither the objective's scale (J or 10¹²·J) nor the parameters' scale
(θ in metres or in millimetres) changes the iteration at which a run stops.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vicinal.solvers.problem import StopReason

WINDOW = 5
"""Iterations over which the decrease is averaged: one short step alone is not convergence."""

EPS = float(np.finfo(np.float64).eps)


def negligible_gradient(pg_norm: float, scale: float, value: float, tol: float) -> bool:
    """Whether ‖pg‖·‖θ‖ ≤ tol·|J|, with pg = (θ − ψ(θ − η∇J))/η the projected gradient.

    To first order, the left side bounds what a move as long as θ itself can gain. For a convex J it
    bounds the error too, J − J* ≤ ‖pg‖·‖θ − θ*‖: a run that stops here is within a relative ``tol``
    of the optimum, up to the ratio ‖θ − θ*‖/‖θ‖. So the same ``tol`` serves both tests.

    ``scale`` is the size of the parameters (see ``Run.scale``). A vanishing pg always stops.
    """
    return pg_norm == 0.0 or pg_norm * scale <= tol * abs(value)


def negligible_decrease(lowest: Sequence[float], tol: float) -> bool:
    """Whether (J_{k−5} − J_k) ≤ 5·tol·|J_k|: the mean relative decrease per iteration.

    ``lowest[k]`` is the lowest J of the iterates 0 … k, which for a descent method is J_k itself;
    the estimates of a stochastic run go up and down, their running minimum does not.

    Where J runs down to zero no decrease is ever small beside it, and an iteration would go on
    until it underflows: below ε·|J_0| it is taken for zero.
    """
    if len(lowest) <= WINDOW:
        return False
    floor = EPS * max(abs(lowest[0]), abs(lowest[-1]))
    return lowest[-1 - WINDOW] - lowest[-1] <= WINDOW * tol * max(abs(lowest[-1]), floor)


def stop_reason(
    *,
    pg_norm: float,
    scale: float,
    lowest: Sequence[float],
    n_iter: int,
    max_iter: int,
    tol: float,
) -> StopReason | None:
    """The first of "gradient", "decrease" and "max_iter" that holds at the current iterate."""
    if negligible_gradient(pg_norm, scale, lowest[-1], tol):
        return "gradient"
    if negligible_decrease(lowest, tol):
        return "decrease"
    return "max_iter" if n_iter >= max_iter else None
