"""How a fit tells what it is doing: through a callback, or through logging."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from vicinal._typing import FloatArray
from vicinal.solvers import Progress

logger = logging.getLogger("vicinal")


@dataclass(frozen=True)
class FitProgress:
    """What a callback is shown after every iteration."""

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
    """The solver's callback that feeds the user's callback and the log; None if nobody listens."""
    if callback is None and not verbose:
        return None
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
        return callback(shown) if callback is not None else None

    return report


def show_log() -> None:
    """Who asks for verbosity wants to see it, also where logging was never configured."""
    if not logger.handlers and not logging.getLogger().handlers:
        logger.addHandler(logging.StreamHandler())
    if logger.getEffectiveLevel() > logging.INFO:
        logger.setLevel(logging.INFO)
