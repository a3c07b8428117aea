"""Minimization up to a proof: kinks are smoothed less and less, and the end is certified.

Where the hinge, or a maximum, has a kink, the gradient says nothing about the other side, and a
descent along it ends far above the minimum. So the objective J is replaced by a smooth J_w that
differs from it by at most a multiple of the width w. J_w is minimized, and its minimum is the start
for a smaller w (Nesterov 2005; Beck and Teboulle 2012). An objective without kinks is its own J_w.

The certificate
---------------
Let J be convex and J_w ≤ J. A tangent of J_w, at any point, is below J everywhere. Its gradient is
therefore an ε-subgradient of J at θ, where ε is the height of J(θ) above the tangent, and so is
every convex combination of such gradients. The smallest one, g, proves that

    J(θ) − J(θ′) ≤ ε + ‖g‖·‖θ − θ′‖    for every θ′.

It is found by least squares over the latest tangents: no gradient of a single row is needed, and it
does not matter where the kinks come from. Where J cannot be negative, zero is a tangent too, with
g = 0. Both norms are taken in coordinates in which the samples are about uncorrelated and of one
size, so that the units of the features do not matter. A run is "stationary" if both ε and ‖g‖·‖θ‖
are small beside J; if it ends without that, it is "stalled" and has not converged.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls

from vicinal._typing import FloatArray, IndexArray
from vicinal.solvers.accelerated import accelerated_projected_gradient
from vicinal.solvers.continued_bfgs import ContinuedBfgs
from vicinal.solvers.problem import Callback, Problem, Progress, Solution, StopReason
from vicinal.solvers.run import FIRST_MOVE, norm

SHRINK = 0.2
"""Factor from one width to the next, and from one tolerance to the next."""
NARROWEST = 1e-7
ROUGH = 1e-3
"""The tolerance at widths that are not yet small enough."""
TIGHTEST = 1e-3
"""The smallest tolerance, relative to the one asked for, at which a certificate is sought."""
ACCURACY = 100.0
"""ε/J of the certificate, relative to ``tol``: where steps shrink by 1 % from one to the next, 100
times the last decrease is left."""
BEST_ACCURACY = 1e-5
"""What rounding leaves of a certificate where kinks are narrow: ``tol`` may ask for more."""
STATIONARY = 10.0
"""‖g‖·‖θ‖/J of the certificate, relative to ε/J: near a minimum this is of the first order in the
distance from the minimum, and what J can still fall is of the second."""
FLOOR = 0.1
"""What is added to J, per row, in all that is relative to J, so that J may be nearly zero."""
TANGENTS = 30
"""The latest evaluations among which the smallest subgradient is sought."""


ENDED: tuple[StopReason, ...] = ("callback", "interrupted", "max_iter", "unbounded")
"""Reasons of one width that end the whole run."""


class CoordinateChange(Protocol):
    """A change of variables θ = θ(η)."""

    @property
    def to_params(self) -> Callable[[FloatArray], FloatArray]:
        """The map from coordinates η to parameters θ."""
        ...

    @property
    def from_params(self) -> Callable[[FloatArray], FloatArray]:
        """The map from parameters θ to coordinates η."""
        ...

    @property
    def gradient(self) -> Callable[[FloatArray, FloatArray], FloatArray]:
        """∂J/∂η of η and ∂J/∂θ."""
        ...


@runtime_checkable
class SmoothableProblem(Problem, Protocol):
    """A problem that can be smoothed, and whose minimum can be certified."""

    @property
    def has_kinks(self) -> bool:
        """Whether there is anything to smooth."""
        ...

    @property
    def is_convex(self) -> bool:
        """Whether a stationary point is a minimum, and hence worth a certificate."""
        ...

    @property
    def coordinates(self) -> CoordinateChange:
        """Coordinates in which every point is feasible: those that BFGS descends in."""
        ...

    @property
    def measure(self) -> CoordinateChange:
        """Linear coordinates, of the same feasible set, in which the certificate is measured."""
        ...

    @property
    def height(self) -> float:
        """A natural size of J: the sum of the weights of the rows."""
        ...

    @property
    def bound(self) -> float:
        """A number that J is never below: zero, or −inf."""
        ...

    def smoothed(self, params: FloatArray, width: float) -> tuple[float, FloatArray, float]:
        """J_w and ∂J_w/∂params for the width w, and J, all at ``params``."""
        ...


Solver: TypeAlias = Callable[..., Solution]


def smoothed_lbfgs(
    problem: SmoothableProblem,
    start: ArrayLike,
    *,
    max_iter: int = 200,
    tol: float = 1e-5,
    callback: Callback | None = None,
) -> Solution:
    """Minimize by BFGS on less and less smoothed objectives, in the problem's coordinates.

    ``tol`` is the mean relative decrease per iteration at which a width is done, as for all
    solvers; with the default the certificate has ε ≤ 0.001·J and ‖g‖·‖θ‖ ≤ 0.01·J. The history is
    J of the start and of every iterate that lowered it.
    """
    coordinates = problem.coordinates
    return _Continuation(problem, coordinates, ContinuedBfgs(), max_iter, tol, callback).run(start)


def smoothed_projected_gradient(
    problem: SmoothableProblem,
    start: ArrayLike,
    *,
    max_iter: int = 200,
    tol: float = 1e-5,
    callback: Callback | None = None,
) -> Solution:
    """Minimize by the accelerated projected gradient on less and less smoothed objectives.

    It descends in the parameters themselves. See `smoothed_lbfgs`.
    """
    solver = accelerated_projected_gradient
    return _Continuation(problem, _SAME, solver, max_iter, tol, callback).run(start)


class _Same(NamedTuple):
    """The coordinates that are the parameters themselves."""

    to_params: Callable[[FloatArray], FloatArray] = lambda params: params
    from_params: Callable[[FloatArray], FloatArray] = lambda params: params
    gradient: Callable[[FloatArray, FloatArray], FloatArray] = lambda params, gradient: gradient


_SAME = _Same()


class Tangent(NamedTuple):
    """An evaluation: where (in the solver's coordinates, and θ), J_w and ∂J_w/∂θ, and J."""

    place: FloatArray
    params: FloatArray
    value: float
    gradient: FloatArray
    exact: float

    def error_at(self, other: Tangent) -> float:
        """The distance of this tangent from J at the other point."""
        reached = self.value + float(np.vdot(self.gradient, other.params - self.params))
        return abs(other.exact - reached)


@dataclass(frozen=True)
class Stage:
    """The problem of one width, in its coordinates, with a memory of the latest evaluations.

    A constant is added to J_w: J may be nearly zero, and solvers stop by a relative decrease.
    """

    problem: SmoothableProblem
    coordinates: CoordinateChange
    width: float
    seen: deque[Tangent]

    @property
    def n_rows(self) -> int:
        return self.problem.n_rows

    def value_and_gradient(
        self, params: FloatArray, rows: IndexArray | None = None
    ) -> tuple[float, FloatArray]:
        """J_w plus the constant, and its gradient, from all rows."""
        theta = self.coordinates.to_params(params).astype(params.dtype, copy=False)
        value, gradient, exact = self.problem.smoothed(theta, self.width)
        self.seen.append(Tangent(params, theta, value, gradient, exact))
        descent = self.coordinates.gradient(params, gradient)
        return value + FLOOR * self.problem.height, descent

    def project(self, params: FloatArray) -> FloatArray:
        """The nearest feasible point."""
        return self.problem.project(params)

    def tangent(self, params: FloatArray) -> Tangent:
        """The evaluation at ``params``, which is made again if it is not among the latest."""
        for tangent in reversed(self.seen):
            if np.array_equal(tangent.place, params):
                return tangent
        self.value_and_gradient(params)
        return self.seen[-1]

    def limit(self, end: Tangent, accuracy: float, factor: float = 1.0) -> float:
        """A difference of J that is negligible at the end: relative to J, and absolute."""
        return accuracy * (factor * abs(end.exact) + FLOOR * self.problem.height)

    def certifies(self, end: Tangent, accuracy: float) -> bool:
        """Whether the latest tangents prove that the end is a minimum, to this accuracy."""
        negligible = self.limit(end, accuracy)
        if end.exact - self.problem.bound <= negligible:
            return True
        measure = self.problem.measure
        near = [
            measure.gradient(end.params, tangent.gradient)
            for tangent in self.seen
            if tangent.error_at(end) <= negligible and np.isfinite(tangent.gradient).all()
        ]
        point = measure.from_params(end.params)
        drop = norm(self.smallest_subgradient(point, near)) * norm(point)
        return bool(near) and drop <= self.limit(end, accuracy, STATIONARY)

    def smallest_subgradient(
        self, point: FloatArray, gradients: Sequence[FloatArray]
    ) -> FloatArray:
        """The smallest convex combination of the gradients at a point, as they are measured.

        Where not every point is feasible, g stands for the projected (θ − ψ(θ − ηg))/η.
        """
        longest, scale = max(map(norm, gradients), default=0.0), norm(point)
        if longest == 0.0 or scale == 0.0:
            return np.zeros_like(point)
        eta = FIRST_MOVE * scale / longest

        def projected(gradient: FloatArray) -> FloatArray:
            return (point - self.project(point - eta * gradient)) / eta

        shares = smallest_in_hull([projected(gradient) for gradient in gradients])
        return projected(np.tensordot(shares, np.stack(gradients), axes=1))


class _Continuation:
    """One run over all widths. It keeps the best point by J itself."""

    def __init__(
        self,
        problem: SmoothableProblem,
        coordinates: CoordinateChange,
        solver: Solver,
        max_iter: int,
        tol: float,
        callback: Callback | None,
    ) -> None:
        self._problem, self._coordinates, self._solver = problem, coordinates, solver
        self._max_iter, self._tol, self._callback = max_iter, tol, callback
        self._accuracy = max(ACCURACY * tol, BEST_ACCURACY)
        self._n_iter = 0

    def run(self, start: ArrayLike) -> Solution:
        params = np.array(start)  # a copy: the caller's start is never written to
        self._best = params if params.dtype.kind == "f" else params.astype(np.float64)
        self._history = [self._problem.value_and_gradient(self._best)[0]]
        try:
            reason = self._descend(self._coordinates.from_params(self._best))
        except KeyboardInterrupt:
            reason = "interrupted"
        history = np.array(self._history)
        return Solution(self._best, float(history[-1]), self._n_iter, reason, history)

    def _descend(self, params: FloatArray) -> StopReason:
        """Minimize at smaller and smaller widths, then to smaller and smaller tolerances."""
        width, tol = self._first_width(), max(self._tol, ROUGH)
        params = params.astype(self._best.dtype, copy=False)
        while True:
            stage = Stage(self._problem, self._coordinates, width, deque(maxlen=TANGENTS))
            found = self._minimize(stage, params, tol)
            if found.stop_reason in ENDED:
                return found.stop_reason
            params = found.params
            end = stage.tangent(params)
            if end.error_at(end) > stage.limit(end, self._accuracy) and width > NARROWEST:
                width *= SHRINK
            elif tol > self._tol:
                tol = self._tol
            elif stage.certifies(end, self._accuracy):
                return "gradient" if self._is_flat(stage, end) else "stationary"
            elif found.stop_reason == "step" or tol <= TIGHTEST * self._tol:
                return "stalled"
            else:
                tol *= SHRINK

    def _is_flat(self, stage: Stage, end: Tangent) -> bool:
        """Whether the start has no gradient, though J is not negligible there."""
        drop = norm(end.gradient) * norm(end.params)
        small = end.exact - self._problem.bound <= stage.limit(end, self._accuracy)
        return self._n_iter == 0 and not small and drop <= self._tol * abs(end.exact)

    def _first_width(self) -> float:
        """The mean loss of a row: about how far rows are from their kinks. At most 1."""
        mean = abs(self._history[0]) / self._problem.height
        return min(1.0, mean) if mean > 0 else 1.0

    def _minimize(self, stage: Stage, params: FloatArray, tol: float) -> Solution:
        """Minimize at one width, and keep the iterates that lower J."""
        before = self._n_iter

        def watch(progress: Progress) -> bool | None:
            exact = stage.tangent(progress.params).exact
            theta = self._coordinates.to_params(progress.params)
            theta = theta.astype(self._best.dtype, copy=False)
            self._n_iter = before + progress.n_iter
            if exact < self._history[-1]:
                self._best = theta
                self._history.append(exact)
            if self._callback is None:
                return False
            return self._callback(Progress(self._n_iter, exact, theta, progress.step))

        left = self._max_iter - self._n_iter
        return self._solver(stage, params, max_iter=left, tol=tol, callback=watch)


def smallest_in_hull(vectors: Sequence[FloatArray]) -> FloatArray:
    """(k,) nonnegative shares of sum 1 with which k vectors add up to the shortest vector."""
    V = np.stack([vector.ravel() for vector in vectors], axis=1).astype(np.float64)  # (p, k)
    longest = np.abs(V).max()
    if longest == 0.0 or not np.isfinite(longest):  # what overflowed certifies nothing
        return np.full(len(vectors), 1.0 / len(vectors))
    # The nonnegative least squares solution of (V; 1)·x = (0; 1), divided by its sum.
    system = np.vstack([V / longest, np.ones(len(vectors))])
    shares, _ = nnls(system, np.append(np.zeros(len(V)), 1.0))
    return np.asarray(shares / shares.sum())
