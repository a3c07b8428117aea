"""The stochastic solver: its batches, its estimates, its independence of every scale."""

from __future__ import annotations

import numpy as np
import pytest

from vicinal.solvers import stochastic


class Rows:
    """Σ_i ½(⟨a_i, x⟩ − b_i)², remembering which rows were asked for and what was answered."""

    def __init__(self, n=100, noise=0.5):
        rng = np.random.default_rng(0)
        self.n_rows = n
        self.A = rng.normal(size=(n, 3))
        self.b = self.A @ [1.0, -2.0, 0.5] + noise * rng.normal(size=n)
        self.solution = np.linalg.lstsq(self.A, self.b, rcond=None)[0]
        self.lowest = np.sum((self.A @ self.solution - self.b) ** 2) / 2
        self.calls = []

    def value_and_gradient(self, x, rows=None):
        chosen = np.arange(self.n_rows) if rows is None else rows
        residual = self.A[chosen] @ x - self.b[chosen]
        share = self.n_rows / len(chosen)
        value = share * residual @ residual / 2
        self.calls.append((rows, value))
        return value, share * residual @ self.A[chosen]

    def project(self, x):
        return x


START = np.full(3, 0.1)


@pytest.mark.parametrize(("n", "batch_size"), [(100, 32), (97, 10), (5, 1), (20, 1000)])
def test_every_epoch_visits_every_row_once(n, batch_size):
    problem = Rows(n)
    stochastic(problem, START, max_iter=3, tol=0.0, batch_size=batch_size, random_state=0)
    (first, _), *batches = problem.calls
    n_batches = -(-n // batch_size)
    assert first is None
    assert len(batches) == 3 * n_batches
    orders = []
    for epoch in range(3):
        rows = [rows for rows, _ in batches[epoch * n_batches : (epoch + 1) * n_batches]]
        assert all(np.all(np.diff(part) > 0) and len(part) <= batch_size for part in rows)
        orders.append(np.concatenate(rows))
        np.testing.assert_array_equal(np.sort(orders[-1]), np.arange(n))
    if n_batches > 1:
        assert not np.array_equal(orders[0], orders[1])


def test_history_is_the_mean_of_the_estimates():
    problem = Rows(97)
    solution = stochastic(problem, START, max_iter=6, tol=0.0, batch_size=10, random_state=0)
    (_, first), *batches = problem.calls
    assert solution.history[0] == first
    for epoch, value in enumerate(solution.history[1:]):
        part = batches[10 * epoch : 10 * epoch + 10]
        mean = np.average([J for _, J in part], weights=[len(rows) for rows, _ in part])
        np.testing.assert_allclose(value, mean, rtol=1e-12)
    assert solution.value == solution.history.min()


def test_value_of_a_convex_problem_is_not_too_low():
    """Jensen: J at the average of an epoch is at most the mean of J; chance may take a little."""
    problem = Rows(1000)
    solution = stochastic(problem, START, max_iter=8, tol=0.0, batch_size=50, random_state=0)
    value, _ = problem.value_and_gradient(solution.params)
    assert value <= solution.value * (1 + 1e-3)


def test_one_batch_is_descent_on_the_whole():
    problem = Rows()
    solution = stochastic(problem, START, max_iter=500, tol=1e-9, batch_size=100)
    np.testing.assert_allclose(solution.params, problem.solution, rtol=1e-3)
    assert solution.converged


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("batch_size", [10, 64])
def test_close_to_the_minimum_within_a_few_epochs(seed, batch_size):
    problem = Rows(1000)
    solution = stochastic(
        problem, START, max_iter=60, tol=1e-5, batch_size=batch_size, random_state=seed
    )
    value, _ = problem.value_and_gradient(solution.params)
    assert value < problem.lowest * 1.005


def test_interpolation_is_found_exactly():
    """Without noise every batch has the same minimum, and nothing limits the accuracy."""
    problem = Rows(noise=0.0)
    solution = stochastic(problem, START, max_iter=400, tol=1e-6, batch_size=10, random_state=0)
    np.testing.assert_allclose(solution.params, problem.solution, atol=1e-4)


def test_seed_decides():
    def fit(random_state):
        return stochastic(
            Rows(), START, max_iter=5, tol=0.0, batch_size=10, random_state=random_state
        )

    np.testing.assert_array_equal(fit(3).history, fit(3).history)
    np.testing.assert_array_equal(fit(3).history, fit(np.random.default_rng(3)).history)
    assert not np.array_equal(fit(3).history, fit(4).history)
    legacy = np.random.RandomState(3)
    assert fit(legacy).value < fit(legacy).history[0]


def test_random_state_is_advanced_not_copied():
    rng = np.random.default_rng(0)
    first = stochastic(Rows(), START, max_iter=2, tol=0.0, batch_size=10, random_state=rng)
    second = stochastic(Rows(), START, max_iter=2, tol=0.0, batch_size=10, random_state=rng)
    assert not np.array_equal(first.history, second.history)


def test_projection_is_the_euclidean_one():
    """At the constrained minimum the normalized steps stand still, as a v for each entry would not.

    min ½‖x − c‖² over x₁ + x₂ ≤ 1 has its minimum where c is projected to, off both axes.
    """
    c = np.array([3.0, 1.0])

    class HalfPlane:
        n_rows = 1

        def value_and_gradient(self, x, rows=None):
            return (x - c) @ (x - c) / 2 * 1.0, x - c

        def project(self, x):
            return x - max(0.0, x.sum() - 1) / 2

    solution = stochastic(HalfPlane(), np.array([0.1, 0.2]), max_iter=500, tol=1e-9)
    np.testing.assert_allclose(solution.params, [1.5, -0.5], atol=1e-3)


@pytest.mark.parametrize("batch_size", [0, -3])
def test_batch_size_must_be_positive(batch_size):
    with pytest.raises(ValueError, match="batch_size must be at least 1"):
        stochastic(Rows(), START, batch_size=batch_size)


def test_an_epoch_that_diverges_is_taken_back():
    """J is infinite beyond ‖x‖ = 3, where the first steps of a long stride lead."""

    class Fenced(Rows):
        def value_and_gradient(self, x, rows=None):
            value, gradient = super().value_and_gradient(x, rows)
            return (value if np.linalg.norm(x) < 3 else np.inf), gradient

    problem = Fenced(noise=0.0)
    solution = stochastic(
        problem, np.array([-2.0, 2.0, -0.9]), max_iter=300, tol=1e-6, batch_size=5, random_state=0
    )
    assert np.isfinite(solution.history).all()
    np.testing.assert_allclose(solution.params, problem.solution, atol=1e-2)
