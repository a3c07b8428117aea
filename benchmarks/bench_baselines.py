"""LMNN, ITML and SCML against metric-learn and mlpack: the time to what they reach.

The peers run in environments of their own (benchmarks/metric_learn/README.md says how to make
them); METRIC_LEARN_PYTHON and MLPACK_PYTHON name their interpreters. Peer and vicinal take turns,
and the best of ``--repeats`` counts. A peer's time is that of its fit alone, without start and
imports; ours is that of the whole fit, compiled before. ``--only lmnn mlpack`` runs some parts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from common import ROOT, letter, print_header, verdict
from scipy.spatial.distance import cdist
from sklearn.datasets import load_wine

from vicinal.learners.itml import ITML, find_bounds
from vicinal.learners.lmnn import LMNN
from vicinal.learners.scml import SCML
from vicinal.supervision import nearest_triplets, sample_pairs

N_ROWS, N_TARGETS, BETA = 2000, 4, 1e-5
FAST_RATES = (1e-6, 1e-5)
"""Of metric-learn's LMNN, besides its default 1e-7."""
ITML_PASSES = {"wine": 1000, "letter": 100}
"""At most: metric-learn's default, and what it does of letter's 27,040 pairs in reasonable time."""
MEMORY = """
import json, resource, sys, time, warnings
from pathlib import Path
sys.path.insert(0, {benchmarks!r})
from common import letter
from vicinal.learners.lmnn import LMNN
warnings.simplefilter("ignore")
inherited = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
lines = lambda: Path("/proc/self/status").read_text().splitlines()
peak = lambda: next(int(x.split()[1]) for x in lines() if x.startswith("VmHWM")) / 1024
before = peak()
X, y = letter(14_000)
start = time.perf_counter()
model = LMNN({k}).fit(X, y)
print(json.dumps({{
    "seconds": time.perf_counter() - start, "memory": peak() - before, "before": before,
    "inherited": inherited, "E": model.objective_,
    "start": model.history_[0], "n_iter": model.n_iter_, "stop": model.stop_reason_,
}}))
"""


def run_peer(variable, script, *arguments, **problem):
    """What the peer prints, and the arrays it stores; None where its environment is not there."""
    if not os.environ.get(variable):
        return None
    path = ROOT / "benchmarks" / "metric_learn" / script
    with tempfile.TemporaryDirectory() as folder:
        given, stored = Path(folder) / "problem.npz", Path(folder) / "result.npz"
        np.savez(given, **problem)
        command = [os.environ[variable], path, *arguments, given, stored]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{script} failed:\n{done.stderr}")
        with np.load(stored, allow_pickle=False) as arrays:
            return json.loads(done.stdout.splitlines()[-1]) | dict(arrays)


def timed(fit):
    start = time.perf_counter()
    model = fit()
    return time.perf_counter() - start, model


def in_turns(peer, objective, ours, repeats):
    """The fastest run of the peer, and (seconds, model) of ours to the ``objective`` at its L."""
    theirs, own = [], []
    for _ in range(repeats):
        found = peer()
        found["value"] = objective(found["L"])
        theirs.append(found)
        own.append(timed(lambda found=found: ours(found)))
    return min(theirs, key=lambda x: x["seconds"]), min(own, key=lambda x: x[0])


def report_ratio(what, theirs, taken, least):
    ratio = theirs["seconds"] / taken
    verdict(what, ratio, "x faster", f">= {least}x", ratio >= least)


def section(title):
    print(f"\n## {title} (load {os.getloadavg()[0]:.1f})", flush=True)


def not_measured(what, variable):
    print(f"{what}: not measured: set {variable}")


# ------------------------------------------------------------------------------------------ LMNN


def value_at(X, y, L):
    """E at a given L, both weights 1/2: metric-learn's objective is the same."""
    model = LMNN(N_TARGETS, init=L, max_iter=1, callback=lambda progress: True)
    return model.fit(X, y).history_[0]


