"""Kernel functions against naive loops, and what they let a metric see."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from sklearn.metrics.pairwise import rbf_kernel

import vicinal as vc
from vicinal.features.expansion import Expansion
from vicinal.features.hat_basis import HatBasis
from vicinal.features.kernel_basis import LANDMARKS, WIDTH, KernelBasis
from vicinal.features.spaces import make_spaces
from vicinal.fitted_model import anatomy


def samples(n=300, d=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)) * np.logspace(0, 3, d) + 7.0


def rings(n=400, seed=0):
    """Two classes that only a curve separates, and a feature that says nothing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (np.linalg.norm(X[:, :2], axis=1) > 1.2).astype(int)


def metric(m, seed=0):
    L = np.random.default_rng(seed).normal(size=(3, m))
    return L.T @ L


def test_the_functions_are_a_radial_kernel_of_standardized_features():
    X = samples()
    basis = KernelBasis.of(X)
    Z, landmarks = X / X.std(axis=0), basis.landmarks / X.std(axis=0)
    squared = np.sum((landmarks[:, None] - landmarks) ** 2, axis=2)
    median = np.median(squared[np.triu_indices(LANDMARKS, 1)])
    assert_allclose(basis.values(X), rbf_kernel(Z, landmarks, gamma=WIDTH / median), rtol=1e-9)


def test_landmarks_are_distinct_rows():
    X = samples()
    found = KernelBasis.of(X).landmarks
    assert len(np.unique(found, axis=0)) == LANDMARKS
    assert all(np.any(np.all(row == X, axis=1)) for row in found)


def test_few_rows_are_all_landmarks():
    assert_array_equal(KernelBasis.of(samples(20)).landmarks, samples(20))


def test_units_and_constant_features_do_not_matter():
    X = samples()
    constant = np.c_[X * [1e-6, 1.0, 1e6, 3.0], np.full(len(X), 0.1)]
    assert_allclose(KernelBasis.of(constant).values(constant), KernelBasis.of(X).values(X))


def test_rows_that_coincide_have_no_kernel():
    assert KernelBasis.of(np.ones((30, 2))) is None


def test_coordinates_reproduce_the_kernel_among_the_landmarks():
    basis = KernelBasis.of(samples(80))
    K = basis.values(basis.landmarks)
    A = K @ basis.coordinates.T
    assert_allclose(A @ A.T, K, atol=1e-4)


def test_landmarks_that_coincide_leave_finite_coordinates():
    basis = KernelBasis.of(np.repeat(samples(20), 5, axis=0))
    assert np.isfinite(basis.coordinates).all()
    assert len(basis.coordinates) <= 20


def test_contributions_are_integrated_gradients():
    X = samples(60, 3)
    basis, (x, row) = KernelBasis.of(X), X[:2]
    M = metric(basis.size)

    def distance(u):
        apart = (basis.values(u[None]) - basis.values(x[None]))[0]
        return apart @ M @ apart

    def slope(t, f, h=1e-5):
        u, step = x + t * (row - x), np.eye(3)[f] * h * X.std(axis=0)[f]
        return (distance(u + step) - distance(u - step)) / (2 * step[f])

    expected = [(row - x)[f] * quad(slope, 0, 1, args=(f,))[0] for f in range(3)]
    found = basis.contributions(x, row, M)
    assert_allclose(found, expected, rtol=1e-5)
    assert found.sum() == pytest.approx(distance(row), rel=1e-12)


@pytest.mark.parametrize("far", [1.0, 50.0, 1e6])
def test_contributions_sum_to_the_squared_distance_however_far(far):
    X = samples(60, 3)
    basis = KernelBasis.of(X)
    M = metric(basis.size)
    x, row = X[0], X[0] + far * (X[1] - X[0])
    apart = (basis.values(row[None]) - basis.values(x[None]))[0]
    assert basis.contributions(x, row, M).sum() == pytest.approx(apart @ M @ apart)
    assert_array_equal(basis.contributions(x, x, M), np.zeros(3))


