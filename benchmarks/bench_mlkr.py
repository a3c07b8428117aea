"""Value and gradient of MLKR: vicinal against metric-learn, one after the other in the same run.

    python benchmarks/bench_mlkr.py PYTHON

PYTHON is the interpreter of an environment with metric-learn 0.7.0 (benchmarks/metric_learn); the
median of several evaluations of each is printed, and the ratio.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", str(os.cpu_count()))

import numpy as np

REPEATS = 5
PEER = """
import sys, time
import numpy as np
from metric_learn import MLKR
n, repeats = int(sys.argv[1]), int(sys.argv[2])
rng = np.random.RandomState(0)
X = rng.standard_normal((n, 20))
y = X[:, 0] + 0.1 * rng.standard_normal(n)
model = MLKR()
times = []
for _ in range(repeats):
    model.n_iter_ = 0
    begin = time.perf_counter()
    model._loss(0.3 * np.eye(20).ravel(), X, y)
    times.append(time.perf_counter() - begin)
print(np.median(times))
"""


def ours(n: int) -> float:
    """Median seconds of an evaluation at the same point."""
    from vicinal.automatic.number_rows import NumberRows

    rng = np.random.RandomState(0)
    X = rng.standard_normal((n, 20))
    y = X[:, 0] + 0.1 * rng.standard_normal(n)
    rows = NumberRows.standardized(y[:, None], np.ones(n))
    data = rows.data(X, None)
    objective = rows.objective(data, rows.descents[0])
    L = 0.3 * data.scale * np.eye(20)
    objective.value_and_gradient(L)
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        objective.value_and_gradient(L)
        times.append(time.perf_counter() - begin)
    return float(np.median(times))


def main() -> None:
    """Print both medians and their ratio."""
    for n in (2000, 5000):
        command = [sys.argv[1], "-W", "ignore", "-c", PEER, str(n), str(REPEATS)]
        theirs = float(subprocess.run(command, check=True, capture_output=True).stdout)
        mine = ours(n)
        print(f"n = {n}: metric-learn {theirs:.3f} s, vicinal {mine:.4f} s, {theirs / mine:.0f} ×")


if __name__ == "__main__":
    main()
