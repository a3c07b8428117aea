"""The maps and the metric, against scikit-learn's PCA and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import vicinal as vc
from vicinal.reporting import examine
from vicinal.reporting.feature_columns import FeatureColumns
from vicinal.reporting.maps import VoterCounts
from vicinal.reporting.metric import column_matrix, column_weights, metric_findings


def test_before_is_the_pca_of_standardized_features(iris, iris_ann):
    X, y = iris
    found = examine(iris_ann, X, y).maps
    pca = PCA(2).fit(StandardScaler().fit_transform(X))
    expected = pca.transform(StandardScaler().fit_transform(X))
    np.testing.assert_allclose(np.abs(found.before), np.abs(expected), atol=1e-8)
    np.testing.assert_allclose(found.before_spread, pca.explained_variance_ratio_)


def test_after_shows_the_learned_distances_where_two_directions_suffice(iris, iris_ann):
    X, y = iris
    found = examine(iris_ann, X, y).maps
    np.testing.assert_allclose(pdist(found.after), pdist(iris_ann.transform(X)), rtol=1e-7)


def test_no_rotation_or_mirror_brings_the_maps_closer(iris, iris_ann):
    X, y = iris
    found = examine(iris_ann, X, y).maps
    before, after = (p - p.mean(axis=0) for p in (found.before, found.after))
    apart = np.sum((after - before) ** 2)
    for angle in np.linspace(0, 2 * np.pi, 73):
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        for mirror in (turn, turn * [1, -1]):
            assert np.sum((after @ mirror - before) ** 2) >= apart * (1 - 1e-9)


def test_one_feature_has_a_map(iris):
    X, y = iris
    found = examine(vc.RVML().fit(X[:, :1], y), X[:, :1], y)
    assert found.maps.before_spread[1] == 0
    assert np.isfinite(found.maps.before).all()
    # the second coordinate says only which class it is
    lanes = [found.maps.before[found.maps.labels == c, 1] for c in range(3)]
    assert lanes[0].min() > lanes[1].max() > lanes[1].min() > lanes[2].max()


def test_directions_are_the_principal_ones_of_the_transformed_data(iris, iris_ann):
    X, y = iris
    found = examine(iris_ann, X, y)
    S = StandardScaler().fit_transform(X)
    pca = PCA().fit(iris_ann.transform(X))
    scores = pca.transform(iris_ann.transform(X))
    for axis, direction in enumerate(found.metric.directions):
        assert direction.spread == pytest.approx(pca.explained_variance_ratio_[axis])
        order = [int(name.removeprefix("feature ")) - 1 for name in direction.names]
        loadings = np.empty(4)
        loadings[order] = direction.loadings
        assert np.linalg.norm(loadings) == pytest.approx(1)
        assert abs(np.corrcoef(S @ loadings, scores[:, axis])[0, 1]) == pytest.approx(1)


def test_weights_do_not_depend_on_units():
    rng = np.random.default_rng(0)
    L, A, units = rng.normal(size=(3, 5)), rng.normal(size=(40, 5)), rng.uniform(0.01, 100, 5)
    columns = FeatureColumns.named("abcde", "pqqrr")
    weights = column_weights(L.T @ L, np.cov(A.T), columns)
    assert weights.sum() == pytest.approx(1)
    in_units = (L / units).T @ (L / units)
    np.testing.assert_allclose(column_weights(in_units, np.cov((A * units).T), columns), weights)


def test_plain_knn_weighs_all_features_alike():
    scale = np.array([1.0, 20.0, 0.3])
    M, C, columns = np.diag(scale**-2.0), np.diag(scale**2.0), FeatureColumns.named("abc", "abc")
    np.testing.assert_allclose(column_weights(M, C, columns), 1 / 3)


def test_the_weight_of_a_column_is_its_part_of_the_mean_squared_distance():
    """Whatever features stand for its levels: a constant added to all of them changes nothing."""
    rng = np.random.default_rng(3)
    levels = np.eye(4)[rng.integers(0, 4, 200)]
    A, L = np.column_stack([rng.normal(size=200), levels]), rng.normal(size=(3, 5))
    columns = FeatureColumns.named("xabcd", ["x", *["color"] * 4])
    C = np.cov(A.T, bias=True)
    weights = column_weights(L.T @ L, C, columns)
    parts = [A[:, :1] @ L[:, :1].T, levels @ L[:, 1:].T]
    spreads = np.array([part.var(axis=0).sum() for part in parts])
    np.testing.assert_allclose(weights, spreads / spreads.sum())
    shifted = L + np.array([0.0, 1.0, 1.0, 1.0, 1.0]) * rng.normal(size=(3, 1))
    np.testing.assert_allclose(column_weights(shifted.T @ shifted, C, columns), weights)
    shown = np.arange(2)
    np.testing.assert_allclose(
        np.abs(column_matrix(shifted.T @ shifted, C, columns, shown)),
        np.abs(column_matrix(L.T @ L, C, columns, shown)),
    )


def test_between_single_features_the_matrix_is_that_of_standardized_ones():
    rng = np.random.default_rng(4)
    A, L = rng.normal(size=(50, 3)) * [1.0, 5.0, 0.1], rng.normal(size=(2, 3))
    columns = FeatureColumns.named("abc", "abc")
    found = column_matrix(L.T @ L, np.cov(A.T, bias=True), columns, np.array([2, 0]))
    scale = A.std(axis=0)
    expected = (L.T @ L * np.outer(scale, scale))[np.ix_([2, 0], [2, 0])]
    np.testing.assert_allclose(found, expected)


def test_many_features_are_cut_to_the_heaviest():
    rng = np.random.default_rng(1)
    M = np.diag(rng.permutation(np.arange(1.0, 51.0)))
    A = np.vstack([np.eye(50), -np.eye(50)])  # uncorrelated, of equal variances
    names = [str(feature) for feature in range(50)]
    columns = FeatureColumns.named(names, names)
    found = metric_findings(M, A, np.eye(50)[:2], np.array([0.5, 0.2]), columns)
    assert len(found.features) == 30
    assert found.n_features == 50
    np.testing.assert_array_equal(np.diag(M)[found.features], np.arange(50, 20, -1))
    np.testing.assert_allclose(np.diag(found.matrix), np.arange(50, 20, -1) / 50)


def test_a_kernel_has_no_matrix_but_maps(iris):
    X, y = iris
    found = examine(vc.RVML(kernel="rbf").fit(X, y), X, y)
    assert found.metric is None
    assert found.maps.near_after.shares.shape[2] == 0
    assert found.maps.near_before.shares.shape[2] > 0


def test_the_page_begins_with_a_row_that_learning_the_metric_rescued(wine, wine_pipeline):
    X, y, X_test, y_test = wine
    maps = examine(wine_pipeline, X, y, X_test=X_test, y_test=y_test).maps
    if "gets it right" in maps.focus_why:
        assert maps.predictions[maps.focus] == maps.labels[maps.focus]
    else:
        own = [
            (maps.labels[near.rows] == maps.labels[:, None]).sum(axis=1)
            for near in (maps.near_before, maps.near_after)
        ]
        assert (own[1] - own[0])[maps.focus] == (own[1] - own[0]).max()


@pytest.mark.parametrize(
    ("voters", "text"),
    [
        (
            VoterCounts(37, fewer_too=True),
            "by up to 37 neighbors, more than the 10 that are listed.",
        ),
        (VoterCounts(15, of_each_class=True), "by 15 neighbors of each class, more than the 10"),
        (VoterCounts(1), "by 1 neighbor; the 10 nearest are listed."),
    ],
)
def test_how_many_decide_is_said_where_others_are_listed(voters, text):
    assert text in voters.beside(10)
    assert VoterCounts(10).beside(10) == ""


def test_the_page_says_that_more_neighbors_decide_than_are_listed(iris):
    X, y = iris
    model = make_pipeline(vc.GMML(), KNeighborsClassifier(15)).fit(X, y)
    found = examine(model, X, y, reasons={"K": "The best of 9."})
    assert found.maps.near_after.rows.shape[1] == 10
    assert "15 neighbors, more than the 10" in found.maps.voters
    assert {one.name: one.why for one in found.headline.chosen}["K"] == "The best of 9."


def test_a_committee_that_unfolds_features_is_shown_by_its_hats():
    """Codes of which only odd or even matters; the fourth says nothing."""
    X = np.random.default_rng(1).integers(0, 6, size=(240, 4)).astype(float)
    y = (X[:, :3] % 2).sum(axis=1) > 1.5
    model = vc.ANNClassifier().fit(X, y)
    assert model.knots_ is not None
    found = examine(model, X, y)
    near = found.maps.near_after
    assert near.agreement > found.maps.near_before.agreement + 0.1
    columns, M = model.unfold(X), model.mean_metric()
    delta = columns[5] - columns[near.rows[5, 3]]
    assert near.distances[5, 3] ** 2 == pytest.approx(delta @ M @ delta)
    assert found.metric.unfolded
    assert found.metric.features[-1] == 3
    assert found.metric.weights.sum() == pytest.approx(1.0)
    for direction in found.metric.directions:
        assert np.linalg.norm(direction.loadings) == pytest.approx(1.0)
    assert [chosen.name for chosen in found.headline.chosen][:2] == ["Method", "Features"]
