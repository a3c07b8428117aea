"""What type checkers of users see: ``py.typed`` is there, and a small program passes."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

PROGRAM = """
import numpy as np
import vicinal as vc

X = np.random.default_rng(0).normal(size=(60, 4))
y = np.arange(60) % 3
learner: vc.NCA = vc.NCA(n_components=2, max_iter=20).fit(X, y)
print(learner.transform(X).shape, learner.get_mahalanobis_matrix().shape)
model = vc.ANNClassifier(effort=0.1).fit(X, y)
distances, rows = model.kneighbors(X[:2], 3)
print(model.predict(X[:2]), model.predict_proba(X[:2]), distances.sum() + rows.sum())
average: float = float(vc.soft_average(X[0], 1.0))
vc.save(model, "model.vicinal")
print(vc.load("model.vicinal"), average, vc.gamma_for_k(X[0], 2))
"""


def test_the_package_says_that_it_is_typed():
    assert files("vicinal").joinpath("py.typed").is_file()


def test_a_small_program_passes_a_strict_type_check(tmp_path: Path):
    pytest.importorskip("mypy")
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = True\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path), "program.py"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
