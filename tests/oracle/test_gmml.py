"""GMML against its Riccati equation, its geodesic and reference numbers."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import eigh, fractional_matrix_power, inv, sqrtm

from vicinal.learners.gmml import GMML, class_scatters, geodesic_factor

TS = (0.0, 0.1, 0.5, 0.9, 1.0)


def naive_scatters(X, y):
    """S and D by a loop over all pairs i < j."""
    S, D = np.zeros((X.shape[1],) * 2), np.zeros((X.shape[1],) * 2)
    for i in range(len(X)):
        for j in range(i + 1, len(X)):
            (S if y[i] == y[j] else D)[...] += np.outer(X[i] - X[j], X[i] - X[j])
    return S, D


def metric(t, X, y):
    return GMML(t).fit(X, y).get_mahalanobis_matrix()


def geodesic(S, D, t):
    L = geodesic_factor(S, D, t)
    return L.T @ L


def riemannian_distance(P, Q):
    return np.linalg.norm(np.log(eigh(Q, P, eigvals_only=True)))


def random_definite(rng, d=5):
    F = rng.randn(d, d)
    return F @ F.T + 0.1 * np.eye(d)


def test_scatters_are_those_of_all_pairs(toy):
    for found, expected in zip(class_scatters(*toy), naive_scatters(*toy), strict=True):
        assert_allclose(found, expected, rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize(("data", "minimum"), [("toy", 16765.66800646), ("iris_z", 39437.43405434)])
def test_t1_riccati_equation_and_minimum(data, minimum, request):
    X, y = request.getfixturevalue(data)
    S, D = naive_scatters(X, y)
    A = metric(0.5, X, y)
    A_inverse = inv(A)
    assert np.linalg.norm(A @ S @ A - D) < 1e-12 * np.linalg.norm(D)
    assert np.linalg.norm(S - A_inverse @ D @ A_inverse) < 1e-12 * np.linalg.norm(S)
    h = np.trace(A @ S) + np.trace(A_inverse @ D)
    assert_allclose(h, minimum, rtol=1e-11)
    root = sqrtm(S)
    assert_allclose(h, 2 * np.trace(sqrtm(root @ D @ root)), rtol=1e-11)


def test_t1_it_is_a_minimum(toy):
    S, D = naive_scatters(*toy)
    A = metric(0.5, *toy)
    h = np.trace(A @ S) + np.trace(inv(A) @ D)
    rng = np.random.RandomState(0)
    for _ in range(20):
        E = 1e-3 * rng.randn(4, 4)
        B = A + E + E.T
        assert np.trace(B @ S) + np.trace(inv(B) @ D) > h


@pytest.mark.parametrize(
    ("t", "log_det", "trace", "iris_trace"),
    [
        (0.0, -27.77075410, 0.00407557, 0.01048632),
        (0.1, -21.76212655, 0.01785554, 0.03638758),
        (0.5, 2.27238364, 7.37775974, 12.89185843),
        (0.9, 26.30689384, 3659.61859666, 13519.27564487),
        (1.0, 32.31552139, 17702.67954840, 81673.07420230),
    ],
)
def test_t2_determinant_is_linear_in_t(t, log_det, trace, iris_trace, toy, iris_z):
    A = metric(t, *toy)
    S, D = naive_scatters(*toy)
    found = np.linalg.slogdet(A)[1]
    assert_allclose(found, log_det, atol=1e-8)
    expected = -(1 - t) * np.linalg.slogdet(S)[1] + t * np.linalg.slogdet(D)[1]
    assert_allclose(found, expected, atol=1e-10)
    assert_allclose(np.trace(A), trace, atol=1e-8)
    assert_allclose(np.trace(metric(t, *iris_z)), iris_trace, atol=1e-8)


def test_t3_metric_of_toy(toy):
    expected = [
        [2.13161418, -0.55495277, 0.29452776, -0.12067105],
        [-0.55495277, 2.10457404, -0.21650397, 0.29582051],
        [0.29452776, -0.21650397, 1.54546252, -0.04720557],
        [-0.12067105, 0.29582051, -0.04720557, 1.59610899],
    ]
    assert_allclose(metric(0.5, *toy), expected, atol=1e-8)


@pytest.mark.parametrize("t", TS)
def test_t4_lies_on_the_geodesic(t, toy):
    S, D = naive_scatters(*toy)
    whole = riemannian_distance(inv(S), D)
    A = metric(t, *toy)
    assert_allclose(riemannian_distance(inv(S), A), t * whole, atol=1e-10 * whole)
    assert_allclose(riemannian_distance(A, D), (1 - t) * whole, atol=1e-10 * whole)


@pytest.mark.parametrize("t", TS)
def test_equals_the_formula_with_square_roots(t):
    rng = np.random.RandomState(1)
    S, D = random_definite(rng), random_definite(rng)
    root, inverse_root = sqrtm(S), inv(sqrtm(S))
    expected = inverse_root @ fractional_matrix_power(root @ D @ root, t) @ inverse_root
    assert_allclose(geodesic(S, D, t), expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("t", TS)
def test_t5_commuting_matrices(t):
    s, e = np.array([0.5, 1.0, 3.0]), np.array([2.0, 7.0, 0.1])
    expected = np.diag(s ** -(1 - t) * e**t)
    assert_allclose(geodesic(np.diag(s), np.diag(e), t), expected, atol=1e-14)


@pytest.mark.parametrize("t", TS)
def test_t6_rotation_rotates_the_metric_but_scaling_a_feature_does_not_undo(t, toy):
    X, y = toy
    Q = np.linalg.qr(np.random.RandomState(2).randn(4, 4))[0]
    A = metric(t, X, y)
    assert_allclose(metric(t, X @ Q, y), Q.T @ A @ Q, rtol=1e-10, atol=1e-12 * np.trace(A))
    scale = np.array([1.0, 10.0, 1.0, 1.0])
    back = scale[:, None] * metric(t, X * scale, y) * scale
    if t == 0:  # S⁻¹ alone is invariant
        assert_allclose(back, A, rtol=1e-9)
    else:
        assert not np.allclose(back / np.trace(back), A / np.trace(A), rtol=1e-2)


@pytest.mark.parametrize("t", TS)
def test_t7_identities(t):
    assert_allclose(geodesic(np.eye(4), np.eye(4), t), np.eye(4), atol=1e-15)


@pytest.mark.parametrize("t", TS)
def test_t8_the_geodesic_runs_both_ways(t):
    rng = np.random.RandomState(3)
    P, Q = random_definite(rng), random_definite(rng)
    assert_allclose(geodesic(inv(P), Q, t), geodesic(inv(Q), P, 1 - t), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("ridge", [1e-3, 1.0, 100.0])
def test_the_prior_solves_the_regularized_problem(ridge, toy):
    """M ∝ argmin tr(M S̃) + tr(M⁻¹ D̃) + ρ (tr(M A₀⁻¹) + tr(M⁻¹ A₀)), S̃ and D̃ normalized."""
    X, y = toy
    A0 = random_definite(np.random.RandomState(4), 4)
    A = GMML(prior=A0, ridge=ridge).fit(X, y).get_mahalanobis_matrix()
    S, D = naive_scatters(X, y)
    s, r = np.trace(S) / np.trace(inv(A0)), np.trace(D) / np.trace(A0)
    B = A / np.sqrt(r / s)
    S, D = S / s + ridge * inv(A0), D / r + ridge * A0
    assert_allclose(B @ S @ B, D, rtol=1e-9, atol=1e-10 * np.trace(D))
    if ridge == 100.0:
        assert_allclose(B, A0, atol=0.03 * np.trace(A0))
