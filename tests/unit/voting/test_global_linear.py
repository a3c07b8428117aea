"""Lines through all rows are ridge regressions, written as weights of training rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import Ridge

from vicinal.kernels.cpu.class_neighbors import NeighborIndex
from vicinal.voting.global_linear import RIDGE, GlobalLines, line_of_features
from vicinal.voting.votes import vote_weights


def problem(n=80, d=4, q=9, seed=0):
    rng = np.random.default_rng(seed)
    X, queries = rng.normal(size=(n, d)) * [1.0, 5.0, 0.1, 2.0], rng.normal(size=(q, d))
    weights = rng.uniform(0.2, 2.0, n)
    weights[:5] = 0.0
    queries = np.clip(queries, X[5:].min(axis=0), X[5:].max(axis=0))
    return X, queries, weights, rng.normal(size=n) + X @ [1.0, -1.0, 3.0, 0.0]


def naive_line(X, y, weights, L, ridge, without=None):
    """The ridge regression; without a row its penalty, of a sum over the rows, stays the same."""
    shares = weights / weights.sum()
    Z = X @ L.T
    trace = shares @ ((Z - shares @ Z) ** 2).sum(axis=1)
    penalty = ridge * trace / len(L)
    if without is not None:
        shares[without] = 0.0
    return Ridge(alpha=penalty, tol=1e-12).fit(Z, y, sample_weight=shares)


def test_weights_give_the_mean_of_the_ridge_regressions():
    X, queries, weights, y = problem()
    rng = np.random.default_rng(1)
    metrics = [np.eye(4), np.vstack([rng.normal(size=(2, 4)), np.zeros((1, 4))])]
    lines = [(0.3, 0.01, metrics[0]), (0.7, 0.1, metrics[1])]
    line = GlobalLines(X, lines, weights)
    expected = sum(
        w
        * naive_line(X, y, weights, L[np.any(L, axis=1)], r).predict(
            queries @ L[np.any(L, axis=1)].T
        )
        for w, r, L in lines
    )
    found = line.row_weights(queries).to_sparse(len(X))
    assert_allclose(found @ y, expected, rtol=1e-8)
    assert_allclose(found.sum(axis=1), 1.0)
    assert_allclose(line.values(queries, y[:, None])[:, 0], expected, rtol=1e-8)
    assert np.all(found.toarray()[:, :5] == 0)


def test_a_line_is_not_followed_beyond_the_rows():
    X, queries, weights, y = problem()
    line = GlobalLines(X, [(1.0, 0.01, np.eye(4))], weights)
    far = queries.copy()
    far[:, 2] = 1e9
    queries[:, 2] = X[5:, 2].max()
    assert_allclose(line.values(far, y[:, None]), line.values(queries, y[:, None]))
    inside, outside = (line.row_weights(Q).to_sparse(80).toarray() for Q in (queries, far))
    assert_allclose(outside, inside, atol=1e-12)


def test_a_row_does_not_vote_for_itself():
    X, _, weights, y = problem()
    line = GlobalLines(X, [(1.0, 0.01, np.eye(4))], weights)
    rows = np.arange(5, 20)
    found = line.row_weights(X[rows], rows).to_sparse(len(X))
    for i, row in enumerate(rows):
        assert found[[i]].toarray()[0, row] == 0
        without = naive_line(X, y, weights, np.eye(4), 0.01, without=row)
        assert found[[i]] @ y == pytest.approx(without.predict(X[[row]]), rel=1e-8)


def test_moved_votes_are_votes_on_the_residuals_of_the_line():
    X, queries, weights, y = problem()
    wide = np.hstack([X, X**2])
    line = line_of_features(wide, 4, weights)
    spread = X[weights > 0].std(axis=0)
    ridge = naive_line(X, y, weights, np.diag(1.0 / spread), RIDGE)
    near = NeighborIndex(X).nearest(queries, 8)
    votes = vote_weights(near, weights, "epanechnikov", 7, 1e-12)
    wide_queries = np.hstack([queries, queries**2])
    moves = line.moves(votes, wide_queries)
    found = (votes.to_sparse(80) + moves.to_sparse(80)) @ y
    expected = ridge.predict(queries / spread) + votes.to_sparse(80) @ (
        y - ridge.predict(X / spread)
    )
    assert_allclose(found, expected, rtol=1e-8)
    assert_allclose(moves.to_sparse(80).sum(axis=1), 0.0, atol=1e-12)


def test_moves_without_a_row_sum_to_zero():
    X, _, weights, _ = problem()
    line = line_of_features(X, None, weights)
    rows = np.arange(20)
    index = NeighborIndex(X)
    votes = vote_weights(index.nearest(X[rows], 8), weights, "majority", 7)
    moves = line.moves(votes, X[rows], rows).to_sparse(80).toarray()
    assert np.all(moves[rows, rows] == 0)
    assert_allclose(moves.sum(axis=1), 0.0, atol=1e-12)


@pytest.mark.parametrize("weights", [np.zeros(6), np.ones(6)])
def test_rows_that_coincide_or_do_not_count_have_no_slope(weights):
    X = np.ones((6, 2))
    line = line_of_features(X, None, weights)
    found = line.row_weights(np.array([[5.0, -3.0]]))
    assert_allclose(found.to_sparse(6).toarray().sum() + found.prior_share, 1.0)
    assert_allclose(found.terms[0].weights[0], weights / 6)
