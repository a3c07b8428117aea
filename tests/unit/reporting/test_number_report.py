"""Reports about numbers, and about columns of tables: against plain NumPy."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

import vicinal as vc
from vicinal import plot
from vicinal.reporting import examine, report
from vicinal.reporting.number_evaluation import COVERAGES, crossed_bands, plain_averages


def table(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Size, district and date, with gaps; the price follows from the first two."""
    rng = np.random.default_rng(seed)
    size, district = rng.uniform(20, 200, n), rng.choice(["north", "south", "west"], n)
    price = 3.0 * size + 100.0 * (district == "south") + rng.normal(0, 15, n)
    frame = pd.DataFrame(
        {
            "size": np.where(rng.random(n) < 0.1, np.nan, size),
            "district": district,
            "sold": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
            "code": [f"c{code}" for code in rng.integers(0, 40, n)],
        }
    )
    return frame, price


@pytest.fixture(scope="module")
def model():
    return vc.ANNRegressor(effort=0.05).fit(*table(200, 0))


@pytest.fixture(scope="module")
def found(model):
    X, y = table(80, 1)
    return examine(model, *table(200, 0), X_test=X, y_test=y)


def test_scores_are_those_of_the_predictions(model, found):
    X, y = table(80, 1)
    errors = y - model.predict(X)
    learned, _, mean = found.headline.scores
    assert learned.rmse == pytest.approx(np.sqrt(np.mean(errors**2)))
    assert learned.mae == pytest.approx(np.abs(errors).mean())
    assert learned.r2 == pytest.approx(model.score(X, y))
    assert learned.low < learned.rmse < learned.high < mean.low
    assert mean.rmse == pytest.approx(np.sqrt(np.mean((y - table(200, 0)[1].mean()) ** 2)))
    assert found.headline.gained + found.headline.lost == found.headline.total == 80


def test_intervals_and_coverage_are_those_of_the_model(model, found):
    X, y = table(80, 1)
    errors = found.errors
    np.testing.assert_allclose(
        np.column_stack([errors.low, errors.high]), model.predict_interval(X, 0.9)
    )
    for coverage in errors.coverage:
        low, high = model.predict_interval(X, coverage.nominal).T
        assert coverage.measured == pytest.approx(np.mean((y >= low) & (y <= high)))
        assert coverage.low <= coverage.measured <= coverage.high
    np.testing.assert_allclose(found.maps.labels[errors.points], y)
    np.testing.assert_allclose(found.maps.predictions[errors.points], model.predict(X))
    largest = np.sort(np.abs(y - model.predict(X)))[::-1][:12]
    at = errors.points[errors.worst]
    np.testing.assert_allclose(np.abs(found.maps.labels[at] - found.maps.predictions[at]), largest)


def test_features_are_the_columns_in_their_own_units(model, found):
    X, y = table(80, 1)
    assert found.features == ("size", "district", "sold", "code")
    assert found.metric.summed
    assert found.metric.weights.sum() == pytest.approx(1.0)
    assert found.metric.plain.sum() == pytest.approx(1.0)
    assert (found.maps.near_after.features < 4).all()
    groups = {one.feature: one.groups for one in found.errors.by_feature}
    assert set(groups) == {"size", "district", "sold"}  # a code cannot be restored
    residuals = y - model.predict(X)
    for group in groups["district"]:
        expected = residuals[(X["district"] == group.name).to_numpy()]
        assert group.count == len(expected)
        assert group.mean == pytest.approx(expected.mean())
        assert [group.low, group.high] == pytest.approx(np.quantile(expected, [0.1, 0.9]).tolist())
    missing = groups["size"][-1]
    assert (missing.name, missing.count) == ("(missing)", X["size"].isna().sum())
    assert missing.mean == pytest.approx(residuals[X["size"].isna()].mean())
    assert groups["sold"][0].name.startswith("2020-0")
    assert len(groups["sold"]) == 10


def test_training_rows_have_out_of_fold_predictions(model, found):
    train = ~found.maps.held_out
    np.testing.assert_array_equal(found.maps.predictions[train], model.oof_predictions_)
    X, y = table(200, 0)
    alone = examine(model, X, y)
    assert alone.headline.scores[0].r2 == pytest.approx(model.best_score_, abs=1e-6)
    assert "Out-of-fold" in alone.headline.protocol
    inside = {round(c.nominal, 2): c.measured for c in alone.errors.coverage}
    assert inside[0.9] == pytest.approx(0.9, abs=0.05)


def test_neighborhoods_are_judged_by_the_distance_of_targets(found):
    maps = found.maps
    for near in (maps.near_before, maps.near_after):
        apart = np.abs(maps.labels[near.rows] - maps.labels[:, None])[maps.held_out]
        assert near.agreement == pytest.approx(apart.mean())
    assert maps.near_after.agreement < maps.near_before.agreement


