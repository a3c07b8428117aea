"""The same calls in metric-learn and in vicinal.compat.metric_learn: seconds and objectives.

    export METRIC_LEARN_PYTHON=METRIC_LEARN_ENV/bin/python
    PYTHONPATH=src:benchmarks python benchmarks/metric_learn/one_import.py

Runs this file once in the environment of metric-learn 0.7.0 (scikit-learn < 1.6), once in its own,
on the same samples, pairs, triplets and quadruplets, with every option at its default. Prints, for
every method that iterates, the seconds of a fit (of the processor, in one thread, so that other
work on the machine does not count; the least of up to three, compiled before), their
ratio, and the value that the method's own problem has at the metric found: lower is better. Then
how long our learner takes until it is where metric-learn ends. Writes results/metric-learn.md.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import warnings
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import numpy as np
from itml import fixed_pairs
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

REPEATS, ENOUGH = 3, 3.0
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
BALANCE = 1e-5  # of SDML: at its default, 0.5, neither package finds a solution


def problems():
    """Samples X (n, d), labels, a number to predict, pairs, and which pairs are similar."""
    for name, load in (("iris", load_iris), ("wine", load_wine), ("cancer", load_breast_cancer)):
        X, y = load(return_X_y=True)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        X, kept = np.unique(X, axis=0, return_index=True)
        y = y[kept]
        # The target of MLKR: smooth, and of some features only.
        yield name, X, y, np.sin(X[:, 0]) + X[:, 1] ** 2, *fixed_pairs(y, (1, 3, 5, 10))


def triplets_of(X, y):
    """Every row with its nearest 3 of the class and its nearest 3 of the others."""
    D = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    np.fill_diagonal(D, np.inf)
    same = y[:, None] == y
    near = np.argsort(np.where(same, D, np.inf), axis=1, kind="stable")[:, :3]
    far = np.argsort(np.where(same, np.inf, D), axis=1, kind="stable")[:, :3]
    rows = np.repeat(np.arange(len(X)), 9)
    return np.stack([rows, np.repeat(near, 3, axis=1).ravel(), np.tile(far, 3).ravel()], axis=1)


def quadruplets_of(pairs, similar):
    number = min(similar.sum(), (~similar).sum())
    return np.concatenate([pairs[similar][:number], pairs[~similar][:number]], axis=1)


def calls(ml, X, y, target, pairs, similar):
    """What a user of metric-learn writes."""
    signs = np.where(similar, 1, -1)
    triplets, quadruplets = triplets_of(X, y), quadruplets_of(pairs, similar)
    return {
        "NCA": lambda: ml.NCA().fit(X, y),
        "MLKR": lambda: ml.MLKR().fit(X, target),
        "LMNN": lambda: ml.LMNN().fit(X, y),
        "ITML": lambda: ml.ITML(preprocessor=X).fit(pairs, signs),
        "MMC": lambda: ml.MMC(preprocessor=X).fit(pairs, signs),
        "MMC, diagonal": lambda: ml.MMC(diagonal=True, preprocessor=X).fit(pairs, signs),
        "LSML": lambda: ml.LSML(preprocessor=X).fit(quadruplets),
        "SDML": lambda: ml.SDML(balance_param=BALANCE, preprocessor=X).fit(pairs, signs),
        "SCML": lambda: ml.SCML(preprocessor=X, random_state=0).fit(triplets),
    }


# ------------------------------------------------------------------------- measuring, in either


def natives(vc, X, y, target, pairs, similar):
    """Our learners of the same problem: the class, its options, how to fit it, what starts it has.

    Where the start decides at which of several minima a run ends, or how long it takes, there are
    two: metric-learn's (the identity) and ours. Tolerances are such that none ends before theirs.
    """
    triplets, quadruplets = triplets_of(X, y), quadruplets_of(pairs, similar)
    exact = {"max_iter": 5000, "tol": 1e-10}
    bases = {"basis": "triplets", "n_basis": 80 * X.shape[1], "rescale": False, "random_state": 0}
    both, own = ("identity", "own"), ("own",)

    def of_labels(each):
        return each.fit(X, y)

    def of_pairs(each):
        return each.fit_pairs(X, pairs, similar)

    return {
        "NCA": (vc.NCA, exact, of_labels, both),
        "MLKR": (vc.MLKR, exact, lambda each: each.fit(X, target), both),
        "LMNN": (vc.LMNN, {}, of_labels, both),
        "MMC": (vc.MMC, {}, of_pairs, own),
        "MMC, diagonal": (vc.MMC, {"diagonal": True}, of_pairs, own),
        "LSML": (vc.LSML, {}, lambda each: each.fit_quadruplets(X, quadruplets), own),
        "SCML": (vc.SCML, bases, lambda each: each.fit_triplets(X, triplets), own),
    }


def measure_natives(found, data, problem, theirs):
    """Seconds until our own learners are where metric-learn ended, and the value they ended at."""
    import vicinal as vc

    for method, (kind, options, fit, starts) in natives(vc, *problem).items():
        L = theirs.get(f"{method}|{data}|L")
        if L is None:
            continue
        # The learner of a diagonal M has the value of M at its best scale, which that of "MMC" is.
        goal = objective(method.partition(",")[0], L, *problem)
        goal += 1e-6 * (1.0 + abs(goal))
        for start in starts:
            make = partial(kind, **options, **({} if start == "own" else {"init": start}))
            fit(make(callback=lambda progress: True))  # compiles
            seconds = []
            while len(seconds) < REPEATS and sum(seconds) < ENOUGH:
                learner = make(callback=lambda progress: progress.objective <= goal)  # noqa: B023
                begin = time.process_time()
                fit(learner)
                seconds.append(time.process_time() - begin)
            value = learner.objective_
            found[f"{method}|{data}|{start}"] = np.array([min(seconds), value, value <= goal])


def measure(package, path, theirs=None):
    """All fits of a package; seconds and L into an .npz file."""
    ml = import_module(package)
    found = {}
    for data, *problem in problems():
        if theirs is not None:
            with np.load(theirs, allow_pickle=False) as arrays:
                measure_natives(found, data, problem, dict(arrays))
        for method, fit in calls(ml, *problem).items():
            if ml.__name__ != "metric_learn":
                fit()  # compiles
            seconds, model = [], None
            while len(seconds) < REPEATS and sum(seconds) < ENOUGH:
                begin = time.process_time()
                try:
                    model = fit()
                except (RuntimeError, ValueError) as error:
                    print(f"{method} on {data}: {str(error)[:100]}", file=sys.stderr)
                    break
                seconds.append(time.process_time() - begin)
            if model is not None:
                found[f"{method}|{data}|L"] = model.components_
                found[f"{method}|{data}|s"] = min(seconds)
    found["versions"] = np.array(
        [f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn")]
    )
    np.savez(path, **found)


# -------------------------------------------------------------------------- objectives, by loops


def squared(M, V):
    return np.maximum(np.einsum("pd,pd->p", V @ M, V), 0.0)


def soft_weights(X, L):
    Z = X @ L.T
    D = ((Z[:, None] - Z[None]) ** 2).sum(axis=2)
    np.fill_diagonal(D, np.inf)
    P = np.exp(-(D - D.min(axis=1, keepdims=True)))
    return P / P.sum(axis=1, keepdims=True)


def bregman(ratio):
    return ratio - np.log(ratio) - 1.0


def objective(method, L, X, y, target, pairs, similar):
    """The value of the method's problem as metric-learn states it, with its default options."""
    M, d = L.T @ L, X.shape[1]
    gaps = X[pairs[:, 0]] - X[pairs[:, 1]]
    near, far = squared(M, gaps[similar]), squared(M, gaps[~similar])
    if method == "NCA":
        return len(X) - (soft_weights(X, L) * (y[:, None] == y)).sum()
    if method == "MLKR":
        return ((soft_weights(X, L) @ target - target) ** 2).sum()
    if method == "LMNN":
        return lmnn_value(M, X, y)
    if method == "ITML":
        rows = X[np.unique(pairs)]
        D = np.sqrt(((rows[:, None] - rows[None]) ** 2).sum(axis=2))
        u, l = np.percentile(D, (5, 95))  # noqa: E741
        slack = bregman(np.maximum(near / u, 1.0)).sum() + bregman(np.minimum(far / l, 1.0)).sum()
        return np.trace(M) - np.linalg.slogdet(M)[1] - d + slack
    if method == "MMC":
        return 0.5 * np.log(near.sum()) - np.log(np.sqrt(far).sum())
    if method == "MMC, diagonal":
        return near.sum() - np.log(np.sqrt(far).sum())
    if method == "LSML":
        number = min(len(near), len(far))
        violations = np.maximum(np.sqrt(near[:number]) - np.sqrt(far[:number]), 0.0)
        return (violations**2).mean() + np.trace(M) - np.linalg.slogdet(M)[1] - d
    if method == "SDML":
        K = np.eye(d) + BALANCE * (gaps.T * np.where(similar, 1.0, -1.0)) @ gaps
        sparse = np.abs(M).sum() - np.abs(np.diag(M)).sum()
        return np.vdot(M, K) - np.linalg.slogdet(M)[1] + 0.01 * sparse
    triplets = triplets_of(X, y)  # SCML: bases have length 1, so their weights add up to tr M
    i, j, l = X[triplets].transpose(1, 0, 2)  # noqa: E741
    hinge = np.maximum(1.0 + squared(M, i - j) - squared(M, i - l), 0.0)
    return hinge.mean() + 1e-5 * np.trace(M)


