"""One SQLite file of results, for any number of processes, that survives being killed.

A *task* is a result to be had. Who computes it claims it first, with host, process and a heartbeat;
a claim whose process is gone, or whose heart has not beaten for a minute, is anybody's. A record
is written in one transaction with the release of its claim, and its key is unique: nothing is
computed twice, lost or duplicated, whatever is killed when.
"""

from __future__ import annotations

import os
import socket
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from vicinal.experiments.dumps import read_records
from vicinal.experiments.records import Measurement, Record, Result

LEASE = 60.0
"""Seconds without a heartbeat after which a claim is void."""

_UNIQUE = {Result: "dataset, method, protocol, split", Measurement: "task"}
_TYPES = {"int": "INTEGER", "float": "REAL"}
_TASKS = """
CREATE TABLE IF NOT EXISTS tasks (
    task TEXT PRIMARY KEY, kind TEXT NOT NULL, dataset TEXT NOT NULL,
    host TEXT, pid INTEGER, heartbeat REAL, claimed REAL
)"""
_DONE = "(SELECT task FROM results UNION ALL SELECT task FROM measurements)"
_FREE = "UPDATE tasks SET host = NULL, pid = NULL, heartbeat = NULL, claimed = NULL"
_COUNTS = """
WITH ends AS (
    SELECT task, error FROM results UNION ALL SELECT task, error FROM measurements
)
SELECT kind, dataset, COUNT(*), COUNT(ends.task), COUNT(ends.error)
FROM tasks LEFT JOIN ends USING (task) GROUP BY kind, dataset ORDER BY MIN(tasks.rowid)"""
_SECONDS = """
SELECT kind || '/' || results.dataset, AVG(tune_seconds + fit_seconds + predict_seconds)
FROM results JOIN tasks USING (task) GROUP BY kind, results.dataset"""

RecordType = TypeVar("RecordType", Result, Measurement)


@dataclass(frozen=True)
class Standing:
    """How far the tasks of one kind on one data set are."""

    kind: str
    dataset: str
    total: int
    done: int
    failed: int
    running: tuple[str, ...]
    """Tasks that a living process works on."""
    seconds: float | None
    """Mean time of a result so far, tuning included."""


