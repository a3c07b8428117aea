"""Small problems of one kind, solved in step: one evaluation for all that ask for a point.

Where a problem is small, what an evaluation costs is the way there: a dozen calls of NumPy for
microseconds of arithmetic. Several runs that go in step share that way. Each takes the steps that
it would take alone, and ends when it would.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vicinal._typing import FloatArray
from vicinal.solvers.problem import Callback, Solution, StopReason
from vicinal.solvers.run import Run, Steps, evaluated


class Batch(Protocol):
    """Problems whose parameters have one shape and one feasible set."""

    n_rows: int

    def values_and_gradients(
        self, members: NDArray[np.intp], params: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """(b,) J and (b, …) ∂J/∂params of b of the problems, each at its own (b, …) params."""
        ...

    def project(self, params: FloatArray) -> FloatArray:
        """The nearest feasible point, of any of them."""
        ...


@dataclass(frozen=True)
class _Member:
    """One problem of a batch, as a `Run` knows it."""

    batch: Batch
    number: int

    @property
    def n_rows(self) -> int:
        return self.batch.n_rows

    def value_and_gradient(
        self, params: FloatArray, rows: NDArray[np.intp] | None = None
    ) -> tuple[float, FloatArray]:
        if rows is not None:
            raise ValueError("the problems of a batch are evaluated on all rows")
        values, gradients = self.batch.values_and_gradients(np.array([self.number]), params[None])
        return float(values[0]), gradients[0]

    def project(self, params: FloatArray) -> FloatArray:
        return self.batch.project(params)


def solve_in_step(
    steps: Callable[[Run], Steps],
    batch: Batch,
    starts: Sequence[FloatArray],
    *,
    max_iter: int,
    tol: float,
    callbacks: Sequence[Callback | None],
) -> list[Solution]:
    """Minimize every problem of the batch; the solutions are those of one run after the other.

    Ctrl-C keeps the best point of each so far; before the starts are evaluated there is nothing to
    keep, and it is passed on.

    Parameters
    ----------
    steps : of a solver that is written as a generator, such as ``accelerated.accelerate``
    batch : the problems
    starts : one for each
    max_iter, tol : of every run
    callbacks : one for each, or None
    """
    runs = [
        Run(_Member(batch, b), start, max_iter=max_iter, tol=tol, callback=callback)
        for b, (start, callback) in enumerate(zip(starts, callbacks, strict=True))
    ]
    reasons: list[StopReason] = ["interrupted"] * len(runs)
    with suppress(KeyboardInterrupt):  # what has not ended then was interrupted
        _go(runs, steps, batch, reasons)
    return [run.solution(reason) for run, reason in zip(runs, reasons, strict=True)]


def _go(
    runs: Sequence[Run], steps: Callable[[Run], Steps], batch: Batch, reasons: list[StopReason]
) -> None:
    """Take the steps of all runs, as long as any goes on; ``reasons`` says why each ended."""
    asking = [steps(run) for run in runs]
    wanted: dict[int, FloatArray] = {}

    def advance(number: int, point: object) -> None:
        try:
            wanted[number] = asking[number].send(point)  # type: ignore[arg-type]
        except StopIteration as end:
            reasons[number] = end.value

    for number in range(len(runs)):
        advance(number, None)
    while wanted:
        members, params = np.fromiter(wanted, np.intp), list(wanted.values())
        wanted.clear()
        values, gradients = batch.values_and_gradients(members, np.stack(params))
        for number, at, value, gradient in zip(members, params, values, gradients, strict=True):
            advance(int(number), evaluated(at, float(value), gradient))
