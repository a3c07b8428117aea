"""One timed fit of metric-learn, in an environment of its own: problem in, result out.

    python peer_metric_learn.py METHOD PROBLEM.npz RESULT.npz

``benchmarks/bench_baselines.py`` writes the problem and calls this; METHOD is lmnn, itml or scml.
It prints one line of JSON (seconds of the fit alone, iterations, versions) and stores L, for LMNN
also the L it starts from. Every option that is not in the problem is metric-learn's default.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from importlib.metadata import version

import metric_learn
import numpy as np


def lmnn(X, y, n_neighbors, max_iter, learn_rate):
    learner = metric_learn.LMNN(
        n_neighbors=int(n_neighbors), max_iter=int(max_iter), learn_rate=float(learn_rate)
    )
    starts = []
    evaluate = learner._loss_grad

    def recorded(X, L, *rest):
        if not starts:
            starts.append(L.copy())
        return evaluate(X, L, *rest)

    learner._loss_grad = recorded
    return learner, lambda: learner.fit(X, y), starts


def itml(X, pairs, similar, bounds, max_iter):
    learner = metric_learn.ITML(max_iter=int(max_iter))
    tuples, signs = X[pairs], np.where(similar, 1, -1)
    return learner, lambda: learner.fit(tuples, signs, bounds=bounds), []


def scml(X, triplets, bases):
    learner = metric_learn.SCML(preprocessor=X, random_state=0)
    # Not fit: it takes no bases from outside without testing them for use first.
    return learner, lambda: learner._fit(triplets, bases, len(bases)), []


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    method, problem, result = sys.argv[1:]
    with np.load(problem, allow_pickle=False) as arrays:
        learner, fit, starts = {"lmnn": lmnn, "itml": itml, "scml": scml}[method](**arrays)
    begin = time.perf_counter()
    fit()
    seconds = time.perf_counter() - begin
    np.savez(result, L=learner.components_, start=starts[0] if starts else np.empty((0, 0)))
    packages = ("metric-learn", "numpy", "scikit-learn")
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    # n_iter_ of all three is the last of a range: LMNN's begins at 1, the others' at 0.
    n_iter = int(learner.n_iter_) + (method != "lmnn")
    print(json.dumps({"seconds": seconds, "n_iter": n_iter, "versions": versions}))
