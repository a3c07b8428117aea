from __future__ import annotations

import io
import sys

import pytest

from vicinal.experiments import progress
from vicinal.experiments.progress import Bars, Board, Lines, in_words, watch
from vicinal.experiments.records import Result


def record(split, seconds=2.0, error=None):
    spent = None if error else seconds
    return Result(
        f"honest/iris/m/{split}", "iris", "m", "honest", split, split, error=error,
        tune_seconds=spent, fit_seconds=0.0 if spent else None, predict_seconds=None,
    )  # fmt: skip


def test_time_left_is_what_remains_at_the_mean_pace_of_the_workers():
    board = Board({"iris": 10, "wine": 4}, {"wine": 4}, n_jobs=2)
    assert board.left("iris") is None
    assert board.left("wine") == 0.0
    assert board.all_left() is None
    board.tallies["iris"].add(record(0, 1.0))
    board.tallies["iris"].add(record(1, 3.0))
    assert board.left("iris") == pytest.approx(8 * 2.0 / 2)
    assert board.all_left() == pytest.approx(8.0)


def test_lines_name_failures_and_what_is_running():
    out = io.StringIO()
    with Lines(Board({"iris": 3}, {}, 1), out) as lines:
        lines.started("honest/iris/m/0", "iris")
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
    lines = Lines(Board({"iris": 50}, {}, 1), out)
    for split in range(50):
        lines.finished(record(split))
    assert 1 <= len(out.getvalue().splitlines()) <= 2


def test_bars_on_a_terminal(monkeypatch):
    pytest.importorskip("rich")
    with Bars(Board({"iris": 2}, {}, 1)) as bars:
        bars.started("honest/iris/m/0", "iris")
        bars.finished(record(0))
        bars.finished(record(1, error="no"))
        shown = bars._bars.tasks
        assert [task.completed for task in shown] == [2, 2]


def test_without_rich_there_are_lines(monkeypatch, iris, gmml):
    from vicinal.experiments import table2

    wanted = table2.tasks([iris], [gmml], "honest", 2)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    watcher = watch(wanted, {wanted[0].key}, 1)
    assert isinstance(watcher, Lines)
    assert watcher.board.tallies["iris"].done == 1


def test_durations_in_words():
    words = [in_words(s) for s in (None, 3.2, 200, 10_000)]
    assert words == ["?", "3 s", "3 min", "2.8 h"]
