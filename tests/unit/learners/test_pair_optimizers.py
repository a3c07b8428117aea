"""MMC, LSML and SDML: gradients, conditions of the optimum, wrong input, scikit-learn's checks."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime, minimize
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale
from sklearn.utils.estimator_checks import check_estimator

import vicinal as vc
from vicinal.exceptions import ConvergenceWarning
from vicinal.learners.lsml import Residuals
from vicinal.learners.mmc import Separation
from vicinal.learners.sdml import sparse_inverse
from vicinal.supervision import pairs_from_labels, quadruplets_from_labels

X, Y = load_wine(return_X_y=True)
X = scale(X)
PAIRS, SIMILAR = pairs_from_labels(Y, 600, random_state=0)
QUADRUPLETS = quadruplets_from_labels(Y, 300, random_state=0)
GAPS = X[PAIRS[:, 0]] - X[PAIRS[:, 1]]


@pytest.mark.parametrize(
    "learner", [vc.MMC(), vc.MMC(diagonal=True), vc.LSML(), vc.SDML(), vc.SDML(n_pairs=100)]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn_accepts_it(learner):
    if "random_state" in learner.get_params():
        learner.set_params(random_state=0)
    check_estimator(learner, on_skip=None)


PROBLEMS = {
    "MMC": (Separation(GAPS[~SIMILAR], False), (3, 13)),
    "MMC, diagonal": (Separation(GAPS[~SIMILAR], True), (13,)),
    "LSML": (Residuals(GAPS[:150], GAPS[-150:], np.full(150, 1 / 150)), (13, 13)),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_gradients(name):
    problem, shape = PROBLEMS[name]
    point = np.random.RandomState(0).standard_normal(shape)
    _, gradient = problem.value_and_gradient(point)
    numeric = approx_fprime(
        point.ravel(), lambda p: problem.value_and_gradient(p.reshape(shape))[0], 1e-7
    )
    assert_allclose(gradient.ravel(), numeric, rtol=1e-4, atol=1e-5)
    assert problem.project(point) is point
    assert problem.n_rows == len(problem.U if name.startswith("MMC") else problem.near)


def test_mmc_meets_the_conditions_of_the_maximum():
    """With G = ½ Σ x xᵀ/√(xᵀMx): G M = λ S M, and G ⪯ λ S (Karush, Kuhn, Tucker)."""
    learner = vc.MMC(tol=1e-12, max_iter=5000).fit_pairs(X, PAIRS, SIMILAR)
    M = learner.get_mahalanobis_matrix()
    S = GAPS[SIMILAR].T @ GAPS[SIMILAR]
    far = GAPS[~SIMILAR]
    distances = np.sqrt(np.einsum("pd,pd->p", far @ M, far))
    G = 0.5 * (far.T / distances) @ far
    multiplier = 0.5 * distances.sum()
    assert_allclose((M * S).sum(), 1.0)
    assert_allclose(learner.objective_, -np.log(distances.sum()))
    assert_allclose(G @ M, multiplier * S @ M, atol=1e-4 * np.abs(G @ M).max())
    root = np.linalg.inv(np.linalg.cholesky(S))
    assert np.linalg.eigvalsh(root @ G @ root.T).max() < multiplier * (1 + 1e-4)


def test_diagonal_mmc_is_the_best_of_the_diagonal_ones():
    learner = vc.MMC(diagonal=True, tol=1e-10).fit_pairs(X, PAIRS, SIMILAR)
    M = learner.get_mahalanobis_matrix()
    assert_allclose(M, np.diag(np.diag(M)))
    sums = (GAPS[SIMILAR] ** 2).sum(axis=0)

    def convex(w):  # the form of the paper: its minimum has Σ_similar = 1/2
        return sums @ w - np.log(np.sqrt(GAPS[~SIMILAR] ** 2 @ w).sum())

    bounds = [(1e-14, None)] * 13
    found = minimize(convex, np.full(13, 1e-3), bounds=bounds, options={"maxiter": 10000})
    assert_allclose(sums @ np.diag(M), 1.0)
    assert convex(0.5 * np.diag(M)) <= found.fun + 1e-7


def test_mmc_of_few_components():
    learner = vc.MMC(2).fit_pairs(X, PAIRS, SIMILAR)
    assert learner.components_.shape == (2, 13)
    full = vc.MMC().fit_pairs(X, PAIRS, SIMILAR)
    assert full.objective_ <= learner.objective_ + 1e-6
    weights = np.diag(vc.MMC(diagonal=True).fit_pairs(X, PAIRS, SIMILAR).components_)
    two = vc.MMC(2, diagonal=True).fit_pairs(X, PAIRS, SIMILAR).components_
    assert_allclose(np.sort(two[two != 0]), np.sort(weights)[-2:])


def test_mmc_refuses_what_it_cannot_learn_from():
    for kind, flags in (("dissimilar", np.ones(600)), ("similar", np.zeros(600))):
        with pytest.raises(ValueError, match=f"needs {kind} pairs"):
            vc.MMC().fit_pairs(X, PAIRS, flags)
    few = PAIRS[[0, -1]], SIMILAR[[0, -1]]
    assert vc.MMC().fit_pairs(X, *few).regularized_
    with pytest.raises(ValueError, match="Raise ridge"):
        vc.MMC(ridge=0.0).fit_pairs(X, *few)


def lsml_objective(M, prior, weights):
    a, b, c, d = (X[rows] for rows in QUADRUPLETS.T)
    total = 0.0
    for near, far, w in zip(a - b, c - d, weights, strict=True):
        violation = np.sqrt(near @ M @ near) - np.sqrt(far @ M @ far)
        total += w * max(violation, 0.0) ** 2
    ratio = M @ np.linalg.inv(prior)
    return total + np.trace(ratio) - np.linalg.slogdet(ratio)[1] - len(M)


@pytest.mark.parametrize("prior", ["identity", "covariance"])
def test_lsml_reaches_the_minimum_of_a_convex_function(prior):
    weights = np.random.RandomState(0).uniform(0.5, 2.0, len(QUADRUPLETS))
    learner = vc.LSML(prior, tol=1e-10).fit_quadruplets(X, QUADRUPLETS, 7 * weights)
    weights /= weights.sum()
    M = learner.get_mahalanobis_matrix()
    A0 = np.eye(13) if prior == "identity" else np.linalg.inv(np.cov(X.T, bias=True))
    value = lsml_objective(M, A0, weights)
    assert_allclose(learner.objective_, value, rtol=1e-8)
    rng = np.random.RandomState(1)
    for _ in range(20):  # no direction, however it points, goes down
        step = 1e-3 * rng.standard_normal((13, 13))
        assert lsml_objective(M + step @ M + M @ step.T, A0, weights) > value - 1e-9


def test_lsml_satisfies_quadruplets():
    learner = vc.LSML().fit_quadruplets(X, QUADRUPLETS)
    assert learner.quadruplet_accuracy(X[QUADRUPLETS]) > vc.Covariance().fit(X).quadruplet_accuracy(
        X[QUADRUPLETS]
    )
    assert not hasattr(learner, "classes_")


def test_lsml_of_equal_points_is_finite():
    rows = np.r_[X[:20], X[:1]]
    learner = vc.LSML().fit_quadruplets(rows, [[1, 2, 0, 20], [0, 20, 1, 2], [3, 4, 5, 6]])
    assert np.isfinite(learner.components_).all()


@pytest.mark.parametrize(
    ("quadruplets", "weights", "message"),
    [
        ([[0, 1, 2]], None, r"shape \(number, 4\)"),
        ([[0, 1, 2, 999]], None, "outside"),
        ([[0, 0, 1, 1]], None, "itself"),
        ([[0, 1, 2, 3]], [1.0, 2.0], r"one entry per entry \(1\)"),
        ([[0, 1, 2, 3]], [-1.0], "negative"),
    ],
)
def test_wrong_quadruplets_are_named(quadruplets, weights, message):
    with pytest.raises(ValueError, match=message):
        vc.LSML().fit_quadruplets(X, quadruplets, weights)


def test_labels_without_two_of_a_class_give_no_quadruplets():
    with pytest.raises(ValueError, match="no two samples of one class"):
        vc.LSML().fit(X[:4], [0, 1, 2, 3])


@pytest.mark.parametrize("sparsity", [0.0, 0.2, 1.0])
def test_sdml_meets_the_conditions_of_the_minimum(sparsity):
    """M⁻¹ has the diagonal of K; off it, the penalty times the sign of M where M is not zero."""
    learner = vc.SDML(sparsity=sparsity, tol=1e-6).fit_pairs(X, PAIRS, SIMILAR)
    P = GAPS[SIMILAR].T @ GAPS[SIMILAR] - GAPS[~SIMILAR].T @ GAPS[~SIMILAR]
    K = np.eye(13) + 0.5 / np.abs(np.linalg.eigvalsh(P)).max() * P
    penalty = sparsity * np.abs(K - np.diag(np.diag(K))).max()
    M = learner.sparse_matrix_
    assert_allclose(learner.get_mahalanobis_matrix(), M, atol=1e-10)
    W, off = np.linalg.inv(M), ~np.eye(13, dtype=bool)
    assert_allclose(np.diag(W), np.diag(K), rtol=1e-4)
    assert np.abs(W - K)[off].max() <= penalty + 1e-4
    active = off & (M != 0)
    assert_allclose((W - K)[active], penalty * np.sign(M[active]), atol=1e-3)
    assert learner.converged_


def test_sdml_is_sparser_the_larger_the_penalty():
    zeros = [
        int((vc.SDML(sparsity=s).fit(X, Y).sparse_matrix_ == 0).sum()) for s in (0, 0.2, 0.5, 1)
    ]
    assert zeros == sorted(zeros)
    assert zeros[0] == 0
    assert zeros[-1] == 13 * 12


def test_sdml_without_a_solution_says_what_to_do():
    with pytest.raises(ValueError, match="Lower balance"):
        vc.SDML(5.0).fit(X, Y)
    with pytest.raises(ValueError, match="smallest eigenvalue of K"):
        sparse_inverse(np.array([[1.0, 3.0], [3.0, 1.0]]), 0.0, 100, 1e-4)
    # Not definite, but a penalty of 2.5 allows for a correlation of 0.5.
    M, _, converged = sparse_inverse(np.array([[1.0, 3.0], [3.0, 1.0]]), 2.5, 100, 1e-6)
    assert_allclose(np.linalg.inv(M), [[1.0, 0.5], [0.5, 1.0]], atol=1e-3)
    assert converged


def test_sdml_warns_where_it_stopped_early():
    with pytest.warns(ConvergenceWarning, match="max_iter=1 "):
        learner = vc.SDML(0.9, sparsity=0.01, max_iter=1, tol=1e-12).fit(X, Y)
    assert learner.stop_reason_ == "max_iter"


def test_triplets_and_quadruplets_are_predicted_by_distances():
    learner = vc.LSML().fit(X, Y)
    triplets = np.random.RandomState(0).permutation(177).reshape(-1, 3)
    i, j, l = (learner.transform(X[rows]) for rows in triplets.T)  # noqa: E741
    expected = np.linalg.norm(i - j, axis=1) < np.linalg.norm(i - l, axis=1)
    assert np.array_equal(learner.predict_triplets(X[triplets]), expected)
    assert learner.triplet_accuracy(X[triplets]) == expected.mean()
    quadruplets = triplets[:, [0, 1, 2, 0]]
    expected = np.linalg.norm(i - j, axis=1) < np.linalg.norm(l - i, axis=1)
    assert np.array_equal(learner.predict_quadruplets(X[quadruplets]), expected)
    assert not learner.predict_triplets(X[[[0, 1, 1]]]).any()  # a tie does not hold
    with pytest.raises(ValueError, match=r"triplets must have shape \(n_triplets, 3, 13\)"):
        learner.predict_triplets(X[PAIRS])


def test_lsml_is_infinite_at_a_singular_metric():
    value, gradient = PROBLEMS["LSML"][0].value_and_gradient(np.diag(np.r_[0.0, np.ones(12)]))
    assert value == np.inf
    assert not gradient.any()
