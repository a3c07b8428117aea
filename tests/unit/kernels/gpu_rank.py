"""Run by test_gpu_ranks.py, one process a rank: shares an objective, disagrees, then one dies."""

import json
import os
import sys
import time

import numpy as np
import torch

from vicinal.kernels.gpu import join_ranks
from vicinal.objective.device_objective import device_problem


def problem():
    rng = np.random.default_rng(0)
    X, y = torch.as_tensor(rng.standard_normal((83, 4))), torch.as_tensor(rng.integers(0, 3, 83))
    return device_problem(X, y, loss="logistic")


def results(objective):
    """J and its gradient, from all anchors and from some."""
    L = np.eye(2, 4)
    value, gradient = objective.value_and_gradient(L)
    few, few_gradient = objective.value_and_gradient(L, np.arange(0, 83, 5))
    return {
        "value": value,
        "gradient": gradient.tolist(),
        "few": few,
        "few_gradient": few_gradient.tolist(),
    }


def complaint(objective, L):
    try:
        objective.value_and_gradient(L)
    except RuntimeError as error:
        return str(error)
    return "none"


def main():
    join_ranks(timeout=20.0, backend="gloo")
    rank, objective = int(os.environ["RANK"]), problem()
    told = results(objective)
    told["disagreement"] = complaint(objective, np.eye(2, 4) * (1 + rank))
    if rank == 0:
        start = time.monotonic()
        told["death"] = complaint(objective, np.eye(2, 4))
        told["seconds"] = time.monotonic() - start
    sys.stdout.write(json.dumps(told))
    sys.stdout.flush()
    os._exit(0)  # rank 1 dies here, while rank 0 waits for it in its last evaluation


if __name__ == "__main__":
    main()
