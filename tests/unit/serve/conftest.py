"""Models as files, and servers that answer on a port of this machine."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine

import vicinal as vc
from vicinal.tables.selection import FitSettings
from vicinal.tables.table_model import TableModel

httpx = pytest.importorskip("httpx")
uvicorn = pytest.importorskip("uvicorn")
pytest.importorskip("fastapi")


@pytest.fixture(scope="session")
def plants():
    """90 rows: numbers, a category, names, a class; the last 10 are new."""
    rng = np.random.default_rng(0)
    n = 90
    soil = rng.choice(["sand", "clay", "loam"], n)
    height, width = rng.normal(50, 10, n), rng.normal(5, 1, n)
    grows = height / 10 + width + 2 * (soil == "loam") + rng.normal(0, 0.7, n) > 10.5
    return pd.DataFrame(
        {
            "plant": [f"p{i:03}" for i in range(n)],
            "height": height,
            "width": width,
            "soil": soil,
            "grows": np.where(grows, "well", "poorly"),
        }
    )


@pytest.fixture(scope="session")
def models(plants):
    """A model of every kind that is served."""
    X, y = load_wine(return_X_y=True)
    names = np.array(["zero", "one", "two"])[y]

    def of_table(method):
        settings = FitSettings(method=method, effort=0.3)
        return TableModel.fit(plants[:80], "grows", id_column="plant", settings=settings)

    return {
        "table, auto": of_table("auto"),
        "table, plain": of_table("plain"),
        "ANNClassifier": vc.ANNClassifier(effort=0.3, random_state=0).fit(X, names),
        "ClassMeanKNN": vc.ClassMeanKNN(3).fit(X, y),
        "ANNRegressor": vc.ANNRegressor(effort=0.1, random_state=0).fit(X[:, 1:], X[:, 0]),
    }


@contextmanager
def running(app):
    """A client of a server of the application, on the loopback address."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical", ws="none"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=300) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="session")
def serve(models, tmp_path_factory):
    """``serve(model, **settings)``: a context with a client and the source of the model."""
    from vicinal.serve import ModelSource, ServeSettings, create_app

    @contextmanager
    def start(name, **settings):
        path = tmp_path_factory.mktemp("served") / "model.vicinal"
        vc.save(models[name], path)
        source = ModelSource(path)
        settings.setdefault("refresh_seconds", 0.02)
        with running(create_app(source, ServeSettings(**settings))) as client:
            yield client, source

    return start


@pytest.fixture(scope="module")
def table_server(serve):
    """A client of the committee of the table."""
    with serve("table, auto") as (client, _):
        yield client
