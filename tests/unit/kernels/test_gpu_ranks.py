"""Rows shared over two processes: the same objective, and a failure that does not hang."""

import importlib.util
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

SCRIPT = Path(__file__).with_name("gpu_rank.py")


@pytest.fixture(scope="module")
def ranks():
    """What each of two ranks tells."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2"}
    processes = [
        subprocess.Popen(
            [sys.executable, SCRIPT],
            env={**os.environ, **common, "RANK": str(rank), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        told = [process.communicate(timeout=120) for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert all(process.returncode == 0 for process in processes), told
    return [json.loads(out) for out, _ in told]


def test_two_ranks_compute_the_same_objective(ranks):
    specification = importlib.util.spec_from_file_location("gpu_rank", SCRIPT)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    alone = module.results(module.problem())
    for shared in ranks:
        for key, expected in alone.items():
            np.testing.assert_allclose(shared[key], expected, rtol=1e-9, atol=1e-12)


def test_ranks_must_agree_on_the_parameters(ranks):
    for told in ranks:
        assert "the same random_state" in told["disagreement"]


def test_a_rank_that_has_died_is_an_error_and_no_hang(ranks):
    assert "Rank 0 of 2 waited for the others in vain" in ranks[0]["death"]
    assert ranks[0]["seconds"] < 30
