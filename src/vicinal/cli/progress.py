"""Progress bars with the time left: on a terminal only."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn


class ProgressBar:
    """One bar on stderr, which starts anew with every stage; nothing where that is no terminal."""

    def __init__(self) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=Console(stderr=True, markup=False),
            disable=not sys.stderr.isatty(),
            transient=True,
        )
        self._stage = ""
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def __call__(self, stage: str, done: float | None) -> None:
        """Show a stage and how much of it is done, 0 to 1; None where that is unknown."""
        if self._task is None or stage != self._stage:
            if self._task is not None:
                self._progress.remove_task(self._task)
            self._stage, self._task = stage, self._progress.add_task(stage, total=None)
        total = None if done is None else 1.0
        self._progress.update(self._task, completed=done or 0.0, total=total)
