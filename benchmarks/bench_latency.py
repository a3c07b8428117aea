"""What a small user feels: a warm fit on iris, the import, the first fit ever."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time

from common import print_header, time_alternately, verdict
from sklearn.datasets import load_iris
from sklearn.preprocessing import scale

import vicinal as vc

FIRST_FIT = """
import time
from sklearn.datasets import load_iris
import vicinal as vc
X, y = load_iris(return_X_y=True)
start = time.perf_counter()
vc.ANN().fit(X, y)
print(time.perf_counter() - start)
"""


def seconds_of(code: str, **environment: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, **environment})
    return time.perf_counter() - start


def import_ratio(repeats: int = 9) -> tuple[float, float, float]:
    """Median import seconds of vicinal and of sklearn.neighbors, the bare interpreter taken off."""
    codes = {"nothing": "pass", "ours": "import vicinal", "theirs": "import sklearn.neighbors"}
    taken: dict[str, list[float]] = {name: [] for name in codes}
    for _ in range(repeats):
        for name, code in codes.items():
            taken[name].append(seconds_of(code))
    medians = {name: statistics.median(values) for name, values in taken.items()}
    ours, theirs = (medians[name] - medians["nothing"] for name in ("ours", "theirs"))
    return ours, theirs, ours / theirs


def first_fit() -> float:
    """Seconds of the first fit with an empty compilation cache."""
    with tempfile.TemporaryDirectory() as empty:
        done = subprocess.run(
            [sys.executable, "-c", FIRST_FIT],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "NUMBA_CACHE_DIR": empty},
        )
    return float(done.stdout)


if __name__ == "__main__":
    print_header("Latency")
    X, y = load_iris(return_X_y=True)
    X = scale(X)
    taken = time_alternately(
        {"ANN()": lambda: vc.ANN().fit(X, y), "NCA()": lambda: vc.NCA().fit(X, y)}, 15
    )
    for name, times in taken.items():
        milliseconds = 1e3 * times["median"]
        verdict(f"iris, warm, {name} (median)", milliseconds, " ms", "<= 20 ms", milliseconds <= 20)
    ours, theirs, ratio = import_ratio()
    print(f"import vicinal {ours:.3f} s, import sklearn.neighbors {theirs:.3f} s (medians)")
    verdict("import vicinal / import sklearn.neighbors", ratio, "x", "<= 1.5x", ratio <= 1.5)
    seconds = first_fit()
    verdict("first fit ever, empty cache", seconds, " s", "<= 15 s", seconds <= 15)
