"""MCML against recorded numbers and its own mathematics."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist

from vicinal.kernels import make_kernel
from vicinal.learners.mcml import MCML
from vicinal.objective.mcml_objective import MCMLObjective, mean_pull
from vicinal.objective.neighbor_sets import build_comparisons
from vicinal.objective.parametrization import Factor, Metric

BACKENDS = pytest.mark.parametrize("backend", ["numpy", "numba"])
AT_IDENTITY = {"toy": (278.77053329, 181.83022809), "iris_z": (185.84751218, 185.35759478)}
AT_ZERO = {"toy": 67.98590788, "iris_z": 166.81890118}
OPTIMUM = {
    "toy": (50.30880034, [0, 0, 0.06151, 0.19094]),
    "iris_z": (28.93145576, [0, 0, 0, 2.9761]),
}


@pytest.fixture(params=["toy", "iris_z"])
def named(request):
    return request.param, request.getfixturevalue(request.param)


def objective(data, parametrization, backend="numba"):
    X, y = data
    order = np.argsort(y, kind="stable")
    X, offsets = X[order], np.searchsorted(y[order], np.arange(y.max() + 2))
    comparisons = build_comparisons(X, offsets)
    return MCMLObjective(
        X=X,
        comparisons=comparisons,
        kernel=make_kernel(comparisons, backend),
        parametrization=parametrization,
        pull=mean_pull(X, comparisons),
    )


def divergence(X, y, L):
    """Σ_i KL(p⁰_i ‖ p_i), by its definition."""
    D = cdist(X @ L.T, X @ L.T, "sqeuclidean")
    np.fill_diagonal(D, np.inf)
    p = np.exp(-D) / np.exp(-D).sum(axis=1, keepdims=True)
    same = (y[:, None] == y) & ~np.eye(len(y), dtype=bool)
    p0 = same / same.sum(axis=1, keepdims=True)
    return (p0[same] * np.log(p0[same] / p[same])).sum()


@BACKENDS
def test_value_and_gradient_at_the_identity(named, backend):
    name, data = named
    value, gradient = objective(data, Metric(), backend).value_and_gradient(np.eye(4))
    assert_allclose([value, np.linalg.norm(gradient)], AT_IDENTITY[name], rtol=0, atol=1e-8)


def test_value_at_zero(named):
    name, data = named
    value, _ = objective(data, Metric()).value_and_gradient(np.zeros((4, 4)))
    assert_allclose(value, AT_ZERO[name], rtol=0, atol=1e-8)


def test_value_is_the_divergence(toy):
    L = np.random.default_rng(0).standard_normal((2, 4)) / 2
    assert_allclose(
        objective(toy, Factor()).value_and_gradient(L)[0], divergence(*toy, L), rtol=1e-12
    )


def test_gradient_is_the_difference_quotient(toy):
    rng, h = np.random.default_rng(1), 1e-5
    J = objective(toy, Metric())
    A = rng.standard_normal((4, 4))
    M = A @ A.T / 4 + 0.1 * np.eye(4)
    G = J.value_and_gradient(M)[1]
    for _ in range(5):
        A = rng.standard_normal((4, 4))
        A = (A + A.T) / np.linalg.norm(A + A.T)
        up, down = (J.value_and_gradient(M + s * h * A)[0] for s in (1, -1))
        assert_allclose((up - down) / (2 * h), np.vdot(G, A), atol=1e-8 * np.linalg.norm(G))


def test_estimates_from_rows_are_unbiased(toy):
    J, L = objective(toy, Factor()), np.eye(4) / 2
    halves = [J.value_and_gradient(L, np.arange(60)[start::2]) for start in (0, 1)]
    value, gradient = J.value_and_gradient(L)
    assert_allclose(np.mean([half[0] for half in halves]), value, rtol=1e-12)
    assert_allclose(np.mean([half[1] for half in halves], axis=0), gradient, rtol=1e-9)


@pytest.mark.parametrize("solver", ["lbfgs", "apg"])
def test_optimum(named, solver):
    name, data = named
    learner = MCML(solver=solver, tol=1e-9, max_iter=2000).fit(*data)
    value, eigenvalues = OPTIMUM[name]
    assert_allclose(learner.objective_, value, rtol=0, atol=2e-6)
    M = learner.get_mahalanobis_matrix()
    assert_allclose(np.linalg.eigvalsh(M), eigenvalues, atol=2e-3 * max(eigenvalues))


@pytest.mark.parametrize("solver", ["lbfgs", "pgd", "apg"])
def test_optimum_to_the_default_tolerance(named, solver):
    name, data = named
    assert_allclose(MCML(solver=solver).fit(*data).objective_, OPTIMUM[name][0], rtol=3e-4)


def test_kkt(named):
    _, data = named
    learner = MCML(tol=1e-11, max_iter=2000).fit(*data)
    M = learner.get_mahalanobis_matrix()
    G = objective(data, Metric()).value_and_gradient(M)[1]
    scale = np.linalg.norm(objective(data, Metric()).value_and_gradient(np.eye(4))[1])
    assert np.linalg.eigvalsh(G)[0] >= -1e-4 * scale
    assert np.linalg.norm(G @ M) <= 1e-4 * scale * np.linalg.norm(M)


def test_convexity(toy):
    J, rng = objective(toy, Metric()), np.random.default_rng(5)
    for _ in range(10):
        M, N = (A @ A.T / 4 for A in rng.standard_normal((2, 4, 4)))
        ends = [J.value_and_gradient(A)[0] for A in (M, N)]
        assert J.value_and_gradient((M + N) / 2)[0] <= np.mean(ends) * (1 + 1e-12)
