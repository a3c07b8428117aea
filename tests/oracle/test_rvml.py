"""RVML against ridge regression, its dual form, and naive optimal transport."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge

from vicinal.learners.rvml import (
    RVML,
    choose_landmarks,
    class_corners,
    class_transport,
    mean_distance,
    solve_dual,
    solve_primal,
    solve_ridge,
    transported_points,
)

LAMBDAS = (1e-5, 1e-2, 1.0)


def normalized(X):
    return (X - X.mean(axis=0)) / (3 * X.std(axis=0))


@pytest.fixture(params=["toy", "iris_z"])
def data(request):
    X, y = request.getfixturevalue(request.param)
    return normalized(X), y


@pytest.mark.parametrize("points", ["classes", "transport"])
@pytest.mark.parametrize("lam", LAMBDAS)
def test_t1_stationarity(lam, points, data):
    X, y = data
    model = RVML(lam, virtual_points=points).fit(X, y)
    L, V = model.components_, model.virtual_points_
    assert_allclose(X.T @ (X @ L.T - V) / len(X) + lam * L.T, 0, atol=1e-12)


@pytest.mark.parametrize("lam", LAMBDAS)
def test_t2_primal_equals_dual(lam, data):
    X, y = data
    V, penalty = class_corners(y), lam * len(X)
    assert_allclose(solve_primal(X, V, penalty), solve_dual(X, V, penalty), atol=1e-10)


def test_t2_more_features_than_samples_takes_the_dual():
    rng = np.random.RandomState(0)
    X, y = rng.randn(10, 30), np.arange(10) % 2
    X -= X.mean(axis=0)
    L = RVML(0.1).fit(X, y).components_
    assert_allclose(L, solve_primal(X, class_corners(y), 1.0), atol=1e-12)


@pytest.mark.parametrize("lam", LAMBDAS)
def test_t3_linear_kernel_gives_the_same_embedding(lam, data):
    X, y = data
    K = X @ X.T
    embedded = K @ solve_ridge(K, class_corners(y), lam * len(X))
    assert_allclose(RVML(lam).fit(X, y).transform(X), embedded, atol=1e-10)


@pytest.mark.parametrize(
    ("name", "lam", "objective", "norm"),
    [
        ("toy", 1e-5, 0.7009276037, 1.4018360762),
        ("toy", 1e-2, 0.7190745607, 1.2975062563),
        ("toy", 1.0, 0.9569845506, 0.1913234114),
        ("iris_z", 1e-5, 0.6027620435, 2.4799547896),
        ("iris_z", 1e-2, 0.6318259155, 1.4181971809),
        ("iris_z", 1.0, 0.9182338787, 0.2502202111),
    ],
)
def test_t4_reference_numbers(name, lam, objective, norm, request):
    X, y = request.getfixturevalue(name)
    X = normalized(X)
    model = RVML(lam).fit(X, y)
    L = model.components_
    assert_allclose(model.objective_, objective, atol=1e-10)
    assert_allclose(np.linalg.norm(L), norm, atol=1e-10)
    residual = ((X @ L.T - np.eye(3)[y]) ** 2).sum() / len(X)
    assert_allclose(model.objective_, residual + lam * (L**2).sum(), rtol=1e-12)


@pytest.mark.parametrize("lam", LAMBDAS)
def test_t5_equals_ridge_regression(lam, data):
    X, y = data
    ridge = Ridge(alpha=lam * len(X), fit_intercept=False).fit(X, np.eye(3)[y])
    assert_allclose(RVML(lam).fit(X, y).components_, ridge.coef_, atol=1e-11)


@pytest.mark.parametrize("lam", [1e-3, 1e-1])
def test_kernel_form_equals_kernel_ridge_regression(lam, data):
    X, y = data
    model = RVML(lam, kernel="rbf").fit(X, y)
    a = cdist(X, X).mean()
    assert_allclose(model.gamma_, 1 / (2 * a**2), rtol=1e-7)
    ridge = KernelRidge(alpha=lam * len(X), kernel="rbf", gamma=model.gamma_)
    ridge.fit(X, np.eye(3)[y])
    queries = X[:20] + 0.1
    assert_allclose(model.transform(queries), ridge.predict(queries), atol=1e-9)


def test_class_corners_give_rank_c_minus_1(data):
    L = RVML(1e-2).fit(*data).components_
    assert_allclose(L.sum(axis=0), 0, atol=1e-13)
    values = np.linalg.svd(L, compute_uv=False)
    assert values[2] < 1e-12 * values[0]


@pytest.mark.parametrize(
    ("name", "threshold", "landmarks"),
    [
        ("toy", 0.87851775, [45, 49, 47, 25, 5, 1, 2, 15, 10, 26, 4]),
        ("iris_z", 0.83106794, [117, 41, 15, 118, 60, 32, 131, 13, 122, 33, 119, 22, 109]),
    ],
)
def test_t6_landmarks(name, threshold, landmarks, request):
    X = normalized(request.getfixturevalue(name)[0])
    assert_allclose(mean_distance(X), threshold, atol=1e-8)
    np.testing.assert_array_equal(choose_landmarks(X, 3), landmarks)


def test_t6_landmarks_by_a_naive_search(toy):
    X = normalized(toy[0])
    D = cdist(X, X)
    chosen = [int(np.argmax(np.linalg.norm(X, axis=1)))]
    while True:
        rest = [i for i in range(len(X)) if i not in chosen]
        if len(chosen) >= 3 and D[np.ix_(rest, chosen)].min(axis=1).max() <= D.mean():
            break
        chosen.append(max(rest, key=lambda i: D[i, chosen].mean()))
    np.testing.assert_array_equal(choose_landmarks(X, 3), chosen)


def naive_transport(C, y):
    """The same problem in logarithms, every inner problem from zero and for 400 iterations."""
    n, m = C.shape
    tangent = np.zeros_like(C)
    for _ in range(10):
        K = -(C + 10.0 * tangent) / 0.5
        f = np.zeros(n)
        for _ in range(400):
            g = -np.log(m) - logsumexp(K + f[:, None], axis=0)
            f = -np.log(n) - logsumexp(K + g, axis=1)
        G = np.exp(K + f[:, None] + g)
        for k in np.unique(y):
            tangent[y == k] = 0.5 / np.sqrt(G[y == k].sum(axis=0) + 1e-3)
    return G


@pytest.mark.parametrize(("name", "size"), [("toy", 33.6329), ("iris_z", 120.511)])
def test_t7_transport(name, size, request):
    X, y = request.getfixturevalue(name)
    X = normalized(X)
    landmarks = X[choose_landmarks(X, 3)]
    plan = class_transport(cdist(X, landmarks), y)
    assert_allclose(plan.sum(axis=1), 1 / len(X), rtol=1e-12)
    assert np.abs(plan.sum(axis=0) - 1 / len(landmarks)).max() < 1e-7
    share = np.stack([plan[y == k].sum(axis=0) for k in range(3)]) * len(landmarks)
    assert (share.max(axis=0) > 0.99).mean() > 0.75  # most landmarks serve one class only
    V = transported_points(X, y)
    assert_allclose(V, len(X) * plan @ landmarks, atol=1e-6)
    assert_allclose((V**2).sum(), size, rtol=1e-4)


def test_t7_transport_equals_the_naive_one(toy):
    X, y = toy
    X = normalized(X)
    C = cdist(X, X[choose_landmarks(X, 3)])
    assert_allclose(class_transport(C, y), naive_transport(C, y), atol=1e-6)


def test_t8_large_regularization_leaves_the_class_means(data):
    X, y = data
    L = RVML(1e8).fit(X, y).components_
    assert_allclose(L * 1e8 * len(X), np.eye(3)[y].T @ X, rtol=1e-6, atol=1e-8)
