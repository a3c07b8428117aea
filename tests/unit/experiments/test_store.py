from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest

from experiments import provenance
from experiments import store as store_module
from experiments.records import Measurement, Result
from experiments.status import status
from experiments.store import LEASE, Store


def result(task="honest/a/m/0", split=0, accuracy=0.5, **more) -> Result:
    return Result(task, "a", "m", "honest", split, split, accuracy=accuracy, **more)


def plan(store: Store, *tasks: str) -> None:
    store.plan((task, "table2/honest", "a") for task in tasks)


def test_what_is_written_is_read_back(store):
    row = result(parameters='{"t": 0.1}', fit_seconds=0.25, iterations=7, stop_reason="step")
    store.save(row)
    assert store.records(Result) == [row]
    assert store.records(Result, dataset="other") == []
    point = Measurement("f/1", "figure2", "german", "ann+", value="[1]")
    store.save(point)
    assert store.records(Measurement, figure="figure2") == [point]


def test_a_second_record_of_the_same_key_is_not_written(store):
    store.save(result(accuracy=0.5))
    store.save(result(accuracy=0.9))
    store.save(result(task="another name", accuracy=0.9))  # same data set, method, protocol, split
    assert [row.accuracy for row in store.records(Result)] == [0.5]


def test_only_one_may_claim(store):
    plan(store, "t")
    with Store(store.path) as other:
        other.pid = os.getppid()  # another living process
        assert store.claim("t")
        assert not other.claim("t")
        store.release()
        assert other.claim("t")
    assert not store.claim("unplanned")


def test_a_dead_process_loses_its_claim(store):
    plan(store, "t")
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    with Store(store.path) as other:
        other.pid = gone.pid
        assert other.claim("t")
    assert store.claim("t")


def test_a_silent_host_loses_its_claim_after_the_lease(store, monkeypatch):
    plan(store, "t")
    with Store(store.path) as other:
        other.host = "elsewhere"
        assert other.claim("t")
        assert not store.claim("t")  # its process cannot be seen from here, its heart can
        later = time.time() + LEASE + 1
        monkeypatch.setattr(store_module.time, "time", lambda: later)
        other.beat()
        assert not store.claim("t")
        monkeypatch.setattr(store_module.time, "time", lambda: later + LEASE + 1)
        assert store.claim("t")


def test_what_is_done_is_not_claimed(store):
    plan(store, "honest/a/m/0")
    assert store.claim("honest/a/m/0")
    store.save(result())
    assert not store.claim("honest/a/m/0")
    assert store.done() == {"honest/a/m/0"}


def test_claims_from_many_threads_are_distinct(store):
    tasks = [f"t{i}" for i in range(40)]
    plan(store, *tasks)
    claimed: list[str] = []

    def work() -> None:
        claimed.extend(task for task in tasks if store.claim(task))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # All are of one process, which may claim its own again only while it lives: never.
    assert sorted(claimed) == sorted(tasks)


def test_failures_can_be_forgotten(store):
    store.save(result())
    store.save(result(task="honest/a/m/1", split=1, accuracy=None, error="ValueError: no"))
    store.save(Measurement("f/0", "figure2", "german", "ann+", error="no"))
    assert store.forget_failures(["honest/a/m/0", "honest/a/m/1"]) == 1
    assert store.done() == {"honest/a/m/0", "f/0"}  # a failure that nobody asked for stays


def test_status_counts_per_data_set(store):
    plan(store, "honest/a/m/0", "honest/a/m/1", "honest/a/m/2")
    store.plan([("x", "figure2", "b")])
    timed = {"tune_seconds": 1.0, "fit_seconds": 0.5, "predict_seconds": 0.5}
    store.save(result(**timed))
    store.save(result(task="honest/a/m/1", split=1, accuracy=None, error="no"))
    assert store.claim("honest/a/m/2")
    table, figure = status(store)
    assert (table.kind, table.dataset) == ("table2/honest", "a")
    assert (table.total, table.done, table.failed) == (3, 2, 1)
    assert table.running == ("honest/a/m/2",)
    assert (table.seconds, table.left) == (2.0, 2.0)
    assert (figure.total, figure.done, figure.running, figure.seconds) == (1, 0, (), None)
    assert figure.left is None


