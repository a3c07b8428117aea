"""Solvers, which minimize an objective. They import NumPy and SciPy, and each other.

::

    Problem                              solver                            Solution
    value_and_gradient(θ, rows=None) ──▶ solver(problem, start, *,     ──▶ params   the best θ
    project(θ)                             max_iter, tol, callback)        value    its J
    n_rows                                   │            ▲                n_iter, stop_reason
                                             ▼            │                history  J of iterates
                                         Progress ──▶ callback: true stops

    "pgd"    projected_gradient              the paper's Algorithm 1            any convex set
    "apg"    accelerated_projected_gradient  FISTA, restarted; convex problems  any convex set
    "lbfgs"  lbfgs                           quasi-Newton                       no constraint
    "sgd"    stochastic                      mini-batches of rows               any convex set

For an objective that is convex or has kinks, `solver_of` gives "apg" and "lbfgs" in a form that
smooths the kinks less and less (``smoothing.py``), and says whether it has reached the minimum.

``tol`` and ``max_iter`` mean the same in all of them (``stopping.py``), no step size is asked for,
and neither the scale of J nor that of θ matters. Parameters are arrays of any shape; they come back
in the dtype of the start, which is never written to. Ctrl-C returns the best point so far with the
reason "interrupted"; a start at which J is not finite is a ``ValueError``. Solvers never print or
warn: that is for the caller, who knows what the numbers mean.

A new solver is one function ``descend(run) -> StopReason`` (``run.py``) and one line below.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from vicinal.solvers.accelerated import accelerated_projected_gradient
from vicinal.solvers.lbfgs import lbfgs
from vicinal.solvers.problem import Callback, Problem, Progress, Solution, StopReason
from vicinal.solvers.projected_gradient import projected_gradient
from vicinal.solvers.smoothing import (
    SmoothableProblem,
    smoothed_lbfgs,
    smoothed_projected_gradient,
)
from vicinal.solvers.stochastic import stochastic

SOLVERS: Mapping[str, Callable[..., Solution]] = MappingProxyType(
    {
        "pgd": projected_gradient,
        "apg": accelerated_projected_gradient,
        "lbfgs": lbfgs,
        "sgd": stochastic,
    }
)

SMOOTHING_SOLVERS: Mapping[str, Callable[..., Solution]] = MappingProxyType(
    {"apg": smoothed_projected_gradient, "lbfgs": smoothed_lbfgs}
)


def solver_of(name: str, problem: Problem) -> Callable[..., Solution]:
    """The solver of that name, in the form that suits the problem."""
    certifies = isinstance(problem, SmoothableProblem) and (problem.has_kinks or problem.is_convex)
    return SMOOTHING_SOLVERS[name] if certifies and name in SMOOTHING_SOLVERS else SOLVERS[name]


__all__ = [
    "SMOOTHING_SOLVERS",
    "SOLVERS",
    "Callback",
    "Problem",
    "Progress",
    "SmoothableProblem",
    "Solution",
    "StopReason",
    "accelerated_projected_gradient",
    "lbfgs",
    "projected_gradient",
    "smoothed_lbfgs",
    "smoothed_projected_gradient",
    "solver_of",
    "stochastic",
]
