"""The (α, γ, K) search against scikit-learn's GridSearchCV, over the same grid and folds.

    python benchmarks/bench_search.py                # some minutes
    python benchmarks/bench_search.py --full         # 9 x 7 x 16 settings instead of 5 x 3 x 16

German and wine are read from VICINAL_DATA; where that is absent, scikit-learn's breast cancer and
wine are taken. GridSearchCV fits a pipeline of scaler, ANN and K-NN anew for every K, so 16-fold
work is in the grid itself; it is also given (α, γ) alone, at one K, which is less than was asked
for. No contender refits at the end or uses more than one process. Ratios are of CPU time, which
other work on the machine does not spoil; the clock is printed too.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
from common import ROOT, print_header, verdict
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import vicinal as vc
from vicinal.search.search_cv import ANNSearchCV

KS = list(range(1, 47, 3))
CV = StratifiedKFold(5, shuffle=True, random_state=0)


def load(name: str, instead) -> tuple[str, np.ndarray, np.ndarray]:
    folder = Path(os.environ.get("VICINAL_DATA", ROOT.parent / "shared" / "data"))
    path = folder / f"{name}.npz"
    if not path.is_file():
        return instead.__name__, *instead(return_X_y=True)
    with np.load(path, allow_pickle=False) as arrays:
        return name, arrays["X"].astype(np.float64), arrays["y"]


def contenders(options: argparse.Namespace) -> dict:
    step = 1 if options.full else 2
    alphas = (2.0 ** np.arange(-4, 5, step)).tolist()
    gammas = (2.0 ** np.arange(-3 if options.full else -2, 4, step)).tolist()
    learner = vc.ANN(max_iter=options.max_iter)
    knn = vc.ClassMeanKNN(rule="vote")
    pipeline = Pipeline([("scale", StandardScaler()), ("ann", learner), ("knn", knn)])
    pairs = {"ann__alpha": alphas, "ann__gamma": gammas}
    ours = {"alphas": alphas, "gammas": gammas, "n_neighbors": KS, "standardize": True}
    ours |= {"cv": CV, "refit": False}
    everything = pairs | {"knn__n_neighbors": KS}
    return {
        "GridSearchCV": GridSearchCV(pipeline, everything, cv=CV, refit=False),
        "GridSearchCV, (α, γ) alone": GridSearchCV(pipeline, pairs, cv=CV, refit=False),
        "grid, cold": ANNSearchCV(learner, search="grid", warm_start=False, **ours),
        "grid": ANNSearchCV(learner, search="grid", **ours),
        "separate": ANNSearchCV(learner, search="separate", **ours),
    }


def measure(X, y, options: argparse.Namespace) -> tuple[dict, dict, dict]:
    """Fitted searches, and the best CPU and clock seconds of each, measured in turns."""
    searches = contenders(options)
    cpu, clock = (dict.fromkeys(searches, np.inf) for _ in range(2))
    for _ in range(options.repeats):
        for name, search in searches.items():
            start, cpu_start = time.perf_counter(), time.process_time()
            search.fit(X, y)
            cpu[name] = min(cpu[name], time.process_time() - cpu_start)
            clock[name] = min(clock[name], time.perf_counter() - start)
    return searches, cpu, clock


def report(name: str, X, y, options: argparse.Namespace) -> None:
    searches, seconds, clock = measure(X, y, options)
    results = {key: search.cv_results_["mean_test_score"] for key, search in searches.items()}
    print(f"\n{name}, {X.shape[0]} x {X.shape[1]}, best of {options.repeats}")
    for key, search in searches.items():
        params = {k.rpartition("__")[2]: round(v, 4) for k, v in search.best_params_.items()}
        best = f"accuracy {search.best_score_:.4f} at {params}"
        taken = f"{seconds[key]:8.2f} s (clock {clock[key]:.2f} s)"
        print(f"  {key:27} {taken}, {len(results[key]):4} settings, {best}")
    same = np.array_equal(results["GridSearchCV"], results["grid, cold"])
    print(f"  cold scores equal GridSearchCV's, all of them: {same}")
    change = results["grid"] - results["GridSearchCV"]
    print(
        f"  warm scores less GridSearchCV's: mean {change.mean():+.4f}, standard deviation "
        f"{change.std():.4f}, largest {np.abs(change).max():.4f}"
    )
    full, pairs = (seconds[key] for key in list(seconds)[:2])
    for key in ("grid, cold", "grid"):
        ratio = full / seconds[key]
        verdict(f"  faster than GridSearchCV, {key}", ratio, "x", ">= 10x", ratio >= 10)
    for key in ("grid, cold", "grid"):
        ratio = pairs / seconds[key]
        print(f"  faster than GridSearchCV over (α, γ) alone, {key}: {ratio:.3g}x")
    print(f"  separate, a smaller set of settings: {full / seconds['separate']:.3g}x")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--max-iter", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=2)
    options = parser.parse_args()
    print_header("Search for α, γ and K by 5-fold cross-validation")
    print(f"ANN(max_iter={options.max_iter}), K-NN by vote, {len(KS)} values of K")
    warnings.simplefilter("ignore")
    vc.ANN(max_iter=2).fit(*load_wine(return_X_y=True))  # compiles
    for data in (("german", load_breast_cancer), ("wine", load_wine)):
        report(*load(*data), options)
