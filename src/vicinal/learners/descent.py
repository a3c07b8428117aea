"""The one way in which learners descend an objective: options, progress, run, outcome."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias, cast

import numpy as np

from vicinal._typing import FloatArray
from vicinal.exceptions import ConvergenceWarning, ExcludedRowsWarning, warn_user
from vicinal.learners.blas_threads import single_threaded_blas
from vicinal.learners.fit_input import FitInput, store_fit
from vicinal.learners.parameters import (
    CALLBACK,
    COUNT,
    NOT_NEGATIVE,
    OPTIONAL_COUNT,
    ArrayGiven,
    OneOf,
    ParameterConstraints,
    check_n_components,
)
from vicinal.objective.parametrization import Factor, Metric, Parametrization
from vicinal.solvers import SOLVERS, Problem, Progress, Solution, solver_of

logger = logging.getLogger("vicinal")


@dataclass(frozen=True)
class FitProgress:
    """The state of a fit after an iteration, as a callback sees it."""

    n_iter: int
    objective: float
    step: float
    _components: Callable[[], FloatArray] = field(repr=False)

    @property
    def components(self) -> FloatArray:
        """(m, d) the current L, in the units of the data; computed when it is asked for."""
        return self._components()


FitCallback: TypeAlias = Callable[[FitProgress], bool | None]


def fit_callback(
    name: str,
    callback: FitCallback | None,
    verbose: int,
    n_iter_before: int,
    to_components: Callable[[FloatArray], FloatArray],
) -> Callable[[Progress], bool | None] | None:
    """The solver's callback that feeds the user's callback and the log; None without both."""
    if callback is None and not verbose:
        return None
    listener = None if callback is None else _of_one_argument(callback)
    if verbose:
        show_log()

    def report(progress: Progress) -> bool | None:
        shown = FitProgress(
            n_iter_before + progress.n_iter,
            progress.value,
            progress.step,
            lambda: to_components(progress.params),
        )
        if verbose > 1 or (verbose and shown.n_iter % 10 == 0):
            logger.info("%s iteration %d: objective %.8g", name, shown.n_iter, shown.objective)
        return listener(shown) if listener is not None else None

    return report


def _of_one_argument(callback: Callable[..., object]) -> FitCallback:
    """The callback itself; one of two arguments is called as scikit-learn's NCA calls it."""
    try:
        parameters = inspect.signature(callback).parameters.values()
    except (TypeError, ValueError):  # some built-in functions do not tell
        return cast(FitCallback, callback)
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [p for p in parameters if p.kind in positional and p.default is p.empty]
    if len(needed) != 2:
        return cast(FitCallback, callback)

    def with_flat_components(progress: FitProgress) -> None:
        callback(progress.components.ravel(), progress.n_iter)

    return with_flat_components


def show_log() -> None:
    """Make the log visible, also where logging was never configured."""
    if not logger.handlers and not logging.getLogger().handlers:
        logger.addHandler(logging.StreamHandler())
    if logger.getEffectiveLevel() > logging.INFO:
        logger.setLevel(logging.INFO)


MATRIX_SOLVERS = ("pgd", "apg")
"""Those that minimize over M; the others minimize over L."""

ALONE = (
    "are the only one of their class: nothing can be near them, they count only as samples of "
    "another class"
)
STANDARDIZE = "raise either, or standardize the features"
FAILED = {
    "stalled": "the objective no longer decreases, but the smallest subgradient is not negligible",
    "unbounded": "the objective has no minimum; use another loss, or regularization",
}
"""Reasons to stop, other than the limits that were set, for which a fit has not converged."""

CONSTRAINTS: ParameterConstraints = {
    "n_components": OPTIONAL_COUNT,
    "init": OneOf(("auto", "identity", "pca", "lda", "random"), ArrayGiven()),
    "solver": OneOf(("lbfgs", *MATRIX_SOLVERS)),
    "max_iter": COUNT,
    "tol": NOT_NEGATIVE,
    "callback": CALLBACK,
}
"""Parameters that the learners with an objective of their own have in common."""

ProblemAt: TypeAlias = Callable[[FloatArray | None], Problem]
"""The problem at a factor L (m, d), which decides who is a neighbor; at None the first one."""


@dataclass(frozen=True)
class FitOptions:
    """The parameters of a learner that the solver and the progress need."""

    name: str
    """Of the learner, for messages."""
    solver: str
    max_iter: int
    tol: float
    callback: FitCallback | None
    verbose: int
    refresh_every: int | None = None
    """Iterations after which the problem is made anew; None never."""
    flat_leg_ends: bool = True
    """Whether the run ends with a leg that hardly decreases the objective, however short it is."""
    solver_options: Mapping[str, object] = field(default_factory=dict)

    @property
    def parametrization(self) -> Parametrization:
        """L for the solvers that minimize over the factor, M for those that project."""
        return Metric() if self.solver in MATRIX_SOLVERS else Factor()

    def params_of(self, L: FloatArray) -> FloatArray:
        """A factor as the parameters of the solver."""
        return L.T @ L if self.solver in MATRIX_SOLVERS else L


