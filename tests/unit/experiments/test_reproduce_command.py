from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

typer = pytest.importorskip("typer")
from typer.testing import CliRunner  # noqa: E402

from experiments.__main__ import app  # noqa: E402
from experiments.store import Store  # noqa: E402

from .synthetic import fill, fill_figure2, fill_figure3  # noqa: E402


def invoke(*arguments: object) -> str:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return f"{done.exit_code}\n{done.output}"


def test_table2_runs_continues_and_reports(tmp_path, data_dir):
    options = ("--datasets", "iris", "--methods", "gmml,euclidean", "--splits", 2)
    text = invoke("table2", *options, "--out", tmp_path, "--data", data_dir)
    assert text.startswith("0\n")
    assert re.search(r"iris +4/4", text)
    table = (tmp_path / "table2-honest.md").read_text(encoding="utf-8")
    assert "| Iris (2) |" in table
    again = invoke("table2", *options, "--out", tmp_path, "--data", data_dir)
    assert again.startswith("0\n")
    assert (tmp_path / "table2-honest.md").read_text(encoding="utf-8") == table
    assert re.search(r"table2/honest +iris +4/4", invoke("status", "--out", tmp_path))


def test_a_missing_set_is_reported_not_fatal(tmp_path, monkeypatch):
    monkeypatch.delenv("VICINAL_DATA", raising=False)
    text = invoke("table2", "--datasets", "cars", "--out", tmp_path, "--data", tmp_path)
    assert text.startswith("0\ncars is left out: cars.npz is not in")


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        (("--datasets", "irish"), "smallest"),
        (("--methods", "svm"), "boostmetric"),
        (("--backend", "gpu"), "cuda:fast"),
        (("--backend", "cuda", "--methods", "lmnn,itml"), "nca, pnca, ann+, ann- do"),
        (
            ("--protocol", "lucky", "--datasets", "cars", "--data", "nowhere"),
            "honest, paper, noisy",
        ),
    ],
)
def test_wrong_names_are_usage_errors(tmp_path, options, hint):
    text = invoke("table2", *options, "--out", tmp_path)
    assert text.startswith("2\n")
    assert hint in " ".join(re.sub(r"[│\n]", " ", text).split())


def test_a_gpu_that_is_not_there_is_noticed_before_any_work(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    text = invoke("table2", "--backend", "cuda", "--datasets", "iris", "--out", tmp_path)
    assert text.startswith("2\n")
    assert "needs an NVIDIA GPU" in " ".join(re.sub(r"[│\n]", " ", text).split())
    assert not list(tmp_path.iterdir())


def test_tables_writes_everything_there_is(tmp_path):
    with Store(tmp_path / "results.sqlite") as store:
        fill(store)
        fill(store, "paper")
        fill_figure2(store)
        fill_figure3(store)
    claims = tmp_path / "docs" / "claims.md"
    text = invoke("tables", "--out", tmp_path, "--claims", claims)
    assert text.startswith("0\n")
    for name in ("table2-paper.tex", "figure2.svg", "figure3.csv", "results.csv"):
        assert (tmp_path / name).is_file()
    with Store(tmp_path / "results.sqlite") as store:
        n = len(store.done())
    text = invoke("merge", tmp_path, "--out", tmp_path / "again")
    assert text.startswith(f"0\n{n} records taken over")
    assert "Mean ranks on 6 data sets" in claims.read_text(encoding="utf-8")


def test_figure1_and_status_and_merge(tmp_path):
    assert "figure1.svg" in invoke("figure1", "--out", tmp_path)
    assert invoke("status", "--out", tmp_path).startswith("2\n")  # nothing was run
    with Store(tmp_path / "other.sqlite") as store:
        fill(store, splits=1)
    text = invoke("merge", tmp_path / "other.sqlite", "--out", tmp_path)
    assert text.startswith("0\n78 records taken over")
    assert invoke("merge", tmp_path / "other.sqlite", "--out", tmp_path).startswith("0\n0 records")
    (tmp_path / "run").mkdir()  # the folder of a run: its file, and maybe no dumps yet
    (tmp_path / "other.sqlite").rename(tmp_path / "run" / "results.sqlite")
    text = invoke("merge", tmp_path / "run", "--out", tmp_path / "new")
    assert text.startswith("0\n78 records taken over")


def test_the_folder_of_a_clone_is_a_program(tmp_path):
    root = Path(__file__).parents[3]
    words = [sys.executable, "-m", "experiments", "status", "--out", str(tmp_path)]
    done = subprocess.run(words, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "does not exist; run a command first" in " ".join(done.stderr.replace("│", " ").split())


@pytest.mark.parametrize("command", ["status", "tables", "merge"])
def test_a_file_that_is_no_database_is_said_in_one_line(tmp_path, command):
    (tmp_path / "results.sqlite").write_text("something else, whatever its name is")
    sources = [tmp_path] if command == "merge" else []
    out = tmp_path / "out" if command == "merge" else tmp_path
    text = invoke(command, *sources, "--out", out)
    assert text.startswith("2\n")
    assert "is not a file of results" in " ".join(re.sub(r"[│\n]", " ", text).split())


@pytest.mark.parametrize("command", ["status", "table2", "tables"])
@pytest.mark.parametrize("seed", range(5))
def test_damaged_pages_are_said_in_one_line(tmp_path, command, seed):
    path = tmp_path / "results.sqlite"
    with Store(path) as store:
        fill(store, splits=2)
    data = bytearray(path.read_bytes())
    rng = np.random.default_rng(seed)
    for start in range(4096, len(data), 4096):  # the schema, on the first page, stays readable
        data[start : start + 100] = rng.bytes(100)
    path.write_bytes(bytes(data))
    options = ["--datasets", "cars", "--data", tmp_path] if command == "table2" else []
    options += ["--claims", tmp_path / "claims.md"] if command == "tables" else []
    code, *lines = invoke(command, *options, "--out", tmp_path).splitlines()
    assert code == "1"
    assert lines[-1].startswith(f"error: {path}")
    assert "damaged" in lines[-1] or "malformed" in lines[-1]


def test_merging_what_is_not_there_is_said_in_one_line(tmp_path):
    text = invoke("merge", tmp_path, tmp_path / "gone.sqlite", "--out", tmp_path / "out")
    assert text.startswith("2\n")
    assert "Traceback" not in text
    assert "no SQLite file" in " ".join(re.sub(r"[│\n]", " ", text).split())


def test_figure3_runs_and_says_where_three_runs_have_to_do(tmp_path, data_dir, monkeypatch):
    from experiments import figure3

    monkeypatch.setattr(figure3, "FEW_RUNS", 1)
    monkeypatch.setattr(figure3, "LONG", 0.0)
    options = ("--datasets", "iris", "--runs", 2, "--out", tmp_path, "--data", data_dir)
    text = invoke("figure3", *options)
    assert text.startswith("0\n")
    assert text.count("over a minute, 1 runs") == 6
    with Store(tmp_path / "results.sqlite") as store:
        assert len(figure3.timings(store)) == 6
