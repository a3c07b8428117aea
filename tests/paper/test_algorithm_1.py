"""Algorithm 1: projected gradient with the paper's step rule, against a naive re-implementation.

The oracle sums outer products over pairs, projects by eigenvalues and follows the algorithm line by
line in the units of the data. What the paper leaves open is taken from the documentation: the first
step moves M by a tenth of its norm; a rejected trial keeps M and J and counts as an iteration.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose

from vicinal.exceptions import ConvergenceWarning
from vicinal.learners.ann import ANN

CASES = {
    "ANN+": {"alpha": 1.0},
    "ANN-": {"alpha": -1.0},
    "ANN-, small gamma": {"alpha": -1.0, "gamma": 0.2},
    "ANN+, squared hinge": {"alpha": 0.5, "loss": "squared_hinge", "regularization": 0.01},
}
EVERY = pytest.mark.parametrize("case", CASES)
N_ITER = 40


@cache
def data():
    """Two informative features and two of noise, far from the origin, in no order of classes."""
    rng = np.random.default_rng(4)
    y = rng.permutation(np.repeat(["a", "b", "c"], [14, 13, 9]))
    X = rng.standard_normal((36, 4)) + np.array([5.0, 0.0, -3.0, 0.0])
    X[:, 0] += 2.5 * (y == "b")
    X[:, 1] += 2.5 * (y == "c")
    X[:, 2:] *= 2.0
    return X, y


# ------------------------------------------------------------------------------------- oracles


def naive_sets(X, y, alpha):
    """S_i: all of the class for α > 0, its 10 nearest for α < 0. D_i: all of the others."""
    sets = []
    for i in range(len(X)):
        similar = [j for j in range(len(X)) if j != i and y[j] == y[i]]
        if alpha < 0:
            similar = sorted(similar, key=lambda j: np.sum((X[i] - X[j]) ** 2))[:10]
        sets.append((similar, [j for j in range(len(X)) if y[j] != y[i]]))
    return sets


def naive_objective(M, X, y, alpha, gamma=1.0, loss="hinge", regularization=None):
    """J and ∂J/∂M of section 2, one outer product X_ij at a time."""
    n, d = X.shape
    strength = 1.0 / n**2 if regularization is None else regularization
    value, gradient = 0.0, np.zeros((d, d))
    for i, (similar, dissimilar) in enumerate(naive_sets(X, y, alpha)):
        sides = []
        for members, exponent in ((similar, alpha), (dissimilar, 1.0)):
            outer = [np.outer(X[i] - X[j], X[i] - X[j]) for j in members]
            distances = np.array([np.sum(M * x) for x in outer])
            e = np.exp(-exponent * distances)
            average = -np.log(e.mean()) / exponent
            sides.append((average, sum(r * x for r, x in zip(e / e.sum(), outer, strict=True))))
            if members is similar:
                value += strength * distances.sum()
                gradient += strength * sum(outer)
        (s, ds), (t, dt) = sides
        z = (s - t) / gamma
        if z > -1:
            value += 1 + z if loss == "hinge" else (1 + z) ** 2
            gradient += (1.0 if loss == "hinge" else 2 * (1 + z)) / gamma * (ds - dt)
    return value, gradient


def positive_part(M):
    eigenvalues, vectors = np.linalg.eigh(M)
    return vectors @ np.diag(np.maximum(eigenvalues, 0)) @ vectors.T


@cache
def naive_algorithm_1(case):
    """M and the accepted values of J, line by line."""
    X, y = data()

    def J(M):
        return naive_objective(M, X, y, **CASES[case])

    M = np.eye(X.shape[1]) / np.sqrt(len(X))
    value, gradient = J(M)
    eta = 0.1 * np.linalg.norm(M) / np.linalg.norm(gradient)
    history = [value]
    for _ in range(N_ITER):
        trial = positive_part(M - eta * gradient)
        trial_value, trial_gradient = J(trial)
        if trial_value < value:
            M, value, gradient = trial, trial_value, trial_gradient
            history.append(value)
            eta *= 1.05
        else:
            eta *= 0.5
    return M, np.array(history)


def fit(case, **options):
    X, y = data()
    options = {"solver": "pgd", "init": "paper", "backend": "numpy", **CASES[case], **options}
    return ANN(**options).fit(X, y)


@cache
def fitted(case):
    with pytest.warns(ConvergenceWarning, match=f"max_iter={N_ITER}"):
        return fit(case, max_iter=N_ITER, tol=0.0)


# ---------------------------------------------------------------------------------------- tests


@EVERY
def test_equals_the_naive_algorithm(case):
    learner = fitted(case)
    M, history = naive_algorithm_1(case)
    assert_allclose(learner.history_, history, rtol=1e-9)
    assert_allclose(learner.get_mahalanobis_matrix(), M, rtol=0, atol=1e-8 * np.abs(M).max())
    assert_allclose(learner.objective_, history[-1], rtol=1e-9)


@EVERY
def test_the_objective_is_that_of_the_learned_metric(case):
    learner = fitted(case)
    value, _ = naive_objective(learner.get_mahalanobis_matrix(), *data(), **CASES[case])
    assert_allclose(learner.objective_, value, rtol=1e-9)


@EVERY
def test_the_history_never_increases(case):
    history = fitted(case).history_
    assert (np.diff(history) < 0).all()
    assert history[-1] < 0.9 * history[0]


@EVERY
def test_the_metric_is_positive_semidefinite(case):
    M = fitted(case).get_mahalanobis_matrix()
    assert_allclose(M, M.T, atol=1e-15 * np.abs(M).max())
    assert np.linalg.eigvalsh(M).min() >= -1e-14 * np.abs(M).max()


def test_the_cases_take_every_branch():
    """Steps are accepted and rejected, and the cone is left without the projection."""
    rejected = [N_ITER + 1 - len(naive_algorithm_1(case)[1]) for case in CASES]
    assert 0 < max(rejected) < N_ITER / 2
    smallest = [np.linalg.eigvalsh(naive_algorithm_1(case)[0]).min() for case in CASES]
    assert min(np.abs(smallest)) < 1e-12


@EVERY
def test_running_out_of_iterations_is_reported(case):
    learner = fitted(case)
    assert learner.stop_reason_ == "max_iter"
    assert not learner.converged_
    assert learner.n_iter_ == N_ITER
    assert learner.solver_ == "pgd"


@EVERY
def test_convergence_is_reported(case):
    learner = fit(case, max_iter=2000, tol=1e-4)
    assert learner.converged_
    assert learner.stop_reason_ in ("gradient", "decrease", "step")
    assert learner.n_iter_ < 2000
    assert learner.objective_ <= fitted(case).objective_ * 1.01


@EVERY
def test_the_compiled_kernel_takes_the_same_path(case):
    with pytest.warns(ConvergenceWarning):
        learner = fit(case, max_iter=N_ITER, tol=0.0, backend="numba")
    assert_allclose(learner.history_, fitted(case).history_, rtol=1e-9)


def test_neither_the_order_nor_the_origin_of_the_samples_matters():
    X, y = data()
    order = np.random.default_rng(0).permutation(len(X))
    with pytest.warns(ConvergenceWarning):
        moved = ANN(
            alpha=-1.0, solver="pgd", init="paper", backend="numpy", max_iter=N_ITER, tol=0.0
        ).fit(X[order] + 100.0, y[order])
    M = fitted("ANN-").get_mahalanobis_matrix()
    assert_allclose(moved.get_mahalanobis_matrix(), M, rtol=0, atol=1e-7 * np.abs(M).max())


def test_for_negative_alpha_the_start_does_not_matter():
    """The problem being convex (Lemma 4), all starts end at the same value."""
    starts = ["paper", "identity", np.diag([0.01, 3.0, 0.5, 0.1])]
    learners = [
        fit("ANN-", loss="squared_hinge", init=start, max_iter=3000, tol=1e-6) for start in starts
    ]
    values = [learner.objective_ for learner in learners]
    assert_allclose(values, min(values), rtol=2e-3)