def descend_to(X, y, init, target):
    model = LMNN(N_TARGETS, init=init, tol=0.0, max_iter=1000)
    return model.set_params(callback=lambda progress: progress.objective <= target).fit(X, y)


def lmnn(repeats):
    section(f"LMNN, letter {N_ROWS} rows, {N_TARGETS} targets, metric-learn, 100 iterations")
    X, y = letter(N_ROWS)
    options = {"X": X, "y": y, "n_neighbors": N_TARGETS, "max_iter": 100}

    def fit(rate):
        return run_peer(
            "METRIC_LEARN_PYTHON", "peer_metric_learn.py", "lmnn", learn_rate=rate, **options
        )

    def ours(peer):
        return descend_to(X, y, peer["start"], peer["value"])

    def objective(L):
        return value_at(X, y, L)

    if not os.environ.get("METRIC_LEARN_PYTHON"):
        return not_measured("LMNN against metric-learn", "METRIC_LEARN_PYTHON")
    value_at(X, y, np.eye(X.shape[1]))  # compiles
    for rate, times in ((1e-7, repeats), *((rate, 1) for rate in FAST_RATES)):
        peer, (taken, model) = in_turns(lambda rate=rate: fit(rate), objective, ours, times)
        print(
            f"{peer['versions']}, learn_rate {rate:g}{' (default)' if rate == 1e-7 else ''}: "
            f"E {objective(peer['start']):.6g} (its start, LDA) -> "
            f"{peer['value']:.6g} in {peer['seconds']:.2f} s; vicinal from the same "
            f"start: {model.objective_:.6g} in {taken:.3f} s, {model.n_iter_} iterations, "
            f"{model.stop_reason_} (best of {times})"
        )
        report_ratio(f"LMNN, metric-learn, learn_rate {rate:g}", peer, taken, 10)
    taken, model = timed(lambda: LMNN(N_TARGETS).fit(X, y))
    return print(
        f"vicinal, its defaults to the end: E {model.objective_:.6g}, {model.n_iter_} "
        f"iterations, {model.stop_reason_}, {taken:.2f} s"
    )


def nearest_impostors_value(X, y, L):
    """mlpack's objective: as E, but of every sample's k nearest impostors under L only."""
    same = y[:, None] == y[None, :]
    others = same & ~np.eye(len(X), dtype=bool)
    before, D = cdist(X, X, "sqeuclidean"), cdist(X @ L.T, X @ L.T, "sqeuclidean")
    targets = np.argsort(np.where(others, before, np.inf), axis=1, kind="stable")
    near = np.take_along_axis(D, targets[:, :N_TARGETS], axis=1)  # (n, k)
    impostors = np.sort(np.where(same, np.inf, D), axis=1)[:, :N_TARGETS]
    hinges = np.maximum(1 + near[:, :, None] - impostors[:, None, :], 0)
    return 0.5 * float(near.sum()) + 0.5 * float(hinges.sum())


