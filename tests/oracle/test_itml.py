"""ITML against its invariants, its optimality conditions, closed forms and metric-learn."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from vicinal.learners.compiled_loops import project_in_turn
from vicinal.learners.itml import ITML, Constraints, find_bounds, project

U, L = 2.05667587, 31.09666519


def toy_pairs(y):
    """240 pairs (i, i + s mod 60), 120 of them similar, those first."""
    pairs = np.array([(i, (i + s) % 60) for s in (1, 3, 6, 7) for i in range(60)])
    similar = y[pairs[:, 0]] == y[pairs[:, 1]]
    return np.concatenate([pairs[similar], pairs[~similar]]), np.sort(similar)[::-1]


def percentile_bounds(X):
    i, j = np.triu_indices(len(X), 1)
    return np.percentile(((X[i] - X[j]) ** 2).sum(axis=1), (5, 95))


def constraints(X, y, gamma, A0=None):
    pairs, similar = toy_pairs(y)
    u, l = percentile_bounds(X)  # noqa: E741
    sign = np.where(similar, 1.0, -1.0)
    A0 = np.eye(X.shape[1]) if A0 is None else A0
    V = X[pairs[:, 0]] - X[pairs[:, 1]]
    return Constraints(A0, V, sign, np.where(similar, u, l), gamma)


def squared(V, A):
    return np.einsum("pi,ij,pj->p", V, A, V)


def slack(problem, multiplier):
    """ξ from 1/ξ = 1/ξ⁰ − δλ/γ."""
    return 1 / (1 / problem.bound - problem.sign * multiplier / problem.gamma)


def naive_pass(A, problem, multiplier, xi):
    """One pass as the algorithm is written down, slack and metric updated step by step."""
    ratio = 1.0 if np.isinf(problem.gamma) else problem.gamma / (problem.gamma + 1)
    for c, (v, delta) in enumerate(zip(problem.V, problem.sign, strict=True)):
        p = v @ A @ v
        alpha = min(multiplier[c], ratio * delta * (1 / p - 1 / xi[c]))
        multiplier[c] -= alpha
        xi[c] = 1 / (1 / xi[c] + delta * alpha / problem.gamma)
        beta = delta * alpha / (1 - delta * alpha * p)
        A = A + beta * np.outer(A @ v, A @ v)
    return A


def test_pairs_and_bounds_of_the_reference(toy):
    X, y = toy
    pairs, similar = toy_pairs(y)
    assert len(pairs) == 240
    assert similar.sum() == 120
    bounds = find_bounds("percentile", X, np.eye(4), np.random.RandomState(0))
    assert_allclose(bounds, [U, L], atol=1e-8)
    assert_allclose(bounds, percentile_bounds(X), rtol=1e-12)


@pytest.mark.parametrize("gamma", [0.1, 1.0, 10.0, np.inf])
def test_t1_invariants_hold_after_every_single_projection(gamma, toy):
    F = np.random.RandomState(0).randn(4, 4)
    problem = constraints(*toy, gamma, A0=F @ F.T + np.eye(4))
    A, multiplier, growth = problem.A0.copy(), np.zeros(240), 0.0
    for _ in range(2):
        for c in range(240):
            one = slice(c, c + 1)
            growth += project_in_turn(
                A, problem.V[one], problem.sign[one], problem.bound[one], multiplier[one], gamma
            )
            inverse = np.linalg.inv(problem.A0)
            inverse += (problem.V.T * (problem.sign * multiplier)) @ problem.V
            assert_allclose(np.linalg.inv(A), inverse, atol=1e-10 * np.abs(inverse).max())
            assert multiplier.min() >= 0
            assert slack(problem, multiplier).min() > 0
            np.testing.assert_array_equal(A, A.T)
    expected = np.linalg.slogdet(problem.A0)[1] - np.linalg.slogdet(A)[1]
    assert_allclose(growth, expected, rtol=1e-9)


@pytest.mark.parametrize("gamma", [0.1, 1.0, np.inf])
def test_compiled_passes_equal_the_algorithm_as_written(gamma, toy):
    problem = constraints(*toy, gamma)
    A, multiplier = np.eye(4), np.zeros(240)
    expected, expected_multiplier, xi = np.eye(4), np.zeros(240), problem.bound.copy()
    for _ in range(5):
        project_in_turn(A, problem.V, problem.sign, problem.bound, multiplier, gamma)
        expected = naive_pass(expected, problem, expected_multiplier, xi)
    assert_allclose(A, expected, rtol=1e-10, atol=1e-12)
    assert_allclose(multiplier, expected_multiplier, rtol=1e-10, atol=1e-12)
    assert_allclose(slack(problem, multiplier), xi, rtol=1e-9)


@pytest.mark.parametrize("gamma", [0.1, 1.0])
def test_t2_optimality_conditions(gamma, toy):
    problem = constraints(*toy, gamma)
    state = project(problem, 5000, 1e-8)
    assert state.stop_reason == "multipliers"
    gap = squared(problem.V, state.A) - slack(problem, state.multiplier)
    assert (problem.sign * gap).max() < 1e-5
    assert np.abs(state.multiplier * gap).max() < 1e-6


@pytest.mark.parametrize(
    ("gamma", "trace", "log_det", "objective"),
    [(1.0, 1.87915536, -3.71058754, 160.09337836), (0.1, 2.05755381, -2.95344053, 17.11957557)],
)
def test_t3_reference_numbers(gamma, trace, log_det, objective, toy):
    X, y = toy
    model = ITML(gamma, tol=1e-8).fit_pairs(X, *toy_pairs(y))
    M = model.get_mahalanobis_matrix()
    assert_allclose(np.trace(M), trace, atol=1e-8)
    assert_allclose(np.linalg.slogdet(M)[1], log_det, atol=1e-8)
    assert_allclose(model.objective_, objective, atol=1e-8)
    if gamma == 1.0:
        assert model.n_iter_ == 2936


def test_t3_objective_is_the_sum_of_divergences(toy):
    problem = constraints(*toy, 1.0)
    state = project(problem, 5000, 1e-8)
    ratio = slack(problem, state.multiplier) / problem.bound
    slack_divergence = (ratio - np.log(ratio) - 1).sum()
    divergence = np.trace(state.A) - np.linalg.slogdet(state.A)[1] - 4
    assert_allclose(state.value, divergence + slack_divergence, rtol=1e-10)


@pytest.mark.parametrize("gamma", [0.1, 1.0, np.inf])
def test_dual_rises_to_the_objective(gamma, toy):
    problem = constraints(*toy, gamma)
    state = project(problem, 200, 1e-8)
    assert np.diff(state.history).min() > -1e-10
    if gamma == 0.1:
        assert_allclose(state.history[-1], state.value, rtol=1e-7)


def test_t4_metric_learn(toy):
    """ITML(gamma=1, tol=1e-3, max_iter=1000) of metric-learn 0.7.0 with NumPy 2.4.6.

    Recorded by benchmarks/metric_learn/itml.py.
    """
    X, y = toy
    model = ITML(1.0, tol=1e-3, bounds=percentile_bounds(X)).fit_pairs(X, *toy_pairs(y))
    expected = [
        [0.33644927805706504, -0.07135983226108703, 0.03122877681855706, -0.05432596740270646],
        [-0.07135983226108703, 0.5127607910844708, -0.2598102092573435, 0.15552661988431635],
        [0.03122877681855706, -0.2598102092573435, 0.4254805185003276, 0.05258774828195917],
        [-0.05432596740270646, 0.15552661988431635, 0.05258774828195917, 0.6109242707913451],
    ]
    M = model.get_mahalanobis_matrix()
    assert_allclose(M, expected, atol=1e-12)
    assert_allclose(np.trace(M), 1.88561486, atol=1e-8)
    assert model.n_iter_ == 872
    assert model.converged_


def one_similar_pair(gamma):
    X = np.array([[2.0, 0, 0, 0], [0.0, 0, 0, 0]])
    return ITML(gamma, bounds=(1.0, 2.0), tol=1e-12).fit_pairs(X, [[0, 1]], [1])


def test_t5_closed_form_of_one_pair():
    M = one_similar_pair(1.0).get_mahalanobis_matrix()
    assert_allclose(4 * M[0, 0], 1.6, rtol=1e-12)
    for gamma in (np.inf, float("inf"), np.float64(1e12)):
        M = one_similar_pair(gamma).get_mahalanobis_matrix()
        assert_allclose(M, np.diag([0.25, 1, 1, 1]), rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("gamma", [0.3, 1.0, 7.0, np.inf])
def test_t5_general_rule_of_one_pair(sign, gamma):
    rng = np.random.RandomState(0)
    F = rng.randn(3, 3)
    A0, v = F @ F.T + np.eye(3), rng.randn(1, 3)
    p = squared(v, A0)[0]
    bound = p / 3 if sign > 0 else 3 * p
    state = project(Constraints(A0, v, np.array([sign]), np.array([bound]), gamma), 100, 0.0)
    expected = 1 / (1 / p + (1 / bound - 1 / p) / (1 + 1 / gamma))
    assert_allclose(squared(v, state.A), expected, rtol=1e-12)
    inverse_xi = 1 / bound - sign * state.multiplier[0] / gamma
    assert_allclose(1 / inverse_xi, expected, rtol=1e-12)


def test_t6_a_satisfied_pair_changes_nothing():
    X = np.array([[0.5, 0, 0], [0.0, 0, 0], [9.0, 0, 0]])
    model = ITML(bounds=(1.0, 2.0)).fit_pairs(X, [[0, 1], [1, 2]], [1, 0])
    assert_allclose(model.get_mahalanobis_matrix(), np.eye(3), atol=1e-15)
    assert model.n_iter_ == 1
    assert model.converged_
    assert model.objective_ == 0.0
