"""A Dask cluster is plugged in with one line, and may lose a worker half-way."""

from __future__ import annotations

import os
import signal
import threading
import time

import joblib
import pytest

from experiments import table2
from experiments.methods import METHODS
from experiments.records import Result
from experiments.runner import run

distributed = pytest.importorskip("distributed")

# Dask and its event loop leave sockets to the garbage collector when a worker is killed.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@pytest.fixture
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as connected,
    ):
        yield connected


def test_a_worker_is_killed_half_way(client, store, iris, gmml):
    wanted = table2.tasks([iris], [gmml, METHODS["euclidean"]], "honest", 15)
    pids = list(client.run(os.getpid).values())

    def kill_one() -> None:
        while len(store.done()) < 5:
            time.sleep(0.01)
        os.kill(pids[0], signal.SIGKILL)

    killer = threading.Thread(target=kill_one)
    killer.start()
    with joblib.parallel_config("dask"):
        run(wanted, store, n_jobs=None)
    killer.join()
    rows = store.records(Result)
    assert len(rows) == len(wanted) == 30
    assert all(row.error is None for row in rows)
    # The same numbers as without a cluster.
    alone = wanted[0].compute()
    (same,) = store.records(Result, task=wanted[0].key)
    assert (same.accuracy, same.parameters) == (alone.accuracy, alone.parameters)
