"""SCML against its linear program, the authors' numbers, scikit-learn's LDA and metric-learn."""

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, hstack
from sklearn.datasets import load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from vicinal.exceptions import SaturatedStartWarning
from vicinal.learners.rank_one_metrics import TripletSums
from vicinal.learners.scml import SCML
from vicinal.learners.scml_problem import ScmlProblem, lda_directions, local_lda
from vicinal.supervision import nearest_triplets


def margin_columns(X, triplets, bases):
    """H (t, k): (bᵀx_ij)² − (bᵀx_il)² by definition."""
    P = X @ bases.T
    i, j, l = P[triplets.i], P[triplets.j], P[triplets.l]  # noqa: E741
    return (i - j) ** 2 - (i - l) ** 2


def linear_program(H, beta):
    """Optimal J and w: min β1ᵀw + mean ξ with ξ ≥ 1 + H w, w, ξ ≥ 0."""
    t, k = H.shape
    cost = np.r_[np.full(k, beta), np.full(t, 1 / t)]
    A = hstack([csr_array(H), -eye_array(t)])
    solution = linprog(cost, A_ub=A, b_ub=-np.ones(t), method="highs")
    return solution.fun, solution.x[:k]


def unit_rows(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def standard(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


def plain(beta, d=4, **options):
    return SCML(beta, basis=np.eye(d), rescale=False, random_state=0, **options)


def test_margins_are_differences_of_distances(toy):
    """T1."""
    X, y = toy
    triplets = nearest_triplets(X, y, 3, 10)
    bases = unit_rows(np.random.RandomState(1).standard_normal((5, 4)))
    H = margin_columns(X, triplets, bases)
    sums = TripletSums(X, triplets)
    for k, b in enumerate(bases):
        M = np.outer(b, b)
        near, far = X[triplets.i] - X[triplets.j], X[triplets.i] - X[triplets.l]
        naive = np.sum(near @ M * near, axis=1) - np.sum(far @ M * far, axis=1)
        np.testing.assert_allclose(H[:, k], naive, atol=1e-12)
        np.testing.assert_allclose(-sums.margins(b[None]), naive, atol=1e-12)
    u = np.random.RandomState(2).rand(len(triplets))
    first, second = sums.moments(bases, u, u)
    np.testing.assert_allclose(first, -(u @ H), atol=1e-10)
    np.testing.assert_allclose(second, H.T * u @ H, atol=1e-10)
    A = sums.scatter(u)
    np.testing.assert_allclose(np.diag(bases @ A @ bases.T), first, atol=1e-10)


@pytest.mark.parametrize("k", [3, 40])  # in the space of the weights, and of the features
@pytest.mark.parametrize("width", [1e-3, 0.1])
@pytest.mark.parametrize("beta", [0.1, 0.5])
def test_gradient_by_finite_differences(toy, k, width, beta):
    X, y = toy
    rng = np.random.RandomState(0)
    X = np.hstack([X, rng.standard_normal((60, 6))])
    bases = unit_rows(rng.standard_normal((k, 10)))
    sums = TripletSums(X, nearest_triplets(X, y, 3, 10))
    problem = ScmlProblem(sums, bases, beta)
    assert (problem._projected is not None) == (k == 3)
    w = rng.rand(k) / k
    _, gradient, _ = problem.smoothed(w, width)
    for direction in rng.standard_normal((4, k)):
        h = 1e-6
        ahead = problem.smoothed(w + h * direction, width)[0]
        behind = problem.smoothed(w - h * direction, width)[0]
        slope = (ahead - behind) / (2 * h)
        np.testing.assert_allclose(slope, gradient @ direction, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("beta", "value", "w"),
    [
        (1e-5, 0.40024119, [0.53529417, 0.42227497, 0.47236717, 0.56016091]),
        (0.1, 0.55275336, None),
        (1.0, 0.95409817, [0.1322, 0.0588, 0, 0]),
    ],
)
def test_toy_raw(toy, beta, value, w):
    """T2: the linear program's numbers, and that the solver reaches them."""
    X, y = toy
    triplets = nearest_triplets(X, y, 3, 10)
    H = margin_columns(X, triplets, np.eye(4))
    assert H.shape == (1800, 4)
    assert H.sum() == pytest.approx(-6447.46804835, abs=1e-7)
    optimum, best = linear_program(H, beta)
    assert optimum == pytest.approx(value, abs=1e-7)
    learner = plain(beta).fit(X, y)
    assert optimum <= learner.objective_ <= optimum * (1 + 1e-4)
    assert learner.converged_
    M = learner.get_mahalanobis_matrix()
    np.testing.assert_allclose(M, np.diag(np.diag(M)), atol=1e-12)
    np.testing.assert_allclose(np.diag(M), best, atol=5e-3)
    if w is not None:
        np.testing.assert_allclose(best, w, atol=1e-4)


@pytest.mark.parametrize("beta", [1e-5, 1e-3])
def test_minimum_of_many_bases_is_that_of_the_linear_program(iris_z, beta):
    """80 bases for 2,250 triplets: the minimum, what proves it, and few bases."""
    X, y = iris_z
    options = {"n_dissimilar": 5, "rescale": False, "random_state": 0}
    bases = SCML(beta, **options).find_bases(X, y)
    optimum, _ = linear_program(margin_columns(X, nearest_triplets(X, y, 3, 5), bases), beta)
    learner = SCML(beta, basis=bases, **options).fit(X, y)
    assert optimum * (1 - 1e-9) <= learner.objective_ <= optimum + 1e-3 * max(optimum, 0.1)
    assert (learner.stop_reason_, learner.converged_) == ("stationary", True)
    assert len(learner.weights_) < len(bases) / 2


@pytest.mark.parametrize(("beta", "value"), [(1e-5, 0.43785816), (0.1, 0.85562086)])
def test_toy_standardized_with_unit_rows(toy, beta, value):
    """T3: both the deterministic solver and the authors' algorithm."""
    X, y = toy
    X = unit_rows(standard(X))
    H = margin_columns(X, nearest_triplets(X, y, 3, 10), np.eye(4))
    assert linear_program(H, beta)[0] == pytest.approx(value, abs=1e-7)
    assert value - 1e-8 <= plain(beta).fit(X, y).objective_ <= value * (1 + 1e-4)
    stochastic = plain(beta, solver="dual_averaging").fit(X, y)
    assert value - 1e-8 <= stochastic.objective_ <= 1.05 * value
    assert stochastic.n_iter_ == 100_000
    if beta == 1e-5:
        assert stochastic.objective_ == pytest.approx(0.4455, abs=1e-4)


@pytest.mark.parametrize(
    ("beta", "value", "reached"),
    [(1e-5, 0.20869329, 0.208751), (1e-3, 0.24727982, 0.247342), (0.1, 0.78593184, 0.789353)],
)
def test_iris_standardized_with_unit_rows(iris_z, beta, value, reached):
    """T4; ties between distances may choose other triplets, hence the tolerance."""
    X, y = iris_z
    X = unit_rows(X)
    H = margin_columns(X, nearest_triplets(X, y, 3, 10), np.eye(4))
    assert linear_program(H, beta)[0] == pytest.approx(value, abs=1e-3)
    assert plain(beta).fit(X, y).objective_ == pytest.approx(value, abs=1e-3)
    stochastic = plain(beta, solver="dual_averaging").fit(X, y)
    assert stochastic.objective_ == pytest.approx(reached, abs=1e-3)


def test_lda_directions(toy):
    """T5."""
    X, y = toy
    found = lda_directions(X, y, 2)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1)
    expected = np.array(
        [
            [0.57910067, -0.64231049, 0.38345206, -0.32410518],
            [0.56418098, 0.43947492, 0.17542221, 0.67660082],
        ]
    )
    scalings = LinearDiscriminantAnalysis(solver="svd").fit(X, y).scalings_[:, :2].T
    for a, b, c in zip(found, expected, unit_rows(scalings), strict=True):
        assert abs(a @ b) > 1 - 1e-8
        assert abs(a @ c) > 1 - 1e-8


def test_lda_directions_of_a_singular_pool():
    """Fewer points than features: the directions lie in their span and separate the classes."""
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((6, 10)), np.array([0, 0, 1, 1, 2, 2])
    found = lda_directions(X, y, 2)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1)
    P = (X - X.mean(axis=0)) @ found.T
    np.testing.assert_allclose(P[::2], P[1::2], atol=1e-10)


