"""The accelerated projected gradient: faster than Algorithm 1, and safe where it should not be."""

from __future__ import annotations

import numpy as np
import pytest

from vicinal.solvers import accelerated_projected_gradient, projected_gradient


class Counted:
    """J over a half-space or everywhere, counting its evaluations."""

    n_rows = 1

    def __init__(self, J, project=lambda x: x):
        self.J, self._project, self.count = J, project, 0

    def value_and_gradient(self, x, rows=None):
        self.count += 1
        return self.J(x)

    def project(self, x):
        return self._project(x)


def quadratic(condition, d=40, seed=0):
    """1 + ½(x − b)ᵀH(x − b), the eigenvalues of H spread over ``condition``."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(d, d)))[0]
    H, b = (Q * np.geomspace(1, 1 / condition, d)) @ Q.T, rng.normal(size=d)
    return lambda x: (1 + (x - b) @ H @ (x - b) / 2, H @ (x - b))


@pytest.mark.parametrize(("condition", "gain"), [(1e3, 2), (1e4, 4)])
def test_needs_far_fewer_evaluations_than_algorithm_1(condition, gain):
    """√κ against κ: the gain grows with the condition."""
    spent = {}
    for solver in (projected_gradient, accelerated_projected_gradient):
        problem = Counted(quadratic(condition))

        def close(progress):
            return progress.value < 1 + 1e-4

        solution = solver(problem, np.ones(40), max_iter=20_000, tol=0.0, callback=close)
        assert solution.stop_reason == "callback"
        spent[solver.__name__] = problem.count
    ratio = spent["projected_gradient"] / spent["accelerated_projected_gradient"]
    assert ratio > gain


def test_evaluations_an_iteration():
    problem = Counted(quadratic(1e3))
    solution = accelerated_projected_gradient(problem, np.ones(40), max_iter=200, tol=0.0)
    assert problem.count <= 2.6 * solution.n_iter + 1


@pytest.mark.parametrize("start", [1e-3, 1.0, 1e3])
def test_step_adapts_both_ways(start):
    """A start far too small or too large makes a first step as wrong; few trials mend it."""
    problem = Counted(quadratic(10))
    solution = accelerated_projected_gradient(problem, np.full(40, start), max_iter=500, tol=1e-9)
    assert solution.value < 1 + 1e-7
    assert problem.count < 200


@pytest.mark.parametrize("seed", range(5))
def test_kinks_end_within_bounded_work(seed):
    """A sum of hinges in the plane: every iteration is bounded, and so is the run."""
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(12, 2)), rng.normal(size=12)

    def hinges(x):
        z = A @ x + b
        return np.maximum(z, 0).sum() + x @ x / 50, A[z > 0].sum(axis=0) + x / 25

    problem = Counted(hinges)
    solution = accelerated_projected_gradient(problem, np.ones(2), max_iter=5000, tol=1e-10)
    assert solution.converged
    assert solution.n_iter < 1000
    assert problem.count <= 4 * solution.n_iter + 1
    assert np.all(np.diff(solution.history) < 0)


def test_momentum_is_restarted():
    """Without restarts the values of an accelerated run ripple; with them they only fall."""
    problem = Counted(quadratic(1e3))
    solution = accelerated_projected_gradient(problem, np.ones(40), max_iter=600, tol=1e-12)
    assert np.all(np.diff(solution.history) < 0)
    assert solution.value < 1 + 1e-9


def test_stays_in_the_set():
    """The extrapolated points are projected too: J need not be defined outside."""

    def defined_for_positive(x):
        assert (x >= 0).all()
        weight, slope = np.array([1.0, 10.0]), np.array([5.0, 0.0])
        return weight @ (x - 0.5) ** 2 + slope @ x + 3, 2 * weight * (x - 0.5) + slope

    problem = Counted(defined_for_positive, lambda x: np.maximum(x, 0))
    solution = accelerated_projected_gradient(problem, np.array([1.0, 2.0]), tol=1e-10)
    np.testing.assert_allclose(solution.params, [0.0, 0.5], atol=1e-5)
