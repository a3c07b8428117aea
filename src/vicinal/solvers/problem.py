"""Interface of a problem as solvers see it, and the solution that they return."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vicinal._typing import FloatArray

StopReason = Literal[
    "gradient",  # the projected gradient is negligible
    "decrease",  # the objective no longer decreases
    "step",  # no step, however small, decreases the objective
    "stationary",  # the smallest subgradient at the kinks is negligible
    "stalled",  # the objective no longer decreases, but the smallest subgradient is not negligible
    "unbounded",  # the objective has no minimum
    "max_iter",  # the iterations are used up
    "callback",  # the callback asked to stop
    "interrupted",  # Ctrl-C; the best iterate is kept
]

CONVERGED: frozenset[str] = frozenset({"gradient", "decrease", "step", "stationary"})


class Problem(Protocol):
    """A differentiable (or subdifferentiable) function on a closed convex set.

    Evaluation is pure: it prints, counts and changes nothing.
    """

    @property
    def n_rows(self) -> int:
        """The objective is a sum over this many rows (samples)."""
        ...

    def value_and_gradient(
        self, params: FloatArray, rows: NDArray[np.intp] | None = None
    ) -> tuple[float, FloatArray]:
        """J and ∂J/∂params; with ``rows``, their unbiased estimates from these anchor rows."""
        ...

    def project(self, params: FloatArray) -> FloatArray:
        """The nearest feasible point (the identity where every point is feasible)."""
        ...


@dataclass(frozen=True)
class Progress:
    """The state after one iteration, as a callback sees it."""

    n_iter: int
    value: float
    params: FloatArray
    step: float
    """How far this iteration moved the parameters (or tried to, where it was rejected)."""


Callback: TypeAlias = Callable[[Progress], bool | None]
"""Called after every iteration; a true return value stops the run."""


@dataclass(frozen=True)
class Solution:
    """The best point found, and the evidence of how it was found."""

    params: FloatArray
    value: float
    n_iter: int
    stop_reason: StopReason
    history: FloatArray
    """J of the start and of every accepted iterate; ``value`` is the lowest of them."""

    @property
    def converged(self) -> bool:
        return self.stop_reason in CONVERGED
