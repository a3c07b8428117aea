"""Run by test_gpu_triton.py in a process of its own: writes the errors of the Triton kernels.

Triton decides at its import whether it interprets. One line of JSON per case: relative errors
against the same kernel by PyTorch in float64, which tests/contract/test_kernels.py compares with
the definition.
"""

import json
import sys
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import torch

from vicinal.kernels.gpu import GpuKernel
from vicinal.objective.losses import get_loss
from vicinal.objective.neighbor_objective import NeighborObjective
from vicinal.objective.neighbor_sets import build_comparisons
from vicinal.objective.parametrization import Factor
from vicinal.solvers import lbfgs

CASES = {
    "pure tiles, mixed tiles, a class of one": {"sizes": [200, 1, 150]},
    "many small classes": {"sizes": [7] * 20},
    "far apart": {"sizes": [140, 30], "scale": 12.0},
    "an outlier": {"sizes": [150, 140], "outlier": 40.0},
    "alpha < 0": {"sizes": [140, 60], "m": 40, "alpha": -0.3},
    "two blocks of features": {"sizes": [70, 90], "m": 70, "scale": 0.3},
    "groups": {"sizes": [90, 50], "groups": True, "alpha": 2.0},
    "similar lists": {"sizes": [140, 100], "similar": 4, "alpha": -1.0},
    "dissimilar lists": {"sizes": [140, 40], "dissimilar": 5},
    "few rows": {"sizes": [150, 60], "few": 40},
    "few rows of two ranks": {
        "sizes": [140, 60],
        "few": 40,
        "scale": 12.0,
        "alpha": -0.5,
        "ranks": SimpleNamespace(size=2, sum=lambda values: values),  # who has found all there is
    },
    "fast": {"sizes": [140, 60], "precision": "fast"},
    "large exponents": {"sizes": [140, 60], "m": 70, "scale": 10.0, "alpha": 600.0},
    "two parts": {"sizes": [200, 1, 150], "m": 4, "alpha": 2.0, "level": 0},
}


def run(device, sizes, m=3, scale=1.0, alpha=1.0, precision="high", few=None, outlier=0.0,
        level=1, ranks=None, **sets):  # fmt: skip
    rng = np.random.default_rng(0)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    n = int(offsets[-1])
    Z = scale * rng.standard_normal((n, m))
    Z[3] += outlier
    Z -= Z.mean(axis=0)
    if sets.pop("groups", False):
        sets["groups"] = rng.integers(0, n // 2, n)
    comparisons = build_comparisons(Z, offsets, **sets)
    rows = (
        comparisons.anchors if few is None else np.sort(rng.permutation(comparisons.anchors)[:few])
    )
    slope = rng.random(len(rows))
    V = rng.standard_normal((n, 2)) * [1.0, 1e-4]
    results = []
    for engine, digits in (("torch", "high"), ("triton", precision)):
        kernel = GpuKernel(comparisons, device, digits, engine)
        kernel.ranks = ranks or kernel.ranks
        sweep = kernel.evaluate(kernel.tensor(Z), alpha, level=level)
        rows_there = kernel.tensor(rows)
        s, t = sweep.soft_averages(rows_there)
        ds = kernel.tensor(slope)
        slopes = kernel.slopes(rows_there, ds, -0.5 * ds)
        sweep.share_state(rows_there, rows_there)
        whole = sweep.laplacian(None, slopes)
        of_values = sweep.laplacian(kernel.tensor(V), slopes)
        results.append({"s": s, "t": t, "Lap Z": whole, "Lap V": of_values[:, 1]})
        results[-1]["part"] = sweep.laplacian(None, slopes, (20, 110))
        assert torch.isfinite(whole).all()
    exact, got = results
    return {key: float((got[key] - exact[key]).norm() / exact[key].norm()) for key in exact}


def trained(device):
    """Errors of a gradient that has nearly vanished, at every level and at the one chosen."""
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1, 2], 60)
    X = rng.standard_normal((180, 4)) + 0.7 * y[:, None] + 6 * rng.integers(-3, 4, (180, 1))
    comparisons = build_comparisons(X, np.array([0, 60, 120, 180]))
    kernel = GpuKernel(comparisons, device, engine="torch")
    exact = NeighborObjective(
        X=kernel.asarray(X - X.mean(axis=0)),
        comparisons=comparisons,
        kernel=kernel,
        parametrization=Factor(),
        loss=get_loss("logistic"),
        alpha=1.0,
        gamma=1.0,
        shift=kernel.asarray(np.zeros(180)),
        weights=kernel.asarray(np.ones(180)),
        pull=np.zeros((4, 4)),
    )
    rounded = replace(exact, kernel=GpuKernel(comparisons, device, engine="triton"))
    L = lbfgs(exact, 2 * np.eye(4), max_iter=8, tol=1e-12).params
    _, gradient = exact.value_and_gradient(L)
    found = {"chosen": rounded.value_and_gradient(L)[1]}
    for level in range(len(rounded.kernel.exponent_errors(kernel.embed(exact.X, L), 1.0))):
        forced = replace(rounded, kernel=GpuKernel(comparisons, device, engine="triton"))
        forced.kernel.exponent_errors = lambda *_, level=level: [1.0] * level + [1e-300]
        found[str(level)] = forced.value_and_gradient(L)[1]
    size = np.linalg.norm(gradient)
    return {key: float(np.linalg.norm(got - gradient) / size) for key, got in found.items()}


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # NumPy's, of exponentials that are masked afterwards
    for name, options in CASES.items():
        sys.stdout.write(json.dumps({"case": name, **run(sys.argv[1], **options)}) + "\n")
    sys.stdout.write(json.dumps({"case": "trained", **trained(sys.argv[1])}) + "\n")