def lmnn_value(M, X, y, k=3):
    D0 = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    np.fill_diagonal(D0, np.inf)
    D = np.array([squared(M, x - X) for x in X])
    total = 0.0
    for i in range(len(X)):
        targets = np.argsort(np.where(y == y[i], D0[i], np.inf), kind="stable")[:k]
        for j in targets:
            push = np.maximum(1.0 + D[i, j] - D[i, y != y[i]], 0.0).sum()
            total += 0.5 * D[i, j] + 0.5 * push
    return total


# ------------------------------------------------------------------------------------- the table


def run_both():
    """What either package found, and its versions."""
    here = Path(__file__).resolve()
    pythons = {
        "metric_learn": os.environ["METRIC_LEARN_PYTHON"],
        "vicinal.compat.metric_learn": sys.executable,
    }
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for package, python in pythons.items():
            path = Path(folder) / f"{package}.npz"
            environment = dict(os.environ) | ONE_THREAD
            if package == "metric_learn":
                environment.pop("PYTHONPATH", None)
            first = [str(Path(folder) / "metric_learn.npz")] if found else []
            call = [python, str(here), package, str(path), *first]
            subprocess.run(call, env=environment, check=True)
            with np.load(path, allow_pickle=False) as arrays:
                found.append(dict(arrays))
    return found