def test_slopes_are_those_of_a_linear_fit():
    X = samples()
    basis = KernelBasis.of(X)
    K = basis.values(X)
    design = np.c_[X, np.ones(len(X))]
    expected = np.linalg.lstsq(design, K, rcond=None)[0][:-1].T
    assert_allclose(basis.slopes(X), expected, atol=1e-8)


def test_the_kernel_space_spans_the_coordinates_that_vary_most():
    X = samples(200)
    codes = np.repeat([0, 1], 100)
    expansion = Expansion.of(X, ("kernel",))
    columns = expansion.expand(X)
    Z = make_spaces(columns, codes, expansion)["kernel"].transform(columns)
    full = columns[:, 4:] @ expansion.kernel.coordinates.T
    singular = np.linalg.svd(full - full.mean(axis=0), compute_uv=False)[: Z.shape[1]]
    assert_allclose(np.linalg.norm(Z, axis=0), singular, rtol=1e-6)


def test_an_expansion_adds_up_what_features_hats_and_kernel_contribute():
    X = samples(100, 3)
    expansion = Expansion(3, HatBasis.of(X), KernelBasis.of(X))
    columns = expansion.expand(X)
    assert columns.shape[1] == expansion.n_columns
    assert_array_equal(columns[:, :3], X)
    s, p = expansion.n_straight, expansion.n_columns
    M = np.zeros((p, p))
    M[:s, :s], M[s:, s:] = metric(s), metric(p - s, 1)
    parts = expansion.contributions(columns[0], columns[1:5], M)
    apart = columns[1:5] - columns[0]
    assert_allclose(parts.sum(axis=1), np.einsum("kp,pq,kq->k", apart, M, apart))
    assert_allclose(expansion.contributions(columns[[0] * 4], columns[1:5], M), parts)
    assert expansion.slopes(X).shape == (p, 3)


def test_an_expansion_leaves_out_what_no_metric_uses():
    X = samples(100, 3)
    expansion = Expansion(3, HatBasis.of(X), KernelBasis.of(X))
    s, p = expansion.n_straight, expansion.n_columns
    metrics = np.zeros((1, 2, p))
    metrics[:, :, :3] = 1.0
    kept, used = expansion.used_by(metrics)
    assert kept.shape == (1, 2, 3)
    assert used == Expansion(3)
    metrics[:, :, s:] = 2.0
    kept, used = expansion.used_by(metrics)
    assert kept.shape == (1, 2, 3 + p - s)
    assert used == Expansion(3, None, expansion.kernel)


def test_a_committee_sees_curves():
    X, y = rings()
    model = vc.ANNClassifier(members=("kernel",)).fit(X[:250], y[:250])
    linear = vc.ANNClassifier(members=("linear",)).fit(X[:250], y[:250])
    assert model.knots_ is None
    assert linear.landmarks_ is None
    assert model.metrics_.shape[2] == 3 + len(model.landmarks_)
    assert all("kernel" in member.configuration for member in model.chosen_)
    assert model.score(X[250:], y[250:]) >= linear.score(X[250:], y[250:])
    assert model.score(X[250:], y[250:]) > 0.9


def test_an_explanation_adds_up_to_the_distance_under_kernel_functions():
    X, y = rings()
    model = vc.ANNClassifier(members=("kernel",)).fit(X, y)
    (explained,) = model.explain(X[:1], n_neighbors=4)
    columns, M = model.unfold(X), model.mean_metric()
    for vote in explained.neighbors:
        apart = columns[vote.row] - columns[0]
        assert vote.distance**2 == pytest.approx(apart @ M @ apart)
        assert vote.contributions.sum() == pytest.approx(vote.distance**2)
    shares = anatomy(model).metric.measure(X).mean_contributions()
    assert shares.sum() == pytest.approx(1.0)
    assert shares[2] < 0.2
    assert model.get_mahalanobis_matrix().shape == (3, 3)
