"""SQLite file of results, shared by any number of processes, safe when they are killed.

A *task* is a result that is wanted. A process claims a task before it computes it, with host,
process number and a heartbeat; a claim is void when its process is gone or its heartbeat is older
than a minute. A record is written in one transaction with the release of its claim, and its key is
unique: nothing is computed twice, lost or duplicated, no matter which process is killed when.
"""

from __future__ import annotations

import os
import socket
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import Field, asdict, fields
from pathlib import Path
from typing import Any, TypeVar

from experiments.records import Measurement, Record, Result, read_records, write_records

LEASE = 60.0
"""Seconds without a heartbeat after which a claim is void."""

_UNIQUE = {Result: "dataset, method, protocol, split", Measurement: "task"}
_TYPES = {"int": "INTEGER", "float": "REAL"}
_TASKS = """
CREATE TABLE IF NOT EXISTS tasks (
    task TEXT PRIMARY KEY, kind TEXT NOT NULL, dataset TEXT NOT NULL,
    host TEXT, pid INTEGER, heartbeat REAL, claimed REAL, workers INTEGER
)"""
DONE = "(SELECT task FROM results UNION ALL SELECT task FROM measurements)"
"""Tasks that have a record, for use within a query."""
_CLAIM = "host = ?, pid = ?, heartbeat = ?, claimed = ?, workers = ?"
_FREE = f"UPDATE tasks SET {_CLAIM.replace('?', 'NULL')}"

RecordType = TypeVar("RecordType", Result, Measurement)


