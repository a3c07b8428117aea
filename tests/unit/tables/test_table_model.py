"""A model of a table: preparation, names, neighbors, explanations, state."""

from __future__ import annotations

import json
import os

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances

import vicinal as vc
from vicinal.exceptions import TableError
from vicinal.export import to_npy
from vicinal.fitted_model import anatomy
from vicinal.reporting import examine
from vicinal.tables.row_explanation import explain_row
from vicinal.tables.selection import FitSettings
from vicinal.tables.table_model import TableModel
from vicinal.tables.writing import write_table

METHODS = ["plain", "gmml", "nca", "auto", "single"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    n = 90
    kind = rng.choice(["round", "flat", "long"], n)
    size = rng.normal(size=n)
    weight = size + 0.3 * rng.normal(size=n) + 2.0 * (kind == "flat")
    weight[[3, 8]] = np.nan
    return pd.DataFrame(
        {
            "name": [f"n{i}" for i in range(n)],
            "kind": kind,
            "size": size,
            "one": 1.0,
            "weight": weight,
            "y": np.where(size + (kind == "long") > 0.3, "big", "small"),
        }
    )


@pytest.fixture(scope="module")
def models(table):
    return {
        method: TableModel.fit(table, "y", id_column="name", settings=FitSettings(method, seed=3))
        for method in METHODS
    }


@pytest.fixture(params=METHODS)
def model(request, models):
    return models[request.param]


def test_columns_are_found_by_name(model, table):
    shuffled = table.drop(columns=["one", "y"])[["weight", "kind", "name", "size"]]
    np.testing.assert_array_equal(model.predict(shuffled), model.predict(table))
    np.testing.assert_array_equal(model.predict_proba(shuffled), model.predict_proba(table))
    names = ("kind=flat", "kind=long", "kind=round", "size", "weight", "weight=(missing)")
    assert model.feature_names == names


def test_training_rows_labels_and_ids_are_kept(model, table):
    np.testing.assert_array_equal(model.training_rows, model.prepare(table))
    np.testing.assert_array_equal(model.labels, table["y"])
    np.testing.assert_array_equal(model.ids, table["name"])
    assert model.provenance["seed"] == 3


def test_neighbors_are_the_nearest_in_the_embedding(models, table):
    for method in ("plain", "gmml", "nca"):
        model = models[method]
        X = model.prepare(table)
        distances, rows = model.nearest(X[:10], 4)
        every = cdist(model.embed(X[:10]), model.embed(X))
        np.testing.assert_allclose(distances, np.sort(every, axis=1)[:, :4], atol=1e-7)
        np.testing.assert_array_equal(rows[:, 0], np.arange(10))
        assert model.nearest(X, 10**6)[1].shape == (90, 90)


@pytest.mark.parametrize("method", ["auto", "single"])
def test_the_embedding_of_an_automatic_model_is_that_of_its_matrix(models, table, method):
    model = models[method]
    X = model.prepare(table)[:20]
    M = model.of_features.mean_metric()
    columns = model.of_features.unfold(X)
    differences = columns[:, None] - columns[None]
    expected = np.einsum("ijk,kl,ijl->ij", differences, M, differences)
    found = pairwise_distances(model.embed(X), metric="sqeuclidean")
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10 * expected.max())


def test_explanations_add_up(model, table):
    row = table.iloc[[5]].assign(size=table["size"][5] + 0.01)
    explained = explain_row(model, row, 4)
    assert explained.prediction == model.predict(row)[0]
    assert list(explained.probabilities.values()) == model.predict_proba(row)[0].tolist()
    for near in explained.neighbors:
        assert sum(near.shares.values()) == pytest.approx(near.distance**2, rel=1e-8)
        assert set(near.shares) == {"kind", "size", "weight"} == set(explained.values)
        original = table.set_index("name").loc[near.id]
        assert near.label == original["y"]
        assert near.values["kind"] == original["kind"]
        assert near.values["size"] == pytest.approx(original["size"])
    ids = [near.id for near in explained.neighbors]
    np.testing.assert_array_equal(ids, model.ids[model.nearest(model.prepare(row), 4)[1][0]])


