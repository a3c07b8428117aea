"""Run tasks that are not done yet, through joblib, and store each record as it arrives.

The process that calls :func:`run` claims tasks and writes records; workers only compute. So they
need no access to the file, and a cluster is plugged in with one line::

    from dask.distributed import Client

    client = Client("scheduler:8786")
    with joblib.parallel_config("dask"):
        run(tasks, store, n_jobs=None)

Ray does the same after ``ray.util.joblib.register_ray()`` with ``"ray"``.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import cache
from typing import Protocol

from joblib import Parallel, delayed, effective_n_jobs
from threadpoolctl import threadpool_limits

from experiments.progress import ProgressListener, Silent
from experiments.records import Record
from experiments.store import LEASE, Store

DEATHS = 2
"""A task is tried alone once so many workers have died while it was out."""
OWN_WORKER = "LokyProcess"
"""What joblib's own workers are called; those of a cluster belong to others."""
SECONDS_BETWEEN_LOOKS = 0.5
"""A worker looks so often whether the process that started it is still there."""
HOPELESS = 3
"""After so many tasks have died alone and none has succeeded, it is not the tasks."""


class Task(Protocol):
    """A record that is wanted; picklable."""

    @property
    def key(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def dataset_name(self) -> str: ...
    def compute(self) -> Record:
        """The record."""
        ...

    def failure(self, error: str) -> Record:
        """The record of a failure."""
        ...


def run(
    tasks: Sequence[Task],
    store: Store,
    *,
    n_jobs: int | None = 1,
    listener: ProgressListener | None = None,
) -> int:
    """Compute the tasks that are neither done nor claimed; return the number of new records.

    A task that raises gets a record that says so, and the run goes on; with two processes or more
    also one that kills its process, by a crash or for memory.

    Parameters
    ----------
    tasks : all that is wanted, done or not
    store : where records go
    n_jobs : processes; None leaves it to ``joblib.parallel_config``
    listener : is told about every start and record
    """
    store.plan((task.key, task.kind, task.dataset_name) for task in tasks)
    store.workers = effective_n_jobs(n_jobs)
    running = _Run(tasks, store, n_jobs, listener or Silent())
    with _heartbeat(store), running.listener:
        # Once more after each pass: others may have died at what they had claimed.
        while running.compute_what_is_free():
            pass
    return running.written


class _Run:
    """The part of the tasks that one process computes."""

    def __init__(
        self, tasks: Sequence[Task], store: Store, n_jobs: int | None, listener: ProgressListener
    ) -> None:
        self.tasks, self.store, self.n_jobs, self.listener = tasks, store, n_jobs, listener
        self.written = 0
        self._succeeded = 0
        self._out: dict[str, None] = {}
        """Claimed, and without a record yet, the oldest claim first."""
        self._deaths: Counter[str] = Counter()
        """Workers that died while the task was running."""
        self._died_alone = 0

    def compute_what_is_free(self) -> bool:
        """Compute every task that can be claimed; whether it is worth trying again."""
        before, done = self.written, self.store.done()
        missing = [task for task in self.tasks if task.key not in done]
        suspects = [task for task in missing if self._deaths[task.key] >= DEATHS]
        others = [task for task in missing if self._deaths[task.key] < DEATHS]
        try:
            for task in self._claimed(suspects):
                self._compute_alone(task)
            self._compute(self._claimed(others), self.n_jobs)
        except BrokenProcessPool:
            # Perhaps for memory. Nobody knows at which task: all that were running are suspects.
            self._deaths.update(list(self._out)[: self.store.workers])
            return True
        finally:
            self._out.clear()
            self.store.release()
        return self.written > before

    def _claimed(self, tasks: Iterable[Task]) -> Iterator[Task]:
        for task in tasks:
            if self.store.claim(task.key):
                self._out[task.key] = None
                self.listener.started(task.key, task.dataset_name)
                yield task

    def _compute(self, tasks: Iterable[Task], n_jobs: int | None) -> None:
        # One task per batch: what is computed is written at once, not when its batch is complete.
        parallel = Parallel(
            n_jobs=n_jobs, batch_size=1, pre_dispatch="n_jobs + 1", return_as="generator_unordered"
        )
        caller = os.getpid()
        for record in parallel(delayed(attempt)(task, caller) for task in tasks):
            self._save(record)

    def _compute_alone(self, task: Task) -> None:
        """While nothing else is computed here: if the process dies, it is this task's doing."""
        try:
            self._compute([task], n_jobs=2)  # 1 would be this process
        except BrokenProcessPool as error:
            self._died_alone += 1
            if self._died_alone >= HOPELESS and not self._succeeded:
                raise RuntimeError(
                    f"{HOPELESS} processes died, each at a task of its own, and nothing could be "
                    "computed: see whether the library can be imported and memory is left"
                ) from error
            self._save(task.failure(_in_words(error)))

    def _save(self, record: Record) -> None:
        self.store.save(record)
        self.listener.finished(record)
        self._out.pop(record.task, None)
        self.written += 1
        self._succeeded += record.error is None


def attempt(task: Task, caller: int | None = None) -> Record:
    """Compute a task on one thread; an error becomes its record.

    Parameters
    ----------
    task : what to compute
    caller : the process that runs the tasks; joblib's own workers are its children and end with it
    """
    import numba

    if caller is not None and multiprocessing.current_process().name.startswith(OWN_WORKER):
        _end_with(caller)
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        # Warnings of convergence are part of the record (its stop reason), not news.
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return task.compute()
    except Exception as error:
        return task.failure(_in_words(error))
    finally:
        numba.set_num_threads(threads)


@cache  # once per worker
def _end_with(parent: int) -> None:
    """End this process soon after its parent is gone, at once if it has gone already."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(SECONDS_BETWEEN_LOOKS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _in_words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


@contextmanager
def _heartbeat(store: Store) -> Iterator[None]:
    """Renew the claims from a thread of its own while the body runs."""
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(LEASE / 6):
            store.beat()

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
