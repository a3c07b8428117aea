"""Row weights of boosted trees give what scikit-learn's gradient boosting predicts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

from vicinal.automatic.committee import Choice
from vicinal.voting import boosting
from vicinal.voting.boosting import BoostedLeaves, grow_boosted
from vicinal.voting.forest import Forest, LeafRows
from vicinal.voting.row_weights import TargetRows
from vicinal.voting.sources import Committee

X, Y = load_diabetes(return_X_y=True)
X, Y = X[:200], (Y[:200] - Y[:200].mean()) / Y[:200].std()
QUERIES = X + 0.3 * X.std(axis=0) * np.random.default_rng(1).normal(size=X.shape)
WEIGHTS = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
TARGETS = np.column_stack([Y, Y**2])
FOREST = grow_boosted(30, X, TARGETS, WEIGHTS, seed=0)


def rows_alone(source, queries, own_rows=None):
    found = source.row_weights(queries, own_rows)
    return found.to_sparse(len(X)).toarray() / (1.0 - found.prior_share)[:, None]


def test_weights_give_the_predictions_of_scikit_learn(monkeypatch):
    monkeypatch.setattr(boosting, "PENALTY", 1e-12)
    grown = GradientBoostingRegressor(learning_rate=boosting.RATE, n_estimators=25, random_state=0)
    center, scale = X.mean(axis=0), X.std(axis=0)
    grown.fit((X - center) / scale, Y, sample_weight=WEIGHTS)
    forest = Forest.of([tree.tree_ for tree in grown.estimators_[:, 0]], center, scale)
    W = rows_alone(BoostedLeaves(X, forest, WEIGHTS, 0.5), QUERIES)
    assert_allclose(W.sum(axis=1), 1.0)
    expected = grown.predict((QUERIES - center) / scale)
    assert_allclose(W @ Y, expected, atol=1e-10)


def test_shares_are_the_sums_of_the_weights():
    source = BoostedLeaves(X, FOREST, WEIGHTS, 0.5)
    shares = source.shares(QUERIES, TARGETS)
    found = source.row_weights(QUERIES)
    assert_allclose(found.averages(TARGETS, np.zeros(2)), shares[:, :2], atol=1e-12)
    assert_allclose(found.prior_share, shares[:, 2])
    assert 0 < shares[0, 2] < 0.01


def test_weights_are_those_of_one_tree_after_the_other():
    """I − Π (I − A_t) over the trees, A_t the shrunk means of leaves: all rows as queries."""
    source = BoostedLeaves(X, FOREST, WEIGHTS, 0.0)
    left = np.eye(len(X)) - WEIGHTS / WEIGHTS.sum()
    leaves = FOREST.leaves(X)
    for t in range(len(FOREST.roots)):
        together = (leaves[:, [t]] == leaves[:, t]) * WEIGHTS
        means = together / (together.sum(axis=1, keepdims=True) + boosting.PENALTY)
        left = left - boosting.RATE * means @ left
    assert_allclose(source.row_weights(X).to_sparse(len(X)).toarray(), np.eye(len(X)) - left)


def test_fewer_trees_are_the_first_ones():
    again = grow_boosted(10, X, TARGETS, WEIGHTS, seed=0)
    first = FOREST.first(10)
    for name in ("roots", "features", "thresholds", "children"):
        assert_array_equal(getattr(first, name), getattr(again, name))


def test_a_row_that_is_excluded_has_no_weight_and_the_others_sum_to_one():
    W = rows_alone(BoostedLeaves(X, FOREST, WEIGHTS, 0.5), X, np.arange(len(X)))
    assert_array_equal(np.diag(W), 0.0)
    assert_allclose(W.sum(axis=1), 1.0)


def test_rows_without_weight_do_not_vote():
    weights = WEIGHTS * (Y < 1)
    found = BoostedLeaves(X, FOREST, weights, 0.5).row_weights(X)
    assert_array_equal(found.to_sparse(len(X)).toarray()[:, Y >= 1], 0.0)
    assert_allclose(found.to_sparse(len(X)).sum(axis=1) + found.prior_share, 1.0)
    silent = BoostedLeaves(X, FOREST, 0 * WEIGHTS, 0.5).row_weights(X)
    assert_array_equal(silent.prior_share, 1.0)
    assert len(grow_boosted(2, X, TARGETS, 0 * WEIGHTS, seed=0).roots) == 2


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_trees_do_not_depend_on_units(scale):
    grown = grow_boosted(10, X * scale, TARGETS, WEIGHTS, seed=0)
    assert_array_equal(grown.leaves(X * scale), FOREST.first(10).leaves(X))


def test_more_trees_explain_more_and_growth_can_be_stopped():
    errors = [
        np.mean((BoostedLeaves(X, FOREST.first(t), WEIGHTS, 0.0).shares(X, TARGETS)[:, 0] - Y) ** 2)
        for t in (1, 10, 30)
    ]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.3
    asked = iter([False, False, True])
    assert grow_boosted(30, X, TARGETS, WEIGHTS, 0, stop=lambda: next(asked)) is None


def test_members_of_a_committee_may_share_their_trees():
    rows = TargetRows.of(TARGETS, WEIGHTS)
    members = [
        Choice("any", 30, vote, 1, weight, (0,))
        for vote, weight in (("leaves", 0.25), ("boosted leaves", 0.75))
    ]
    shared = Committee(X, rows, np.eye(10)[None], members, forests=[FOREST], calibration=0.0)
    alone = [
        source(X, FOREST, rows.weights, rows.prior_votes) for source in (LeafRows, BoostedLeaves)
    ]
    parts = [source.row_weights(QUERIES).averages(TARGETS, rows.prior) for source in alone]
    assert_allclose(shared.predictions(QUERIES), 0.25 * parts[0] + 0.75 * parts[1], atol=1e-9)
