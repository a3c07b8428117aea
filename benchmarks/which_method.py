"""Which method when: every learner with its defaults on some small sets, accuracy and time.

    python benchmarks/which_method.py [--splits 3] [--rows 1000] [--limit 6000] [--no-run]

Each set is split into 70 % training and 30 % test rows, stratified; features are standardized by
the training rows, the metric is learned from them, and 3 nearest neighbors classify the test rows.
The time of a fit is that of the processor, of all threads together: other work does not add to it.
Writes results/which_method.csv and .md, and fills the measured columns of docs/methods.md.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import importlib
import io
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from common import ROOT, print_header
from sklearn import datasets
from sklearn.base import TransformerMixin
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import FunctionTransformer, StandardScaler

RESULTS = ROOT / "results"
DOCS = ROOT / "docs" / "methods.md"
START, END = "<!-- which_method:start -->", "<!-- which_method:end -->"
EUCLIDEAN = "Euclidean"

METHODS: dict[str, dict[str, Any]] = {  # PNCA() is NCA(), hence its exponent
    "ANN": {},
    "ANN(alpha=-1)": {"alpha": -1.0},
    "PNCA(alpha=2)": {"alpha": 2.0},
    "NCA": {},
    "LMNN": {},
    "MCML": {},
    "LDML": {},
    "ITML": {},
    "MMC": {},
    "LSML": {},
    "SDML": {},
    "GMML": {},
    "RCA": {},
    "LFDA": {},
    "RVML": {},
    'RVML(kernel="rbf")': {"kernel": "rbf"},
    "SCML": {},
    "BoostMetric": {},
    "MLKR": {},
    "Covariance": {},
}
OF_NUMBERS = ("MLKR",)
"""Methods that learn from numbers: one column per class, 1 for its members, 0 for others."""
BUNDLED = {
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "breast cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
}
FROM_FOLDER = ("vehicle", "german", "australian", "glass")


@dataclass(frozen=True)
class LabeledSet:
    """Samples X (n, d) and labels y (n,)."""

    name: str
    X: np.ndarray
    y: np.ndarray


@dataclass(frozen=True)
class Outcome:
    """What one method reached on one set; no numbers where it failed."""

    method: str
    data: str
    rows: int
    features: int
    classes: int
    splits: int
    accuracy: float
    accuracy_std: float
    fit_seconds: float
    converged: int
    error: str

    @property
    def failed(self) -> bool:
        return bool(self.error)


# ---------------------------------------------------------------------------- data and methods


def load_sets(most_rows: int) -> Iterator[LabeledSet]:
    """The bundled sets, and those of the folder that are there."""
    for name, load in BUNDLED.items():
        yield capped(name, *load(return_X_y=True), most_rows)
    folder = Path(os.environ.get("VICINAL_DATA", ROOT.parent / "shared" / "data"))
    for name in FROM_FOLDER:
        path = folder / f"{name}.npz"
        if not path.is_file():
            print(f"{name}.npz is not there, skipped: VICINAL_DATA names the folder that holds it")
            continue
        with np.load(path, allow_pickle=False) as arrays:
            yield capped(name, arrays["X"], arrays["y"], most_rows)


def capped(name: str, X: np.ndarray, y: np.ndarray, most_rows: int) -> LabeledSet:
    """The set, or a random part of its rows."""
    kept = np.random.default_rng(0).permutation(len(X))[:most_rows]
    codes = np.unique(y[kept], return_inverse=True)[1]
    return LabeledSet(name, X[kept].astype(np.float64), codes)


def make(method: str) -> TransformerMixin:
    """A fresh learner, with a seed where it takes one."""
    if method == EUCLIDEAN:
        return FunctionTransformer()
    name = method.partition("(")[0]
    learner = getattr(importlib.import_module(f"vicinal.learners.{name.lower()}"), name)
    learner = learner(**METHODS[method])
    return learner.set_params(random_state=0) if "random_state" in learner.get_params() else learner


# ------------------------------------------------------------------------------------ measuring


def measure(method: str, data: LabeledSet, splits: int, end: float = np.inf) -> Outcome:
    """Accuracy and seconds over the splits, which are the same for all methods."""
    accuracies: list[float] = []
    seconds: list[float] = []
    converged = 0
    error = ""
    halves = StratifiedShuffleSplit(splits, test_size=0.3, random_state=0)
    for train, test in halves.split(data.X, data.y):
        try:
            if time.perf_counter() > end:
                raise TimeoutError("not run, the time was up")
            learner = make(method)
            scaler = StandardScaler().fit(data.X[train])
            X, y = scaler.transform(data.X[train]), data.y[train]
            target = np.eye(len(np.unique(y)))[y] if method in OF_NUMBERS else y
            start = time.process_time()
            learner.fit(X, target)
            seconds.append(time.process_time() - start)
            knn = KNeighborsClassifier(3).fit(learner.transform(X), y)
            Z = learner.transform(scaler.transform(data.X[test]))
            accuracies.append(knn.score(Z, data.y[test]))
            converged += getattr(learner, "converged_", True)
        except Exception as problem:  # a failing method is a result, too
            error = f"{type(problem).__name__}: {problem}".replace("\n", " ")[:200]
            break
    done = bool(accuracies) and not error
    return Outcome(
        method=method,
        data=data.name,
        rows=len(data.X),
        features=data.X.shape[1],
        classes=len(np.unique(data.y)),
        splits=len(accuracies),
        accuracy=float(np.mean(accuracies)) if done else np.nan,
        accuracy_std=float(np.std(accuracies)) if done else np.nan,
        fit_seconds=statistics.median(seconds) if done else np.nan,
        converged=converged,
        error=error,
    )


def measure_all(splits: int, rows: int, limit: float) -> list[Outcome]:
    """All methods on all sets; compiled first, so that no time contains the compiler's."""
    sets = list(load_sets(rows))
    end = time.perf_counter() + limit
    outcomes = []
    for method in (EUCLIDEAN, *METHODS):
        measure(method, sets[0], 1)
        for data in sets:
            outcomes.append(measure(method, data, splits, end))
            last = outcomes[-1]
            said = last.error or f"{last.accuracy:.3f} in {last.fit_seconds:.3g} s"
            print(f"{method:20s} {data.name:14s} {said}", file=sys.stderr, flush=True)
    return outcomes


