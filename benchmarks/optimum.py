"""Whether convex fits end at the minimum: every loss and solver against the best of many runs.

For every data set, scaling, alpha and loss, ``ANN`` is fitted with each solver from its usual
start. The reference is the lowest objective that any of them finds, that the default solver finds
from ten random starts with more iterations, and that an independent method finds: the
hinge softened by a logistic function, at decreasing widths, and minimized by SciPy's L-BFGS-B. A
fit is wrong if it says that it has converged but is more than 0.1 % and more than 0.0001 per row
above the reference.

    python benchmarks/optimum.py                       # all; a finished line is not computed again
    python benchmarks/optimum.py iris wine --starts 3
    python benchmarks/optimum.py --jobs 16 --limit 400 --out records.jsonl
    python benchmarks/optimum.py --table results/optimum.md

Results are lines of JSON in ``results/optimum.jsonl``, or in the file that ``--out`` names. Of
several lines for one configuration the last one counts, and one from fewer starts than asked for
is computed again.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

import vicinal as vc

HERE = Path(__file__).resolve().parent.parent
RECORDS = HERE / "results" / "optimum.jsonl"
NAMES = ("iris", "wine", "glass", "cars", "vehicle")
ALPHAS = (-0.25, -1.0, -4.0, -16.0, -np.inf)
LOSSES = ("hinge", "squared_hinge", "logistic", "linear")
SOLVERS = ("auto", "lbfgs", "apg", "pgd")
RELATIVE, PER_ROW = 1e-3, 1e-4
LONG = 500
"""Iterations of a run for reference."""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

Key = tuple[str, bool, float, str]


def load(name: str, standardized: bool) -> tuple[np.ndarray, np.ndarray]:
    """The samples and labels of a data set, in the folder that VICINAL_DATA names."""
    folder = Path(os.environ.get("VICINAL_DATA", HERE.parent / "shared" / "data"))
    with np.load(folder / f"{name}.npz", allow_pickle=True) as stored:
        X, y = stored["X"].astype(np.float64), stored["y"]
    if standardized:
        spread = X.std(axis=0)
        X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return X, y


def fit(key: Key, **options: Any) -> dict[str, Any]:
    """One fit: what it reached, and what it says about it."""
    name, standardized, alpha, loss = key
    X, y = load(name, standardized)
    begin = time.perf_counter()
    learner = vc.ANN(alpha, loss=loss, **options).fit(X, y)
    return {
        "objective": float(learner.objective_),
        "n_iter": int(learner.n_iter_),
        "reason": learner.stop_reason_,
        "converged": bool(learner.converged_),
        "seconds": round(time.perf_counter() - begin, 3),
    }


def reference(key: Key, n_starts: int) -> float:
    """The lowest objective of long runs from random starts."""
    X, _ = load(key[0], key[1])
    spread = X.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    lowest = np.inf
    for seed in range(n_starts):
        L = np.random.default_rng(seed).standard_normal((X.shape[1], X.shape[1])) / spread
        found = fit(key, init=L * 10.0 ** (seed % 3 - 1), max_iter=LONG, tol=1e-6)
        lowest = min(lowest, found["objective"])
    return lowest


def independent(key: Key) -> float:
    """The objective where a logistic instead of a parabola rounds the kinks; plain L-BFGS-B."""
    name, standardized, alpha, loss = key
    X, y = load(name, standardized)
    factor: Any = "auto"
    for width in (1.0, 0.1, 0.01, 1e-3):
        rounded: Any = loss
        if loss == "hinge":
            rounded = (
                lambda z, w=width: w * np.logaddexp(0.0, (1.0 + z) / w),
                lambda z, w=width: expit((1.0 + z) / w),
            )
        exponent = max(alpha, -3.0 / width)
        learner = vc.ANN(exponent, loss=rounded, init=factor, max_iter=LONG, tol=1e-6)
        factor = learner.fit(X, y).components_
    return float(vc.ANN(alpha, loss=loss, init=factor, max_iter=1).fit(X, y).history_[0])


def examine(key: Key, n_starts: int) -> dict[str, Any]:
    """All fits of one configuration, and the reference."""
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fits = {solver: fit(key, solver=solver) for solver in SOLVERS}
        found = (fit["objective"] for fit in fits.values())
        lowest = min(reference(key, n_starts), independent(key), *found)
    name, standardized, alpha, loss = key
    n = len(load(name, standardized)[0])
    return {
        "data": name,
        "standardized": standardized,
        "alpha": str(alpha),
        "loss": loss,
        "n": n,
        "starts": n_starts,
        "lowest": lowest,
        "seconds": round(time.perf_counter() - begin, 3),
        "fits": fits,
    }


def above(record: dict[str, Any], solver: str) -> float:
    """How far a fit is above the reference, in units of what is allowed."""
    allowed = max(RELATIVE * abs(record["lowest"]), PER_ROW * record["n"])
    return float((record["fits"][solver]["objective"] - record["lowest"]) / allowed)


def verdict(record: dict[str, Any], solver: str) -> str:
    """Whether a fit is at the "minimum", "not converged" as it says, or "wrong"."""
    if not record["fits"][solver]["converged"]:
        return "not converged"
    return "minimum" if above(record, solver) <= 1.0 else "wrong"


def examine_until(deadline: float, key: Key, n_starts: int) -> dict[str, Any] | None:
    """The record of one configuration, or None where the time (in seconds since 1970) is over."""
    return examine(key, n_starts) if time.time() < deadline else None


def key_of(record: dict[str, Any]) -> Key:
    """The configuration of a record."""
    return record["data"], record["standardized"], float(record["alpha"]), record["loss"]


def stored(path: Path) -> dict[Key, dict[str, Any]]:
    """The records so far; the last one of each configuration."""
    if not path.exists():
        return {}
    records = (json.loads(line) for line in path.read_text().splitlines())
    return {key_of(record): record for record in records}


def cost(key: Key) -> tuple[float, bool]:
    """A measure of the time that a configuration takes, up to a factor."""
    X, _ = load(key[0], key[1])
    return float(len(X)) ** 2 * X.shape[1], key[3] == "hinge" or np.isinf(key[2])


def run(keys: list[Key], path: Path, n_starts: int, n_jobs: int, limit: float) -> None:
    """Examine the configurations in processes of one thread each.

    Several processes begin with the longest ones, so that all end at about the same time; a single
    one with the shortest, so that a limit leaves out few.
    """
    deadline = time.time() + limit
    os.environ.update(dict.fromkeys(THREADS, "1"))  # new processes read it when they start
    with ProcessPoolExecutor(n_jobs, mp_context=get_context("spawn")) as pool:
        tasks = [
            pool.submit(examine_until, deadline, key, n_starts)
            for key in sorted(keys, key=cost, reverse=n_jobs > 1)
        ]
        for task in as_completed(tasks):
            record = task.result()
            if record is None:
                continue
            with path.open("a") as file:
                file.write(json.dumps(record) + "\n")
            said = {solver: verdict(record, solver) for solver in SOLVERS}
            print(*key_of(record), record["seconds"], said, flush=True)


def table(path: Path) -> Iterator[str]:
    """The results as Markdown: counts per solver and loss, then every line."""
    known = stored(path)
    order = product(NAMES, (True, False), ALPHAS, LOSSES)
    records = [known[key] for key in order if key in known]
    yield "# Do convex fits end at the minimum?\n"
    yield (
        "`benchmarks/optimum.py`: `vc.ANN(alpha, loss=loss, solver=solver)`, the rest by default "
        "(`max_iter=200`), against the lowest objective known, from all these fits and from long "
        "runs from random starts. A fit *is at the minimum* if it is at most 0.1 % or 0.0001 per "
        "row above; it is *wrong* if it is not but says `converged_`.\n"
    )
    yield "| solver | loss | at the minimum | says it has not converged | wrong |"
    yield "|---|---|---|---|---|"
    for solver, loss in product(SOLVERS, LOSSES):
        said = [verdict(r, solver) for r in records if r["loss"] == loss]
        counts = " | ".join(str(said.count(v)) for v in ("minimum", "not converged", "wrong"))
        yield f"| {solver} | {loss} | {counts} |"
    yield "\nObjectives, iterations and reasons to stop; **bold** is wrong.\n"
    yield "| data | alpha | loss | lowest | " + " | ".join(SOLVERS) + " |"
    yield "|---|---|---|---|" + "---|" * len(SOLVERS)
    for r in records:
        cells = []
        for solver in SOLVERS:
            found = r["fits"][solver]
            text = f"{found['objective']:.5g} ({found['n_iter']}, {found['reason']})"
            cells.append(f"**{text}**" if verdict(r, solver) == "wrong" else text)
        data = f"{r['data']}{'' if r['standardized'] else ', raw'}"
        yield f"| {data} | {r['alpha']} | {r['loss']} | {r['lowest']:.5g} | {' | '.join(cells)} |"


def main() -> None:
    """Examine what is not yet stored, or write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--limit", type=float, default=np.inf, help="seconds; then start no more")
    parser.add_argument("--out", type=Path, default=RECORDS, help="records, read and appended to")
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    if options.table:
        options.table.write_text("\n".join(table(options.out)) + "\n")
        return
    done = stored(options.out)
    keys = [
        key
        for key in product(options.names, (True, False), ALPHAS, LOSSES)
        if key not in done or done[key]["starts"] < options.starts
    ]
    run(keys, options.out, options.starts, options.jobs, options.limit)


if __name__ == "__main__":
    main()
