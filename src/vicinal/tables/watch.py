"""How a fit is watched: how far it is, and when its time is up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any, TypeAlias

Listener: TypeAlias = Callable[[str, float | None], None]
"""Told the stage of a fit and how much of it is done (0 to 1; None where that is unknown)."""


@dataclass(frozen=True)
class Stage:
    """What is being done; `share` of a stage of several fits, from `begin` on."""

    name: str
    begin: float = 0.0
    share: float = 1.0


class Watch:
    """A deadline, and somebody who wants to know.

    Parameters
    ----------
    max_time : float or None
        Seconds from now.
    listener : callable or None
    """

    def __init__(self, max_time: float | None = None, listener: Listener | None = None) -> None:
        self._end = None if max_time is None else monotonic() + max_time
        self._listener = listener

    @property
    def remaining(self) -> float | None:
        """Seconds until the deadline, not below 0; None without one."""
        return None if self._end is None else max(0.0, self._end - monotonic())

    @property
    def expired(self) -> bool:
        """Whether the time is up."""
        return self.remaining == 0.0

    def tell(self, stage: str, done: float | None = None) -> None:
        """Say how far it is."""
        if self._listener is not None:
            self._listener(stage, done)

    def callback(self, stage: Stage, max_iter: int | None) -> Callable[[Any], bool]:
        """What a learner calls after each iteration: it stops when the time is up."""

        def after_iteration(progress: Any) -> bool:
            done = 0.0 if max_iter is None else progress.n_iter / max_iter
            unknown = max_iter is None and stage.share == 1.0
            self.tell(stage.name, None if unknown else stage.begin + stage.share * done)
            return self.expired

        return after_iteration

    def counter(self, stage: str, n_fits: int) -> Callable[[Any], bool]:
        """The same for a search of `n_fits` fits, which are counted by their first iterations."""
        begun = 0

        def after_iteration(progress: Any) -> bool:
            nonlocal begun
            begun += progress.n_iter == 1
            self.tell(stage, min(1.0, begun / n_fits))
            return self.expired

        return after_iteration