class Store:
    """The file.

    Parameters
    ----------
    path : where; made if it is not there
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # joblib asks for the next task from threads of its own: one at a time.
        self._lock = threading.RLock()
        self._db = sqlite3.connect(
            self.path, timeout=60.0, isolation_level=None, check_same_thread=False
        )
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        for kind in (Result, Measurement):
            self._db.execute(_table_of(kind))
        self._db.execute(_TASKS)
        self.host, self.pid = socket.gethostname(), os.getpid()

    def close(self) -> None:
        """Close, everything in the one file."""
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._db.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def _rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._lock:
            return self._db.execute(query, values).fetchall()

    # ------------------------------------------------------------------------------- tasks

    def plan(self, tasks: Iterable[tuple[str, str, str]]) -> None:
        """Note what is wanted: (task, kind, data set); what is known already stays as it is."""
        with self._transaction() as db:
            db.executemany(
                "INSERT OR IGNORE INTO tasks (task, kind, dataset) VALUES (?, ?, ?)", tasks
            )

    def done(self) -> set[str]:
        """Tasks that have a record, errors included."""
        return {task for (task,) in self._rows(f"SELECT task FROM {_DONE}")}

    def claim(self, task: str) -> bool:
        """Whether the task is ours to compute now: not done, and nobody living is at it."""
        with self._transaction() as db:
            if db.execute(f"SELECT 1 FROM {_DONE} WHERE task = ?", (task,)).fetchone():
                return False
            owner = db.execute(
                "SELECT host, pid, heartbeat FROM tasks WHERE task = ?", (task,)
            ).fetchone()
            if owner is None or self._lives(*owner):
                return False
            now = time.time()
            db.execute(
                "UPDATE tasks SET host = ?, pid = ?, heartbeat = ?, claimed = ? WHERE task = ?",
                (self.host, self.pid, now, now, task),
            )
        return True

    def _lives(self, host: str | None, pid: int, heartbeat: float) -> bool:
        if host is None or time.time() - heartbeat > LEASE:
            return False
        return host != self.host or _process_exists(pid)

    def beat(self) -> None:
        """Renew the claims of this process."""
        with self._transaction() as db:
            db.execute(
                "UPDATE tasks SET heartbeat = ? WHERE host = ? AND pid = ?",
                (time.time(), self.host, self.pid),
            )

    def release(self) -> None:
        """Give up the claims of this process."""
        with self._transaction() as db:
            db.execute(f"{_FREE} WHERE host = ? AND pid = ?", (self.host, self.pid))

    def forget_failures(self) -> int:
        """Delete the records of failures, so that they are tried again; how many there were."""
        with self._transaction() as db:
            return sum(
                db.execute(f"DELETE FROM {kind.table} WHERE error IS NOT NULL").rowcount
                for kind in (Result, Measurement)
            )

    # ----------------------------------------------------------------------------- records

    def save(self, *records: Record) -> None:
        """Write records and end their claims, in one transaction; what is there stays."""
        with self._transaction() as db:
            for record in records:
                row = asdict(record)
                marks = ", ".join("?" * len(row))
                db.execute(
                    f"INSERT OR IGNORE INTO {record.table} ({', '.join(row)}) VALUES ({marks})",
                    tuple(row.values()),
                )
                db.execute(f"{_FREE} WHERE task = ?", (record.task,))

    def records(self, kind: type[RecordType], **where: Any) -> list[RecordType]:
        """The records of one kind, in the order of their keys.

        Parameters
        ----------
        kind : Result or Measurement
        **where : column = value
        """
        columns = [column.name for column in fields(kind)]
        conditions = " AND ".join(f"{column} = ?" for column in where) or "1"
        rows = self._rows(
            f"SELECT {', '.join(columns)} FROM {kind.table} WHERE {conditions} "
            f"ORDER BY {_UNIQUE[kind]}",
            tuple(where.values()),
        )
        return [kind(*row) for row in rows]

    def standings(self) -> list[Standing]:
        """How far everything is, by kind and data set in the order they were planned."""
        seconds = dict(self._rows(_SECONDS))
        running: dict[tuple[str, str], list[str]] = {}
        claims = self._rows(
            "SELECT task, kind, dataset, host, pid, heartbeat FROM tasks "
            f"WHERE host IS NOT NULL AND task NOT IN {_DONE}"
        )
        for task, kind, dataset, *owner in claims:
            if self._lives(*owner):
                running.setdefault((kind, dataset), []).append(task)
        return [
            Standing(
                kind, dataset, total, done, failed,
                tuple(running.get((kind, dataset), ())),
                seconds.get(f"{kind}/{dataset}"),
            )
            for kind, dataset, total, done, failed in self._rows(_COUNTS)
        ]  # fmt: skip

    def merge(self, others: Sequence[Path]) -> int:
        """Take over the records of other files that this one does not have; how many.

        Parameters
        ----------
        others : SQLite files of other machines, CSV files that were made from such, or folders
            with these
        """
        before = len(self.done())
        for other in (file for path in others for file in _dumps_in(path)):
            if not other.is_file():
                raise FileNotFoundError(f"{other} is not there to be merged")
            if other.suffix == ".csv":
                records = read_records(other)
                self.plan((record.task, record.kind, record.dataset) for record in records)
                self.save(*records)
                continue
            with Store(other) as source:
                self.plan(source._rows("SELECT task, kind, dataset FROM tasks"))
                self.save(*source.records(Result), *source.records(Measurement))
        return len(self.done()) - before


def _dumps_in(path: Path) -> list[Path]:
    """The records in a folder; tables that were made of them are no records."""
    if not path.is_dir():
        return [path]
    found = [path / f"{kind.table}.csv" for kind in (Result, Measurement)]
    found = [file for file in found if file.is_file()]
    if not found:
        raise FileNotFoundError(f"there is no results.csv or measurements.csv in {path}")
    return found


def _table_of(kind: type[Record]) -> str:
    columns = []
    for column in fields(kind):
        words = str(column.type).split(" | ")
        optional = "" if "None" in words else " NOT NULL"
        columns.append(f"{column.name} {_TYPES.get(words[0], 'TEXT')}{optional}")
    return (
        f"CREATE TABLE IF NOT EXISTS {kind.table} "
        f"({', '.join(columns)}, PRIMARY KEY ({_UNIQUE[kind]}))"
    )


def _process_exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it is there, and somebody else's
        return True
    return True
