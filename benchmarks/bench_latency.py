"""What a user waits for: one row, a warm fit on iris, the import, the first fit ever.

``--rows`` measures the answers of fitted models alone. Every figure is a ratio to scikit-learn's
brute-force ``KNeighborsClassifier`` in the same run: medians of turns, in one thread, by the clock
and by the time of the processor (which other work on the machine disturbs less).
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
from common import print_header, time_alternately, verdict
from sklearn.datasets import load_iris, make_classification
from sklearn.neighbors import KNeighborsClassifier
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


def rows_and_labels(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """n rows of 20 features in 5 classes, and 1,000 queries."""
    X, y = make_classification(
        n + 1000, 20, n_informative=10, n_redundant=4, n_classes=5, random_state=0
    )
    return X[:n], y[:n], X[n:]


def one_row(n: int, effort: float, turns: int = 50) -> None:
    """Print the ratios for one row, of models of n training rows."""
    X, y, queries = rows_and_labels(n)
    query = queries[:1]
    base = KNeighborsClassifier(algorithm="brute").fit(X, y)
    committee = vc.ANNClassifier(effort=effort).fit(X, y)
    single = vc.ANNClassifier("single", effort=effort).fit(X, y)
    class_mean = vc.ClassMeanKNN().fit(X, y)
    named = {
        "scikit-learn": lambda: base.predict_proba(query),
        "committee": lambda: committee.predict_proba(query),
        "single": lambda: single.predict_proba(query),
        "ClassMeanKNN": lambda: class_mean.predict_proba(query),
        "explanation, committee": lambda: committee.explain(query),
    }
    clock: dict[str, list[float]] = {name: [] for name in named}
    processor: dict[str, list[float]] = {name: [] for name in named}
    for function in named.values():
        function()
    for _ in range(turns):
        for name, function in named.items():
            start = time.perf_counter(), time.thread_time()
            function()
            clock[name].append(time.perf_counter() - start[0])
            processor[name].append(time.thread_time() - start[1])
    medians = [{k: statistics.median(v) for k, v in taken.items()} for taken in (clock, processor)]
    print(f"{n} training rows, {len(committee.metrics_)} metrics in the committee")
    for name in named:
        ratios = [median[name] / median["scikit-learn"] for median in medians]
        print(
            f"  {name:<26} {1e3 * medians[1][name]:8.2f} ms of processor; "
            f"ratio {ratios[1]:6.2f} (by the clock {ratios[0]:.2f})",
            flush=True,
        )
    explained = medians[1]["explanation, committee"] / medians[1]["committee"]
    print(f"  an explanation takes {explained:.1f} predictions")
    truth = make_classification(
        n + 1000, 20, n_informative=10, n_redundant=4, n_classes=5, random_state=0
    )[1][n:]
    hits = [np.mean(model.predict(queries) == truth) for model in (committee, base)]
    print("  accuracy on 1,000 rows: committee {:.3f}, scikit-learn {:.3f}".format(*hits))
    times = []
    for function in (base.predict_proba, committee.predict_proba):
        start = time.process_time()
        function(queries)
        times.append(time.process_time() - start)
    print(f"  1,000 rows at once, committee: ratio {times[1] / times[0]:.1f}", flush=True)


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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", help="numbers of training rows")
    parser.add_argument("--effort", type=float, default=1.0)
    arguments = parser.parse_args()
    print_header("Latency")
    for n in arguments.rows or ():
        one_row(n, arguments.effort)
    if arguments.rows:
        raise SystemExit
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