def table(theirs, ours):
    columns = (
        "method",
        "data",
        "metric-learn, s",
        "same call, s",
        "ratio",
        "value: metric-learn",
        "same call",
        "to metric-learn's value from its start, s",
        "ratio",
        "from our start, s",
        "ratio",
    )
    lines = [f"| {' | '.join(columns)} |", "|---|---|" + "---:|" * (len(columns) - 2)]
    sets = {name: problem for name, *problem in problems()}
    for key in [key[:-2] for key in ours if key.endswith("|s")]:
        method, data = key.split("|")
        mine = float(ours[f"{key}|s"])
        value = objective(method, ours[f"{key}|L"], *sets[data])
        cells = ["failed", f"{mine:.4f}", "–", "–", f"{value:.6g}", "–", "–", "–", "–"]
        if f"{key}|s" in theirs:
            other = float(theirs[f"{key}|s"])
            cells[0], cells[2] = f"{other:.4f}", f"{other / mine:.1f}×"
            cells[3] = f"{objective(method, theirs[f'{key}|L'], *sets[data]):.6g}"
            cells[5:7] = reached(ours.get(f"{key}|identity"), other)
            cells[7:] = reached(ours.get(f"{key}|own"), other)
        lines.append(f"| {method} | {data} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def reached(run, other):
    """Two cells: seconds and ratio of a run that got to the value, or where it ended."""
    if run is None:
        return "–", "–"
    seconds, value, there = run
    return (f"{seconds:.4f}", f"{other / seconds:.1f}×") if there else (f"ends at {value:.6g}", "–")


def main():
    from common import ROOT, print_header

    print_header("metric-learn's calls, in metric-learn and in vicinal.compat.metric_learn")
    theirs, ours = run_both()
    protocol = (
        "`python benchmarks/metric_learn/one_import.py`: the same calls, options at their defaults "
        f"(SDML: balance_param={BALANCE:g}), standardized features; seconds of the processor, one "
        "thread, the least of up to three fits, compiled before. The value is that of the "
        "method's own problem at the metric found: lower is better. Then the seconds that the "
        "learner of `vicinal` takes to a value as low as metric-learn's: from metric-learn's own "
        "start, the identity, where the problem is not convex or the start is a parameter, and "
        "from ours. NCA and MLKR have many minima: the two starts lead to different ones. "
        f"There were {os.getloadavg()[2]:.1f} processes at work on the machine (mean of 15 "
        "minutes): its seconds vary with what else uses the caches, most where arrays are n×n."
    )
    versions = (
        f"metric-learn 0.7.0 with {', '.join(theirs['versions'])}; "
        f"vicinal with {', '.join(ours['versions'])}."
    )
    title = "# metric-learn's calls, in metric-learn and in vicinal"
    lines = [title, protocol, versions, table(theirs, ours)]
    (ROOT / "results" / "metric-learn.md").write_text("\n\n".join(lines) + "\n")
    print(lines[-1])


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    measure(*sys.argv[1:]) if len(sys.argv) > 1 else main()
