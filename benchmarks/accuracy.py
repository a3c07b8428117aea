"""The automatic classifier against its rivals on the paper's fifteen data sets.

    python benchmarks/accuracy.py run [--datasets iris wine] [--splits 10] [--jobs 2]
    python benchmarks/accuracy.py table

Every result is one line of results/accuracy.jsonl, written as soon as it is there; a second run
goes on where the first was stopped. `table` makes results/accuracy.md and
docs/images/calibration.png from it.

Splits are 70/30, stratified where possible. All choices are made inside the training part, by
5-fold cross-validation on the same folds; on more than TUNING_ROWS rows on a stratified sample of
them, and the chosen setting is then fitted to all. Budgets are in RIVALS.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("OMP_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(os.environ.get("VICINAL_ACCURACY", ROOT / "results" / "accuracy.jsonl"))
DATA = Path(os.environ.get("VICINAL_DATA", ROOT.parent / "shared" / "data"))
DATASETS = (
    "iris", "wine", "glass", "solar", "ecoli", "cars", "monk1", "australian", "vehicle", "german",
    "coil20", "isolet", "usps", "pendigits", "letter",
)  # fmt: skip
TUNING_ROWS = 1500
KS = (1, 3, 5, 7, 9, 13, 19, 27, 37)
LARGE = 2**16  # values from which on rivals too learn their metrics in float32: half the time
MAX_DIMENSIONS = 150  # beyond it metrics are learned on principal components, as in the paper


@dataclass(frozen=True)
class Rival:
    """How a method is tuned: its settings, and what makes a model of one."""

    settings: tuple[dict[str, Any], ...]
    make: Callable[..., Any]
    is_metric: bool = True  # then K is tuned as well, from one neighbor search


def grid(**axes: tuple[Any, ...]) -> tuple[dict[str, Any], ...]:
    from sklearn.model_selection import ParameterGrid

    return tuple(ParameterGrid({name: list(values) for name, values in axes.items()}))


def _euclid() -> Any:
    from sklearn.preprocessing import FunctionTransformer

    return FunctionTransformer()


def _nca(**setting: Any) -> Any:
    import vicinal as vc

    return vc.NCA(init="identity", max_iter=50, **setting)


def _lda(**setting: Any) -> Any:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    return LinearDiscriminantAnalysis(solver="eigen", **setting)


def _gmml(**setting: Any) -> Any:
    import vicinal as vc

    return vc.GMML(random_state=0, **setting)


def _lmnn(**setting: Any) -> Any:
    import vicinal as vc

    return vc.LMNN(max_iter=50, **setting)


def _svm(**setting: Any) -> Any:
    from sklearn.svm import SVC

    return SVC(**setting)


def _forest(**setting: Any) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_estimators=200, random_state=0, n_jobs=1, **setting)


RIVALS = {
    "euclid": Rival(({},), _euclid),
    "nca": Rival(({},), _nca),
    "lda": Rival(grid(shrinkage=(0.001, 0.01, 0.1, "auto")), _lda),
    "gmml": Rival(grid(t=(0.1, 0.3, 0.5, 0.7, 0.9)), _gmml),
    "lmnn": Rival(grid(n_neighbors=(3, 6), push_weight=(0.3, 0.7)), _lmnn),
    "svm": Rival(
        grid(C=(1.0, 5.0, 25.0, 125.0), gamma=(0.1, 0.3, 1.0, 3.0)),
        _svm,
        is_metric=False,
    ),
    "forest": Rival(
        grid(max_features=("sqrt", 0.4), min_samples_leaf=(1, 3)), _forest, is_metric=False
    ),
}
OURS = ("committee", "single")
METHODS = (*OURS, *RIVALS)


# ----------------------------------------------------------------------------- one result


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    with np.load(DATA / f"{name}.npz", allow_pickle=False) as arrays:
        return arrays["X"].astype(np.float64), np.unique(arrays["y"], return_inverse=True)[1]


def split(X: np.ndarray, y: np.ndarray, seed: int) -> list[np.ndarray]:
    from sklearn.model_selection import train_test_split

    stratify = y if np.bincount(y).min() > 1 else None
    return train_test_split(X, y, test_size=0.3, random_state=seed, stratify=stratify)


def measure(name: str, method: str, seed: int) -> dict[str, Any]:
    """Accuracy on the test part, and what the probabilities are worth."""
    import numba
    from threadpoolctl import threadpool_limits

    numba.set_num_threads(1)
    A, B, a, b = split(*load(name), seed)
    if method in RIVALS and RIVALS[method].is_metric and A.size >= LARGE:
        A, B = A.astype(np.float32), B.astype(np.float32)
    with threadpool_limits(1):
        start = time.perf_counter()
        model, chosen = fit_ours(method, A, a) if method in OURS else tune(method, A, a, seed)
        seconds = time.perf_counter() - start
        predicted = model.predict(B)
        record = {
            "data": name, "method": method, "split": seed, "n_train": len(a),
            "accuracy": float(np.mean(predicted == b)), "seconds": round(seconds, 3),
            "chosen": chosen,
        }  # fmt: skip
        if hasattr(model, "predict_proba"):
            P = np.zeros((len(b), int(max(a.max(), b.max())) + 1))
            P[:, model.classes_] = model.predict_proba(B)
            record |= probability_scores(P, b)
    return record


def fit_ours(method: str, A: np.ndarray, a: np.ndarray) -> tuple[Any, str]:
    import vicinal as vc

    model = vc.ANNClassifier(method, n_jobs=1).fit(A, a)
    return model, "; ".join(
        f"{c.weight:.2f} {c.configuration} @{c.iterate} {c.vote} {c.n_neighbors}"
        for c in model.chosen_[:3]
    )


def tune(method: str, A: np.ndarray, a: np.ndarray, seed: int) -> tuple[Any, str]:
    """Try every setting on the same folds, and fit the best one to all of the training part."""
    import warnings

    from sklearn.base import clone

    from vicinal.validation.folds import stratified_folds, stratified_sample

    warnings.simplefilter("ignore")  # convergence of single settings, classes missing in a fold
    rival = RIVALS[method]
    rows = stratified_sample(a, TUNING_ROWS, at_least=10, random_state=np.random.RandomState(seed))
    folds = stratified_folds(5, a[rows], None, seed)
    best: tuple[float, dict[str, Any], int | None] = (-1.0, {}, None)
    for setting in affordable(rival.settings, A.shape[1]):
        scores = [fold_scores(rival, setting, A[rows], a[rows], fold) for fold in folds]
        mean = np.mean(scores, axis=0)
        if mean.max() > best[0]:
            best = (float(mean.max()), setting, int(KS[mean.argmax()]) if rival.is_metric else None)
    _, setting, k = best
    model = clone(pipeline(rival, setting, A.shape[1], k)).fit(A, a)
    return model, json.dumps({**setting, **({"K": k} if k else {})}, default=str)


def affordable(settings: tuple[dict[str, Any], ...], d: int) -> list[dict[str, Any]]:
    """Forests that look at a share of very many features take minutes a fold: left out."""
    return [s for s in settings if d <= MAX_DIMENSIONS or s.get("max_features") in (None, "sqrt")]


def fold_scores(rival: Rival, setting: dict[str, Any], X: Any, y: Any, fold: Any) -> np.ndarray:
    """Accuracies on the test rows of the fold: one a K, or one."""
    from vicinal.validation.out_of_fold import predict_all_k

    model = pipeline(rival, setting, X.shape[1], None).fit(X[fold.train], y[fold.train])
    if not rival.is_metric:
        return np.array([model.score(X[fold.test], y[fold.test])])
    R, Z = model.transform(X[fold.train]), model.transform(X[fold.test])
    ks = np.array([min(k, len(R)) for k in KS])
    predicted = predict_all_k(R, y[fold.train], Z, ks, "vote")  # (K, q)
    return np.mean(predicted == y[fold.test], axis=1)


def pipeline(rival: Rival, setting: dict[str, Any], d: int, k: int | None) -> Any:
    """Standardize, reduce (metrics only), transform, vote."""
    from sklearn.decomposition import PCA
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if not rival.is_metric:
        if "gamma" in setting:  # in units of 1/d
            setting = {**setting, "gamma": setting["gamma"] / d}
        return make_pipeline(StandardScaler(), rival.make(**setting))
    steps: list[Any] = [StandardScaler()]
    if d > MAX_DIMENSIONS:
        steps.append(PCA(MAX_DIMENSIONS, svd_solver="full"))
    steps.append(rival.make(**setting))
    if k is not None:
        steps.append(KNeighborsClassifier(k))
    return make_pipeline(*steps)


def probability_scores(P: np.ndarray, codes: np.ndarray) -> dict[str, Any]:
    """Log-loss (probabilities not below 1e-6), Brier score, and calibration in ten bins."""
    truth = P[np.arange(len(codes)), codes]
    confidence = P.max(axis=1)
    bins = np.minimum((confidence * 10).astype(int), 9)
    hits = P.argmax(axis=1) == codes
    return {
        "log_loss": float(-np.mean(np.log(np.clip(truth, 1e-6, 1.0)))),
        "brier": float(np.mean((P**2).sum(axis=1) - 2 * truth + 1)),
        "bins": [
            [int(np.sum(bins == i)), float(confidence[bins == i].sum()), int(hits[bins == i].sum())]
            for i in range(10)
        ],
    }


# ----------------------------------------------------------------------------- the run


def recorded() -> list[dict[str, Any]]:
    if not RESULTS.exists():
        return []
    return [json.loads(line) for line in RESULTS.read_text().splitlines() if line]


def run(datasets: list[str], methods: list[str], splits: int, jobs: int) -> None:
    """What is not recorded yet, split by split: a run cut short has a few splits of every set."""
    from joblib import Parallel, delayed

    done = {(r["data"], r["method"], r["split"]) for r in recorded()}
    tasks = [
        (name, method, seed)
        for seed in range(splits)
        for name in datasets
        for method in methods
        if (name, method, seed) not in done
    ]
    print(f"{len(done)} results recorded, {len(tasks)} to go", flush=True)
    results: Iterator[Any] = Parallel(n_jobs=jobs, return_as="generator_unordered")(
        delayed(attempt)(*task) for task in tasks
    )
    RESULTS.parent.mkdir(exist_ok=True)
    begin = time.monotonic()
    for i, record in enumerate(results, 1):
        with RESULTS.open("a") as file:
            file.write(json.dumps(record) + "\n")
        left = (time.monotonic() - begin) / i * (len(tasks) - i)
        print(
            f"{i}/{len(tasks)} {record['data']} {record['method']} {record['split']}: "
            f"{record.get('accuracy', record.get('error'))} in {record.get('seconds', 0):.1f} s; "
            f"about {left / 60:.0f} min left",
            flush=True,
        )


def attempt(name: str, method: str, seed: int) -> dict[str, Any]:
    """A failure is a result too."""
    try:
        return measure(name, method, seed)
    except Exception as error:
        return {"data": name, "method": method, "split": seed, "error": repr(error)}


# ----------------------------------------------------------------------------- the table


def table() -> None:
    import accuracy_table

    accuracy_table.write(recorded(), DATASETS, METHODS, ROOT)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=("run", "table"))
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS), choices=DATASETS)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    given = parser.parse_args()
    if given.command == "run":
        missing = [name for name in given.datasets if not (DATA / f"{name}.npz").exists()]
        if missing:
            sys.exit(f"no {', '.join(missing)} in {DATA}: set VICINAL_DATA to the folder with them")
        run(given.datasets, given.methods, given.splits, given.jobs)
    else:
        table()


if __name__ == "__main__":
    main()
