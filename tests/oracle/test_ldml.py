"""LDML against recorded numbers, scikit-learn's logistic regression and its own mathematics."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression

from vicinal.kernels import make_pair_kernel
from vicinal.learners.ldml import LDML
from vicinal.objective.ldml_objective import LDMLObjective, ListedPairs
from vicinal.objective.parametrization import Factor, Metric

BACKENDS = pytest.mark.parametrize("backend", ["numpy", "numba"])
AT_IDENTITY = {
    "toy": (-3875.60993299, 2221.81456654, 504.96147500),
    "iris_z": (-7241.41888659, 5250.43351141, 1862.28144241),
}
UNCONSTRAINED = {
    "toy": (-903.26495810, 0.44812244, [-0.0212, -0.0124, 0.0831, 0.2514]),
    "iris_z": (-1664.17550400, 2.86967294, None),
}
OPTIMUM = {
    "toy": (-903.54576717, 0.49651763, [0, 0, 0.08357, 0.25258]),
    "iris_z": (-1688.40663865, 3.08900208, [0, 0, 1.1525, 8.2377]),
}


@pytest.fixture(params=["toy", "iris_z"])
def named(request):
    return request.param, request.getfixturevalue(request.param)


def objective(data, parametrization, *, m=4, backend="numba", weights=(1.0, 1.0), strength=0.0):
    """J = −Lk of all pairs of the raw samples."""
    X, y = data
    order = np.argsort(y, kind="stable")
    offsets = np.searchsorted(y[order], np.arange(y.max() + 2))
    pairs = make_pair_kernel(offsets, weights, backend)
    return LDMLObjective(X[order], pairs, parametrization, (m, X.shape[1]), strength)


def loss_of_pairs(X, y, M, b):
    """J and its gradients over all pairs i < j, for any symmetric M, by differences."""
    i, j = np.triu_indices(len(X), 1)
    gaps, t = X[i] - X[j], (y[i] == y[j]).astype(float)
    z = b - np.einsum("pa,ab,pb->p", gaps, M, gaps)
    residual = t - 1 / (1 + np.exp(-z))
    value = (np.logaddexp(0, z) - t * z).sum()
    return value, (gaps.T * residual) @ gaps, -residual.sum()


@BACKENDS
def test_t1_gradient_is_the_difference_quotient(toy, backend):
    rng, h = np.random.default_rng(0), 1e-5
    for parametrization in (Metric(), Factor()):
        J = objective(toy, parametrization, backend=backend, weights=(2.0, 0.5), strength=3.0)
        A = rng.standard_normal((4, 4))
        params = J.join(A @ A.T / 8 + 0.1 * np.eye(4), 0.7)
        G = J.value_and_gradient(params)[1]
        for _ in range(5):
            A = rng.standard_normal((4, 4))
            step = J.join(A + A.T, rng.standard_normal())
            up, down = (J.value_and_gradient(params + s * h * step)[0] for s in (1, -1))
            assert_allclose((up - down) / (2 * h), G @ step, atol=1e-7 * np.linalg.norm(G))


@BACKENDS
def test_t2_value_and_gradient_at_the_identity(named, backend):
    name, data = named
    J = objective(data, Metric(), backend=backend)
    value, gradient = J.value_and_gradient(J.join(np.eye(4), 1.0))
    G, db = J.split(gradient)
    assert_allclose([-value, np.linalg.norm(G), -db], AT_IDENTITY[name], rtol=0, atol=2e-8)


def test_value_and_gradient_are_those_of_the_pairs(toy):
    X, y = toy
    L = np.random.default_rng(1).standard_normal((4, 4)) / 2
    J = objective(toy, Metric())
    value, gradient = J.value_and_gradient(J.join(L.T @ L, 0.3))
    expected, G, db = loss_of_pairs(X, y, L.T @ L, 0.3)
    assert_allclose(value, expected, rtol=1e-12)
    assert_allclose(J.split(gradient)[0], G, rtol=1e-9, atol=1e-9)
    assert_allclose(J.split(gradient)[1], db, rtol=1e-10)
    i, j = np.triu_indices(60, 1)
    listed = LDMLObjective(
        X, ListedPairs(i, j, y[i] == y[j], (1.0, 1.0)), Metric(), (4, 4), 0.0
    ).value_and_gradient(J.join(L.T @ L, 0.3))
    assert_allclose(listed[0], expected, rtol=1e-12)
    assert_allclose(listed[1], J.join(G, db), rtol=1e-9, atol=1e-9)


def test_t3_without_the_cone_it_is_logistic_regression(named):
    """On the features (x_ij x_ijᵀ)_ab, off-diagonals doubled: intercept b, coefficients −M."""
    name, (X, y) = named
    i, j = np.triu_indices(len(X), 1)
    gaps, same = X[i] - X[j], y[i] == y[j]
    a, b = np.triu_indices(4)
    features = gaps[:, a] * gaps[:, b] * np.where(a == b, 1.0, 2.0)
    model = LogisticRegression(C=1e10, tol=1e-10, max_iter=10_000, solver="newton-cholesky")
    model.fit(features, same)
    M = np.zeros((4, 4))
    M[a, b] = M[b, a] = -model.coef_[0]
    value, G, db = loss_of_pairs(X, y, M, model.intercept_[0])
    expected, bias, eigenvalues = UNCONSTRAINED[name]
    assert_allclose(-value, expected, rtol=0, atol=1e-6)
    assert_allclose(model.intercept_[0], bias, atol=1e-5)
    assert_allclose(np.append(G.ravel(), db), 0, atol=1e-3)  # our gradient vanishes there
    if eigenvalues:
        assert_allclose(np.linalg.eigvalsh(M), eigenvalues, atol=1e-4)


def test_t4_optimum(named):
    name, data = named
    value, bias, eigenvalues = OPTIMUM[name]
    learner = LDML(tol=1e-11, max_iter=2000).fit(*data)
    assert_allclose(-learner.objective_, value, rtol=0, atol=2e-5)
    assert_allclose(learner.bias_, bias, atol=2e-4)
    assert_allclose(learner.threshold_, np.sqrt(bias), atol=1e-4)
    M = learner.get_mahalanobis_matrix()
    assert_allclose(np.linalg.eigvalsh(M), eigenvalues, atol=1e-3)


def test_t4_optimum_to_the_default_tolerance(named):
    name, data = named
    for options in ({}, {"n_components": 2}, {"solver": "apg"}):
        learner = LDML(**options).fit(*data)
        assert_allclose(-learner.objective_, OPTIMUM[name][0], rtol=3e-5)


def test_t4_projected_gradient(toy):
    learner = LDML(solver="pgd").fit(*toy)
    assert_allclose(-learner.objective_, OPTIMUM["toy"][0], rtol=1e-5)
    assert np.all(np.diff(learner.history_) < 0)


def test_t5_expected_number_of_similar_pairs(named):
    _, (X, y) = named
    learner = LDML(tol=1e-12, max_iter=2000).fit(X, y)
    i, j = np.triu_indices(len(X), 1)
    d = np.square(learner.pair_distance(np.stack([X[i], X[j]], axis=1)))
    expected = (1 / (1 + np.exp(d - learner.bias_))).sum()
    assert_allclose(expected, (y[i] == y[j]).sum(), rtol=1e-4)


def test_t6_kkt(named):
    _, (X, y) = named
    learner = LDML(tol=1e-12, max_iter=2000).fit(X, y)
    M = learner.get_mahalanobis_matrix()
    G = -loss_of_pairs(X, y, M, learner.bias_)[1]  # of Lk
    scale = np.linalg.norm(loss_of_pairs(X, y, np.eye(4), 1.0)[1])
    assert np.linalg.eigvalsh(G)[-1] <= 1e-4 * scale
    assert np.linalg.norm(G @ M) <= 1e-4 * scale * np.linalg.norm(M)


def test_given_pairs_are_the_same_problem(toy):
    X, y = toy
    i, j = np.triu_indices(60, 1)
    given = LDML().fit_pairs(X, np.stack([i, j], axis=1), y[i] == y[j])
    assert_allclose(given.objective_, LDML().fit(X, y).objective_, rtol=1e-6)