def mlpack(repeats):
    section(f"LMNN, letter {N_ROWS} rows, {N_TARGETS} targets, mlpack, start L = I")
    if not os.environ.get("MLPACK_PYTHON"):
        return not_measured("LMNN against mlpack", "MLPACK_PYTHON")
    X, y = letter(N_ROWS)
    eye = np.eye(X.shape[1])
    first = value_at(X, y, eye)
    print("mlpack pushes the k nearest impostors only; E counts them all, for both")

    def ours(peer):
        return descend_to(X, y, "identity", peer["value"])

    # Its defaults, 50 passes of AMSGrad, take minutes: once.
    for options, times in (({}, 1), ({"passes": 5}, repeats), ({"optimizer": "lbfgs"}, repeats)):
        name = ", ".join(f"{key} {value}" for key, value in options.items()) or "its defaults"
        text = json.dumps(options)

        def fit(text=text):
            given = {"X": X, "y": y, "start": eye, "n_neighbors": N_TARGETS, "options": text}
            return run_peer("MLPACK_PYTHON", "peer_mlpack.py", **given)

        peer, (taken, model) = in_turns(fit, lambda L: value_at(X, y, L), ours, times)
        value = peer["value"]
        print(
            f"{peer['versions']}, {name}: E {first:.6g} -> {value:.6g} in "
            f"{peer['seconds']:.2f} s; vicinal {model.objective_:.6g} in {taken:.3f} s, "
            f"{model.n_iter_} iterations, {model.stop_reason_} (best of {times})"
        )
        if value > first:
            print("its value is above the start's: no time to it; both to their own ends instead")
            taken, model = timed(lambda: LMNN(N_TARGETS, init="identity").fit(X, y))
            values = [nearest_impostors_value(X, y, L) for L in (peer["L"], model.components_)]
            print(
                f"vicinal to the end: E {model.objective_:.6g} in {taken:.2f} s; mlpack's own "
                f"objective there {values[1]:.6g}, at its L {values[0]:.6g}, at the start "
                f"{nearest_impostors_value(X, y, eye):.6g}"
            )
        report_ratio(f"LMNN, mlpack, {name}", peer, taken, 50)
    return None


def memory():
    section("LMNN, letter 14,000 rows, a process of its own")
    code = MEMORY.format(benchmarks=str(ROOT / "benchmarks"), k=N_TARGETS)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    print(
        f"E {found['start']:.6g} -> {found['E']:.6g}, {found['n_iter']} iterations, "
        f"{found['stop']}, {found['seconds']:.1f} s, compilation or its cache included"
    )
    print(
        f"VmHWM after the imports {found['before']:.0f} MB (ru_maxrss {found['inherited']:.0f} MB: "
        "it includes what the parent process held, so it is not used)"
    )
    verdict(
        "LMNN, 14,000 rows, peak memory above the import",
        found["memory"],
        " MB",
        "<= 1000 MB",
        found["memory"] <= 1000,
    )


# --------------------------------------------------------------------------------- ITML and SCML