class Descending(Protocol):
    """A learner whose parameters say how it descends."""

    solver: str
    max_iter: int
    tol: float
    callback: FitCallback | None
    verbose: int
    n_components: int | None


def fit_options(learner: Descending, d: int) -> FitOptions:
    """The options of a learner whose parameters have been checked; d is the number of features."""
    check_n_components(learner.n_components, d)
    check_rank(learner.solver, learner.n_components, d, "solver='lbfgs'")
    return FitOptions(
        name=type(learner).__name__,
        solver=learner.solver,
        max_iter=learner.max_iter,
        tol=learner.tol,
        callback=learner.callback,
        verbose=learner.verbose,
    )


def check_rank(solver: str, n_components: int | None, d: int, others: str) -> None:
    """Refuse a low rank for the solvers that learn the whole matrix; ``others`` can do it."""
    if solver in MATRIX_SOLVERS and n_components not in (None, d):
        raise ValueError(
            f"solver={solver!r} learns the whole matrix M and cannot keep it at rank "
            f"n_components={n_components}; use {others}, or n_components=None"
        )


def descend(
    options: FitOptions,
    start: FloatArray,
    problem_at: ProblemAt,
    to_components: Callable[[FloatArray], FloatArray],
) -> Solution:
    """Minimize; if the problem is to be refreshed, in legs of so many iterations.

    Parameters
    ----------
    options : solver, limits, callback
    start : parameters, as ``options.params_of`` makes them
    problem_at : makes the problem, at first and after every leg
    to_components : from parameters to what a callback sees
    """
    leg = options.refresh_every or options.max_iter

    def solver(problem: Problem) -> Callable[..., Solution]:
        # A problem that is soon replaced by another is not worth smoothing.
        name, lasting = options.solver, options.refresh_every is None
        return solver_of(name, problem) if lasting else SOLVERS[name]

    def solve(problem: Problem, params: FloatArray, n_iter: int) -> Solution:
        report = fit_callback(
            options.name, options.callback, options.verbose, n_iter, to_components
        )
        return solver(problem)(
            problem,
            params,
            max_iter=min(leg, options.max_iter - n_iter),
            tol=options.tol,
            callback=report,
            **options.solver_options,
        )

    with single_threaded_blas():
        solution = solve(problem_at(None), start, 0)
        while solution.stop_reason == "max_iter" and solution.n_iter < options.max_iter:
            L = options.parametrization.factor(solution.params)
            following = solve(problem_at(L), solution.params, solution.n_iter)
            solution = _joined(solution, following)
            if options.flat_leg_ends and _is_flat(following, options.tol):
                return replace(solution, stop_reason="decrease")
    return solution


def _joined(first: Solution, second: Solution) -> Solution:
    """Two legs as one run."""
    return replace(
        second,
        n_iter=first.n_iter + second.n_iter,
        history=np.concatenate([first.history, second.history[1:]]),
    )


def _is_flat(leg: Solution, tol: float) -> bool:
    """Whether a leg that used up its iterations has hardly decreased the objective."""
    gained = leg.history[0] - leg.value
    enough = max(leg.n_iter, 1) * tol * abs(leg.value)
    return leg.stop_reason == "max_iter" and bool(gained <= enough)


class Outcome(Protocol):
    """The end of an iterative fit; a ``Solution`` is one."""

    @property
    def value(self) -> float: ...
    @property
    def n_iter(self) -> int: ...
    @property
    def stop_reason(self) -> str: ...
    @property
    def converged(self) -> bool: ...
    @property
    def history(self) -> FloatArray: ...


def store_solution(
    learner: object,
    given: FitInput,
    found: Outcome,
    *,
    tol: float,
    advice: str | None = STANDARDIZE,
    **attributes: object,
) -> None:
    """Set all attributes of an iterative fit at once, and tell where it did not converge.

    Parameters
    ----------
    learner : what was fitted
    given : the input, with the attributes that it gives
    found : how the fit ended
    tol : the tolerance that was asked for
    advice : the end of the warning where the iterations ran out; None for none
    **attributes : ``components_`` and what else the learner has
    """
    outcome = {
        "objective_": found.value,
        "history_": found.history,
        "n_iter_": found.n_iter,
        "stop_reason_": found.stop_reason,
        "converged_": found.converged,
    }
    store_fit(learner, {**given.attributes, **attributes, **outcome})
    name = type(learner).__name__
    if found.stop_reason == "interrupted":
        raise KeyboardInterrupt(f"{name} was interrupted; what it had learned is kept")
    if found.stop_reason in FAILED:
        warn_user(f"{name} did not converge: {FAILED[found.stop_reason]}.", ConvergenceWarning)
    if found.stop_reason == "max_iter" and advice is not None:
        warn_user(
            f"{name} stopped after max_iter={found.n_iter} iterations before it converged to "
            f"tol={tol}; {advice}.",
            ConvergenceWarning,
        )


def warn_excluded(n_excluded: int, n: int, reason: str) -> None:
    """Tell of samples that are left out; if all are, an error will follow."""
    if 0 < n_excluded < n:
        warn_user(f"{n_excluded} of {n} samples {reason}.", ExcludedRowsWarning)
