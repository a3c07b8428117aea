"""How long ANNClassifier takes to choose everything by itself, whole fits, all cores.

    python benchmarks/bench_automatic.py

Blobs of 1,100 rows with 10, 20 and 30 features; isolet and letter are read from VICINAL_DATA. The
first fit compiles and is not counted. Best and median of the fits; the machine should be idle.
"""

from __future__ import annotations

import os
import statistics
from pathlib import Path

import numpy as np
from common import ROOT, letter, print_header, verdict

import vicinal as vc

ROWS = 1100


def blobs(d: int, classes: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, ROWS)
    return rng.normal(size=(ROWS, d)) + 1.2 * rng.normal(size=(classes, d))[y], y


def isolet() -> tuple[np.ndarray, np.ndarray] | None:
    path = Path(os.environ.get("VICINAL_DATA", ROOT.parent / "shared" / "data")) / "isolet.npz"
    if not path.is_file():
        return None
    with np.load(path, allow_pickle=False) as arrays:
        return arrays["X"][:ROWS].astype(np.float64), arrays["y"][:ROWS]


def measure(name: str, X: np.ndarray, y: np.ndarray, limit: float, repeats: int) -> None:
    taken = [vc.ANNClassifier().fit(X, y).fit_time_ for _ in range(repeats)]
    n, d = X.shape
    print(f"{name}, {n:,} x {d}: best {min(taken):.2f} s of {repeats}")
    median = statistics.median(taken)
    verdict(f"{name}, {n:,} x {d}, median", median, " s", f"<= {limit:g} s", median <= limit)


def main() -> None:
    print_header("ANNClassifier, whole fits")
    vc.ANNClassifier().fit(*blobs(3))
    for d in (10, 20, 30):
        measure("blobs", *blobs(d), limit=6, repeats=5)
    found = isolet()
    if found is None:
        print("isolet.npz is not there: set VICINAL_DATA to the folder that holds it")
    else:
        measure("isolet", *found, limit=6, repeats=3)
    measure("letter", *letter(14_000), limit=600, repeats=1)


if __name__ == "__main__":
    main()
