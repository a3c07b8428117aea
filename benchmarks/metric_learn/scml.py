"""SCML against metric-learn 0.7.0: the same algorithm to the last digits, and the time.

metric-learn needs an old scikit-learn, hence an environment of its own. Both are given the same
triplets and bases, so that its stochastic steps can be repeated draw by draw; what it reaches is
recorded in ``tests/oracle/test_scml.py``:

    python benchmarks/metric_learn/scml.py reference   # with metric-learn==0.7.0
    python benchmarks/metric_learn/scml.py vicinal     # with vicinal
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_wine

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

BETA, N_SIMILAR, N_DISSIMILAR = 1e-5, 3, 10


def wine() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_wine(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def letter() -> tuple[np.ndarray, np.ndarray]:
    from common import letter

    return letter(2000)


def unit_rows(X: np.ndarray) -> np.ndarray:
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def nearest_triplets(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(t, 3): each sample, its 3 nearest of the class × its 10 nearest of the others."""
    found = []
    for i in range(len(X)):
        order = np.argsort(((X - X[i]) ** 2).sum(axis=1), kind="stable")
        order = order[order != i]
        similar = order[y[order] == y[i]][:N_SIMILAR]
        dissimilar = order[y[order] != y[i]][:N_DISSIMILAR]
        found += [(i, j, k) for j in similar for k in dissimilar]
    return np.array(found)


def unit_bases(d: int) -> np.ndarray:
    """20 random directions a feature: what is compared is the solver, not its bases."""
    return unit_rows(np.random.RandomState(0).standard_normal((20 * d, d)))


def objective(X: np.ndarray, triplets: np.ndarray, L: np.ndarray) -> float:
    """J at M = LᵀL; the weights of unit bases sum to the trace of M."""
    i, j, l = (X @ L.T)[triplets.T]  # noqa: E741
    slack = 1 + ((i - j) ** 2).sum(axis=1) - ((i - l) ** 2).sum(axis=1)
    return float(np.maximum(slack, 0).mean() + BETA * (L**2).sum())


def reference() -> None:
    import metric_learn

    print("metric-learn", metric_learn.__version__)
    for name, load in (("wine", wine), ("letter, 2,000 rows", letter)):
        X, y = load()
        X = unit_rows(X)
        triplets, bases = nearest_triplets(X, y), unit_bases(X.shape[1])
        learner = metric_learn.SCML(preprocessor=X, beta=BETA, random_state=0, output_iter=500)
        start = time.perf_counter()
        learner._fit(triplets, bases, len(bases))
        seconds = time.perf_counter() - start
        print_result(f"{name}, given bases", X, triplets, learner.components_, seconds)
        learner = metric_learn.SCML_Supervised(beta=BETA, random_state=0)
        start = time.perf_counter()
        learner.fit(X, y)
        seconds = time.perf_counter() - start
        print_result(f"{name}, local LDA", X, triplets, learner.components_, seconds)


def vicinal() -> None:
    from vicinal.learners.scml import SCML

    SCML(max_iter=2, solver="adagrad").fit(*wine())  # compiles
    SCML(max_iter=2).fit(*wine())
    for name, load in (("wine", wine), ("letter, 2,000 rows", letter)):
        X, y = load()
        X = unit_rows(X)
        triplets, bases = nearest_triplets(X, y), unit_bases(X.shape[1])
        for solver in ("adagrad", "smoothed"):
            options = {"solver": solver, "rescale": False, "random_state": 0}
            learner = SCML(BETA, basis=bases, **options)
            start = time.perf_counter()
            learner.fit_triplets(X, triplets)
            seconds = time.perf_counter() - start
            L = learner.components_
            print_result(f"{name}, given bases, {solver}", X, triplets, L, seconds)
            learner = SCML(BETA, **options)
            start = time.perf_counter()
            learner.fit(X, y)
            seconds = time.perf_counter() - start
            L = learner.components_
            print_result(f"{name}, local LDA, {solver}", X, triplets, L, seconds)


def print_result(
    name: str, X: np.ndarray, triplets: np.ndarray, L: np.ndarray, seconds: float
) -> None:
    print(f"{name}: J {objective(X, triplets, L):.10f}, |M| {np.linalg.norm(L.T @ L):.8f}", end="")
    print(f", {len(triplets)} triplets, {seconds:.3f} s")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    {"reference": reference, "vicinal": vicinal}[sys.argv[1]]()
