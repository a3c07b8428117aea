"""One timed fit of mlpack's LMNN, in an environment of its own: problem in, result out.

    python peer_mlpack.py PROBLEM.npz RESULT.npz

``benchmarks/bench_baselines.py`` writes the problem and calls this. It prints one line of JSON
(seconds of the fit alone, versions) and stores L. Every option that is not in the problem is
mlpack's default.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import version

import numpy as np
from mlpack import lmnn

if __name__ == "__main__":
    problem, result = sys.argv[1:]
    with np.load(problem, allow_pickle=False) as arrays:
        X, start, n_neighbors = arrays["X"], arrays["start"], int(arrays["n_neighbors"])
        options = json.loads(str(arrays["options"]))
        labels = np.unique(arrays["y"], return_inverse=True)[1]
    begin = time.perf_counter()
    found = lmnn(X, labels=labels, k=n_neighbors, distance=start.T, seed=1, **options)
    seconds = time.perf_counter() - begin
    L = found["output"].T  # mlpack keeps samples in columns, and turns every matrix
    np.testing.assert_allclose(found["transformed_data"], X @ L.T, atol=1e-8)
    np.savez(result, L=L)
    versions = f"mlpack {version('mlpack')}, numpy {version('numpy')}"
    print(json.dumps({"seconds": seconds, "versions": versions}))