# -------------------------------------------------------------------------------------- writing


def write_csv(path: Path, outcomes: list[Outcome]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(
            file, [field.name for field in fields(Outcome)], lineterminator="\n"
        )
        writer.writeheader()
        for outcome in outcomes:
            row = asdict(outcome)
            rounded = {k: f"{v:.5g}" for k, v in row.items() if isinstance(v, float)}
            writer.writerow(row | rounded)


def read_csv(path: Path) -> list[Outcome]:
    kinds = {"str": str, "int": int, "float": float}
    with path.open(newline="") as file:
        return [
            Outcome(
                **{field.name: kinds[str(field.type)](row[field.name]) for field in fields(Outcome)}
            )
            for row in csv.DictReader(file)
        ]


def summarize(outcomes: list[Outcome], method: str) -> tuple[str, str]:
    """Mean accuracy over the sets, and "median (largest)" of the fit seconds over them."""
    mine = [o for o in outcomes if o.method == method]
    good = [o for o in mine if not o.failed]
    if not good:
        return "–", "–"
    accuracy = f"{statistics.mean(o.accuracy for o in good):.3f}"
    if len(good) < len(mine):
        accuracy += f" on {len(good)} of {len(mine)} sets"
    seconds = [o.fit_seconds for o in good]
    return accuracy, f"{in_words(statistics.median(seconds))} ({in_words(max(seconds))})"


def in_words(seconds: float) -> str:
    return "< 0.01" if seconds < 0.01 else f"{seconds:.2f}" if seconds < 10 else f"{seconds:.0f}"


def results_table(outcomes: list[Outcome]) -> str:
    """One row a method, one column a set: accuracy in %, the best of a set in bold."""
    names = list(dict.fromkeys(o.data for o in outcomes))
    cells = {(o.method, o.data): o for o in outcomes}
    best = {n: max(o.accuracy for o in outcomes if o.data == n and not o.failed) for n in names}
    lines = [
        "| method | " + " | ".join(names) + " | mean accuracy | fit, s: median (largest) |",
        "|---|" + "---:|" * (len(names) + 2),
    ]
    for method in dict.fromkeys(o.method for o in outcomes):
        row = [accuracy_cell(cells[method, name], best[name]) for name in names]
        lines.append(f"| {method} | " + " | ".join([*row, *summarize(outcomes, method)]) + " |")
    return "\n".join(lines)


def accuracy_cell(outcome: Outcome, best: float) -> str:
    if outcome.failed:
        return "failed"
    text = f"{100 * outcome.accuracy:.1f}"
    text = f"**{text}**" if outcome.accuracy >= best - 1e-12 else text
    return text if outcome.converged == outcome.splits else text + " †"


def describe_run(command: str, seconds: float) -> str:
    """Command, versions, machine and commit in words."""
    header = io.StringIO()
    with contextlib.redirect_stdout(header):
        print_header("Which method when")
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True
    )
    title, machine = header.getvalue().strip().splitlines()
    run = f"`{command}`: {seconds:.0f} s, with {os.getloadavg()[2]:.1f} processes at work on the "
    run += "machine (mean of 15 minutes). The times below are of the processor, threads added up."
    code = f"vicinal {version_of_library()} ({commit.stdout.strip() or 'no commit'})"
    return "\n\n".join([title, run, f"{machine}, {code}."])


