"""BoostMetric against its specification's numbers, its dual, and a factored optimum."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from vicinal.learners.boostmetric import LOSSES, Boosting, BoostMetric
from vicinal.learners.rank_one_metrics import TripletSums, compose, exponential
from vicinal.supervision import Triplets, nearest_triplets

V = 1e-7


def naive_objective(X, triplets, M, loss="exponential", v=V):
    far, near = X[triplets.i] - X[triplets.l], X[triplets.i] - X[triplets.j]
    rho = np.sum(far @ M * far, axis=1) - np.sum(near @ M * near, axis=1)
    if loss == "exponential":
        return float(np.log(np.sum(np.exp(-rho)))) + v * np.trace(M)
    return float(np.log1p(np.exp(-rho)).sum()) + v * np.trace(M)


def naive_scatter(X, triplets, M, loss="exponential"):
    """A = Σ u_r (x_il x_ilᵀ − x_ij x_ijᵀ)."""
    far, near = X[triplets.i] - X[triplets.l], X[triplets.i] - X[triplets.j]
    rho = np.sum(far @ M * far, axis=1) - np.sum(near @ M * near, axis=1)
    u = np.exp(-rho) / np.exp(-rho).sum() if loss == "exponential" else 1 / (1 + np.exp(rho))
    return np.einsum("r,ra,rb->ab", u, far, far) - np.einsum("r,ra,rb->ab", u, near, near)


def factored_optimum(X, triplets, loss):
    """min over L by L-BFGS with an independent gradient: dF/dL = 2 L (vI − A)."""
    d = X.shape[1]

    def function(flat):
        L = flat.reshape(d, d)
        M = L.T @ L
        gradient = 2 * L @ (V * np.eye(d) - naive_scatter(X, triplets, M, loss))
        return naive_objective(X, triplets, M, loss), gradient.ravel()

    options = {"maxiter": 2000, "maxfun": 5000, "ftol": 1e-14, "gtol": 1e-9}
    start = 0.3 * np.eye(d).ravel()
    return minimize(function, start, jac=True, method="L-BFGS-B", options=options).fun


def raw(variant, **options):
    return BoostMetric(V, variant=variant, rescale=False, **options)


@pytest.mark.parametrize("variant", ["stagewise", "corrective"])
@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_it_descends_to_a_metric_of_the_stated_trace(toy, variant, loss):
    """T1."""
    X, y = toy
    learner = raw(variant, loss=loss).fit(X, y)
    assert np.all(np.diff(learner.history_) < 0)
    M = learner.get_mahalanobis_matrix()
    assert np.linalg.eigvalsh(M).min() >= -1e-12
    assert np.trace(M) == pytest.approx(learner.weights_.sum())
    np.testing.assert_allclose(np.linalg.norm(learner.bases_, axis=1), 1)
    np.testing.assert_allclose(
        (learner.bases_.T * learner.weights_) @ learner.bases_, M, atol=1e-12
    )
    triplets = nearest_triplets(X, y, 3, 3)
    assert learner.objective_ == pytest.approx(naive_objective(X, triplets, M, loss), rel=1e-10)
    assert learner.converged_


@pytest.mark.parametrize("loss", LOSSES)
def test_the_line_search_balances(toy, loss):
    """T2: after a step, ⟨A, ξξᵀ⟩ = v."""
    X, y = toy
    boosting = Boosting(TripletSums(X, nearest_triplets(X, y, 3, 3)), LOSSES[loss], V)
    for _ in range(3):
        _, directions = boosting.leading()
        xi = directions[0]
        boosting.add(xi)
        A = boosting._sums.scatter(boosting._u)
        assert xi @ A @ xi == pytest.approx(V, abs=1e-8)


def test_stagewise_on_toy(toy):
    """T3; the specification's bisection stops at 1e-5, ours goes on."""
    X, y = toy
    steps = []
    learner = raw("stagewise", callback=lambda progress: steps.append(progress.step))
    learner.fit(X, y)
    F = [6.29156914, 6.21196976, 6.13433041, 6.12752623, 6.12734399, 6.12734382]
    eigenvalues = [0.78573362, 0.58483250, 0.13778020, 0.02142745, 0.00061207]
    assert learner.n_iter_ == 5
    assert learner.history_[0] == pytest.approx(np.log(540))
    np.testing.assert_allclose(learner.history_, F, atol=1e-6)
    np.testing.assert_allclose(learner.eigenvalues_[:5], eigenvalues, atol=1e-5)
    np.testing.assert_allclose(steps, [0.22941, 0.29525, 0.10031, 0.01703, 0.00055], atol=2e-5)
    assert learner.eigenvalues_[-1] < 1e-6
    assert learner.stop_reason_ == "gradient"


def test_stagewise_on_iris(iris_z):
    """The specification's 10 learners, from its triplets: ties go by rounded Gram distances."""
    X, y = iris_z
    squares = (X**2).sum(axis=1)
    D = squares[:, None] + squares - 2 * X @ X.T
    triplets = []
    for i in range(len(X)):
        same = np.flatnonzero((y == y[i]) & (np.arange(len(X)) != i))
        other = np.flatnonzero(y != y[i])
        near = same[np.argsort(D[i, same], kind="stable")[:3]]
        far = other[np.argsort(D[i, other], kind="stable")[:3]]
        triplets += [(i, j, k) for j in near for k in far]
    learner = raw("stagewise", tol=0).fit_triplets(X, triplets)
    # Which of equal distances is the smaller one depends on the BLAS: two outcomes are known.
    assert learner.objective_ == pytest.approx(5.351762949, abs=2e-3)


