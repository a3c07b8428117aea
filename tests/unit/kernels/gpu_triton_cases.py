"""Run by test_gpu_triton.py in a process of its own: writes the errors of the Triton kernels.

Triton decides at its import whether it interprets. One line of JSON a case: relative errors against
the same kernel by PyTorch in float64, which tests/contract/test_kernels.py holds to the definition.
"""

import json
import sys
import warnings

import numpy as np
import torch

from vicinal.kernels.gpu import GpuKernel
from vicinal.objective.neighbor_sets import compare

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
    "fast": {"sizes": [140, 60], "precision": "fast"},
}


def run(device, sizes, m=3, scale=1.0, alpha=1.0, precision="high", few=None, outlier=0.0, **sets):
    rng = np.random.default_rng(0)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    n = int(offsets[-1])
    Z = scale * rng.standard_normal((n, m))
    Z[3] += outlier
    Z -= Z.mean(axis=0)
    if sets.pop("groups", False):
        sets["groups"] = rng.integers(0, n // 2, n)
    comparisons = compare(Z, offsets, **sets)
    rows = (
        comparisons.anchors if few is None else np.sort(rng.permutation(comparisons.anchors)[:few])
    )
    slope = rng.random(len(rows))
    V = rng.standard_normal((n, 2)) * [1.0, 1e-4]
    results = []
    for engine, digits in (("torch", "high"), ("triton", precision)):
        kernel = GpuKernel(comparisons, device, digits, engine)
        sweep = kernel.evaluate(kernel.tensor(Z), alpha)
        rows_there = kernel.tensor(rows)
        s, t = sweep.soft_averages(rows_there)
        ds = kernel.tensor(slope)
        slopes = kernel.slopes(rows_there, ds, -0.5 * ds)
        whole = sweep.laplacian(None, slopes)
        of_values = sweep.laplacian(kernel.tensor(V), slopes)
        results.append({"s": s, "t": t, "Lap Z": whole, "Lap V": of_values[:, 1]})
        results[-1]["part"] = sweep.laplacian(None, slopes, (20, 110))
        assert torch.isfinite(whole).all()
    exact, got = results
    return {key: float((got[key] - exact[key]).norm() / exact[key].norm()) for key in exact}


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # NumPy's, of exponentials that are masked afterwards
    for name, options in CASES.items():
        sys.stdout.write(json.dumps({"case": name, **run(sys.argv[1], **options)}) + "\n")
