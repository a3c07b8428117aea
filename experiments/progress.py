"""Display of a run: running tasks, finished tasks and remaining time per data set."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TextIO

from experiments.records import Record

SECONDS_BETWEEN_LINES = 15.0


class ProgressListener(Protocol):
    """Told about starts and records of a run, inside ``with``."""

    def __enter__(self) -> Any: ...
    def __exit__(self, *exception: object) -> None: ...
    def started(self, task: str, dataset: str) -> None:
        """A task was handed to a worker."""
        ...

    def finished(self, record: Record) -> None:
        """Its record was written."""
        ...


class Silent:
    """Listener that shows nothing."""

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def started(self, task: str, dataset: str) -> None:
        pass

    def finished(self, record: Record) -> None:
        pass


@dataclass
class Tally:
    """Counts of one data set."""

    total: int
    done: int = 0
    failed: int = 0
    seconds: float = 0.0
    """Spent on records of this run."""
    timed: int = 0
    latest: str = ""

    def add(self, record: Record) -> None:
        """Count a record and its time."""
        self.done += 1
        self.failed += record.error is not None
        if record.seconds is not None:
            self.seconds += record.seconds
            self.timed += 1


class Board:
    """The tallies of all data sets, and the time that is left.

    Parameters
    ----------
    wanted : data set → its tasks
    done : asks which tasks have a record, whoever computed it
    n_jobs : how many work at once
    """

    def __init__(
        self, wanted: dict[str, set[str]], done: Callable[[], set[str]], n_jobs: int
    ) -> None:
        self._wanted, self._ask = wanted, done
        self.tallies = {name: Tally(len(tasks)) for name, tasks in wanted.items()}
        self.n_jobs = max(1, n_jobs)
        self.count()
        self._start, self._done_before = time.monotonic(), self._done
        self._last = -SECONDS_BETWEEN_LINES

    def count(self) -> None:
        """Count what is done, by this process and by others."""
        done = self._ask()
        for name, tasks in self._wanted.items():
            self.tallies[name].done = len(tasks & done)

    def due(self) -> bool:
        """Whether the next line is due; everything is counted again then."""
        now = time.monotonic()
        if now - self._last < SECONDS_BETWEEN_LINES:
            return False
        self._last = now
        self.count()
        return True

    @property
    def _done(self) -> int:
        return sum(tally.done for tally in self.tallies.values())

    def left(self, name: str) -> float | None:
        """Seconds that the rest of a data set will take; None while nothing is known.

        At the mean time of its own records, or where they have none, at the pace of all.
        """
        tally = self.tallies[name]
        missing, done = tally.total - tally.done, self._done - self._done_before
        if not missing:
            return 0.0
        if tally.timed:
            return missing * tally.seconds / tally.timed / self.n_jobs
        return missing * (time.monotonic() - self._start) / done if done else None

    def all_left(self) -> float | None:
        """Seconds until everything is done; None while nothing is known."""
        left = [self.left(name) for name in self.tallies]
        known = [seconds for seconds in left if seconds is not None]
        return sum(known) if len(known) == len(left) else None

    def line(self, name: str) -> str:
        """Line about one data set."""
        tally = self.tallies[name]
        failed = f", {tally.failed} failed" if tally.failed else ""
        return f"{name:<11}{tally.done:>5}/{tally.total}{failed}, {in_words(self.left(name))} left"


def in_words(seconds: float | None) -> str:
    """Text of a duration.

    Parameters
    ----------
    seconds : None where it is unknown
    """
    if seconds is None:
        return "?"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


class Lines:
    """Plain lines, at most one every 15 seconds, for pipes and log files.

    Parameters
    ----------
    board : the counts
    out : where to
    """

    def __init__(self, board: Board, out: TextIO | None = None) -> None:
        self.board, self.out = board, out or sys.stdout

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *exception: object) -> None:
        self.board.count()
        for name in self.board.tallies:
            print(self.board.line(name), file=self.out, flush=True)

    def started(self, task: str, dataset: str) -> None:
        self.board.tallies[dataset].latest = task

    def finished(self, record: Record) -> None:
        tally = self.board.tallies[record.dataset]
        tally.add(record)
        if record.error is not None:
            print(f"{record.task} failed: {record.error}", file=self.out, flush=True)
        if self.board.due():
            everything = f"{in_words(self.board.all_left())} in all"
            text = f"{self.board.line(record.dataset)} ({everything}); now {tally.latest}"
            print(text, file=self.out, flush=True)


class Bars:
    """One bar per data set on a terminal; needs rich.

    Parameters
    ----------
    board : the counts
    """

    def __init__(self, board: Board) -> None:
        from rich.progress import BarColumn, Progress, TextColumn

        self.board = board
        self._bars = Progress(
            TextColumn("{task.description:<11}"),
            BarColumn(),
            TextColumn("{task.completed}/{task.total} {task.fields[left]:>9}  {task.fields[now]}"),
        )
        self._ids = {
            name: self._bars.add_task(
                name, total=tally.total, completed=tally.done, left="", now=""
            )
            for name, tally in board.tallies.items()
        }
        self._all = self._bars.add_task(
            "all", total=sum(t.total for t in board.tallies.values()), left="", now=""
        )

    def __enter__(self) -> Bars:
        self._bars.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.board.count()
        self._count_all()
        self._bars.stop()

    def started(self, task: str, dataset: str) -> None:
        self.board.tallies[dataset].latest = task
        self._bars.update(self._ids[dataset], now=task)

    def finished(self, record: Record) -> None:
        tally = self.board.tallies[record.dataset]
        tally.add(record)
        if self.board.due():
            self._count_all()
        now = "" if tally.done >= tally.total else tally.latest
        left = in_words(self.board.left(record.dataset)) + " left"
        failed = f" [red]{tally.failed} failed[/red]" if tally.failed else ""
        self._bars.update(
            self._ids[record.dataset], completed=tally.done, left=left, now=now + failed
        )
        done = sum(t.done for t in self.board.tallies.values())
        self._bars.update(self._all, completed=done, left=in_words(self.board.all_left()) + " left")

    def _count_all(self) -> None:
        """Other processes may have worked on any data set."""
        for name, tally in self.board.tallies.items():
            self._bars.update(self._ids[name], completed=tally.done)


def make_listener(tasks: Iterable[Any], done: Callable[[], set[str]], n_jobs: int) -> Lines | Bars:
    """Bars on a terminal where rich is installed, plain lines elsewhere.

    Parameters
    ----------
    tasks : all that is wanted
    done : asks for the keys of those that have a record
    n_jobs : how many work at once
    """
    wanted: dict[str, set[str]] = {}
    for task in tasks:
        wanted.setdefault(task.dataset_name, set()).add(task.key)
    board = Board(wanted, done, n_jobs)
    if not sys.stdout.isatty():
        return Lines(board)
    try:
        return Bars(board)
    except ImportError:
        return Lines(board)
