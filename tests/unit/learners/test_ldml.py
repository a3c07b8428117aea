"""LDML: its parameters, its supervision, pair verification, hard input."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from vicinal.learners.ldml import LDML


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = rng.standard_normal((90, 5))
    X[:, :2] += np.array([[0, 0], [3, 0], [0, 3]])[y]
    return X, y


def test_evidence(data):
    learner = LDML().fit(*data)
    assert learner.converged_
    assert learner.history_[-1] == learner.objective_
    assert np.all(np.diff(learner.history_) <= 0)
    assert_array_equal(learner.classes_, [0, 1, 2])


def test_bias_is_the_threshold(data):
    X, y = data
    learner = LDML().fit(X, y)
    assert_allclose(learner.threshold_, np.sqrt(learner.bias_))
    i, j = np.triu_indices(90, 1)
    predicted = learner.predict_pairs(np.stack([X[i], X[j]], axis=1))
    assert (predicted == (y[i] == y[j])).mean() > 0.8


@pytest.mark.parametrize("init", ["auto", "pca", "lda", "random"])
def test_low_rank(data, init):
    learner = LDML(2, init=init, random_state=0).fit(*data)
    assert learner.components_.shape == (2, 5)
    assert_allclose(learner.objective_, LDML().fit(*data).objective_, rtol=0.02)


def test_balanced_pairs_have_a_farther_threshold(data):
    """Similar pairs are the fewer: with equal weight in all, more pairs are called similar."""
    plain, balanced = LDML().fit(*data), LDML(pair_weight="balanced").fit(*data)
    assert balanced.bias_ > plain.bias_


def test_balanced_weights_by_hand(data):
    X, _ = data
    pairs, similar = [[0, 3], [0, 1], [0, 2], [1, 3]], [1, 0, 0, 0]
    repeated = pairs + 2 * pairs[:1]
    balanced = LDML(1, pair_weight="balanced", regularization=1.0, init="pca")
    plain = LDML(1, regularization=1.5, init="pca")  # 6 pairs of weight 1 instead of 4
    balanced.fit_pairs(X, pairs, similar)
    plain.fit_pairs(X, repeated, [*similar, 1, 1])
    assert_allclose(balanced.objective_ * 1.5, plain.objective_, rtol=1e-4)


def test_regularization_keeps_separable_pairs_finite(data):
    X, _ = data
    X = X[:20] + 100.0 * (np.arange(20) % 2)[:, None]
    y = np.arange(20) % 2
    free, bound = LDML().fit(X, y), LDML(regularization=1.0).fit(X, y)
    assert np.isfinite(free.components_).all()
    assert free.objective_ < 1e-3
    assert np.linalg.norm(bound.components_) < np.linalg.norm(free.components_)


def test_fit_pairs(data):
    X, y = data
    rng = np.random.default_rng(3)
    pairs = rng.integers(90, size=(600, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    similar = y[pairs[:, 0]] == y[pairs[:, 1]]
    learner = LDML().fit_pairs(X, pairs, similar)
    signed = LDML().fit_pairs(X, pairs, np.where(similar, 1, -1))
    assert_allclose(learner.components_, signed.components_)
    assert (learner.predict_pairs(X[pairs]) == similar).mean() > 0.8
    assert not hasattr(learner, "classes_")


def test_pairs_must_be_of_both_kinds(data):
    X, _ = data
    with pytest.raises(ValueError, match="there is no dissimilar one"):
        LDML().fit_pairs(X, [[0, 1], [0, 2]], [1, 1])
    with pytest.raises(ValueError, match="there is no similar one"):
        LDML().fit(X[:10], np.arange(10))
    with pytest.raises(ValueError, match="init='lda' needs class labels"):
        LDML(init="lda").fit_pairs(X, [[0, 1], [0, 2]], [1, 0])


def test_warns_where_a_negative_bias_calls_nothing_similar():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 3)), np.arange(60) % 6  # labels that mean nothing
    learner = LDML().fit(X, y)
    assert learner.bias_ < 0
    assert learner.threshold_ == 0
    pairs = np.stack([X[:5], X[5:10]], axis=1)
    with pytest.warns(UserWarning, match="bias"):
        assert not learner.predict_pairs(pairs).any()
    assert learner.set_threshold(100.0).predict_pairs(pairs).all()


def test_units_do_not_matter(data):
    X, y = data
    M = LDML().fit(X, y).get_mahalanobis_matrix()
    for factor in (1e-150, 1e150):
        scaled = LDML().fit(factor * X, y).components_ * factor
        assert_allclose(scaled.T @ scaled, M, rtol=1e-3, atol=1e-4 * np.abs(M).max())


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 9}, "n_components=9 exceeds"),
        ({"n_components": 2, "solver": "pgd"}, "cannot keep it at rank"),
        ({"pair_weight": "equal"}, "pair_weight='equal'"),
        ({"regularization": -1.0}, "regularization"),
        ({"solver": "newton"}, "solver='newton'"),
        ({"backend": "cuda"}, "backend='cuda'"),
        ({"tol": -1.0}, "tol"),
    ],
)
def test_wrong_parameters(data, parameters, message):
    with pytest.raises(ValueError, match=message):
        LDML(**parameters).fit(*data)