def test_status_tells_workers_from_what_waits_for_them(store):
    """Two workers, four claims: joblib has some ready, which nobody is at yet."""
    store.plan((f"f/{i}", "figure2", "a") for i in range(10))
    store.save(Measurement("f/0", "figure2", "a", "m", seconds=3.0))
    store.save(Measurement("f/1", "figure2", "a", "m", seconds=5.0))
    store.workers = 2
    assert all(store.claim(f"f/{i}") for i in (2, 3, 4, 5))
    with Store(store.path) as other:
        other.pid, other.workers = os.getppid(), 2
        assert other.claim("f/6")
        (found,) = status(other)
        assert found.running == ("f/2", "f/3", "f/6")
        assert (found.seconds, found.left) == (4.0, 8 * 4.0 / 4)
        other.release()
    (found,) = status(store)
    assert found.left == 8 * 4.0 / 2


def test_a_file_of_an_earlier_version_is_continued(tmp_path):
    path = tmp_path / "r.sqlite"
    with Store(path) as opened:
        plan(opened, "f/0")
        opened.save(Measurement("f/0", "figure2", "german", "ann+", value="[1]"))
        opened._db.execute("ALTER TABLE measurements DROP COLUMN seconds")
        opened._db.execute("ALTER TABLE tasks DROP COLUMN workers")
    with Store(path) as opened:
        assert [(row.value, row.seconds) for row in opened.records(Measurement)] == [("[1]", None)]
        plan(opened, "f/1")
        assert opened.claim("f/1")
        opened.save(Measurement("f/1", "figure2", "german", "ann+", seconds=1.0))
        assert len(opened.done()) == 2


def test_files_of_other_machines_are_merged(store, tmp_path):
    store.save(result(accuracy=0.1))
    for number in (0, 1):
        with Store(tmp_path / f"{number}.sqlite") as other:
            plan(other, "honest/a/m/0", f"honest/a/m/{number + 1}")
            other.save(result(accuracy=0.9))
            other.save(result(task=f"honest/a/m/{number + 1}", split=number + 1))
            other.save(Measurement(f"f/{number}", "figure2", "german", "ann+"))
    assert store.merge([tmp_path / "0.sqlite", tmp_path / "1.sqlite"]) == 4
    assert [row.split for row in store.records(Result)] == [0, 1, 2]
    assert store.records(Result, split=0)[0].accuracy == 0.1  # ours stays
    assert store.merge([tmp_path / "0.sqlite"]) == 0
    with pytest.raises(FileNotFoundError, match="missing"):
        store.merge([tmp_path / "missing.sqlite"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"no results\.csv"):
        store.merge([tmp_path / "empty"])
    (tmp_path / "notes.txt").write_text("no database, whatever its name")
    with pytest.raises(ValueError, match=r"notes\.txt is not a file of results"):
        store.merge([tmp_path / "notes.txt"])


def test_nothing_is_merged_where_one_of_several_is_missing(store, tmp_path):
    with Store(tmp_path / "0.sqlite") as other:
        plan(other, "honest/a/m/0")
        other.save(result())
    with pytest.raises(FileNotFoundError, match="missing"):
        store.merge([tmp_path / "0.sqlite", tmp_path / "missing.sqlite"])
    assert not store.done()


def test_dumps_are_merged_without_loss(store, tmp_path):
    """A repository keeps the CSV files: who has them continues where they end."""
    plan(store, "honest/a/m/0")
    store.save(result(accuracy=1 / 3, n_fits=7, parameters='{"t": 0.5, "K": 3}'))
    store.save(result(task="honest/a/m/1", split=1, accuracy=None, error='a, "b"\nc'))
    store.save(Measurement("f/0", "figure2", "german", "ann+", value="[1, 2]"))
    paths = store.dump(tmp_path)
    with Store(tmp_path / "again.sqlite") as again:
        assert again.merge(paths) == 3
        assert again.merge(paths) == 0
        for kind in (Result, Measurement):
            assert again.records(kind) == store.records(kind)
        assert {(s.kind, s.dataset, s.done) for s in status(again)} == {
            ("table2/honest", "a", 2), ("figure2", "german", 1),
        }  # fmt: skip
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"other\.csv is not a results\.csv"):
        store.merge([tmp_path / "other.csv"])


def test_the_file_is_in_wal_mode_and_complete_when_closed(tmp_path):
    path = tmp_path / "r.sqlite"
    with Store(path) as opened:
        opened.save(result())
        assert opened.rows("PRAGMA journal_mode") == [("wal",)]
    wal = tmp_path / "r.sqlite-wal"
    assert not wal.exists() or wal.stat().st_size == 0


def test_an_exported_tree_is_told_its_commit(monkeypatch):
    monkeypatch.setenv("VICINAL_COMMIT", "abc123")
    assert provenance.commit.__wrapped__() == "abc123"
    monkeypatch.delenv("VICINAL_COMMIT")
    assert provenance.commit.__wrapped__() != "abc123"