def test_worst_rows_are_on_the_map_however_many_rows_there_are():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(2500, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=2500)
    y[1234] += 50.0
    model = vc.ANNRegressor(members=("linear",), effort=0.02).fit(X[:100], y[:100])
    found = examine(model, X[:100], y[:100], X_test=X[100:], y_test=y[100:])
    assert 2000 <= len(found.maps.ids) <= 2012
    assert found.maps.ids[found.errors.points[found.errors.worst[0]]] == f"held-out {1234 - 100}"


def test_crossed_bands_cover_as_promised():
    rng = np.random.default_rng(3)
    scales = rng.uniform(0.5, 2.0, 4000)
    residuals, centers = rng.normal(size=4000) * scales, rng.normal(size=4000)
    bands = crossed_bands(residuals, scales, centers)
    truth = (centers + residuals)[:, None]
    inside = ((truth >= bands[:, :, 0]) & (truth <= bands[:, :, 1])).mean(axis=0)
    np.testing.assert_allclose(inside, COVERAGES, atol=0.02)


def test_plain_averages_have_the_k_of_least_error_left_out():
    rng = np.random.default_rng(4)
    A, Q = rng.normal(size=(60, 2)) * [1.0, 100.0], rng.normal(size=(7, 2)) * [1.0, 100.0]
    y = A[:, 0] + 0.3 * rng.normal(size=60)
    S, T = (rows / A.std(axis=0) for rows in (A, Q))
    apart = np.linalg.norm(S[:, None] - S, axis=2) + np.diag(np.full(60, np.inf))
    means = np.cumsum(y[np.argsort(apart, axis=1)[:, :31]], axis=1) / np.arange(1, 32)
    k = 1 + int(((means - y[:, None]) ** 2).sum(axis=0).argmin())
    near = np.argsort(np.linalg.norm(T[:, None] - S, axis=2), axis=1)[:, :k]
    found, chosen = plain_averages(A, y, np.zeros(60, dtype=int), Q)
    assert chosen == k
    np.testing.assert_allclose(found, y[near].mean(axis=1))


def test_the_page_is_written(model, tmp_path):
    X, y = table(80, 1)
    path = report(model, *table(200, 0), tmp_path / "page.html", X_test=X, y_test=y)
    text = path.read_text()
    data = json.loads(re.search(r'type="application/json">(.*?)</script>', text)[1])
    assert data["classes"] == []
    assert len(data["errors"]["coverage"]) == len(COVERAGES)
    assert "numeric target" in data["summary"]


def test_figures_of_classes_are_refused_and_maps_drawn(found):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    for draw in (plot.confusion, plot.margins, plot.calibration):
        with pytest.raises(TypeError, match="about classes"):
            draw(found)
    ax = plot.maps(found, "after")
    np.testing.assert_allclose(np.asarray(ax.collections[0].get_offsets()), found.maps.after)
    pyplot.close("all")


def test_named_columns_of_numbers_are_reported_without_remarks(recwarn):
    X, y = table(80, 0)
    numbers = X[["size"]].fillna(0.0).assign(twice=y)
    model = vc.ANNRegressor(members=("linear",), effort=0.02).fit(numbers, y)
    found = examine(model, numbers, y, X_test=numbers[:20], y_test=y[:20])
    assert found.features == ("size", "twice")
    assert not recwarn.list


def test_other_models_of_numbers_are_refused():
    X, y = table(60, 0)
    numbers = X[["size"]].fillna(0.0)
    with pytest.raises(TypeError, match="ANNRegressor, not about NeighborRegressor"):
        examine(vc.NeighborRegressor().fit(numbers, y), numbers, y)
    two = vc.ANNRegressor(effort=0.02).fit(numbers, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="one target"):
        examine(two, numbers, y)


def test_a_classifier_of_a_table_is_shown_by_columns():
    X, y = table(120, 5)
    labels = np.where(y > np.median(y), "dear", "cheap")
    model = vc.ANNClassifier(effort=0.05).fit(X, labels)
    found = examine(model, X, labels)
    assert found.features == ("size", "district", "sold", "code")
    assert sorted(found.metric.features.tolist()) == [0, 1, 2, 3]
    renamed = examine(model, X, labels, feature_names=["m²", "part", "day", "id"])
    assert renamed.features == ("m²", "part", "day", "id")
    names = {name for direction in renamed.metric.directions for name in direction.names}
    assert {"part=north", "part=south", "part=west"} <= names
    with pytest.raises(ValueError, match="3 names for 4 columns"):
        examine(model, X, labels, feature_names=["a", "b", "c"])
