"""Deadline, threads and progress of a computation that consists of independent tasks."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import monotonic
from typing import TypeAlias, TypeVar

import numpy as np

from vicinal.learners.descent import FitCallback, FitProgress

Task = TypeVar("Task")
Result = TypeVar("Result")

ProgressListener: TypeAlias = Callable[[str, float | None], None]
"""Told the stage of a computation and how much of it is done (0 to 1; None: not known)."""


@dataclass(frozen=True)
class Deadline:
    """The end of a computation: at a time, or when the user interrupts."""

    end: float = np.inf
    interrupted: threading.Event = field(default_factory=threading.Event)

    @classmethod
    def after(cls, seconds: float | None) -> Deadline:
        """The deadline in so many seconds from now; with None, only an interrupt stops."""
        end = np.inf if seconds is None else monotonic() + seconds
        return cls(end, _interrupt.get() or threading.Event())

    def is_over(self) -> bool:
        """Whether to stop as soon as possible."""
        return self.interrupted.is_set() or monotonic() >= self.end

    @property
    def remaining(self) -> float | None:
        """Seconds that are left, at least 0; None without an end."""
        return None if self.end == np.inf else max(0.0, self.end - monotonic())


_interrupt: ContextVar[threading.Event | None] = ContextVar("interrupt", default=None)


@contextmanager
def ending_at_interrupt() -> Iterator[threading.Event]:
    """Let the first Ctrl-C end what has a deadline, with what there is until then.

    The event says whether that happened. A second Ctrl-C raises KeyboardInterrupt, as always.
    """
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield event
        return

    def end(number: int, frame: object) -> None:
        if event.is_set():
            raise KeyboardInterrupt
        event.set()

    before, token = signal.signal(signal.SIGINT, end), _interrupt.set(event)
    try:
        yield event
    finally:
        signal.signal(signal.SIGINT, before)
        _interrupt.reset(token)


@dataclass(frozen=True)
class Schedule:
    """Time limit, threads and listener of a computation; only the limit changes the outcome."""

    deadline: Deadline = field(default_factory=Deadline)
    n_threads: int = 1
    """Tasks that run at the same time."""
    kernel_threads: int | None = None
    """Threads of compiled code in each task; None: as many as in the calling thread."""
    listener: ProgressListener | None = None


def run_tasks(
    work: Callable[[Task], Result],
    tasks: Sequence[Task],
    schedule: Schedule,
    done: Callable[[Task, Result], object] = lambda task, result: None,
) -> list[Result]:
    """Run all tasks; their results do not depend on the number of threads.

    Parameters
    ----------
    work : what is done with a task; it looks at the deadline by itself
    tasks : in the order in which they start
    schedule : how they are run
    done : told of each task when it has ended, in the calling thread

    Returns
    -------
    results : in the order of the tasks

    Notes
    -----
    An exception, Ctrl-C included, ends the deadline for all tasks; it is raised when those that
    run have stopped. One thread is the calling thread itself.
    """
    import numba

    kernel_threads = schedule.kernel_threads or numba.get_num_threads()
    if schedule.n_threads > 1:
        return _run_in_pool(work, tasks, schedule, kernel_threads, done)
    with _kernel_threads(kernel_threads):
        return _run_here(work, tasks, done)


def _run_here(
    work: Callable[[Task], Result], tasks: Sequence[Task], done: Callable[[Task, Result], object]
) -> list[Result]:
    results = []
    for task in tasks:
        results.append(work(task))
        done(task, results[-1])
    return results


def _run_in_pool(
    work: Callable[[Task], Result],
    tasks: Sequence[Task],
    schedule: Schedule,
    kernel_threads: int,
    done: Callable[[Task, Result], object],
) -> list[Result]:
    import numba

    # The number of kernel threads is a setting of each thread.
    with ThreadPoolExecutor(
        schedule.n_threads, initializer=numba.set_num_threads, initargs=(kernel_threads,)
    ) as pool:
        futures: dict[Future[Result], Task] = {}
        try:
            for task in tasks:
                futures[pool.submit(work, task)] = task
            for future in as_completed(futures):
                done(futures[future], future.result())
        except BaseException:
            schedule.deadline.interrupted.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [future.result() for future in futures]


@contextmanager
def _kernel_threads(number: int) -> Iterator[None]:
    import numba

    before = numba.get_num_threads()
    numba.set_num_threads(number)
    try:
        yield
    finally:
        numba.set_num_threads(before)


def thread_count(n_jobs: int | None) -> int:
    """Threads for `n_jobs`: None as many as Numba may use, -1 all cores, -2 all but one."""
    import numba
    from joblib import effective_n_jobs

    return max(1, int(numba.get_num_threads() if n_jobs is None else effective_n_jobs(n_jobs)))


@dataclass(frozen=True)
class FitStage:
    """One stage of a computation, which reports its progress and stops at the deadline."""

    name: str
    schedule: Schedule
    begin: float = 0.0
    share: float = 1.0
    """The stage consists of several fits; this is one of them, from `begin` on."""

    def tell(self, done: float | None) -> None:
        """Tell the listener how much is done, 0 to 1; None: not known."""
        if self.schedule.listener is not None:
            self.schedule.listener(
                self.name, None if done is None else self.begin + self.share * done
            )

    def callback(self, max_iter: int | None) -> FitCallback:
        """The callback of a learner: after each iteration it reports, and stops at the deadline."""

        def after_iteration(progress: FitProgress) -> bool:
            if max_iter is not None:
                self.tell(progress.n_iter / max_iter)
            else:
                self.tell(None if self.share == 1.0 else 0.0)
            return self.schedule.deadline.is_over()

        return after_iteration

    def fit_counter(self, n_fits: int) -> FitCallback:
        """The same for a search of `n_fits` fits, which it counts by their first iterations."""
        begun = 0

        def after_iteration(progress: FitProgress) -> bool:
            nonlocal begun
            begun += progress.n_iter == 1
            self.tell(min(1.0, begun / n_fits))
            return self.schedule.deadline.is_over()

        return after_iteration