class Store:
    """The file of results.

    Parameters
    ----------
    path : where it is; made if it does not exist
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # joblib asks for the next task from threads of its own: one at a time.
        self._lock = threading.RLock()
        self._db = sqlite3.connect(
            self.path, timeout=60.0, isolation_level=None, check_same_thread=False
        )
        try:
            with self._errors_in_words():
                self._make_tables()
        except BaseException:
            self._db.close()
            raise
        self.host, self.pid, self.workers = socket.gethostname(), os.getpid(), 1

    def _make_tables(self) -> None:
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        for kind in (Result, Measurement):
            self._db.execute(_table_of(kind))
            self._add_columns(kind.table, [f"{c.name} {_sql_type(c)}" for c in fields(kind)])
        self._db.execute(_TASKS)
        self._add_columns("tasks", ["workers INTEGER"])

    def _add_columns(self, table: str, columns: Iterable[str]) -> None:
        """Give a file of an earlier version the columns that it lacks; they may be empty."""
        with self._transaction() as db:  # or another process adds them in between
            present = {row[1] for row in db.execute(f"PRAGMA table_info({table})")}
            for column in columns:
                name, kind = column.split()[:2]
                if name not in present:
                    db.execute(f"ALTER TABLE {table} ADD COLUMN {name} {kind}")

    def close(self) -> None:
        """Close the file, with everything in it and none in its journal."""
        with suppress(sqlite3.DatabaseError):  # locked or damaged: what is written stays written
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._db.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._errors_in_words():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
            except BaseException:
                with suppress(sqlite3.OperationalError):  # SQLite may have rolled back already
                    self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    @contextmanager
    def _errors_in_words(self) -> Iterator[None]:
        """Turn errors of SQLite into errors that name the file."""
        try:
            yield
        except sqlite3.OperationalError as error:  # locked, the disk is full, unreadable text
            raise OSError(f"{self.path}: {error}") from error
        except sqlite3.DatabaseError as error:
            raise ValueError(
                f"{self.path} is not a file of results, or it is damaged: {error}"
            ) from error

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Rows that a query returns.

        Parameters
        ----------
        query, values : SQL that changes nothing, and what stands for its question marks
        """
        with self._lock, self._errors_in_words():
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
        return {task for (task,) in self.rows(f"SELECT task FROM {DONE}")}

    def claim(self, task: str) -> bool:
        """Claim a task; False where it is done, or a living process has claimed it."""
        with self._transaction() as db:
            if db.execute(f"SELECT 1 FROM {DONE} WHERE task = ?", (task,)).fetchone():
                return False
            owner = db.execute(
                "SELECT host, pid, heartbeat FROM tasks WHERE task = ?", (task,)
            ).fetchone()
            if owner is None or self.lives(*owner):
                return False
            now = time.time()
            db.execute(
                f"UPDATE tasks SET {_CLAIM} WHERE task = ?",
                (self.host, self.pid, now, now, self.workers, task),
            )
        return True

    def lives(self, host: str | None, pid: int, heartbeat: float) -> bool:
        """Whether a claim holds: its process exists, or its heartbeat is recent.

        Parameters
        ----------
        host, pid, heartbeat : of the claim; None as host means that there is none
        """
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

    def forget_failures(self, tasks: Iterable[str]) -> int:
        """Delete the records of failures, so that they are tried again; return their number.

        Parameters
        ----------
        tasks : the keys of the tasks to look at
        """
        keys = [(task,) for task in tasks]
        with self._transaction() as db:
            return sum(
                db.executemany(
                    f"DELETE FROM {kind.table} WHERE task = ? AND error IS NOT NULL", keys
                ).rowcount
                for kind in (Result, Measurement)
            )

    # ----------------------------------------------------------------------------- records

    def save(self, *records: Record) -> None:
        """Write records and end their claims, in one transaction; existing records stay."""
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
        rows = self.rows(
            f"SELECT {', '.join(columns)} FROM {kind.table} WHERE {conditions} "
            f"ORDER BY {_UNIQUE[kind]}",
            tuple(where.values()),
        )
        return [kind(*row) for row in rows]

    def merge(self, others: Sequence[Path]) -> int:
        """Take over the records that only other files have; return their number.

        Parameters
        ----------
        others : SQLite files of other machines, CSV files that were made from such, or folders
            with these
        """
        before = len(self.done())
        files = [file for path in others for file in _dumps_in(path)]
        if missing := [str(file) for file in files if not file.is_file()]:
            raise FileNotFoundError(f"{', '.join(missing)}: not there to be merged")
        for other in files:
            if other.suffix == ".csv":
                records = read_records(other)
                self.plan((record.task, record.kind, record.dataset) for record in records)
                self.save(*records)
                continue
            with Store(other) as source:
                self.plan(source.rows("SELECT task, kind, dataset FROM tasks"))
                self.save(*source.records(Result), *source.records(Measurement))
        return len(self.done()) - before

    def dump(self, out: Path) -> list[Path]:
        """Write every record as CSV: results.csv and measurements.csv.

        Parameters
        ----------
        out : the folder, made if it is not there
        """
        out.mkdir(parents=True, exist_ok=True)
        paths = [out / f"{kind.table}.csv" for kind in (Result, Measurement)]
        write_records(paths[0], Result, self.records(Result))
        write_records(paths[1], Measurement, self.records(Measurement))
        return paths


def _dumps_in(path: Path) -> list[Path]:
    """Files of records in a folder, without the tables that were made from them."""
    if not path.is_dir():
        return [path]
    dumps = [path / f"{kind.table}.csv" for kind in (Result, Measurement)]
    found = sorted(path.glob("*.sqlite")) or [file for file in dumps if file.is_file()]
    if not found:
        raise FileNotFoundError(
            f"there is no SQLite file, no results.csv and no measurements.csv in {path}"
        )
    return found


def _table_of(kind: type[Record]) -> str:
    columns = [f"{column.name} {_sql_type(column)}" for column in fields(kind)]
    return (
        f"CREATE TABLE IF NOT EXISTS {kind.table} "
        f"({', '.join(columns)}, PRIMARY KEY ({_UNIQUE[kind]}))"
    )


def _sql_type(column: Field[Any]) -> str:
    words = str(column.type).split(" | ")
    return _TYPES.get(words[0], "TEXT") + ("" if "None" in words else " NOT NULL")


def _process_exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it exists and belongs to another user
        return True
    return True