def version_of_library() -> str:
    try:
        return version("vicinal")
    except importlib.metadata.PackageNotFoundError:  # run from the sources
        return str(importlib.import_module("vicinal").__version__)


def notes(outcomes: list[Outcome], splits: int) -> str:
    """The protocol, the sets, and what failed."""
    sets = {o.data: f"{o.data} {o.rows} × {o.features}, {o.classes} classes" for o in outcomes}
    protocol = (
        f"3-NN test accuracy in %, {splits} stratified 70/30 split(s), defaults, features "
        "standardized by the training rows; the best of a set in bold. † not every fit converged."
    )
    lines = [protocol, "Sets: " + "; ".join(sets.values()) + "."]
    lines += [f"{o.method} failed on {o.data}: {o.error}" for o in outcomes if o.failed]
    return "\n\n".join(lines)


def fill_docs(path: Path, outcomes: list[Outcome]) -> None:
    """Put the measured columns into the table between the markers; all else stays as written."""
    before, rest = path.read_text().split(START)
    table, after = rest.split(END)
    head, rule, *rows = table.strip().splitlines()
    columns = [cell.strip() for cell in head.strip("|").split("|")]
    at = columns.index("mean accuracy"), columns.index("fit, s")
    filled = []
    for row in rows:
        cells = [cell.strip() for cell in row.strip().strip("|").split("|")]
        for column, text in zip(at, summarize(outcomes, cells[0].strip("`")), strict=True):
            cells[column] = text
        filled.append("| " + " | ".join(cells) + " |")
    path.write_text(f"{before}{START}\n" + "\n".join([head, rule, *filled]) + f"\n{END}{after}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--rows", type=int, default=1000, help="of a set, at most")
    parser.add_argument(
        "--limit", type=float, default=6000.0, help="seconds, then fits are left out"
    )
    parser.add_argument("--no-run", action="store_true", help="fill the docs from the csv")
    options = parser.parse_args()
    table = RESULTS / "which_method.csv"
    if not options.no_run:
        warnings.simplefilter("ignore")  # what did not converge is marked in the table
        start = time.perf_counter()
        outcomes = measure_all(options.splits, options.rows, options.limit)
        RESULTS.mkdir(exist_ok=True)
        write_csv(table, outcomes)
        command = " ".join(["python", "benchmarks/which_method.py", *sys.argv[1:]])
        described = describe_run(command, time.perf_counter() - start)
        page = "\n\n".join([described, results_table(outcomes), notes(outcomes, options.splits)])
        (RESULTS / "which_method.md").write_text(page + "\n")
        print(page)
    if DOCS.is_file():
        fill_docs(DOCS, read_csv(table))


if __name__ == "__main__":
    main()
