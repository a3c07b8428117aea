"""Small data and methods that the tests of the experiments share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine

from experiments.datasets import Dataset
from experiments.methods import Method, Stage
from experiments.store import Store


@pytest.fixture(scope="session")
def iris() -> Dataset:
    X, y = load_iris(return_X_y=True)
    return Dataset("iris", X, y.astype(np.intp), "test")


@pytest.fixture(scope="session")
def wine() -> Dataset:
    X, y = load_wine(return_X_y=True)
    return Dataset("wine", X, y.astype(np.intp), "test")


@pytest.fixture
def store(tmp_path: Path):
    with Store(tmp_path / "results.sqlite") as opened:
        yield opened


@pytest.fixture
def gmml() -> Method:
    grid = (Stage.of(t=(0.1, 0.5, 0.9)),)
    return Method("toy", "Toy", "vicinal.learners.gmml:GMML", honest=grid, paper=grid)


@pytest.fixture
def failing() -> Method:
    grid = (Stage.of(t=(7.0,)),)  # GMML wants it in [0, 1]
    return Method("broken", "Broken", "vicinal.learners.gmml:GMML", honest=grid, paper=grid)