def test_the_weights_of_a_vote_sum_to_one(models, table):
    model = models["nca"]
    k = model.estimator["knn"].n_neighbors
    explained = explain_row(model, table.iloc[[0]], k + 2)
    assert sum(near.weight for near in explained.neighbors) == pytest.approx(1.0)
    assert [near.weight for near in explained.neighbors[k:]] == [0.0, 0.0]


def test_restore_gives_back_the_table(models, table):
    model = models["plain"]
    back = model.values(model.prepare(table))
    np.testing.assert_array_equal(back["kind"], table["kind"])
    np.testing.assert_allclose(back["size"], table["size"])
    present = table["weight"].notna()
    expected = table["weight"][present].to_numpy()
    np.testing.assert_allclose(back["weight"][present].astype(float), expected)
    assert set(back["weight"][~present]) == {"(missing)"}


def test_a_missing_column_is_named(models, table):
    with pytest.raises(TableError, match="missing column.*'size'.*the table has 'name', 'kind'"):
        models["plain"].predict(table.drop(columns="size"))


def test_state_goes_through_json_and_back(model, table):
    state = model.to_state()
    arrays = {"estimator", "ids", "rows", "levels"}
    plain = json.loads(json.dumps({k: v for k, v in state.items() if k not in arrays}))
    again = TableModel.from_state({**plain, **{k: state[k] for k in arrays}})
    np.testing.assert_array_equal(again.predict_proba(table), model.predict_proba(table))
    assert again.columns == model.columns


@pytest.mark.parametrize("change", ["ids", "rows"])
def test_parts_that_do_not_fit_are_refused(models, change):
    state = models["nca"].to_state()
    state[change] = state[change][:-1]
    with pytest.raises(ValueError, match="features|rows"):
        TableModel.from_state(state)


def test_rows_without_a_class_are_left_out_and_keep_their_numbers(table):
    holes = table.drop(columns="name").assign(y=table["y"].where(table.index % 3 > 0))
    model = TableModel.fit(holes, "y", settings=FitSettings("plain"))
    np.testing.assert_array_equal(model.ids, np.flatnonzero(table.index % 3 > 0))


def test_nothing_to_learn_from(table):
    with pytest.raises(TableError, match="no column is left.*constant"):
        TableModel.fit(table[["one", "y"]], "y")
    with pytest.raises(TableError, match="no other column"):
        TableModel.fit(table[["y"]], "y")
    with pytest.raises(TableError, match="no column 'z'; the columns are name, kind"):
        TableModel.fit(table, "z")


def test_a_table_model_is_taken_apart_like_any_other(model, table):
    fitted = anatomy(model)
    A = fitted.prepare(table)
    np.testing.assert_array_equal(A, model.prepare(table))
    np.testing.assert_array_equal(fitted.voting().probabilities(A), model.predict_proba(table))


def test_a_report_takes_a_table_as_it_is(models, table):
    found = examine(models["gmml"], table, table["y"])
    assert found.features == models["gmml"].feature_names
    assert found.headline.scores[0].accuracy > 0.6
    with pytest.raises(TypeError, match="cannot be exported"):
        to_npy(models["gmml"], "nowhere")


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "jsonl", "parquet", "feather"])
def test_tables_are_written_to_paths_that_are_not_utf8(tmp_path, ending):
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this file system has names in UTF-8 only")
    table = pd.DataFrame({"a": [1, 2], "b": ["x", "y\rz"]})
    write_table(table, folder / f"out.{ending}")
    (folder / f"out.{ending}").rename(tmp_path / f"out.{ending}")
    pd.testing.assert_frame_equal(vc.read_table(tmp_path / f"out.{ending}"), table)
