"""Robustness of model files: mutated ones are refused cleanly, or load and predict.

    python benchmarks/bench_fuzz.py --count 100000 --seed 0

Bytes are flipped, cut, moved and overwritten; headers and documents are edited as JSON, arrays as
arrays. Half of the edits get a valid checksum, as a hostile author would give them. Any exception
but ModelFileError, more than 5 s for one file, or memory beyond the limit is a failure.
"""

from __future__ import annotations

import argparse
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import print_header, verdict
from fuzz_mutations import MUTATIONS, pick
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import vicinal as vc
from vicinal.exceptions import ModelFileError, TableError
from vicinal.model_file import load, save
from vicinal.search.search_cv import ANNSearchCV
from vicinal.tables.selection import FitSettings
from vicinal.tables.table_model import TableModel

SECONDS_A_FILE = 5
MEGABYTES = 512  # above what is used before the first mutation


def unfolded_committee() -> vc.ANNClassifier:
    """Codes of which only odd or even matters: its members use hat functions."""
    X = np.random.default_rng(1).integers(0, 6, size=(80, 3)).astype(float)
    model = vc.ANNClassifier().fit(X, (X % 2).sum(axis=1) > 1.5)
    assert model.knots_ is not None
    return model


def specimens(folder: Path) -> list[bytes]:
    """One small file of every kind of model."""
    X, y = load_iris(return_X_y=True)
    X, y = X[::4], y[::4]
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    search = ANNSearchCV(
        vc.PNCA(max_iter=5), alphas=[1.0, 2.0], n_neighbors=[1, 3], standardize=True, cv=2
    )
    models = [
        vc.NCA(n_components=2, max_iter=20).fit(X, y),
        vc.ITML(max_iter=50).fit(X.astype(np.float32), y),
        vc.RVML(kernel="rbf").fit(X, names),
        vc.ClassMeanKNN(3).fit(X, names),
        vc.ClassMeanKNN(3, rule="vote").fit(X.astype(np.float32), y == 0),
        make_pipeline(StandardScaler(), PCA(3), vc.GMML(), KNeighborsClassifier(3)).fit(X, names),
        vc.ANNClassifier(mode="single").fit(X, y),
        vc.ANNClassifier().fit(X.astype(np.float32), names),
        unfolded_committee(),
        search.fit(X, names),
        vc.LFDA(2).fit(X, names),
        vc.SCML(max_iter=20, random_state=0).fit(X, y),
        vc.TableEncoder().fit(mixed_table(), names),
        vc.ANNClassifier(random_state=0).fit(mixed_table(), names),
        TableModel.fit(example_table(), "y", settings=FitSettings(method="plain")),
        TableModel.fit(example_table(), "y", settings=FitSettings(method="gmml")),
    ]
    files = []
    for model in models:
        save(model, folder / "model.vicinal")
        files.append((folder / "model.vicinal").read_bytes())
    return files


def example_table() -> pd.DataFrame:
    """Numbers, a category, and classes."""
    X, y = load_iris(return_X_y=True)
    X, y = X[::4], y[::4]
    kind = np.where(X[:, 0] > 5.5, "long", "short")
    return pd.DataFrame(X, columns=list("abcd")).assign(kind=kind, y=y)


def mixed_table() -> pd.DataFrame:
    """Columns of every kind: numbers, gaps, levels few and many, dates, one that says nothing."""
    table = example_table().drop(columns="y")
    rows = np.arange(len(table))
    table["gap"] = np.where(rows % 5 == 0, np.nan, table["a"])
    table["street"] = [f"s{row % 15:02d}" for row in rows]
    table["day"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rows * 37, unit="h")
    return table.assign(same=7.0)