def test_local_lda_has_the_form_of_the_authors(toy):
    X, y = toy
    bases = local_lda(X, y, 30, np.random.RandomState(0))
    assert bases.shape == (30, 4)
    np.testing.assert_allclose(np.linalg.norm(bases, axis=1), 1)


def test_weights_fall_with_beta(toy):
    """T6."""
    X, y = toy
    H = margin_columns(X, nearest_triplets(X, y, 3, 10), np.eye(4))
    limit = np.max(-H.mean(axis=0))
    assert limit == pytest.approx(1.37443155, abs=1e-7)
    betas = [1e-5, 1e-3, 0.1, 0.5, 1.0, 1.3]
    exact = [linear_program(H, beta)[1].sum() for beta in betas]
    assert np.all(np.diff(exact) <= 1e-9)
    for beta, total in zip(betas, exact, strict=True):
        learner = plain(beta, tol=1e-7).fit(X, y)
        assert (learner.weights_ > 0).all()
        assert learner.weights_.sum() == pytest.approx(total, rel=0.02)
    with pytest.warns(SaturatedStartWarning, match="its metric is zero"):
        learner = plain(limit).fit(X, y)
    assert learner.objective_ == 1
    assert len(learner.weights_) == 0
    np.testing.assert_array_equal(learner.components_, np.zeros((1, 4)))


