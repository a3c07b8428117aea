"""Run by test_gpu_ranks.py, one process per rank: shares objectives, disagrees, then one dies.

Each rank writes what it has to tell to a file of its own in the folder that it is given. Its second
argument says whether it has a process group of its "own" before it joins, or "none".
"""

import json
import os
import sys
import time
from datetime import timedelta
from pathlib import Path

import numpy as np
import torch

from vicinal.kernels.gpu import GpuKernel, join_ranks
from vicinal.objective.losses import get_loss
from vicinal.objective.neighbor_objective import NeighborObjective, plain_shift
from vicinal.objective.neighbor_sets import build_comparisons
from vicinal.objective.parametrization import Factor, Metric

ROWS = {"all": None, "few": np.arange(0, 80, 5), "of one rank": np.arange(9)}


def make(X, offsets, parametrization, alpha=1.0, plain=False, **sets):
    """The logistic objective of centered samples, with weights unless sides are complete."""
    comparisons = build_comparisons(X, offsets, **sets)
    kernel = GpuKernel(comparisons, "cpu")
    n, d = X.shape
    weights = np.random.default_rng(2).random(n) if sets else np.ones(n)
    shift = plain_shift(comparisons, alpha) if plain else np.zeros(n)
    return NeighborObjective(
        X=kernel.asarray(X - X.mean(axis=0)),
        comparisons=comparisons,
        kernel=kernel,
        parametrization=parametrization,
        loss=get_loss("logistic"),
        alpha=alpha,
        gamma=0.7,
        shift=kernel.asarray(shift),
        weights=kernel.asarray(weights),
        pull=0.01 * np.eye(d),
    )


def complete():
    X = np.random.default_rng(0).standard_normal((83, 4))
    return make(X, np.array([0, 25, 54, 83]), Factor())


def listed(**sets):
    """With neighbor lists and weights; row 30 is not an anchor, it is the only one of its class."""
    X = np.random.default_rng(1).standard_normal((83, 4))
    return make(X, np.array([0, 30, 31, 83]), Metric(), alpha=-1.0, plain=True, **sets)


def results():
    """J and its gradient, from all anchors and from some."""
    M = np.diag([1.0, 2.0, 0.5, 1.0])
    problems = {
        "complete": (complete(), np.eye(2, 4)),
        "similar lists, metric": (listed(similar=3), M),
        "both lists, metric": (listed(similar=3, dissimilar=4), M),
    }
    found = {}
    for name, (problem, params) in problems.items():
        for which, rows in ROWS.items():
            value, gradient = problem.value_and_gradient(params, rows)
            found[f"{name}, {which}"] = [value, *gradient.ravel().tolist()]
    return found


def complaint(objective, L):
    try:
        objective.value_and_gradient(L)
    except RuntimeError as error:
        return str(error)
    return "none"


def main(folder, group):
    if group == "own":
        torch.distributed.init_process_group("gloo", timeout=timedelta(seconds=20))
    told = {"before": complete().kernel.ranks.size}
    join_ranks(timeout=20.0, backend="gloo")
    rank, objective = int(os.environ["RANK"]), complete()
    told |= {"joined": objective.kernel.ranks.size, "results": results()}
    told["disagreement"] = complaint(objective, np.eye(2, 4) * (1 + rank))
    if rank == 0:
        start = time.monotonic()
        told["death"] = complaint(objective, np.eye(2, 4))
        told["seconds"] = time.monotonic() - start
    (Path(folder) / f"{rank}.json").write_text(json.dumps(told), encoding="utf-8")
    os._exit(0)  # rank 1 dies here, while rank 0 waits for it in its last evaluation


if __name__ == "__main__":
    main(*sys.argv[1:])
