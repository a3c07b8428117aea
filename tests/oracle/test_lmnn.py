"""LMNN against recorded numbers, metric-learn and its own mathematics."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import eigh
from scipy.optimize import lsq_linear

from vicinal.kernels import make_push_kernel
from vicinal.learners.lmnn import LMNN
from vicinal.objective.lmnn_objective import LMNNObjective
from vicinal.objective.neighbor_sets import build_comparisons
from vicinal.objective.pair_sums import pull_matrix
from vicinal.objective.parametrization import Factor, Metric

BACKENDS = pytest.mark.parametrize("backend", ["numpy", "numba"])
LOSSES = pytest.mark.parametrize("squared", [False, True])
SOLVERS = pytest.mark.parametrize("solver", ["lbfgs", "pgd", "apg"])


def objective(data, parametrization, *, squared=False, mu=0.5, backend="numba"):
    """E of the raw samples, 3 targets."""
    X, y = data
    order = np.argsort(y, kind="stable")
    X, offsets = X[order], np.searchsorted(y[order], np.arange(y.max() + 2))
    targets = build_comparisons(X, offsets, similar=3)
    return LMNNObjective(
        X=X,
        anchors=targets.anchors,
        push=make_push_kernel(targets, backend),
        parametrization=parametrization,
        squared=squared,
        push_weight=mu,
        pull=(1 - mu) * pull_matrix(X, targets, np.ones(len(X))),
    )


def random_metric(rng, d=4):
    A = rng.standard_normal((d, d))
    return A @ A.T / d


@BACKENDS
def test_t1_value_and_gradient_at_the_identity(toy, backend):
    E = objective(toy, Factor(), backend=backend)
    value, gradient = E.value_and_gradient(np.eye(4))
    assert_allclose(value, 678.2482636413, rtol=0, atol=1e-9)
    assert_allclose(np.linalg.norm(gradient), 507.8608511458, rtol=0, atol=1e-9)
    push = E.push.sweep(E.X, E.X, squared=False, symmetric=False)
    assert_allclose(push.value, 930.1185001666, rtol=0, atol=1e-9)
    assert push.n_active == 559
    assert_allclose(2 * np.trace(E.pull), 426.3780271159, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("L", "value", "active", "size"),
    [
        (np.eye(4), 678.2482636412, 559, 507.8608511458),
        (np.diag([1, 0.5, 2, 0.1]), 1827.3229588002, 1183, 2240.4653800550),
    ],
)
def test_metric_learn_has_the_same_value_and_gradient(toy, L, value, active, size):
    """Recorded from metric-learn 0.7.0 by ``benchmarks/metric_learn/lmnn.py reference``."""
    E = objective(toy, Factor())
    ours, gradient = E.value_and_gradient(L)
    assert_allclose([ours, np.linalg.norm(gradient)], [value, size], rtol=1e-11)
    assert E.push.sweep(E.X @ L.T, E.X, squared=False, symmetric=False).n_active == active


def test_value_is_linear_in_the_metric_between_kinks(toy):
    """E = ⟨G, M⟩ + μ · (active triplets), the identity of the original code."""
    E, M = objective(toy, Metric()), random_metric(np.random.default_rng(3))
    value, G = E.value_and_gradient(M)
    L = E.parametrization.factor(M)
    active = E.push.sweep(E.X @ L.T, E.X, squared=False, symmetric=False).n_active
    assert_allclose(value, np.vdot(G, M) + 0.5 * active, rtol=1e-12)


@BACKENDS
@LOSSES
def test_t2_gradient_in_the_metric_is_the_difference_quotient(toy, backend, squared):
    E, rng = objective(toy, Metric(), squared=squared, backend=backend), np.random.default_rng(0)
    M, h = random_metric(rng) + 0.5 * np.eye(4), 1e-7
    G = E.value_and_gradient(M)[1]
    for _ in range(5):
        A = rng.standard_normal((4, 4))
        A = (A + A.T) / np.linalg.norm(A + A.T)
        up, down = (E.value_and_gradient(M + s * h * A)[0] for s in (1, -1))
        assert_allclose((up - down) / (2 * h), np.vdot(G, A), rtol=0, atol=1e-6 * np.linalg.norm(G))


@LOSSES
@pytest.mark.parametrize("m", [1, 4])  # the two ways of computing the gradient
def test_t2_gradient_in_the_factor_is_the_difference_quotient(toy, squared, m):
    E, rng = objective(toy, Factor(), squared=squared, mu=0.3), np.random.default_rng(1)
    L, h = rng.standard_normal((m, 4)), 1e-7
    G = E.value_and_gradient(L)[1]
    for _ in range(5):
        A = rng.standard_normal((m, 4))
        up, down = (E.value_and_gradient(L + s * h * A)[0] for s in (1, -1))
        assert_allclose((up - down) / (2 * h), np.vdot(G, A), rtol=0, atol=1e-6 * np.linalg.norm(G))


@SOLVERS
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_t3_objective_never_increases_and_metric_is_psd(toy, solver, loss):
    learner = LMNN(solver=solver, loss=loss).fit(*toy)
    assert np.all(np.diff(learner.history_) <= 0)
    assert np.linalg.eigvalsh(learner.get_mahalanobis_matrix())[0] >= -1e-10
    squared = loss == "squared_hinge"
    E = objective(toy, Factor(), squared=squared).value_and_gradient(learner.components_)[0]
    assert_allclose(learner.objective_, E, rtol=1e-10)


@SOLVERS
def test_t4_optimum(toy, solver):
    learner = LMNN(solver=solver).fit(*toy)
    assert learner.objective_ <= 480.65
    eigenvalues = np.linalg.eigvalsh(learner.get_mahalanobis_matrix())
    assert_allclose(eigenvalues, [0.265, 0.382, 0.413, 0.541], atol=0.01)


def test_t4_optimum_to_more_digits(toy):
    """480.6234 is the best known; kinks stop a subgradient method within 1e-5 of it."""
    assert 480.62 <= LMNN(tol=1e-8).fit(*toy).objective_ <= 480.627


def lower_bound(X, y, M, width, k=3, mu=0.5):
    """A number that E is nowhere below, by multipliers λ_t in [0, 1] of the hinges; and E(M).

    E(M) ≥ μ Σ_t λ_t + ⟨G, M⟩ with G = (1 − μ) C + μ Σ_t λ_t A_t, hence E ≥ μ Σ_t λ_t where G ⪰ 0. λ
    is 1 above the kink, 0 below; the triplets at their kink get what makes G smallest on the range
    of M, and then all are shrunk until G ⪰ 0.
    """
    distances = ((X[:, None] - X) ** 2).sum(axis=2)
    same = (y[:, None] == y) & ~np.eye(len(X), dtype=bool)
    targets = np.argsort(np.where(same, distances, np.inf), axis=1, kind="stable")[:, :k]
    i, j, l = (index.ravel() for index in np.broadcast_arrays(  # noqa: E741
        np.arange(len(X))[:, None, None], targets[:, :, None], np.arange(len(X))
    ))  # fmt: skip
    impostor = y[i] != y[l]
    near, far = (X[i] - X[j])[impostor], (X[i] - X[l])[impostor]
    pull = (X[:, None] - X[targets]).reshape(-1, X.shape[1])
    C = (1 - mu) * pull.T @ pull
    u = 1 + ((near @ M) * near).sum(axis=1) - ((far @ M) * far).sum(axis=1)
    shares, kink = (u > width).astype(float), np.abs(u) <= width

    def push():
        return mu * (far.T @ (shares[:, None] * far) - near.T @ (shares[:, None] * near))

    values, vectors = np.linalg.eigh(M)
    R = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    n, f = near[kink] @ R, far[kink] @ R
    A = mu * (n[:, :, None] * n[:, None] - f[:, :, None] * f[:, None])
    rest = R @ (C - push()) @ R
    shares[kink] = lsq_linear(A.reshape(len(A), -1).T, -rest.ravel(), bounds=(0, 1)).x
    shrink = min(1.0, 1.0 / eigh(push(), C, eigvals_only=True)[-1])
    return shrink * mu * shares.sum(), np.vdot(C, M) + mu * np.maximum(u, 0).sum()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", ["lbfgs", "apg"])
@pytest.mark.parametrize("scale", [1.0, [1, 30, 0.1, 5]])
def test_a_bound_from_below_proves_the_minimum(toy, solver, scale):
    """Weak duality, of which the solvers know nothing; what has not converged may be higher."""
    X, y = toy
    X = X * scale
    learner = LMNN(solver=solver).fit(X, y)
    best = learner if solver == "lbfgs" else LMNN().fit(X, y)
    bound, value = lower_bound(X, y, best.get_mahalanobis_matrix(), width=0.02)
    assert best.objective_ == pytest.approx(value, rel=1e-8)
    assert bound >= 0.999 * value
    assert best.converged_
    assert learner.objective_ <= 1.002 * bound or not learner.converged_


def test_squared_hinge_has_one_optimum(toy):
    """Smooth and convex in M: the factor and the matrix lead to the same point, with ∇E = 0."""
    by_factor = LMNN(loss="squared_hinge", tol=1e-10).fit(*toy)
    by_matrix = LMNN(loss="squared_hinge", solver="apg", tol=1e-10, max_iter=2000).fit(*toy)
    assert_allclose(by_factor.objective_, by_matrix.objective_, rtol=1e-8)
    M = by_factor.get_mahalanobis_matrix()
    assert_allclose(M, by_matrix.get_mahalanobis_matrix(), atol=1e-4)
    G = objective(toy, Metric(), squared=True).value_and_gradient(M)[1]
    assert np.linalg.norm(G) < 1e-3 * by_factor.objective_  # M is inside the cone


@LOSSES
def test_t5_convexity(toy, squared):
    E, rng = objective(toy, Metric(), squared=squared), np.random.default_rng(5)
    for _ in range(10):
        M, N = random_metric(rng), random_metric(rng)
        ends = [E.value_and_gradient(A)[0] for A in (M, N)]
        assert E.value_and_gradient((M + N) / 2)[0] <= np.mean(ends) * (1 + 1e-12)


@SOLVERS
def test_t6_without_push_everything_collapses(toy, solver):
    learner = LMNN(push_weight=0.0, solver=solver).fit(*toy)
    assert_allclose(learner.get_mahalanobis_matrix(), 0, atol=1e-6)
    assert learner.objective_ < 1e-6


@SOLVERS
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_t7_rotation(toy, solver, loss):
    X, y = toy
    Q = np.linalg.qr(np.random.default_rng(2).standard_normal((4, 4)))[0]
    options = {"solver": solver, "loss": loss, "tol": 1e-4}
    M = LMNN(**options).fit(X, y).get_mahalanobis_matrix()
    rotated = LMNN(**options).fit(X @ Q, y).get_mahalanobis_matrix()
    assert_allclose(rotated, Q.T @ M @ Q, atol=1e-6)


def test_given_triplets_are_the_same_problem(toy):
    """All (i, j, l) with j a target of i: fit_triplets minimizes what fit does."""
    X, y = toy
    targets = [
        np.array(sorted(same, key=lambda j, i=i: ((X[i] - X[j]) ** 2).sum())[1:4])
        for i, same in ((i, np.flatnonzero(y == y[i])) for i in range(len(X)))
    ]
    triplets = [
        (i, j, other) for i in range(60) for j in targets[i] for other in np.flatnonzero(y != y[i])
    ]
    given = LMNN(init="identity", tol=1e-7).fit_triplets(X, triplets)
    assert_allclose(given.history_[0], 678.2482636413, atol=1e-9)
    assert_allclose(given.objective_, 480.6245, atol=3e-3)
