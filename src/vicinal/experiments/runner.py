"""Run tasks that are not done yet, through joblib, and write each down as it arrives.

The process that calls :func:`run` claims tasks and writes records; workers only compute. So they
need no access to the file, and a cluster is plugged in with one line::

    from dask.distributed import Client

    client = Client("scheduler:8786")
    with joblib.parallel_config("dask"):
        run(tasks, store, n_jobs=None)

Ray does the same after ``ray.util.joblib.register_ray()`` with ``"ray"``.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Protocol

from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from vicinal.experiments.progress import Silent, Watcher
from vicinal.experiments.records import Record
from vicinal.experiments.store import LEASE, Store


class Task(Protocol):
    """A record to be had; picklable."""

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
        """The record that says that it could not be had."""
        ...


def run(
    tasks: Sequence[Task], store: Store, *, n_jobs: int | None = 1, watcher: Watcher | None = None
) -> int:
    """Compute what is not done and nobody else is at; the number of new records.

    Parameters
    ----------
    tasks : all that is wanted, done or not
    store : where records go
    n_jobs : processes; None leaves it to ``joblib.parallel_config``
    watcher : is told about every start and record
    """
    watcher = watcher or Silent()
    store.plan((task.key, task.kind, task.dataset_name) for task in tasks)
    written = 0
    with _heartbeat(store), watcher:
        # Once more after each pass: others may have died at what they had claimed.
        while recorded := _pass(tasks, store, n_jobs, watcher):
            written += recorded
    return written


def _pass(tasks: Sequence[Task], store: Store, n_jobs: int | None, watcher: Watcher) -> int:
    """Compute every task that can be claimed; how many records that gave."""
    done = store.done()
    missing = [task for task in tasks if task.key not in done]

    def claimed() -> Iterator[Task]:
        for task in missing:
            if store.claim(task.key):
                watcher.started(task.key, task.dataset_name)
                yield task

    # One task a batch: what is computed is written at once, not when its batch is complete.
    parallel = Parallel(
        n_jobs=n_jobs, batch_size=1, pre_dispatch="n_jobs + 1", return_as="generator_unordered"
    )
    recorded = 0
    try:
        for record in parallel(delayed(attempt)(task) for task in claimed()):
            store.save(record)
            watcher.finished(record)
            recorded += 1
    except BrokenProcessPool:
        # A worker was killed, perhaps for memory. Nobody knows which task it was: those that
        # had been claimed are tried again, unless this pass got nowhere.
        if recorded == 0:
            raise
    finally:
        store.release()
    return recorded


def attempt(task: Task) -> Record:
    """Compute a task on one thread; an error becomes its record.

    Parameters
    ----------
    task : what to compute
    """
    import numba

    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        # Warnings of convergence are part of the record (its stop reason), not news.
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return task.compute()
    except Exception as error:
        return task.failure(f"{type(error).__name__}: {error}")
    finally:
        numba.set_num_threads(threads)


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
