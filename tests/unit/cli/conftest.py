"""Tables on disk, models of them, and the command line to run on both."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from vicinal.cli.app import app


@pytest.fixture(scope="session")
def plants():
    """120 rows: numbers, a category, missing values, a constant, names, groups, a class."""
    rng = np.random.default_rng(0)
    n = 120
    soil = rng.choice(["sand", "clay", "loam"], n)
    height = rng.normal(50, 10, n)
    width = rng.normal(5, 1, n)
    grows = height / 10 + width + 2 * (soil == "loam") + rng.normal(0, 0.7, n) > 10.5
    table = pd.DataFrame(
        {
            "plant": [f"p{i:03}" for i in range(n)],
            "plot": rng.integers(12, size=n),
            "height": height,
            "width": width,
            "soil": soil,
            "planet": "earth",
            "grows": np.where(grows, "well", "poorly"),
        }
    )
    table.loc[[4, 9, 30], "height"] = np.nan
    table.loc[[5, 31], "soil"] = None
    return table


@pytest.fixture
def folder(tmp_path, plants, monkeypatch) -> Path:
    """A working folder with train.csv (100 rows) and new.csv (20, without the class)."""
    plants[:100].to_csv(tmp_path / "train.csv", index=False)
    plants[100:].drop(columns="grows").to_csv(tmp_path / "new.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def run():
    """``run("predict", …) -> result`` with exit_code, stdout and stderr."""

    def invoke(*words):
        return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)

    return invoke


@pytest.fixture
def ask(run):
    """The JSON document of a command that succeeds."""

    def parsed(*words):
        result = run(*words, "--json")
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    return parsed


@pytest.fixture(scope="session")
def fitted(tmp_path_factory, plants, run) -> Path:
    """A folder with a model by every kind of method: plain, nca, auto."""
    folder = tmp_path_factory.mktemp("fitted")
    plants[:100].to_csv(folder / "train.csv", index=False)
    before = Path.cwd()
    os.chdir(folder)
    try:
        for method in ("plain", "nca", "auto", "single"):
            options = ["--target", "grows", "--id", "plant", "--group", "plot"]
            result = run(
                "fit", "train.csv", *options, "--method", method, "--out", f"{method}.vicinal"
            )
            assert result.exit_code == 0, result.stderr
    finally:
        os.chdir(before)
    return folder
