"""What all tests share: the settings of hypothesis, and the benchmark data sets."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[1]

# No deadline: the first call of a compiled function takes seconds, the second microseconds.
settings.register_profile("local", deadline=None)
settings.register_profile("reproducible", deadline=None, derandomize=True)
settings.load_profile("reproducible" if os.environ.get("CI") else "local")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of the benchmark data sets, one ``<name>.npz`` each."""
    named = os.environ.get("VICINAL_DATA")
    if named:
        folder = Path(named).expanduser()
        if not folder.is_dir():
            pytest.fail(f"VICINAL_DATA={named!r} is not a folder")
        return folder
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(
            "VICINAL_DATA is not set and ../shared/data is absent: "
            "set VICINAL_DATA to the folder of the benchmark data sets"
        )
    return folder


@pytest.fixture(scope="session")
def load_set(data_dir: Path) -> Callable[[str], tuple[np.ndarray, np.ndarray]]:
    """``load_set(name) -> X (n, d) float64, y (n,)``."""

    def load(name: str) -> tuple[np.ndarray, np.ndarray]:
        path = data_dir / f"{name}.npz"
        if not path.is_file():
            pytest.skip(f"there is no {path.name} among the benchmark data sets")
        with np.load(path, allow_pickle=False) as arrays:
            return arrays["X"].astype(np.float64), arrays["y"]

    return load
