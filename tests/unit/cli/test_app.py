"""The command line as a whole: help, versions, exit codes, pipes, the real program."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import vicinal
from vicinal.cli.options import parse_duration
from vicinal.cli.output import ProgressBar, one_line, show_duration, visible
from vicinal.model_file import load

PROGRAM = [sys.executable, "-c", "from vicinal.cli import main; main()"]
COMMANDS = ["fit", "predict", "explain", "transform", "compare", "info", "export", "serve", "demo"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches(run, command):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert command == "demo" or f"vicinal {command} " in result.stdout
    assert "[bold]" not in result.stdout


def test_help_of_all_and_version(run):
    text = run("--help").stdout
    assert all(command in text for command in COMMANDS)
    assert "reproduce" in text
    assert run("--version").stdout.strip() == f"vicinal {vicinal.__version__}"
    assert run("nope").exit_code == 2


def test_reproduce_hands_its_words_to_the_experiments_of_a_clone(run):
    assert "Usage: vicinal reproduce" in run("reproduce", "--help").stdout
    done = run("reproduce", "table2", "--datasets", "irish")
    assert done.exit_code == 2
    assert "'irish' is unknown" in done.output


def test_reproduce_without_a_clone_says_where_to_run_it(run, monkeypatch, tmp_path):
    monkeypatch.setattr(vicinal, "__file__", str(tmp_path / "site" / "vicinal" / "__init__.py"))
    done = run("reproduce", "status")
    assert done.exit_code == 1
    assert done.output.count("\n") == 1
    assert "from a clone of the repository: python -m experiments" in done.output


def test_the_program_in_a_pipe_is_quiet_and_speaks_json(folder):
    words = ["fit", "train.csv", "--target", "grows", "--method", "gmml", "--json"]
    done = subprocess.run([*PROGRAM, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert json.loads(done.stdout)["method"] == "gmml"
    assert load("model.vicinal").provenance["method"] == "gmml"


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("words", [["info", "m.vicinal"], ["predict", "m.vicinal", "train.csv"]])
def test_output_that_nobody_reads_ends_as_after_sigpipe(words, folder):
    """Whether the text is printed by rich or written as a table."""
    fit = ["fit", "train.csv", "--target", "grows", "--method", "gmml", "--out", "m.vicinal"]
    assert subprocess.run([*PROGRAM, *fit], capture_output=True, check=False).returncode == 0
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*PROGRAM, *words], stdout=writing, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writing)
    assert done.returncode == 141
    assert "Error" not in done.stderr
    assert "Exception" not in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_real_ctrl_c_leaves_a_complete_model(folder):
    """SIGINT in the middle of a fit that would take minutes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 40))
    y = np.where(X[:, :3].sum(axis=1) + rng.normal(size=1500) > 0, "a", "b")
    pd.DataFrame(X).assign(y=y).to_csv("large.csv", index=False)
    before = set(folder.iterdir())
    words = ["fit", "large.csv", "--target", "y", "--method", "ann", "--out", "m.vicinal"]
    log = folder / "log"
    code = (
        "from vicinal.cli.output import ProgressBar as P; from vicinal.cli import main;"
        "P.__call__ = lambda self, stage, done: open('log', 'a').write(stage + '\\n'); main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        for _ in range(600):
            if log.exists() and "ann, all rows" in log.read_text():
                break
            time.sleep(0.1)
        os.kill(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert "interrupted; the best model so far is m.vicinal" in err
    assert "Traceback" not in err
    assert set(folder.iterdir()) - before == {folder / "m.vicinal", log}
    model = load("m.vicinal")
    assert model.provenance["interrupted"]
    assert np.mean(model.predict(pd.read_csv("large.csv")) == y) > 0.6


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_progress_is_shown_on_a_terminal_only(monkeypatch, stream):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", stream())
    with ProgressBar() as bar:
        bar("first [red]stage", None)
        bar("second stage", 0.0)
        bar("second stage", 0.5)
        bar._progress.refresh()
    shown = sys.stderr.getvalue()
    assert ("second stage" in shown) == (stream is Terminal)
    assert ("-:--:--" in shown or "0:00:" in shown) == (stream is Terminal)  # the time left


def test_the_demo_runs_the_whole_way(run, tmp_path):
    result = run("demo", tmp_path / "demo")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.count("\n$ vicinal ") == 4
    assert len(pd.read_csv(tmp_path / "demo" / "predicted.csv")) == 69
    assert f"The page: {tmp_path / 'demo' / 'report.html'}" in result.stdout
    assert (tmp_path / "demo" / "report.html").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("5m", 300), ("1h30m", 5400), ("0.5h", 1800), ("2 min 5 s", 125)],
)
def test_durations(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "-5", "5 days", "1.2.3s", "inf"])
def test_what_is_no_time(text):
    with pytest.raises(ValueError, match=re.escape(repr(text))):
        parse_duration(text)


def test_shown_durations():
    assert [show_duration(s) for s in (0.01, 3.14, 300)] == ["< 0.1 s", "3.1 s", "5.0 min"]


@pytest.mark.parametrize(
    "words",
    [
        ["fit", "train.csv", "--target", "grows", "--out", "train.csv"],
        ["fit", "train.csv", "--target", "grows", "--report", "../{}/train.csv"],
        ["fit", "train.csv", "--target", "grows", "--out", "x", "--report", "x"],
        ["predict", "train.csv", "new.csv", "--out", "new.csv"],
        ["transform", "train.csv", "new.csv", "--out", "new.csv"],
        ["export", "train.csv", "--to", "onnx", "--out", "train.csv"],
    ],
)
def test_no_output_replaces_an_input(folder, run, words):
    before = {path: path.read_bytes() for path in folder.iterdir()}
    result = run(*(word.format(folder.name) for word in words))
    assert result.exit_code == 2
    assert "would be replaced" in " ".join(result.stderr.replace("│", " ").split())
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_an_unexpected_error_is_one_line_unless_debugging(run, tmp_path, monkeypatch):
    def broken(path):
        raise KeyError("what\never")

    (tmp_path / "model").touch()
    monkeypatch.setattr("vicinal.cli.info.load_table_model", broken)
    result = run("info", tmp_path / "model")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: KeyError")
    assert result.stderr.count("\n") == 1
    with pytest.raises(KeyError):
        run("--debug", "info", tmp_path / "model")


def test_texts_cannot_change_the_direction_of_a_line_or_break_it():
    assert visible("a\u202eb\x1b[0m") == "a\\u202eb\\x1b[0m"
    assert one_line("a\nb\u2066") == "a\\nb\\u2066"
