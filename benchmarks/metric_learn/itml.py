"""ITML of metric-learn and of vicinal on the same pairs and bounds: the metric, and the seconds.

Run it once in an environment with metric-learn 0.7.0 and scikit-learn < 1.6, once in vicinal's
own; each runs what it has. The matrix that metric-learn prints is kept, with its version, in
tests/oracle/test_itml.py.
"""

from __future__ import annotations

import time
import warnings
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

import numpy as np

REPEATS = 3


def toy():
    """TOY: 60 samples, 4 features, 3 classes."""
    y = np.arange(60) % 3
    means = np.array([[0, 0, 0, 0], [2, 0, 1, 0], [0, 2, 0, 1]])
    return np.random.RandomState(0).randn(60, 4) + means[y], y


def blobs(n=400, d=32):
    """Ten Gaussian classes, some features without meaning."""
    rng = np.random.RandomState(1)
    y = np.arange(n) % 10
    means = np.where(np.arange(d) < d // 2, rng.randn(10, d), 0.0)
    return rng.randn(n, d) + means[y], y


def fixed_pairs(y, shifts):
    """(p, 2) pairs (i, i + s mod n), similar ones first, and which are similar."""
    n = len(y)
    pairs = np.array([(i, (i + s) % n) for s in shifts for i in range(n)])
    similar = y[pairs[:, 0]] == y[pairs[:, 1]]
    return np.concatenate([pairs[similar], pairs[~similar]]), np.sort(similar)[::-1]


def percentile_bounds(X):
    """5th and 95th percentile of the squared distances of all pairs."""
    i, j = np.triu_indices(len(X), 1)
    return np.percentile(((X[i] - X[j]) ** 2).sum(axis=1), (5, 95))


def of_metric_learn(X, pairs, similar, bounds, max_iter):
    from metric_learn import ITML

    model = ITML(gamma=1.0, tol=1e-3, max_iter=max_iter)
    start = time.perf_counter()
    model.fit(X[pairs], np.where(similar, 1, -1), bounds=bounds)
    # It counts from 0.
    return time.perf_counter() - start, model.get_mahalanobis_matrix(), model.n_iter_ + 1


def of_vicinal(X, pairs, similar, bounds, max_iter):
    from vicinal.learners.itml import ITML

    model = ITML(gamma=1.0, tol=1e-3, max_iter=max_iter, bounds=bounds)
    model.fit_pairs(X, pairs, similar)  # compiles
    start = time.perf_counter()
    model.fit_pairs(X, pairs, similar)
    return time.perf_counter() - start, model.get_mahalanobis_matrix(), model.n_iter_


def version_of(package):
    try:
        return version(package)
    except PackageNotFoundError:
        return "from its source folder"


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # the larger problem is cut off on purpose
    np.set_printoptions(precision=17)
    candidates = {"metric_learn": of_metric_learn, "vicinal": of_vicinal}
    problems = {
        "TOY": (*toy(), (1, 3, 6, 7), 1000),
        "blobs, 30 passes": (*blobs(), (1, 3, 5, 10, 20, 30, 40, 50), 30),
    }
    for package, fit in candidates.items():
        if find_spec(package) is None:
            continue
        print(package, version_of(package), "NumPy", version("numpy"))
        for name, (X, y, shifts, max_iter) in problems.items():
            pairs, similar = fixed_pairs(y, shifts)
            runs = [fit(X, pairs, similar, percentile_bounds(X), max_iter) for _ in range(REPEATS)]
            seconds, M, passes = min(runs, key=lambda run: run[0])
            print(f"{name}, {len(pairs)} pairs, d = {X.shape[1]}: {seconds:.4f} s, {passes} passes")
            print(f"tr M = {np.trace(M):.10f}, log det M = {np.linalg.slogdet(M)[1]:.10f}")
            if len(M) <= 4:
                print(repr(M))