def metric_learn_triplets(X, y):
    """As in benchmarks/metric_learn/scml.py."""
    found = []
    for i in range(len(X)):
        order = np.argsort(((X - X[i]) ** 2).sum(axis=1), kind="stable")
        order = order[order != i]
        similar, dissimilar = order[y[order] == y[i]][:3], order[y[order] != y[i]][:10]
        found += [(i, j, k) for j in similar for k in dissimilar]
    return np.array(found)


# metric-learn 0.7.0 (scikit-learn 1.5.2, NumPy 2.4.6): benchmarks/metric_learn/scml.py reference.
METRIC_LEARN = {
    "wine": (0.0644687498, 914.72974984),
    "letter": (0.3923307537, 63.93753179),
}


@pytest.mark.parametrize("name", METRIC_LEARN)
def test_adagrad_is_metric_learn_draw_by_draw(name, request):
    if name == "wine":
        X, y = load_wine(return_X_y=True)
    else:
        X, y = request.getfixturevalue("load_set")(name)
    X, y = X[:2000], y[:2000]
    X = unit_rows(standard(X))
    d = X.shape[1]
    bases = unit_rows(np.random.RandomState(0).standard_normal((20 * d, d)))
    triplets = metric_learn_triplets(X, y)
    learner = SCML(1e-5, basis=bases, solver="adagrad", rescale=False, random_state=0)
    learner.fit_triplets(X, triplets)
    value, size = METRIC_LEARN[name]
    assert learner.objective_ == pytest.approx(value, abs=1e-8)
    assert np.linalg.norm(learner.get_mahalanobis_matrix()) == pytest.approx(size, rel=1e-7)
    better = SCML(1e-5, basis=bases, rescale=False).fit_triplets(X, triplets)
    assert better.objective_ < 0.9 * value