def wine():
    X, y = load_wine(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def problems():
    return {"wine": wine(), "letter": letter(N_ROWS)}


def itml_objective(X, pairs, bounds, L):
    """D(M, I) + Σ_c D(ξ_c, ξ⁰_c) at M = LᵀL and the best slack that M allows; γ = 1."""
    M = L.T @ L
    V = X[pairs.i] - X[pairs.j]
    p = np.einsum("pi,ij,pj->p", V, M, V)
    xi0 = np.where(pairs.similar, *bounds)
    ratio = np.where(pairs.similar, np.maximum(p, xi0), np.minimum(p, xi0)) / xi0
    divergence = np.trace(M) - np.linalg.slogdet(M)[1] - len(M)
    return float(divergence + (ratio - np.log(ratio) - 1).sum())


def itml(repeats):
    section("ITML, metric-learn, the same pairs, bounds and order")
    if not os.environ.get("METRIC_LEARN_PYTHON"):
        return not_measured("ITML", "METRIC_LEARN_PYTHON")
    for name, (X, y) in problems().items():
        codes = np.unique(y, return_inverse=True)[1]
        rng = np.random.RandomState(0)
        pairs = sample_pairs(codes, 40 * (codes.max() + 1) ** 2, rng)
        apart = ((X[pairs.i] - X[pairs.j]) ** 2).sum(axis=1) > 0  # metric-learn divides by it
        pairs = pairs.where(apart)
        bounds = find_bounds("percentile", X, np.eye(X.shape[1]), rng)
        indices = np.stack([pairs.i, pairs.j], axis=1)
        options = {"X": X, "pairs": indices, "similar": pairs.similar, "bounds": bounds}
        passes = ITML_PASSES[name]

        def fit(passes=passes, options=options):
            given = {"max_iter": passes, **options}
            return run_peer("METRIC_LEARN_PYTHON", "peer_metric_learn.py", "itml", **given)

        def ours(_, passes=passes, options=options):
            model = ITML(1.0, bounds=options["bounds"], max_iter=passes, tol=1e-3)
            return model.fit_pairs(options["X"], options["pairs"], options["similar"])

        ours(None)  # compiles

        def objective(L, problem=(X, pairs, bounds)):
            return itml_objective(*problem, L)

        peer, (taken, model) = in_turns(fit, objective, ours, repeats)
        print(
            f"{name}, {len(pairs)} pairs: {peer['versions']}: objective {peer['value']:.8g} in "
            f"{peer['seconds']:.3f} s, {peer['n_iter']} passes; vicinal "
            f"{objective(model.components_):.8g} in {taken:.4f} s, {model.n_iter_} passes, "
            f"{model.stop_reason_} (best of {repeats})"
        )
        report_ratio(f"ITML, {name}", peer, taken, 10)
    return None


def scml_objective(X, triplets, L):
    """J at M = LᵀL; the weights of unit bases sum to the trace of M."""
    i, j, l = (X @ L.T)[triplets.T]  # noqa: E741
    slack = 1 + ((i - j) ** 2).sum(axis=1) - ((i - l) ** 2).sum(axis=1)
    return float(np.maximum(slack, 0).mean() + BETA * (L**2).sum())


def scml(repeats):
    section("SCML, metric-learn, the same triplets and bases, rows of unit length")
    if not os.environ.get("METRIC_LEARN_PYTHON"):
        return not_measured("SCML", "METRIC_LEARN_PYTHON")
    for name, (X, y) in problems().items():
        X = X / np.linalg.norm(X, axis=1, keepdims=True)
        found = nearest_triplets(X, np.unique(y, return_inverse=True)[1], 3, 10)
        triplets = np.stack([found.i, found.j, found.l], axis=1)
        bases = np.random.RandomState(0).standard_normal((20 * X.shape[1], X.shape[1]))
        bases /= np.linalg.norm(bases, axis=1, keepdims=True)
        given = {"X": X, "triplets": triplets, "bases": bases}

        def fit(given=given):
            return run_peer("METRIC_LEARN_PYTHON", "peer_metric_learn.py", "scml", **given)

        for solver in ("smoothed", "adagrad"):

            def ours(peer, solver=solver, given=given):
                X, triplets = given["X"], given["triplets"]
                target = peer["value"]
                model = SCML(
                    BETA, basis=given["bases"], solver=solver, rescale=False, random_state=0,
                    tol=0.0, callback=lambda progress: progress.objective <= target * (1 + 1e-9),
                )  # fmt: skip
                return model.fit_triplets(X, triplets)

            def objective(L, problem=(X, triplets)):
                return scml_objective(*problem, L)

            ours({"value": 1.0})  # compiles; that of w = 0
            peer, (taken, model) = in_turns(fit, objective, ours, repeats)
            print(
                f"{name}, {len(triplets)} triplets, {len(bases)} bases: {peer['versions']}: J "
                f"{peer['value']:.8g} in {peer['seconds']:.3f} s, {peer['n_iter']} iterations; "
                f"vicinal ({solver}) {objective(model.components_):.8g} in {taken:.4f} s, "
                f"{model.n_iter_} iterations, {model.stop_reason_} (best of {repeats})"
            )
            report_ratio(f"SCML, {name}, {solver}", peer, taken, 10)
    return None


PARTS = {"lmnn": lmnn, "mlpack": mlpack, "itml": itml, "scml": scml, "memory": None}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    arguments = parser.parse_args()
    print_header("LMNN, ITML and SCML against their peers")
    warnings.simplefilter("ignore")
    for part in arguments.only:
        if part == "memory":
            memory()
        else:
            PARTS[part](arguments.repeats)
