"""BFGS that continues: the minimum, the line search, and what a second call remembers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import rosen, rosen_der

from vicinal.solvers import continued_bfgs
from vicinal.solvers.continued_bfgs import ContinuedBfgs, Dense, LimitedMemory


class Function:
    """J on params of any shape, counting its evaluations."""

    n_rows = 1

    def __init__(self, value, gradient):
        self.value, self.gradient, self.count = value, gradient, 0

    def value_and_gradient(self, params, rows=None):
        self.count += 1
        flat = params.ravel()
        return self.value(flat), self.gradient(flat).reshape(params.shape)

    def project(self, params):
        return params


def quadratic(condition=100.0, d=12, target=2.0):
    weights = np.geomspace(1, condition, d)
    return Function(lambda x: 1 + weights @ (x - target) ** 2 / 2, lambda x: weights * (x - target))


@pytest.fixture(params=["dense", "limited"])
def memory(request, monkeypatch):
    if request.param == "limited":
        monkeypatch.setattr(continued_bfgs, "MAX_DENSE", 0)


@pytest.mark.usefixtures("memory")
def test_reaches_the_minimum_of_a_bent_valley():
    problem = Function(lambda x: 1 + rosen(x), rosen_der)
    start = np.array([[0.2, 1.0, 0.7], [0.5, 1.1, 0.3]])
    solution = ContinuedBfgs()(problem, start, max_iter=300, tol=1e-10)
    assert solution.converged
    assert solution.value == pytest.approx(1.0, abs=1e-8)
    assert solution.params.shape == (2, 3)
    assert problem.count < 2 * solution.n_iter + 10


@pytest.mark.usefixtures("memory")
def test_remembers_the_curvature_of_the_run_before():
    solve = ContinuedBfgs()
    solve(quadratic(), np.zeros(12), max_iter=200, tol=1e-12)
    again, fresh = quadratic(target=-1.0), quadratic(target=-1.0)
    solve(again, np.zeros(12), max_iter=200, tol=1e-12)
    ContinuedBfgs()(fresh, np.zeros(12), max_iter=200, tol=1e-12)
    assert again.count < 0.7 * fresh.count


@pytest.mark.parametrize("make", [Dense, LimitedMemory])
def test_secant_equation(make):
    """H·change = step for the latest pair, and H stays symmetric and positive."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(6, 6))
    A = A @ A.T + np.eye(6)
    curvature = make()
    for _ in range(4):
        step = rng.normal(size=6)
        curvature.learn(step, A @ step)
    np.testing.assert_allclose(curvature.solve(A @ step), step, rtol=1e-9)
    H = np.column_stack([curvature.solve(e) for e in np.eye(6)])
    np.testing.assert_allclose(H, H.T, atol=1e-9)
    assert np.linalg.eigvalsh(H)[0] > 0


def test_both_memories_take_the_same_first_steps():
    rng = np.random.default_rng(1)
    A = np.diag(np.geomspace(1, 9, 5))
    step, vector = rng.normal(size=5), rng.normal(size=5)
    dense, limited = Dense(), LimitedMemory()
    dense.learn(step, A @ step)
    limited.learn(step, A @ step)
    np.testing.assert_allclose(dense.solve(vector), limited.solve(vector), rtol=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_walls_are_backed_away_from(bad):
    def value(x):
        return bad if x[0] <= 0 else 1e-3 * x[0] - 1e-6 * np.log(x[0])

    def gradient(x):
        return np.array([bad if x[0] <= 0 else 1e-3 - 1e-6 / x[0]])

    solution = ContinuedBfgs()(Function(value, gradient), np.array([1.0]), max_iter=200, tol=1e-12)
    np.testing.assert_allclose(solution.params, 1e-3, rtol=1e-2)


def test_far_minimum_is_reached_by_ever_longer_steps():
    problem = Function(lambda x: 0.5 * np.sum((x - 1e8) ** 2) / 1e16, lambda x: (x - 1e8) / 1e16)
    solution = ContinuedBfgs()(problem, np.full(3, 1e-3), max_iter=100, tol=1e-12)
    np.testing.assert_allclose(solution.params, 1e8, rtol=1e-4)


def test_kinks_do_not_exhaust_the_line_search():
    """|x₁| + 10|x₂|, where gradients never vanish: the bracket shrinks onto a step or ends."""
    weights = np.array([1.0, 10.0])
    problem = Function(lambda x: 1 + weights @ np.abs(x), lambda x: weights * np.sign(x))
    solution = ContinuedBfgs()(problem, np.array([1.3, -0.7]), max_iter=300, tol=0.0)
    assert solution.value == pytest.approx(1.0, abs=1e-6)


def test_no_step_at_all():
    """A gradient that points uphill: nothing along it is lower."""
    problem = Function(lambda x: 1 + float(np.abs(x).sum()), lambda x: -np.ones(2))
    solution = ContinuedBfgs()(problem, np.array([1.0, 1.0]), max_iter=10, tol=1e-9)
    assert (solution.n_iter, solution.stop_reason) == (0, "step")


def test_float32_stays_float32():
    problem = quadratic()
    solution = ContinuedBfgs()(problem, np.zeros(12, dtype=np.float32), max_iter=200, tol=1e-6)
    assert solution.params.dtype == np.float32
    np.testing.assert_allclose(solution.params, 2.0, rtol=1e-2)
