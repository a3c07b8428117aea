"""Independent pieces of work on threads: in order, with a deadline, and safe to interrupt."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Clock:
    """When to stop: at the deadline, or when the user interrupts."""

    deadline: float = np.inf
    interrupted: threading.Event = field(default_factory=threading.Event)

    @classmethod
    def starting_now(cls, max_time: float | None) -> Clock:
        """A clock that is up after `max_time` seconds; with None, never."""
        return cls(np.inf if max_time is None else time.monotonic() + max_time)

    def is_up(self) -> bool:
        """Whether to stop as soon as possible."""
        return self.interrupted.is_set() or time.monotonic() > self.deadline


def work_through(
    work: Callable[[Task], Result],
    tasks: Sequence[Task],
    clock: Clock,
    n_threads: int,
    done: Callable[[Task], object] = lambda task: None,
) -> list[Result]:
    """The results of all tasks, in their order; a task looks at the clock by itself.

    Every task runs in one thread (kernels included), so that results do not depend on
    `n_threads`. `done` is told of each finished task, in the calling thread. An exception, Ctrl-C
    included, stops all tasks through the clock and is raised when they have ended.
    """
    with ThreadPoolExecutor(n_threads, initializer=_one_kernel_thread) as pool:
        futures: dict[Future[Result], Task] = {}
        try:
            for task in tasks:
                futures[pool.submit(work, task)] = task
            for future in as_completed(futures):
                future.result()
                done(futures[future])
        except BaseException:
            clock.interrupted.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [future.result() for future in futures]


def _one_kernel_thread() -> None:
    import numba

    numba.set_num_threads(1)  # of this thread only


def thread_count(n_jobs: int | None) -> int:
    """Threads for `n_jobs`: None as many as Numba may use, -1 all cores, -2 all but one."""
    import numba
    from joblib import effective_n_jobs

    available = int(numba.get_num_threads())
    wanted: Any = available if n_jobs is None else effective_n_jobs(n_jobs)
    return max(1, int(wanted))
