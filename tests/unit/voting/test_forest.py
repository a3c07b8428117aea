"""Row weights of forests give what scikit-learn's forests predict."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, load_wine
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.tree import DecisionTreeClassifier

from vicinal.voting.forest import Forest, LeafRows

X, Y = load_wine(return_X_y=True)
ONES = np.ones(len(X))
CENTER, SCALE = X.mean(axis=0), X.std(axis=0)
Z = (X - CENTER) / SCALE


def grow(n_trees, samples=X, labels=Y):
    tree = DecisionTreeClassifier(max_features="sqrt")
    return Forest.grow(tree, n_trees, samples, labels, np.ones(len(samples)), seed=0)


def rows_alone(source, queries, n, own_rows=None):
    found = source.row_weights(queries, own_rows)
    return found.to_sparse(n).toarray() / (1.0 - found.prior_share)[:, None]


@pytest.mark.parametrize(
    "grown",
    [
        ExtraTreesClassifier(20, random_state=0),
        RandomForestClassifier(20, bootstrap=False, min_samples_leaf=5, random_state=0),
    ],
)
def test_weights_give_the_probabilities_of_scikit_learn(grown):
    rng = np.random.default_rng(0)
    queries = X + 0.2 * X.std(axis=0) * rng.normal(size=X.shape)
    weights = rng.uniform(0.5, 2.0, len(X))
    grown.fit(Z, Y, sample_weight=weights)
    forest = Forest.of([tree.tree_ for tree in grown.estimators_], CENTER, SCALE)
    W = rows_alone(LeafRows(X, forest, weights), queries, len(X))
    assert_allclose(W.sum(axis=1), 1.0)
    expected = grown.predict_proba((queries - CENTER) / SCALE)
    assert_allclose(W @ np.eye(3)[Y], expected, atol=1e-12)


def test_weights_average_numbers_too():
    grown = RandomForestRegressor(20, bootstrap=False, max_features=0.3, random_state=0)
    grown.fit(Z, X[:, 0] ** 2)
    forest = Forest.of([tree.tree_ for tree in grown.estimators_], CENTER, SCALE)
    W = rows_alone(LeafRows(X, forest, ONES), X, len(X))
    expected = grown.predict(Z)
    assert_allclose(W @ X[:, 0] ** 2, expected, rtol=1e-10)


def test_a_row_that_is_excluded_has_no_weight_and_the_others_sum_to_one():
    forest = grow(15)
    own = np.arange(len(X))
    source = LeafRows(X, forest, ONES)
    W = rows_alone(source, X, len(X), own)
    assert_array_equal(np.diag(W), 0.0)
    assert_allclose(W.sum(axis=1), 1.0)
    naive = np.zeros(len(X))
    leaves, counted = forest.leaves(X), 0
    for tree in range(15):
        others = (leaves[:, tree] == leaves[7, tree]) & (own != 7)
        if others.any():
            naive += others / others.sum()
            counted += 1
    assert_allclose(W[7], naive / counted)


def test_rows_without_weight_do_not_vote():
    forest = grow(15)
    weights = ONES * (Y != 1)
    found = LeafRows(X, forest, weights).row_weights(X)
    assert_array_equal(found.to_sparse(len(X)).toarray()[:, Y == 1], 0.0)
    assert_allclose(found.to_sparse(len(X)).sum(axis=1) + found.prior_share, 1.0)
    silent = LeafRows(X, forest, 0 * ONES).row_weights(X)
    assert_array_equal(silent.prior_share, 1.0)


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_leaves_do_not_depend_on_units(scale):
    grown = [grow(5, X * s).leaves(X * s) for s in (1.0, scale)]
    assert_array_equal(*grown)


def test_separations_name_the_threshold_where_the_ways_part():
    samples, labels = load_iris(return_X_y=True)
    forest = grow(9, samples, labels)
    shares = forest.separations(samples[60], samples)
    together = np.mean(forest.leaves(samples) == forest.leaves(samples[60:61]), axis=1)
    assert_allclose(shares.sum(axis=1), 1.0 - together)
    row, naive = samples[120], np.zeros(4)
    for root in forest.roots:
        node = root
        while (f := forest.features[node]) >= 0:
            sides = [int(x[f] > forest.thresholds[node]) for x in (samples[60], row)]
            if sides[0] != sides[1]:
                naive[f] += 1 / 9
                break
            node = forest.children[node, sides[0]]
    assert_allclose(shares[120], naive)


def test_grown_forests_are_as_good_as_those_of_scikit_learn():
    train, test = np.arange(len(X)) % 2 == 0, np.arange(len(X)) % 2 == 1
    source = LeafRows(X[train], grow(200, X[train], Y[train]), ONES[train])
    W = rows_alone(source, X[test], train.sum())
    P = RandomForestClassifier(200, random_state=0).fit(X[train], Y[train]).predict_proba(X[test])
    assert np.abs(W @ np.eye(3)[Y[train]] - P).mean() < 0.05
    again = LeafRows(X[train], grow(200, X[train], Y[train]), ONES[train])
    assert_array_equal(rows_alone(again, X[test], train.sum()), W)
