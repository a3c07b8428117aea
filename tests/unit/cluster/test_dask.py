"""The same numbers from other workers, also when one of them is killed."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_wine

import vicinal as vc
from vicinal.tables.selection import FitSettings
from vicinal.tables.table_model import TableModel

distributed = pytest.importorskip("distributed")
frames = pytest.importorskip("dask.dataframe")

# Dask and its event loop leave sockets to the garbage collector when a worker is killed.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

X, Y = load_wine(return_X_y=True)


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as connected,
    ):
        yield connected


@pytest.fixture(scope="module")
def table():
    return load_wine(as_frame=True).frame


@pytest.fixture(scope="module")
def model(table):
    return TableModel.fit(table, "target", settings=FitSettings(method="plain"))


def test_partitions_get_what_the_model_says(client, model, table):
    from vicinal.dask import predict, transform

    frame = frames.from_pandas(table.drop(columns="target"), npartitions=5)
    found = predict(model, frame, n_neighbors=2)
    computed = found.compute()
    assert list(found.columns) == list(computed.columns)
    assert_array_equal(computed["prediction"], model.predict(table))
    assert_array_equal(computed.index, table.index)
    _, rows = model.nearest(model.prepare(table), 2)
    assert_array_equal(computed["neighbor_2"], model.ids[rows[:, 1]])
    Z = transform(model, frame).compute()
    np.testing.assert_allclose(Z.filter(regex="^z"), model.embed(model.prepare(table)), atol=1e-12)


def test_estimators(client, table):
    from vicinal.dask import predict

    knn = vc.ClassMeanKNN(3).fit(X, Y)
    named = pd.DataFrame(X, columns=[f"x{j}" for j in range(13)])
    frame = frames.from_pandas(named, npartitions=3)
    found = predict(knn, frame).compute()
    assert_array_equal(found["prediction"], knn.predict(X))
    with pytest.raises(ValueError, match="no column 'x0'"):
        predict(knn, frames.from_pandas(table, npartitions=2))


def test_a_folder_is_completed_when_a_worker_is_killed(client, model, table, tmp_path):
    from vicinal.dask import predict

    (tmp_path / "in").mkdir()
    for i in range(6):
        table.sample(2000, replace=True, random_state=i).to_parquet(
            tmp_path / "in" / f"{i}.parquet"
        )
    client.wait_for_workers(2, timeout=60)
    victim = next(iter(client.run(os.getpid).values()))

    def kill():
        while not any((tmp_path / "out").glob("*.parquet")):
            time.sleep(0.005)
        os.kill(victim, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    written = predict(model, tmp_path / "in", tmp_path / "out", n_neighbors=1)
    killer.join()
    assert [path.name for path in written] == [f"{i}.parquet" for i in range(6)]
    for path in written:
        told, given = pd.read_parquet(path), pd.read_parquet(tmp_path / "in" / path.name)
        assert_array_equal(told["prediction"], model.predict(given))
    stamps = [path.stat().st_mtime_ns for path in written]
    predict(model, tmp_path / "in", tmp_path / "out")  # nothing is left to do
    assert [path.stat().st_mtime_ns for path in written] == stamps


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (lambda folder: (folder, None), "give out"),
        (lambda folder: (folder, folder / "out"), "no files"),
        (lambda folder: (pd.DataFrame({"a": [1]}), None), "Dask DataFrame"),
    ],
)
def test_what_cannot_be_mapped_is_refused(model, tmp_path, given, error):
    from vicinal.dask import predict

    with pytest.raises((ValueError, TypeError), match=error):
        predict(model, *given(tmp_path))