def use(model: Any, table: pd.DataFrame) -> None:
    """Predict, transform: whatever the model is for."""
    if isinstance(model, vc.TableEncoder) or getattr(model, "encoder_", None) is not None:
        # As below: what does not fit the column as it is now is said as it should be.
        mixed, names = mixed_table(), getattr(model, "feature_names_in_", ())
        if len(names) == mixed.shape[1]:
            mixed = mixed.set_axis(names, axis=1)  # a mutation may have renamed them
        with suppress(TableError):
            getattr(model, "predict_proba", getattr(model, "transform", None))(mixed)
        return
    if isinstance(model, TableModel):
        # A mutation may have renamed a column; that it is missing is said as it should be.
        with suppress(TableError):
            model.predict_proba(table, ignore_unseen=True)
        return
    X = np.resize(table[list("abcd")].to_numpy()[:5], (5, model.n_features_in_))
    for method in ("predict", "predict_proba", "transform"):
        if hasattr(model, method):
            getattr(model, method)(X)


@dataclass
class Tally:
    """What became of the files."""

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    slowest: float = 0.0


def fuzz(count: int, seed: int, folder: Path, files: list[bytes]) -> Tally:
    """Mutate and load `count` files."""
    tally, path, table = Tally(), folder / "mutated.vicinal", example_table()
    weights = np.array([weight for _, weight in MUTATIONS.values()])
    signal.signal(signal.SIGPROF, _give_up)  # seconds of CPU time: other work does not count
    for i in range(count):
        rng = np.random.default_rng([seed, i])
        kind = list(MUTATIONS)[int(rng.choice(len(weights), p=weights / weights.sum()))]
        path.unlink(missing_ok=True)  # much faster than overwriting on some file systems
        path.write_bytes(MUTATIONS[kind][0](rng, pick(rng, files), pick(rng, files)))
        begin = time.perf_counter()
        signal.setitimer(signal.ITIMER_PROF, SECONDS_A_FILE)
        outcome = try_file(path, table)
        signal.setitimer(signal.ITIMER_PROF, 0)
        tally.slowest = max(tally.slowest, time.perf_counter() - begin)
        tally.outcomes[kind, outcome.partition("\n")[0]] += 1
        if outcome not in ("refused", "loads and predicts"):
            tally.failures.append(f"seed {seed}, file {i}, {kind}: {outcome}")
    return tally


def try_file(path: Path, table: pd.DataFrame) -> str:
    """Load a file and use the model."""
    try:
        model = load(path)
    except ModelFileError:
        return "refused"
    except Exception:
        return "load failed\n" + traceback.format_exc()
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            use(model, table)
    except Exception:
        return "use failed\n" + traceback.format_exc()
    return "loads and predicts"


def _give_up(signum: int, frame: object) -> None:
    raise TimeoutError(f"more than {SECONDS_A_FILE} s")


def limit_memory() -> None:
    """Let what exceeds the limit fail instead of the machine."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limit = size + MEGABYTES * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print_header(f"{options.count:,} mutated model files, seed {options.seed}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = specimens(folder)
        sizes = ", ".join(f"{len(data):,}" for data in found)
        print(f"{len(found)} models; bytes: {sizes}")
        fuzz(300, options.seed + 1, folder, found)  # compiles and imports what predictions need
        limit_memory()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        begin = time.perf_counter()
        tally = fuzz(options.count, options.seed, folder, found)
        seconds = time.perf_counter() - begin
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before
    results = sorted({outcome for _, outcome in tally.outcomes})
    print(f"{'mutation':<20}" + "".join(f"{result:>22}" for result in results))
    for kind in MUTATIONS:
        print(f"{kind:<20}" + "".join(f"{tally.outcomes[kind, r]:>22,}" for r in results))
    total = Counter()
    for (_, outcome), number in tally.outcomes.items():
        total[outcome] += number
    print(f"{'all':<20}" + "".join(f"{total[r]:>22,}" for r in results) + f"   in {seconds:.0f} s")
    verdict(
        "Slowest file",
        tally.slowest,
        " s",
        f"<= {SECONDS_A_FILE} s",
        tally.slowest <= SECONDS_A_FILE,
    )
    verdict("Memory, above the start", grown, " MB", f"<= {MEGABYTES} MB", grown <= MEGABYTES)
    verdict("Failures", len(tally.failures), "", "0", not tally.failures)
    for failure in tally.failures[:10]:
        print(failure)
    sys.exit(bool(tally.failures))


if __name__ == "__main__":
    main()
