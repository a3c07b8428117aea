"""Files that were written by version 0.1.0 are read for ever, and predict the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vicinal.model_file import load

FOLDER = Path(__file__).resolve().parents[2] / "data" / "model-v1"
FILES = sorted(path.stem for path in FOLDER.glob("*.vicinal"))
COLUMNS = ["sepal length", "sepal width", "petal length", "petal width"]


def queries_of(name: str, X: np.ndarray) -> object:
    if name not in ("learner", "table"):
        return X
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=COLUMNS)
    return (
        frame if name == "learner" else frame.assign(kind=np.where(X[:, 0] > 5.5, "long", "short"))
    )


def test_the_files_are_there():
    there = {
        "automatic",
        "class-mean",
        "kernel",
        "learner",
        "pipeline",
        "search",
        "single",
        "table",
    }
    assert there <= set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_files_of_version_1(name):
    path = FOLDER / f"{name}.vicinal"
    assert path.stat().st_size < 50_000
    model = load(path)
    with np.load(FOLDER / f"{name}.npz", allow_pickle=False) as expected:
        queries = queries_of(name, expected["queries"])
        methods = set(expected) - {"queries"}
        assert methods
        for method in methods:
            found = getattr(model, method)(queries)
            assert found.dtype == expected[method].dtype
            if found.dtype.kind == "f":  # BLAS of other machines may round differently
                eps = np.finfo(found.dtype).eps
                np.testing.assert_allclose(found, expected[method], rtol=1e4 * eps, atol=1e4 * eps)
            else:
                np.testing.assert_array_equal(found, expected[method])
