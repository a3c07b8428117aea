"""Local linear votes are naive ridge regressions, written as weights of training rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge

from vicinal.kernels.cpu.class_neighbors import NeighborIndex
from vicinal.voting.local_linear import local_linear_weights


def problem(m=4, n=120, q=15, k=30, seed=0):
    rng = np.random.default_rng(seed)
    references, queries = rng.normal(size=(n, m)), rng.normal(size=(q, m))
    weights = rng.uniform(0.2, 2.0, n)
    return NeighborIndex(references).nearest(queries, k + 1), queries, references, weights


def rows_alone(found):
    """The weights without the prior's share."""
    (term,) = found.terms
    return term.ids, term.weights / (1.0 - term.prior_share)[:, None]


@pytest.mark.parametrize(("m", "ridge"), [(1, 1.0), (4, 0.1), (4, 1.0), (50, 1.0), (50, 10.0)])
def test_weights_give_the_value_of_the_ridge_regression(m, ridge):
    neighbors, queries, references, weights = problem(m)
    targets = np.random.default_rng(1).normal(size=len(references))
    found = local_linear_weights(neighbors, queries, references, weights, k=30, ridge=ridge)
    ids, b = rows_alone(found)
    for i, (row, z) in enumerate(zip(ids, queries, strict=True)):
        a = weights[row] * (1.0 - neighbors.distances[i, :30] / neighbors.distances[i, 30])
        a /= a.sum()
        Z, y = references[row], targets[row]
        spread = a @ ((Z - a @ Z) ** 2).sum(axis=1)
        line = Ridge(alpha=ridge * spread / m).fit(Z, y, sample_weight=a)
        assert b[i] @ y == pytest.approx(line.predict([z])[0], abs=1e-9)


def test_weights_and_the_prior_sum_to_one_and_some_are_negative():
    found = local_linear_weights(*problem(), k=30)
    assert_allclose(found.to_sparse(120).sum(axis=1) + found.prior_share, 1.0)
    assert found.terms[0].weights.min() < 0
    assert np.all((found.prior_share > 0) & (found.prior_share < 0.5))


def test_lines_are_reproduced_without_a_ridge():
    neighbors, queries, references, weights = problem()
    found = local_linear_weights(neighbors, queries, references, weights, k=30, ridge=1e-9)
    ids, b = rows_alone(found)
    slope = np.arange(1.0, 5.0)
    values = np.sum(b * (references @ slope + 3.0)[ids], axis=1)
    assert_allclose(values, queries @ slope + 3.0, rtol=1e-6)


def test_each_query_is_answered_alone():
    neighbors, queries, *rest = problem()
    whole = local_linear_weights(neighbors, queries, *rest, k=30).terms[0].weights
    one = type(neighbors)(neighbors.distances[3:4], neighbors.ids[3:4])
    alone = local_linear_weights(one, queries[3:4], *rest, k=30).terms[0].weights
    assert_array_equal(alone, whole[3:4])


def test_coinciding_rows_excluded_rows_and_rows_without_weight():
    references = np.ones((40, 3))
    neighbors = NeighborIndex(references).nearest(references[:5], 31, exclude=np.arange(5))
    found = local_linear_weights(neighbors, references[:5], references, np.ones(40), k=30)
    sparse = found.to_sparse(40).toarray()
    assert_array_equal(np.diag(sparse[:, :5]), 0.0)  # a row that is excluded has no weight
    assert_allclose(sparse[0, 1:31], (1 - found.prior_share[0]) / 30)
    silent = local_linear_weights(neighbors, references[:5], references, np.zeros(40), k=30)
    assert_array_equal(silent.prior_share, 1.0)
    few = NeighborIndex(references[:4]).nearest(references[:2], 31)  # -1 where there are no more
    found = local_linear_weights(few, references[:2], references, np.ones(40), k=30)
    assert_allclose(found.to_sparse(40).sum(axis=1) + found.prior_share, 1.0)
