from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from experiments import table2
from experiments.records import Measurement, Result
from experiments.runner import run
from experiments.status import status
from experiments.store import Store

SCRIPT = Path(__file__).with_name("toy_run.py")
ROOT = SCRIPT.parents[3]


def start(
    path: Path, log: Path, n: int, seconds: float, jobs: int = 1, deadly: str = ""
) -> subprocess.Popen:
    arguments = [str(path), str(log), str(n), str(seconds), str(jobs), deadly]
    search = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), *arguments], env={**os.environ, "PYTHONPATH": search}
    )


def wait_for_records(path: Path, at_least: int, within: float = 60.0) -> None:
    end = time.monotonic() + within
    with Store(path) as store:
        while len(store.done()) < at_least:
            assert time.monotonic() < end, "no progress"
            time.sleep(0.02)


def computed(log: Path) -> list[int]:
    return [int(line.split()[0]) for line in log.read_text().splitlines()]


def test_kill_loses_at_most_what_is_being_computed(tmp_path):
    path, log = tmp_path / "r.sqlite", tmp_path / "log"
    jobs = 2
    killed = start(path, log, 12, 0.15, jobs)
    wait_for_records(path, 3)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    with Store(path) as store:
        kept = store.records(Measurement)
    assert 3 <= len(kept) < 12
    assert all(row.value == str(int(row.task[4:]) ** 2) for row in kept)
    begun = computed(log)
    # Handed out but not written: one a worker, and one that joblib has ready.
    assert len(begun) - len(kept) <= jobs + 1

    assert start(path, log, 12, 0.0, 1).wait() == 0
    with Store(path) as store:
        rows = store.records(Measurement)
        assert status(store)[0].running == ()
    assert sorted(int(row.value) for row in rows) == [i * i for i in range(12)]
    done = {int(row.task[4:]) for row in kept}
    again = computed(log)[len(begun) :]
    assert not done & set(again)  # nothing is computed a second time


@pytest.mark.parametrize("records", [0, 2])
def test_workers_end_with_the_process_that_started_them(records, tmp_path):
    path, log = tmp_path / "r.sqlite", tmp_path / "log"
    running = start(path, log, 50, 0.3, 2)
    if records:
        wait_for_records(path, records)
    else:  # the workers are still importing what they need
        end = time.monotonic() + 60
        while len(_children(running.pid)) < 2 and time.monotonic() < end:
            time.sleep(0.05)
    workers = _children(running.pid)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    if not workers:
        pytest.skip("cannot see the children of a process here")
    end = time.monotonic() + 20
    while any(Path(f"/proc/{worker}").exists() for worker in workers):
        assert time.monotonic() < end, "a worker is still there"
        time.sleep(0.05)
    left = [*Path("/dev/shm").glob(f"*_{running.pid}_*"), *tmp_path.glob("*.tmp")]
    assert not left


def test_two_processes_share_one_file(tmp_path):
    path, log = tmp_path / "r.sqlite", tmp_path / "log"
    Store(path).close()
    both = [start(path, log, 30, 0.05) for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    assert sorted(computed(log)) == list(range(30))  # each by one of them, once
    with Store(path) as store:
        assert len(store.records(Measurement)) == 30


def test_failures_are_recorded_and_the_run_goes_on(store, iris, gmml, failing):
    wanted = table2.tasks([iris], [failing, gmml], "honest", 2)
    assert run(wanted, store) == 4
    rows = store.records(Result)
    assert [row.error is None for row in rows] == [False, False, True, True]
    assert run(wanted, store) == 0  # a failure is a result: it is not repeated
    assert store.forget_failures(task.key for task in wanted) == 2
    assert run(wanted, store) == 2


def test_a_later_run_adds_only_what_is_new(store, iris, gmml):
    assert run(table2.tasks([iris], [gmml], "honest", 2), store) == 2
    before = store.records(Result)
    assert run(table2.tasks([iris], [gmml], "honest", 3), store) == 1
    assert store.records(Result)[:2] == before


def test_a_killed_worker_does_not_end_the_run(tmp_path):
    """A worker that is killed (for memory, say) takes its task along; the rest is tried again."""
    path, log = tmp_path / "r.sqlite", tmp_path / "log"
    running = start(path, log, 6, 0.3, 2)
    wait_for_records(path, 2)
    workers = _children(running.pid)
    if not workers:
        running.kill()
        running.wait()
        pytest.skip("cannot see the children of a process here")
    os.kill(workers[0], signal.SIGKILL)
    assert running.wait() == 0
    with Store(path) as store:
        assert len(store.records(Measurement)) == 6


def test_a_task_that_kills_its_worker_is_recorded_and_the_run_goes_on(tmp_path):
    path, log = tmp_path / "r.sqlite", tmp_path / "log"
    assert start(path, log, 5, 0.02, 2, deadly="1").wait(timeout=120) == 0
    with Store(path) as store:
        rows = {int(row.task[4:]): row for row in store.records(Measurement)}
    assert set(rows) == set(range(5))
    assert {i for i, row in rows.items() if row.error is not None} == {1}
    assert rows[1].error.startswith("TerminatedWorkerError")


def test_where_every_process_dies_the_run_says_so(tmp_path):
    """Nothing can be computed: no reason to write failures of the whole grid."""
    path, log = tmp_path / "r.sqlite", tmp_path / "log"
    running = start(path, log, 6, 0.0, 2, deadly="0,1,2,3,4,5")
    assert running.wait(timeout=120) == 1
    with Store(path) as store:
        assert len(store.records(Measurement)) < 3


def _children(pid: int) -> list[int]:
    """The loky workers of a process."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            status = (entry / "status").read_text()
            command = (entry / "cmdline").read_text()
        except OSError:
            continue
        if f"PPid:\t{pid}\n" in status and "popen_loky" in command:
            found.append(int(entry.name))
    return found
