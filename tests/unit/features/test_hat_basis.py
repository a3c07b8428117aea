"""Hat functions: what they are, what they make possible, and what stays as it was."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.preprocessing import SplineTransformer

import vicinal as vc
from vicinal.features.hat_basis import MAX_EXPANDED, MAX_KNOTS, HatBasis, worth_expanding


@pytest.fixture
def samples():
    rng = np.random.default_rng(0)
    return np.c_[rng.normal(size=300), rng.integers(0, 4, 300), np.full(300, 5.0)]


def test_hats_are_linear_splines(samples):
    x = samples[:, :1]
    basis = HatBasis.of(x)
    knots = basis.knots.T
    splines = SplineTransformer(degree=1, knots=knots, extrapolation="constant").fit(x)
    beyond = np.r_[x, [[-100.0], [100.0]]]
    expanded = basis.expand(beyond)
    assert_array_equal(expanded[:, :1], beyond)
    assert_allclose(expanded[:, 1:], splines.transform(beyond), atol=1e-12)
    assert knots.shape == (MAX_KNOTS, 1)


def test_few_values_have_a_column_each(samples):
    basis = HatBasis.of(samples)
    codes = basis.expand(samples)[:, basis.owners == 1][:, 1:]
    assert_array_equal(codes, np.eye(4)[samples[:, 1].astype(int)])
    assert_array_equal(np.bincount(basis.owners), [1 + MAX_KNOTS, 1 + 4, 1 + 1])


def test_common_values_leave_knots_to_the_others():
    x = np.r_[np.zeros(900), np.arange(1, 101)][:, None]
    assert_array_equal(HatBasis.of(x).knots, [[0, 1, 100]])
    x = np.r_[np.zeros(100), np.arange(1, 101)][:, None]
    knots = HatBasis.of(x).knots[0]
    assert_array_equal(knots[[0, 1, -1]], [0, 1, 100])
    assert_allclose(np.diff(knots[1:]), 24.75, atol=1)


def test_rounding_makes_no_categories():
    x = np.array([0.1 + 0.2, 0.3, np.nextafter(0.3, 0)] * 10)[:, None]
    assert not worth_expanding(x)
    assert_array_equal(HatBasis.of(x).expand(x)[:, 1:], 1.0)


def test_slopes_are_those_of_straight_lines(samples):
    basis = HatBasis.of(samples)
    slopes = basis.slopes(samples)
    expanded = basis.expand(samples)
    for column, owner in enumerate(basis.owners[:-1]):
        if owner < 2:
            expected = np.polyfit(samples[:, owner], expanded[:, column], 1)[0]
            assert slopes[column, owner] == pytest.approx(expected, abs=1e-10)
    assert_array_equal(slopes[-1], 0.0)  # the hat of a constant


def test_what_is_worth_it(samples):
    assert worth_expanding(samples)
    assert not worth_expanding(samples[:, 1:] > 1)
    assert not worth_expanding(np.random.default_rng(0).normal(size=(50, MAX_EXPANDED + 1)))


def test_a_committee_unfolds_where_it_helps():
    """Four codes, of which only odd or even matters: as numbers their order misleads."""
    X = np.random.default_rng(1).integers(0, 6, size=(600, 4)).astype(float)
    y = ((X % 2).sum(axis=1) > 1.5).astype(int)
    model = vc.ANNClassifier().fit(X[:300], y[:300])
    linear = vc.ANNClassifier("single").fit(X[:300], y[:300])
    assert model.knots_ is not None
    assert linear.knots_ is None
    assert linear.metrics_.shape[2] == 4
    assert model.score(X[300:], y[300:]) > linear.score(X[300:], y[300:]) + 0.05
    M = model.get_mahalanobis_matrix()
    assert M.shape == (4, 4)
    assert np.linalg.eigvalsh(M).min() > -1e-10
    assert 2 * np.trace(M @ np.cov(X[:300].T, bias=True)) == pytest.approx(1.0)
    vote = model.explain(X[300:301])[0].neighbors[-1]
    delta = model.unfold(X[[vote.row]])[0] - model.unfold(X[300:301])[0]
    parts = delta * (model.mean_metric() @ delta)
    owners = HatBasis(model.knots_).owners
    for feature, part in enumerate(vote.contributions):
        assert part == pytest.approx(parts[owners == feature].sum(), abs=1e-12)
    assert vote.contributions.sum() == pytest.approx(vote.distance**2)


def test_metrics_of_the_features_alone_are_folded_back():
    """The classes differ in a small difference of two large values, which no hat resolves."""
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 200)
    common = 100.0 * rng.normal(size=200)
    X = np.c_[common + y + 0.1 * rng.normal(size=200), common]
    model = vc.ANNClassifier().fit(X, y)
    assert "unfolded logistic" in model.cv_results_["configuration"]
    assert model.knots_ is None
    assert model.metrics_.shape[2] == 2
    assert model.best_score_ > 0.98
