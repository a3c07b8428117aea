"""Mini-batches of rows, for problems too large to evaluate once for every step."""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.random import Generator, RandomState
from numpy.typing import ArrayLike, NDArray

from vicinal._typing import FloatArray
from vicinal.solvers.problem import Callback, Problem, Solution, StopReason
from vicinal.solvers.projected_gradient import GROW, SHRINK
from vicinal.solvers.run import FIRST_MOVE, Point, Run, norm, solve

MEAN_MEMORY = 10
SQUARE_MEMORY = 100
"""Steps over which g and ‖g‖² are averaged (where an epoch is short: one epoch, and three)."""

FAR_ABOVE = 0.1
"""An epoch this much (relatively) above the best one has left its valley, and is taken back."""

Rows: TypeAlias = NDArray[np.intp]


def stochastic(
    problem: Problem,
    start: ArrayLike,
    *,
    max_iter: int = 200,
    tol: float = 1e-5,
    callback: Callback | None = None,
    batch_size: int = 256,
    random_state: int | Generator | RandomState | None = None,
) -> Solution:
    """Minimize by normalized momentum steps, with Algorithm 1's step rule between epochs.

    An epoch is a random partition of the rows into B batches, and one step for each::

        θ ← ψ(θ − η‖θ‖/√B · m/√v)      m, v: bias-corrected running means of g and of ‖g‖²

    This is Adam with one v for all of θ. A step is measured against the size of θ, whatever the
    scale of J, and ψ stays the right projection: with a v for each coordinate, the points where
    the steps end would not be the constrained minima.

    After an epoch J̄, the mean of its batch estimates, is compared with the best epoch's: if lower,
    η ← 1.05 η; otherwise η ← 0.5 η, and from far above the run returns to the best point.

    One iteration is one epoch; besides these, J is evaluated on all rows once, at the start. The
    history is J of the start and J̄ of every epoch; **it is not monotone**. The iterate of an epoch
    is the average of its steps: a convex J has J(average) ≤ J̄ in expectation. The best epoch's is
    returned, with its J̄ for the value: an estimate, not J itself.

    The shared stopping rule looks at the epochs that improved on the best, and at their mean
    gradient. "step" says that η fell to ``tol``: an epoch no longer moves θ by more than √B·tol.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}.")
    if not isinstance(random_state, Generator | RandomState):
        random_state = np.random.default_rng(random_state)
    rng = random_state

    def descend(run: Run) -> StopReason:
        return _epochs(run, batch_size, rng)

    return solve(descend, problem, start, max_iter=max_iter, tol=tol, callback=callback)


class _Momentum(NamedTuple):
    """Running means of g and of ‖g‖², with the weights that correct their bias towards zero."""

    mean_decay: float
    square_decay: float
    mean: FloatArray | float = 0.0
    square: float = 0.0
    mean_weight: float = 0.0
    square_weight: float = 0.0

    @classmethod
    def at_rest(cls, n_batches: int) -> _Momentum:
        """No memory yet. It will not reach far beyond an epoch: epochs are what is compared."""
        return cls(1 - 1 / min(MEAN_MEMORY, n_batches), 1 - 1 / min(SQUARE_MEMORY, 3 * n_batches))

    def after(self, gradient: FloatArray) -> _Momentum:
        a, b = self.mean_decay, self.square_decay
        return self._replace(
            mean=a * self.mean + (1 - a) * gradient,
            square=b * self.square + (1 - b) * norm(gradient) ** 2,
            mean_weight=a * self.mean_weight + (1 - a),
            square_weight=b * self.square_weight + (1 - b),
        )

    def direction(self) -> FloatArray | float:
        """m/√v: about unit length where the gradients agree, shorter where they contradict."""
        root = math.sqrt(self.square / self.square_weight)
        return self.mean / (self.mean_weight * root) if root > 0 else 0.0


def _epochs(run: Run, batch_size: int, rng: Generator | RandomState) -> StopReason:
    if reason := run.stop(run.pg_norm(run.start)):
        return reason
    n = run.problem.n_rows
    n_batches = -(-n // batch_size)
    at_rest = _Momentum.at_rest(n_batches)
    here, params, momentum, eta = run.start, run.start.params, at_rest, FIRST_MOVE
    while True:
        batches = [np.sort(rows) for rows in np.array_split(rng.permutation(n), n_batches)]
        epoch, params, momentum = _epoch(run, batches, params, momentum, eta)
        move = norm(epoch.params - here.params)
        best, improved = run.best, epoch.value < run.best.value
        if improved:
            run.accept(epoch)
        elif math.isfinite(epoch.value):
            run.history.append(epoch.value)
        if epoch.value > best.value + FAR_ABOVE * abs(best.value):
            params, momentum = best.params, at_rest
        here = epoch if math.isfinite(epoch.value) else best
        eta *= GROW if improved else SHRINK
        if run.finish_iteration(here, move):
            return "callback"
        if reason := run.stop(run.pg_norm(epoch) if improved else math.inf):
            return reason
        if eta <= run.tol or run.vanishes(eta * run.scale):
            return "step"


def _epoch(
    run: Run, batches: list[Rows], params: FloatArray, momentum: _Momentum, eta: float
) -> tuple[Point, FloatArray, _Momentum]:
    """The average over one epoch of θ, of J's estimate and of its gradient; then where it ended.

    Weighted by the rows of each batch, the estimates of an epoch that stands still add up to J.
    """
    n_rows = sum(map(len, batches))
    mean_params, mean_gradient = np.zeros(params.shape), np.zeros(params.shape)
    mean_value = 0.0
    for rows in batches:
        batch = run.evaluate(params, rows)
        share = len(rows) / n_rows
        mean_value += share * batch.value
        if not math.isfinite(mean_value):
            break
        mean_params += share * params
        mean_gradient += share * batch.gradient
        momentum = momentum.after(batch.gradient)
        length = eta * max(run.scale, norm(params)) / math.sqrt(len(batches))
        params = run.project(params - length * momentum.direction())
    mean = Point(mean_params.astype(run.dtype, copy=False), mean_value, mean_gradient)
    return mean, params, momentum