def test_corrective_reaches_the_optimum(toy):
    """T4: value, dual feasibility, complementarity; stagewise stops above it."""
    X, y = toy
    learner = raw("corrective", tol=1e-8).fit(X, y)
    assert learner.objective_ == pytest.approx(6.12036695, abs=1e-5)
    triplets = nearest_triplets(X, y, 3, 3)
    assert learner.objective_ == pytest.approx(
        factored_optimum(X, triplets, "exponential"), abs=1e-5
    )
    M = learner.get_mahalanobis_matrix()
    A = naive_scatter(X, triplets, M)
    assert np.linalg.eigvalsh(A).max() <= V + 1e-6
    assert abs(np.vdot(A - V * np.eye(4), M)) < 1e-5
    assert raw("stagewise").fit(X, y).objective_ > learner.objective_ + 5e-3


def test_corrective_logistic_reaches_the_optimum(toy):
    X, y = toy
    learner = raw("corrective", loss="logistic", tol=1e-9).fit(X, y)
    optimum = factored_optimum(X, nearest_triplets(X, y, 3, 3), "logistic")
    assert learner.objective_ == pytest.approx(optimum, rel=1e-6)


def test_corrective_on_iris_reaches_the_optimum(iris_z):
    X, y = iris_z
    learner = raw("corrective").fit(X, y)
    optimum = factored_optimum(X, nearest_triplets(X, y, 3, 3), "exponential")
    assert learner.objective_ == pytest.approx(optimum, abs=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_gradient_by_symmetric_differences(toy, loss):
    """T5."""
    X, y = toy
    triplets = nearest_triplets(X, y, 3, 3)
    rng = np.random.RandomState(0)
    L = 0.3 * rng.standard_normal((4, 4))
    M = L.T @ L
    sums = TripletSums(X, triplets)
    _, u = LOSSES[loss].value_and_weights(sums.margins(L))
    gradient = V * np.eye(4) - sums.scatter(u)
    np.testing.assert_allclose(gradient, V * np.eye(4) - naive_scatter(X, triplets, M, loss))
    h = 1e-5
    for a in range(4):
        for b in range(a + 1):
            E = np.zeros((4, 4))
            E[a, b] += 0.5
            E[b, a] += 0.5
            ahead = naive_objective(X, triplets, M + h * E, loss)
            behind = naive_objective(X, triplets, M - h * E, loss)
            assert (ahead - behind) / (2 * h) == pytest.approx(np.vdot(gradient, E), abs=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_newton_step_is_one(toy, loss):
    """Near the minimum over the weights, one Newton step lands on it."""
    X, y = toy
    sums = TripletSums(X, nearest_triplets(X, y, 3, 3))
    boosting = Boosting(sums, LOSSES[loss], V)
    for direction in np.eye(4)[:2]:
        boosting.add(direction)
    boosting.correct(np.empty((0, 4)), 1e-14)
    first, _ = sums.moments(boosting.bases, boosting._u, boosting._u)
    np.testing.assert_allclose(first, V, atol=1e-6)
    np.testing.assert_allclose(
        sums.margins(compose(boosting.weights, boosting.bases)), boosting.margins
    )


def test_one_triplet():
    """T6: x_il = e_1, x_ij = 0 gives ξ = e_1 and h = 1."""
    X = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
    sums = TripletSums(X, Triplets(*np.array([[0], [1], [2]])))
    boosting = Boosting(sums, LOSSES["exponential"], V)
    eigenvalue, directions = boosting.leading()
    assert eigenvalue == pytest.approx(1)
    np.testing.assert_allclose(np.abs(directions[0]), [1, 0], atol=1e-12)
    np.testing.assert_allclose(sums.margins(directions[:1]), [1])
    learner = BoostMetric(V, rescale=False).fit_triplets(X, [[0, 1, 2]])
    assert learner.stop_reason_ == "separated"
    np.testing.assert_allclose(learner.get_mahalanobis_matrix(), [[1, 0], [0, 0]], atol=1e-12)


def test_the_exponential_loss_is_scipy_s_log_sum():
    rng = np.random.default_rng(0)
    for scale in (0.0, 1e-12, 1.0, 1e3):
        margins = scale * rng.normal(size=500)
        margins[:7] = margins.min()  # ties
        value, u = exponential(margins)
        assert value == pytest.approx(logsumexp(-margins), rel=1e-15)
        np.testing.assert_allclose(u, softmax(-margins), rtol=1e-10, atol=1e-300)
    with np.errstate(invalid="ignore"):
        for hard in ([np.inf, np.inf], [-np.inf, 1.0], [np.nan, 1.0]):
            np.testing.assert_equal(exponential(np.array(hard))[0], logsumexp(-np.array(hard)))
    assert exponential(np.array([np.inf, 2.0]))[0] == -2.0
