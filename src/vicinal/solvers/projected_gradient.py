"""Algorithm 1 of the paper: projected gradient descent whose step size looks after itself."""

from __future__ import annotations

from numpy.typing import ArrayLike

from vicinal.solvers.problem import Callback, Problem, Solution, StopReason
from vicinal.solvers.run import Run, norm, solve

GROW = 1.05
SHRINK = 0.5


def projected_gradient(
    problem: Problem,
    start: ArrayLike,
    *,
    max_iter: int = 200,
    tol: float = 1e-5,
    callback: Callback | None = None,
) -> Solution:
    """Minimize by the paper's Algorithm 1.

    ::

        θ̂ = ψ(θ − η ∇J(θ))
        J(θ̂) < J(θ):  θ ← θ̂,  η ← 1.05 η        otherwise:  θ stays,  η ← 0.5 η

    Every trial is one iteration and one evaluation, which gives both J(θ̂), to decide, and ∇J(θ̂),
    to go on from if it is accepted. The history (J of the accepted iterates) strictly decreases.

    It is a descent along the gradient, and no such method reaches the minimum of an objective with
    kinks: where every step along one subgradient leads up, others may still lead down. On the hinge
    it ends ("decrease", "step") well above the minimum; `vicinal.solvers.smoothing` does not.

    The paper leaves η0 open. Here the first step moves θ by a tenth of its norm, so that neither
    the units of the data nor the number of samples has to be compensated by hand.
    """
    return solve(_algorithm_1, problem, start, max_iter=max_iter, tol=tol, callback=callback)


def _algorithm_1(run: Run) -> StopReason:
    here, eta = run.start, run.first_step(run.start.gradient)
    while True:
        length = eta * norm(here.gradient)
        if length > 0 and run.vanishes(length):
            return "step"
        trial_params = run.project(here.params - eta * here.gradient)
        move = norm(trial_params - here.params)
        if reason := run.stop(move / eta):
            return reason
        trial = run.evaluate(trial_params)
        if trial.value < here.value:
            here, eta = trial, GROW * eta
            run.accept(here)
        else:
            eta *= SHRINK
        if run.finish_iteration(here, move):
            return "callback"
