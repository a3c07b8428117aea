"""Counts of finished, running and remaining tasks, from the file of results."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.store import DONE, Store

_COUNTS = """
WITH ends AS (
    SELECT task, error FROM results UNION ALL SELECT task, error FROM measurements
)
SELECT kind, dataset, COUNT(*), COUNT(ends.task), COUNT(ends.error)
FROM tasks LEFT JOIN ends USING (task) GROUP BY kind, dataset ORDER BY MIN(tasks.rowid)"""
_SECONDS = """
WITH times AS (
    SELECT task, tune_seconds + fit_seconds + predict_seconds AS seconds FROM results
    UNION ALL SELECT task, seconds FROM measurements
)
SELECT kind, dataset, AVG(seconds) FROM tasks JOIN times USING (task) GROUP BY kind, dataset"""
_CLAIMS = f"""
SELECT task, kind, dataset, host, pid, heartbeat, workers FROM tasks
WHERE host IS NOT NULL AND task NOT IN {DONE} ORDER BY claimed, rowid"""


@dataclass(frozen=True)
class TaskCounts:
    """Counts of the tasks of one kind on one data set."""

    kind: str
    dataset: str
    total: int
    done: int
    failed: int
    running: tuple[str, ...]
    """Tasks that a worker of a living process is computing."""
    seconds: float | None
    """Mean time per record so far, tuning included."""
    left: float | None
    """Seconds that the rest will take all workers there are; None while nothing is known."""


def status(store: Store) -> list[TaskCounts]:
    """Counts by kind and data set, in the order they were planned.

    Parameters
    ----------
    store : the results
    """
    seconds = {(kind, dataset): mean for kind, dataset, mean in store.rows(_SECONDS)}
    running, workers = _running(store)
    found = []
    for kind, dataset, total, done, failed in store.rows(_COUNTS):
        mean, tasks = seconds.get((kind, dataset)), running.get((kind, dataset), ())
        left = 0.0 if done == total else mean and (total - done) * mean / max(workers, 1)
        found.append(TaskCounts(kind, dataset, total, done, failed, tuple(tasks), mean, left))
    return found


def _running(store: Store) -> tuple[dict[tuple[str, str], list[str]], int]:
    """(kind, data set) → tasks that are computed now; the number of workers.

    A process claims a little ahead, so that no worker waits: what it claimed first is running.
    """
    running: dict[tuple[str, str], list[str]] = {}
    free: dict[tuple[str, int], int] = {}
    total = 0
    for task, kind, dataset, host, pid, heartbeat, workers in store.rows(_CLAIMS):
        if not store.lives(host, pid, heartbeat):
            continue
        if (host, pid) not in free:
            free[host, pid] = workers or 1
            total += free[host, pid]
        if free[host, pid]:
            free[host, pid] -= 1
            running.setdefault((kind, dataset), []).append(task)
    return running, total
