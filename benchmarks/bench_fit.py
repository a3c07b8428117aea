"""Whole fits of NCA to the objective value that scikit-learn's NCA reaches."""

from __future__ import annotations

import time
import warnings

from common import letter, print_header, verdict
from sklearn.neighbors import NeighborhoodComponentsAnalysis

import vicinal as vc


def scikit_learn(X, y):
    """Seconds, and Σ(1 − p_i) at the end."""
    model = NeighborhoodComponentsAnalysis(init="identity", random_state=0)
    start = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - start
    L = model.components_
    value = model._loss_grad_lbfgs(L.ravel(), X, y[:, None] == y[None, :], -1.0)[0]
    return seconds, len(X) + value, model.n_iter_


def vicinal(X, y, target):
    """Seconds until the same value, from the same start."""
    model = vc.NCA(init="identity", tol=0.0, max_iter=1000)
    model.callback = lambda progress: progress.objective <= target
    start = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - start, model.objective_, model.n_iter_


if __name__ == "__main__":
    print_header("Whole fits of NCA, same start (identity), to the same objective")
    warnings.simplefilter("ignore")
    vc.NCA(max_iter=2).fit(*letter(200))  # compiles
    for n, repeats in ((2000, 3), (5000, 2)):
        X, y = letter(n)
        theirs, ours = [], []
        for _ in range(repeats):
            seconds, target, iterations = scikit_learn(X, y)
            theirs.append(seconds)
            taken, reached, own_iterations = vicinal(X, y, target)
            ours.append(taken)
        print(
            f"\nletter, first {n} rows: scikit-learn {min(theirs):.2f} s, {iterations} iterations, "
            f"J = {target:.6g}; vicinal {min(ours):.2f} s, {own_iterations} iterations, "
            f"J = {reached:.6g} (best of {repeats})"
        )
        ratio = min(theirs) / min(ours)
        verdict(f"faster than scikit-learn, {n} rows", ratio, "x", ">= 10x", ratio >= 10)
