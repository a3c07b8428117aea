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


def by_hand(port, folder):
    """Two processes that are told who they are, and have a process group before they join."""
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2"}
    command = [sys.executable, SCRIPT, folder, "own"]
    return [(command, {**common, "RANK": str(k)}) for k in range(2)]


def by_torchrun(port, folder):
    """One process that starts the two."""
    torchrun = [sys.executable, "-m", "torch.distributed.run"]
    options = ["--nproc-per-node=2", f"--master-port={port}"]
    return [([*torchrun, *options, SCRIPT, folder, "none"], {})]


@pytest.fixture(scope="module", params=[by_hand, by_torchrun])
def ranks(request, tmp_path_factory):
    """What each of two ranks tells."""
    folder = tmp_path_factory.mktemp("ranks")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    processes = [
        subprocess.Popen(
            command,
            env={**os.environ, **variables, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for command, variables in request.param(port, folder)
    ]
    try:
        told = [process.communicate(timeout=120) for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert all(process.returncode == 0 for process in processes), told
    return [json.loads((folder / f"{k}.json").read_text(encoding="utf-8")) for k in range(2)]


@pytest.fixture(scope="module")
def alone():
    """The same objectives, by one process."""
    specification = importlib.util.spec_from_file_location("gpu_rank", SCRIPT)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module.results()


def test_two_ranks_compute_the_same_objective(ranks, alone):
    for told in ranks:
        assert told["joined"] == 2
        for key, expected in alone.items():
            np.testing.assert_allclose(
                told["results"][key], expected, rtol=1e-9, atol=1e-12, err_msg=key
            )


def test_nothing_is_shared_before_it_is_joined(ranks):
    assert [told["before"] for told in ranks] == [1, 1]


def test_ranks_must_agree_on_the_parameters(ranks):
    for told in ranks:
        assert "the same random_state" in told["disagreement"]


def test_a_rank_that_has_died_is_an_error_and_no_hang(ranks):
    assert "Rank 0 of 2 waited for the others in vain" in ranks[0]["death"]
    assert ranks[0]["seconds"] < 30
