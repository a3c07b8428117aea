from __future__ import annotations

import io
import sys

import pytest

from experiments import progress
from experiments.progress import Bars, Board, Lines, in_words, make_listener
from experiments.records import Result


def record(split, seconds=2.0, error=None):
    spent = None if error else seconds
    return Result(
        f"honest/iris/m/{split}", "iris", "m", "honest", split, split, error=error,
        tune_seconds=spent, fit_seconds=0.0 if spent else None,
        predict_seconds=0.0 if spent else None,
    )  # fmt: skip


def board(wanted, n_jobs=1, done=frozenset()):
    """Of data sets with so many tasks; those of ``done`` have a record."""
    tasks = {name: {f"honest/{name}/m/{i}" for i in range(n)} for name, n in wanted.items()}
    return Board(tasks, lambda: set(done), n_jobs)


def test_time_left_is_what_remains_at_the_mean_pace_of_the_workers():
    counts = board({"iris": 10, "wine": 4}, 2, {f"honest/wine/m/{i}" for i in range(4)})
    assert counts.left("iris") is None
    assert counts.left("wine") == 0.0
    assert counts.all_left() is None
    counts.tallies["iris"].add(record(0, 1.0))
    counts.tallies["iris"].add(record(1, 3.0))
    assert counts.left("iris") == pytest.approx(8 * 2.0 / 2)
    assert counts.all_left() == pytest.approx(8.0)


def test_what_other_processes_have_done_counts():
    done = set()
    counts = Board({"iris": {"a", "b", "c"}}, lambda: done, 1)
    out = io.StringIO()
    with Lines(counts, out) as lines:
        done.update(("honest/iris/m/0", "a", "b"))  # of another process
        lines.finished(record(0))
        assert out.getvalue().startswith("iris           2/3")
        done.add("c")
    assert out.getvalue().splitlines()[-1] == "iris           3/3, 0 s left"


def test_lines_name_failures_and_what_is_running():
    out = io.StringIO()
    done = set()
    tasks = {f"honest/iris/m/{i}" for i in range(3)}
    with Lines(Board({"iris": tasks}, lambda: done, 1), out) as lines:
        lines.started("honest/iris/m/0", "iris")
        done.update(("honest/iris/m/0", "honest/iris/m/1"))
        lines.finished(record(0))
        lines.finished(record(1, error="ValueError: no"))
    text = out.getvalue()
    assert "now honest/iris/m/0" in text
    assert "honest/iris/m/1 failed: ValueError: no" in text
    assert text.splitlines()[-1] == "iris           2/3, 1 failed, 2 s left"


def test_lines_are_rare(monkeypatch):
    clock = iter([0.0, *[0.1 * i for i in range(1, 200)]])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    out = io.StringIO()
    lines = Lines(board({"iris": 50}), out)
    for split in range(50):
        lines.finished(record(split))
    assert 1 <= len(out.getvalue().splitlines()) <= 2


def test_bars_on_a_terminal(monkeypatch):
    pytest.importorskip("rich")
    done = {"honest/iris/m/0"}
    counts = board({"iris": 2, "wine": 3}, done=done)
    with Bars(counts) as bars:
        bars.started("honest/iris/m/0", "iris")
        bars.finished(record(0))
        bars.finished(record(1, error="no"))
        shown = bars._bars.tasks
        assert [task.completed for task in shown] == [2, 0, 2]
        counts._ask = lambda: {"honest/iris/m/0", "honest/iris/m/1", "honest/wine/m/2"}
    assert [task.completed for task in shown] == [2, 1, 2]  # wine is another process's


def test_without_rich_there_are_lines(monkeypatch, iris, gmml):
    from experiments import table2

    wanted = table2.tasks([iris], [gmml], "honest", 2)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    listener = make_listener(wanted, lambda: {wanted[0].key}, 1)
    assert isinstance(listener, Lines)
    assert listener.board.tallies["iris"].done == 1


def test_durations_in_words():
    words = [in_words(s) for s in (None, 3.2, 200, 10_000)]
    assert words == ["?", "3 s", "3 min", "2.8 h"]
