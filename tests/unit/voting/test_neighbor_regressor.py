"""K-NN regression: the averages of naive loops and of scikit-learn."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.neighbors import KNeighborsRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

import vicinal as vc

RNG = np.random.default_rng(0)
X, QUERIES = RNG.normal(size=(80, 3)), RNG.normal(size=(20, 3))
Y = RNG.normal(size=(80, 2))


@parametrize_with_checks([vc.NeighborRegressor(), vc.NeighborRegressor(3, vote="epanechnikov")])
def test_is_a_scikit_learn_estimator(estimator, check):
    check(estimator)


@pytest.mark.parametrize("targets", [Y, Y[:, 0]], ids=["several", "one"])
def test_the_mean_is_that_of_scikit_learn(targets):
    ours = vc.NeighborRegressor(7).fit(X, targets)
    theirs = KNeighborsRegressor(7).fit(X, targets)
    assert_allclose(ours.predict(QUERIES), theirs.predict(QUERIES))
    for mine, other in zip(ours.kneighbors(QUERIES), theirs.kneighbors(QUERIES), strict=True):
        assert_allclose(mine, other)
    assert_array_equal(ours.kneighbors()[1], theirs.kneighbors()[1])


@pytest.mark.parametrize("vote", ["epanechnikov", "soft"])
def test_nearer_rows_count_more(vote):
    k, model = 9, vc.NeighborRegressor(9, vote=vote).fit(X, Y)
    for d, found in zip(cdist(QUERIES, X, "sqeuclidean"), model.predict(QUERIES), strict=True):
        order = np.argsort(d)
        near = d[order[:k]]
        votes = np.exp(-near) if vote == "soft" else 1 - near / d[order[k]]
        assert_allclose(found, votes @ Y[order[:k]] / votes.sum(), rtol=1e-6)
    weights, prior_share = model.vote_weights(QUERIES)
    expected = weights @ Y + prior_share[:, None] * Y.mean(axis=0)
    assert_allclose(model.predict(QUERIES), expected)


def test_more_neighbors_than_rows_are_refused():
    with pytest.raises(ValueError, match="n_samples = 3"):
        vc.NeighborRegressor(4).fit(X[:3], Y[:3])
    assert_allclose(vc.NeighborRegressor(3).fit(X[:3], Y[:3]).predict(X[:1])[0], Y[:3].mean(axis=0))


@pytest.mark.parametrize("targets", [Y, Y[:, 0]], ids=["several", "one"])
def test_a_model_file_predicts_the_same(targets, tmp_path):
    model = vc.NeighborRegressor(4, vote="soft").fit(X, targets)
    vc.save(model, tmp_path / "knn.vicinal")
    assert_array_equal(vc.load(tmp_path / "knn.vicinal").predict(QUERIES), model.predict(QUERIES))
