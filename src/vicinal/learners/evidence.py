"""What a learner keeps of its run: the attributes, and the warnings that are due."""

from __future__ import annotations

import warnings
from typing import Any

from vicinal.exceptions import ConvergenceWarning, SaturatedStartWarning
from vicinal.solvers import Solution


def store_evidence(learner: Any, solution: Solution, stacklevel: int) -> None:
    """Keep what the solver reached and how; warn, from there, where it did not converge."""
    learner.objective_ = solution.value
    learner.history_ = solution.history
    learner.n_iter_ = solution.n_iter
    learner.stop_reason_ = solution.stop_reason
    learner.converged_ = solution.converged
    name = type(learner).__name__
    if solution.stop_reason == "interrupted":
        raise KeyboardInterrupt(f"{name} was interrupted; what it had learned is kept")
    if solution.stop_reason == "max_iter":
        warnings.warn(
            f"{name} stopped after max_iter={learner.max_iter} iterations before it converged "
            f"to tol={learner.tol}; raise either, or standardize the features.",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )


def warn_if_flat(learner: Any, solution: Solution, stacklevel: int) -> None:
    """Say so where a run ended where it began: a minimum, if it was a warm start; else no start."""
    ended_at_once = solution.stop_reason == "gradient" and solution.n_iter == 0
    if ended_at_once and solution.value != 0 and not learner.warm_start:
        warnings.warn(
            f"The objective of {type(learner).__name__} is flat at the start, nothing was learned: "
            "the scale of the start is far from the data's. Use init='auto', or standardize the "
            "features.",
            SaturatedStartWarning,
            stacklevel=stacklevel,
        )
