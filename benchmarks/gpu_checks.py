"""Sections of bench_gpu.py: solvers and neighbor searches on a device, against the CPU."""

from __future__ import annotations

import json
import tempfile
import time
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from common import verdict
from gpu_data import blobs, say

import vicinal as vc
from vicinal.voting.class_mean import ClassMeanKNN


def solvers() -> None:
    """Every solver on samples that are on the device, against the CPU; what comes to the host."""
    n, d = 6_000, 12
    say(
        f"\n## solvers, {n:,} x {d}, fits of CUDA tensors, 6 iterations, against float64 on the CPU"
    )
    X, offsets = blobs(n, d)
    X, y = X.double(), np.repeat(np.arange(10), np.diff(offsets))
    for solver, options in {
        "lbfgs": {"loss": "logistic"},
        "lbfgs, 3 components": {"loss": "logistic", "n_components": 3},
        "pgd": {"alpha": -0.5, "similar": "all"},
        "apg": {"alpha": -0.5, "similar": "all"},
        "sgd": {"loss": "logistic", "batch_size": 500},
        "sgd, 2,000 references": {"loss": "logistic", "batch_size": 500, "n_references": 2_000},
    }.items():
        options |= {"solver": solver.split(",")[0], "max_iter": 6, "tol": 0, "random_state": 0}
        host = fit(vc.ANN(backend="numba", **options), X.cpu().numpy(), y)
        copies: list[int] = []
        with copies_to_host(copies):
            device = fit(vc.ANN(**options), X, y)
        apart = abs(device.objective_ / host.objective_ - 1)
        M, N = host.get_mahalanobis_matrix(), device.get_mahalanobis_matrix()
        far = np.linalg.norm(N - M) / np.linalg.norm(M)
        say(f"{solver}: J {host.objective_:.8g} and {device.objective_:.8g}, M apart {far:.1e}")
        verdict(f"  {solver}, J apart", apart, "", "<= 1e-5", apart <= 1e-5)
        what = f"  {solver}, largest of {len(copies)} copies to the host"
        largest = max(copies, default=0)
        verdict(what, largest, " bytes", f"< {n}", 0 < largest < n)


@contextmanager
def copies_to_host(sizes: list[int]):
    """Collect the bytes of every copy from the device to the host, as the driver reports them."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        yield
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(trace))
        events = json.loads(trace.read_text())["traceEvents"]
    sizes += [e["args"]["bytes"] for e in events if e.get("name", "").startswith("Memcpy DtoH")]


def fit(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def neighbors() -> None:
    """What ClassMeanKNN predicts with its references on the device, and how long it takes."""
    n, q, d = 200_000, 20_000, 32
    say(f"\n## neighbors, {q:,} queries among {n:,} x {d}, K = 5, against the CPU")
    X, offsets = blobs(n + q, d)
    X = X.double().cpu().numpy()
    y = np.repeat(np.arange(10), np.diff(offsets))
    asked = np.random.default_rng(0).permutation(n + q) < q
    for rule in ("class_mean", "vote"):
        taken, predicted = {}, {}
        for backend in ("cuda", "numba"):
            model = ClassMeanKNN(5, rule=rule, backend=backend).fit(X[~asked], y[~asked])
            model.predict(X[asked][:500])  # compiles
            start = time.perf_counter()
            predicted[backend] = model.predict(X[asked])
            taken[backend] = time.perf_counter() - start
        differ = int(np.sum(predicted["cuda"] != predicted["numba"]))
        say(f"{rule}: {taken['cuda']:.2f} s, on the CPU {taken['numba']:.2f} s")
        verdict(f"  {rule}, predictions that differ", differ, "", "0", differ == 0)
