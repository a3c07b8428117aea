from __future__ import annotations

import numpy as np
import pytest

from experiments import table2
from experiments.methods import (
    BUDGET,
    METHODS,
    NEIGHBORS,
    Automatic,
    Method,
    Stage,
    on_backend,
    powers_of_two,
)
from experiments.runner import attempt

LEARNED = [method for method in METHODS.values() if isinstance(method, Method)]
ids = lambda method: method.name  # noqa: E731


def test_the_papers_methods_are_all_there():
    assert list(METHODS) == [
        "euclidean", "nca", "lmnn", "itml", "ldml", "scml", "rvml", "gmml", "boostmetric",
        "pnca", "ann+", "ann-", "auto",
    ]  # fmt: skip


@pytest.mark.parametrize("method", LEARNED, ids=ids)
def test_nobody_tries_more_than_the_budget(method):
    assert sum(len(stage.values) for stage in method.stages("honest")) <= BUDGET
    assert tuple(method.neighbors("honest")) == NEIGHBORS


def test_the_papers_grids_are_as_printed():
    def grid(name, parameter):
        (stage,) = METHODS[name].stages("paper")
        return sorted({values[parameter] for values in stage.values})

    assert grid("ann+", "alpha") == [2.0**k for k in range(-8, 11)]
    assert grid("pnca", "alpha") == [2.0**k for k in range(-8, 11)]
    assert grid("ann-", "alpha") == sorted(-(2.0**k) for k in range(-8, 11))
    assert grid("lmnn", "n_neighbors") == [4, 5, 6, 7, 8, 9, 10]
    assert np.allclose(grid("lmnn", "push_weight"), np.arange(1, 10) / 10)
    assert len(METHODS["lmnn"].stages("paper")[0].values) == 63
    assert np.allclose(grid("gmml", "t"), np.arange(1, 10) / 10)
    assert grid("itml", "gamma") == [0.25, 0.5, 0.7, 0.9]
    for name, method in METHODS.items():
        if name in ("nca", "pnca", "ann+", "ann-"):
            assert list(method.neighbors("paper")) == list(range(1, 47, 3))
        elif name != "auto":
            assert list(method.neighbors("paper")) == list(range(1, 11))


@pytest.mark.parametrize("protocol", ["honest", "paper"])
@pytest.mark.parametrize("method", LEARNED, ids=ids)
def test_every_configuration_is_one_the_learner_knows(method, protocol):
    for stage in method.stages(protocol):
        for values in stage.values:
            learner = method.make(values, protocol, seed=3)
            shown = learner.get_params()
            assert {name: shown[name] for name in values} == dict(values)
            assert shown.get("random_state", 3) == 3


def test_the_papers_start_and_warm_starts():
    ann = METHODS["ann+"]
    assert ann.make({}, "paper", 0).init == "paper"
    assert ann.make({}, "honest", 0).init == "auto"
    factor = np.eye(2)
    assert ann.make({}, "paper", 0, factor).init is factor
    assert METHODS["nca"].make({}, "honest", 0, factor).init == "auto"


@pytest.mark.parametrize("name", METHODS)
def test_a_backend_reaches_the_learners_that_run_on_a_gpu_and_no_other(name):
    chosen = on_backend(METHODS[name], "cuda")
    if name in ("nca", "pnca", "ann+", "ann-"):
        assert chosen.make({}, "honest", 0).backend == "cuda"
        assert METHODS[name].make({}, "honest", 0).backend == "auto"
    else:
        assert chosen is METHODS[name]


def test_stages_combine_their_values():
    stage = Stage.of(a=(1, 2), b=("x", "y"))
    assert [tuple(values.values()) for values in stage.values] == [
        (1, "x"), (1, "y"), (2, "x"), (2, "y"),
    ]  # fmt: skip
    assert Stage.of().values == ({},)
    assert powers_of_two(-1, 2) == (0.5, 1.0, 2.0, 4.0)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_gives_a_result(name, iris):
    if isinstance(METHODS[name], Automatic):
        pytest.importorskip("vicinal.automatic.classifier")
    result = attempt(table2.ResultTask(iris, METHODS[name], "honest", 0, tuning_limit=60))
    assert result.error is None
    assert result.accuracy > 0.85
    assert result.n_train == 105
    assert result.fit_seconds > 0
