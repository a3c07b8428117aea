"""ANNClassifier on tables: categories, dates and gaps, without leakage, and explained by column."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_iris

import vicinal as vc
from vicinal.features.table_encoder import encode_samples
from vicinal.fitted_model import anatomy

N = 240


def make_table(seed=0):
    """Two columns that tell the classes apart, and some that do not."""
    rng = np.random.default_rng(seed)
    y = rng.choice(["no", "yes"], N)
    table = pd.DataFrame(
        {
            "price": [f"${v:,.2f}" for v in rng.normal(5000, 100, N) + 400 * (y == "yes")],
            "color": np.where(rng.random(N) < 0.8, np.where(y == "yes", "red", "blue"), "green"),
            "gap": np.where(rng.random(N) < 0.2, np.nan, rng.normal(size=N)),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 700, N), unit="D"),
        }
    )
    return table, y


@pytest.fixture(scope="module")
def fitted():
    table, y = make_table()
    return vc.ANNClassifier(effort=0.05).fit(table, y)


def test_tables_are_encoded(fitted):
    table, y = make_table(1)
    assert fitted.score(table, y) > 0.9
    assert fitted.score(pl.from_pandas(table), y) == fitted.score(table, y)
    kinds = [column.code.kind for column in fitted.encoder_.columns_]
    assert kinds == ["number", "category", "number", "date"]
    assert list(fitted.feature_names_in_) == list(table.columns)
    assert fitted.n_features_in_ == 4


def test_explanations_are_by_column(fitted):
    table, _ = make_table(1)
    explained = fitted.explain(table[:3])[0]
    assert explained.feature_names == tuple(table.columns)
    for vote in explained.neighbors:
        assert vote.contributions.shape == (4,)
        assert vote.contributions.sum() == pytest.approx(vote.distance**2)
    assert fitted.kneighbors(table[:3], 2)[1].shape == (3, 2)


def test_the_model_file_keeps_every_bit(fitted, tmp_path):
    table, _ = make_table(1)
    vc.save(fitted, tmp_path / "model.vicinal")
    loaded = vc.load(tmp_path / "model.vicinal")
    np.testing.assert_array_equal(loaded.predict_proba(table), fitted.predict_proba(table))
    assert loaded.encoder_.describe() == fitted.encoder_.describe()


def test_the_parts_agree_with_the_whole(fitted):
    table, _ = make_table(1)
    parts = anatomy(fitted)
    A = parts.prepare(table)
    np.testing.assert_allclose(parts.voting().probabilities(A), fitted.predict_proba(table))


def test_a_single_metric_transforms_tables():
    table, y = make_table()
    model = vc.ANNClassifier("single", effort=0.05).fit(table, y)
    Z = model.transform(table)
    assert Z.shape == (N, len(model.components_))
    np.testing.assert_allclose(Z, model.encoder_.transform(table) @ model.components_.T)


def test_gaps_in_arrays():
    X, y = load_iris(return_X_y=True)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    model = vc.ANNClassifier(effort=0.05).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.85
    assert model.n_features_in_ == 4


def test_numbers_without_gaps_stay_as_they_are():
    X, y = load_iris(return_X_y=True)
    model = vc.ANNClassifier(effort=0.05).fit(X, y)
    assert model.encoder_ is None
    np.testing.assert_array_equal(model.X_fit_, X)
    sparse = vc.ANNClassifier(effort=0.05).fit(csr_array(X), y)
    np.testing.assert_array_equal(sparse.predict_proba(csr_array(X)), model.predict_proba(X))
    asked, filled = X.copy(), X.copy()
    asked[0, 1], filled[0, 1] = np.nan, np.median(X[:, 1])
    np.testing.assert_array_equal(model.predict_proba(asked), model.predict_proba(filled))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_random_codes_do_not_leak(seed):
    rng = np.random.default_rng(seed)
    n = 600
    table = pd.DataFrame({"code": [f"c{c}" for c in rng.integers(0, 200, n)], "x": rng.random(n)})
    y = rng.integers(0, 2, n)
    model = vc.ANNClassifier(effort=0.1, random_state=0).fit(table, y)
    assert model.encoder_.columns_[0].code.kind == "target"
    new = pd.DataFrame({"code": rng.permutation(table["code"]), "x": rng.random(n)})
    assert abs(model.score(new, rng.integers(0, 2, n)) - 0.5) < 0.08
    assert abs(model.best_score_ - 0.5) < 0.08  # out of fold: the choice adds a little


@pytest.mark.parametrize("target_type", ["classes", "number"])
def test_test_rows_of_a_fold_say_nothing_about_their_targets(target_type):
    rng = np.random.default_rng(0)
    n = 200
    table = pd.DataFrame({"code": [f"c{c}" for c in rng.integers(0, 60, n)], "x": rng.random(n)})
    y = rng.integers(0, 3, n)
    rows = rng.permutation(n)[:150]
    train, test = np.arange(100), np.arange(100, 150)
    other = y.copy()
    other[rows[test]] = (y[rows[test]] + 1) % 3

    def in_fold(targets):
        encoded = encode_samples(table, targets, target_type)
        # The scale of a column is that of all rows; only statistics are at stake here.
        found = encoded.target_features.take(rows).in_fold(encoded.X[rows], train, test)
        return found[:, :-1] / encoded.encoder.columns_[0].weight

    def naive(row, others):
        Y = np.eye(3)[y] if target_type == "classes" else y[:, None].astype(float)
        alike = [j for j in others if table["code"][j] == table["code"][row]]
        return (Y[alike].sum(axis=0) + 10 * Y[others].mean(axis=0)) / (len(alike) + 10)

    found = in_fold(y)
    np.testing.assert_allclose(in_fold(other), found)
    expected = [naive(row, rows[train]) for row in rows[test]]
    np.testing.assert_allclose(found[test], expected)


@pytest.mark.parametrize("model", [vc.ANNClassifier, vc.ANNRegressor])
def test_thresholds_of_forests_are_told_by_column(model):
    """A column with several features before the one that decides."""
    rng = np.random.default_rng(0)
    kind, size = rng.choice(list("abcdef"), 120), rng.normal(size=120)
    table = pd.DataFrame({"kind": kind, "size": size})
    y = np.where(size > 0, 1.0, 0.0)
    fitted = model(members=("forest",), effort=0.05).fit(table, y)
    explanation = fitted.explain(table[:1], n_neighbors=120)[0]
    apart = [vote for vote in explanation.neighbors if (size[vote.row] > 0) != (size[0] > 0)]
    for vote in explanation.neighbors:
        assert vote.separations.shape == (2,)
    assert np.mean([vote.separations[1] for vote in apart]) > 0.5
    assert "thresholds size" in str(fitted.explain(table[:1], n_neighbors=120)[0])
