"""Smoothing kinks away: the minimum by an independent method, and an honest certificate."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import lsq_linear, minimize

from vicinal.solvers import SMOOTHING_SOLVERS, SOLVERS, lbfgs, solver_of
from vicinal.solvers.smoothing import (
    Stage,
    smallest_in_hull,
    smoothed_lbfgs,
    smoothed_projected_gradient,
)


class Coordinates(NamedTuple):
    to_params: Callable
    from_params: Callable
    gradient: Callable


class LeastSquares:
    n_rows = 1

    def value_and_gradient(self, params, rows=None):
        return float(params @ params), 2 * params

    def project(self, params):
        return params


NONE = Coordinates(lambda x: x, lambda x: x, lambda x, g: g)


def diagonal(units):
    return Coordinates(lambda x: x * units, lambda x: x / units, lambda x, g: g * units)


class Hinges:
    """J = Σ_i [1 − a_iᵀx]₊ + ρ/2·‖x‖², over all x or x ≥ 0; the kink is a parabola w wide."""

    bound = 0.0
    has_kinks = True
    is_convex = True

    def __init__(self, A, rho=1.0, *, positive=False, coordinates=NONE):
        self.A, self.rho, self.positive = A, rho, positive
        self.coordinates = self.measure = coordinates
        self.n_rows = len(A)
        self.height = float(len(A))
        self.count = 0

    @classmethod
    def random(cls, seed, n=60, d=8, **options):
        rng = np.random.default_rng(seed)
        return cls(rng.normal(size=(n, d)) + 0.3, **options)

    def project(self, x):
        return np.maximum(x, 0.0) if self.positive else x

    def value_and_gradient(self, x, rows=None):
        self.count += 1
        u = 1 - self.A @ x
        value = np.maximum(u, 0).sum() + self.rho * x @ x / 2
        return float(value), -self.A.T @ (u > 0) + self.rho * x

    def smoothed(self, x, width):
        self.count += 1
        u = 1 - self.A @ x
        slope = np.clip(u / width, 0, 1)
        square = self.rho * x @ x / 2
        value = float((slope * (u - width * slope / 2)).sum() + square)
        exact = float(np.maximum(u, 0).sum() + square)
        return value, -self.A.T @ slope + self.rho * x, exact

    def lowest(self):
        """J* from the dual, a smooth problem in a box: max Σ λ − ‖Aᵀλ‖²/2ρ over 0 ≤ λ ≤ 1."""

        def dual(v):
            s = self.A.T @ v[: self.n_rows]
            s = np.maximum(s, 0) if self.positive else s
            return s @ s / (2 * self.rho) - v.sum(), self.A @ s / self.rho - 1

        result = minimize(
            dual,
            np.full(self.n_rows, 0.5),
            jac=True,
            bounds=[(0, 1)] * self.n_rows,
            method="L-BFGS-B",
            options={"maxiter": 10_000, "ftol": 1e-15, "gtol": 1e-10},
        )
        return -result.fun

    def smallest_subgradient(self, x, kink=1e-3):
        """Least squares over the slopes of the rows at their kink, each between 0 and 1."""
        u = 1 - self.A @ x
        at_kink = np.abs(u) <= kink
        fixed = -self.A[u > kink].sum(axis=0) + self.rho * x
        if not at_kink.any():
            return np.linalg.norm(fixed)
        found = lsq_linear(-self.A[at_kink].T, -fixed, bounds=(0, 1))
        return np.sqrt(2 * found.cost)


@pytest.mark.parametrize("seed", range(8))
def test_minimum_is_that_of_the_dual(seed):
    problem = Hinges.random(seed)
    lowest = problem.lowest()
    solution = smoothed_lbfgs(problem, np.zeros(8), max_iter=500)
    assert solution.stop_reason == "stationary"
    assert lowest * (1 - 1e-8) <= solution.value <= lowest * (1 + 1e-3)
    plain = lbfgs(problem, np.zeros(8), max_iter=500)
    assert solution.value <= plain.value


@pytest.mark.parametrize("seed", range(4))
def test_constrained_minimum_is_that_of_the_dual(seed):
    problem = Hinges.random(seed, positive=True)
    solution = smoothed_projected_gradient(problem, np.full(8, 0.1), max_iter=3000)
    assert solution.stop_reason == "stationary"
    assert solution.value <= problem.lowest() * (1 + 1e-3)
    assert (solution.params >= 0).all()


@pytest.mark.parametrize("seed", range(4))
def test_smallest_subgradient_at_the_kinks_is_small_where_a_run_is_stationary(seed):
    """Rows at their kink have any slope in [0, 1]: some choice of them cancels the gradient."""
    problem = Hinges.random(seed)
    solution = smoothed_lbfgs(problem, np.zeros(8), max_iter=500, tol=1e-7)
    assert solution.stop_reason == "stationary"
    size = problem.smallest_subgradient(solution.params) * np.linalg.norm(solution.params)
    assert size <= 0.01 * solution.value
    _, gradient = problem.value_and_gradient(solution.params)
    assert np.linalg.norm(gradient) > 10 * problem.smallest_subgradient(solution.params)


def test_history_is_of_the_objective_itself():
    problem = Hinges.random(0)
    seen = []
    solution = smoothed_lbfgs(problem, np.zeros(8), max_iter=500, callback=seen.append)
    assert solution.history[0] == 60.0
    assert (np.diff(solution.history) < 0).all()
    assert solution.value == solution.history[-1]
    assert solution.value == problem.value_and_gradient(solution.params)[0]
    assert [progress.n_iter for progress in seen] == list(range(1, solution.n_iter + 1))
    for progress in seen[::7]:
        assert progress.value == problem.value_and_gradient(progress.params)[0]


@pytest.mark.parametrize("solver", SMOOTHING_SOLVERS.values())
def test_max_iter_counts_the_iterations_of_all_widths(solver):
    solution = solver(Hinges.random(0, positive=True), np.full(8, 0.1), max_iter=7)
    assert (solution.n_iter, solution.stop_reason, solution.converged) == (7, "max_iter", False)


@pytest.mark.parametrize("solver", SMOOTHING_SOLVERS.values())
def test_callback_stops(solver):
    solution = solver(
        Hinges.random(0), np.full(8, 0.1), max_iter=99, callback=lambda p: p.n_iter == 12
    )
    assert (solution.n_iter, solution.stop_reason) == (12, "callback")


@pytest.mark.parametrize("after", [5, 30, 60])
def test_interrupt_keeps_the_best_point(after):
    problem = Hinges.random(0)
    smoothed = problem.smoothed

    def interrupting(x, width):
        if problem.count >= after:
            raise KeyboardInterrupt
        return smoothed(x, width)

    problem.smoothed = interrupting
    solution = smoothed_lbfgs(problem, np.zeros(8), max_iter=500)
    assert solution.stop_reason == "interrupted"
    assert solution.value == problem.value_and_gradient(solution.params)[0] < 60.0


def test_coordinates_undo_bad_units():
    """Features in units that differ by 10⁶: in the coordinates nothing of that is left."""
    units = np.geomspace(1e-3, 1e3, 8)
    plain = Hinges.random(3, rho=1e-9)
    bad = Hinges(plain.A / units, rho=1e-18, coordinates=diagonal(units))
    start = np.full(8, 0.01)
    first = smoothed_lbfgs(plain, start, max_iter=500)
    second = smoothed_lbfgs(bad, start * units, max_iter=500)
    np.testing.assert_allclose(second.history[:8], first.history[:8], rtol=1e-5)
    np.testing.assert_allclose(second.value, first.value, rtol=1e-2)


def test_start_at_the_minimum_takes_no_step():
    separated = Hinges(np.eye(3), rho=0.0)
    solution = smoothed_lbfgs(separated, np.full(3, 2.0), max_iter=50)
    assert (solution.n_iter, solution.stop_reason, solution.value) == (0, "stationary", 0.0)


def test_flat_start_is_told_from_a_minimum_that_costs_nothing():
    class Flat(Hinges):
        def smoothed(self, x, width):
            return 30.0, np.zeros_like(x), 30.0

    solution = smoothed_lbfgs(Flat(np.ones((60, 8))), np.ones(8), max_iter=50)
    assert (solution.n_iter, solution.stop_reason) == (0, "gradient")


def test_warm_start_ends_soon():
    problem = Hinges.random(1)
    first = smoothed_lbfgs(problem, np.zeros(8), max_iter=500)
    again = smoothed_lbfgs(problem, first.params, max_iter=500)
    assert again.stop_reason == "stationary"
    assert again.value <= first.value
    assert again.n_iter <= first.n_iter


def test_objective_that_cannot_be_negative_is_done_near_zero():
    """Separable, hardly regularized: the minimum is far away, and of no interest."""
    problem = Hinges(np.random.default_rng(0).uniform(0.5, 1.5, size=(50, 4)), rho=1e-6)
    solution = smoothed_lbfgs(problem, np.full(4, 0.01), max_iter=200)
    assert solution.stop_reason == "stationary"
    assert solution.value <= 1e-4 * 50


def test_point_that_is_not_a_minimum_is_not_certified():
    problem = Hinges.random(0)
    stage = Stage(problem, NONE, 1e-3, deque(maxlen=30))
    rng = np.random.default_rng(0)
    best = smoothed_lbfgs(problem, np.zeros(8), max_iter=500).params
    for scale in (0.1, 0.3):
        point = best + scale * np.linalg.norm(best) * rng.normal(size=8) / np.sqrt(8)
        for _ in range(20):
            stage.value_and_gradient(point + 1e-4 * rng.normal(size=8))
        assert not stage.certifies(stage.tangent(point), 1e-3)


def test_certificate_does_not_depend_on_the_units():
    """J = 1 + (cθ₀ − 1)² + θ₁² is far from its minimum at (0, 1), however small c is."""
    c = 1e-4

    class InUnits(Hinges):
        def smoothed(self, x, width):
            value = 1 + (c * x[0] - 1) ** 2 + (x[1] - 1) ** 2
            return value, 2 * np.array([c * (c * x[0] - 1), x[1] - 1]), value

    for units, certified in (([1.0, 1.0], True), ([1 / c, 1.0], False)):
        problem = InUnits(np.ones((2, 2)), coordinates=diagonal(np.array(units)))
        stage = Stage(problem, NONE, 1e-3, deque(maxlen=30))
        stage.value_and_gradient(np.array([0.0, 1.0]))
        assert stage.certifies(stage.seen[-1], 1e-3) == certified


def test_run_without_a_certificate_is_not_converged():
    """Gradients that do not belong to the values: nothing decreases, nothing is proven."""

    class Wrong(Hinges):
        bound = -np.inf

        def smoothed(self, x, width):
            value, _, exact = super().smoothed(x, width)
            return value, np.full_like(x, 1e3), exact

    wrong = Wrong(np.random.default_rng(0).normal(size=(60, 8)))
    solution = smoothed_lbfgs(wrong, np.zeros(8) + 1e-3, max_iter=500)
    assert (solution.stop_reason, solution.converged) == ("stalled", False)


def test_start_that_is_not_finite_is_an_error():
    with pytest.raises(ValueError, match="not finite at the start"):
        smoothed_lbfgs(Hinges(np.full((3, 2), np.nan)), np.ones(2))


def test_float32_in_float32_out():
    solution = smoothed_lbfgs(Hinges.random(0), np.zeros(8, dtype=np.float32), max_iter=200)
    assert solution.params.dtype == np.float32
    assert solution.value <= Hinges.random(0).lowest() * (1 + 1e-2)
    assert smoothed_lbfgs(Hinges.random(0), [0] * 8, max_iter=5).params.dtype == np.float64


def test_start_is_not_written_to():
    start = np.zeros(8)
    start.setflags(write=False)
    for max_iter in (0, 5):
        solution = smoothed_lbfgs(Hinges.random(0), start, max_iter=max_iter)
        assert not np.shares_memory(solution.params, start)


@pytest.mark.parametrize("solver", SMOOTHING_SOLVERS.values())
def test_objective_without_a_minimum_has_not_converged(solver):
    class Falling(Hinges):
        bound = -np.inf

        def smoothed(self, x, width):
            return -float(x @ x), -2 * x, -float(x @ x)

    solution = solver(Falling(np.ones((60, 8))), np.ones(8), max_iter=10_000)
    assert (solution.stop_reason, solution.converged) == ("unbounded", False)
    assert np.isfinite(solution.params).all()


@given(
    seed=st.integers(0, 2**31),
    k=st.integers(1, 6),
    p=st.integers(1, 5),
    center=st.floats(0.0, 3.0),
)
def test_smallest_in_hull_satisfies_its_optimality_condition(seed, k, p, center):
    """g is the shortest of a hull if and only if ⟨g, v⟩ ≥ ‖g‖² for every vector v of it."""
    vectors = list(np.random.default_rng(seed).normal(size=(k, p)) + center)
    shares = smallest_in_hull(vectors)
    assert (shares >= 0).all()
    assert shares.sum() == pytest.approx(1.0)
    g = shares @ np.stack(vectors)
    assert min(g @ v for v in vectors) >= g @ g - 1e-6 * max(v @ v for v in vectors)


def test_smallest_in_hull_of_zeros():
    np.testing.assert_allclose(smallest_in_hull([np.zeros(2), np.zeros(2)]), [0.5, 0.5])


def test_problems_that_are_convex_or_have_kinks_are_certified():
    kinked, convex, smooth = (Hinges.random(0) for _ in range(3))
    unknown = LeastSquares()
    kinked.is_convex = convex.has_kinks = smooth.is_convex = smooth.has_kinks = False
    for problem in (kinked, convex):
        assert solver_of("lbfgs", problem) is smoothed_lbfgs
        assert solver_of("apg", problem) is smoothed_projected_gradient
    for name, solver in SOLVERS.items():
        assert solver_of(name, smooth) is solver_of(name, unknown) is solver
    assert [solver_of(name, kinked) for name in ("pgd", "sgd")] == [SOLVERS["pgd"], SOLVERS["sgd"]]


def test_a_hull_of_vectors_that_overflowed_has_no_shortest_one():
    np.testing.assert_array_equal(
        smallest_in_hull([np.array([np.inf, 0.0]), np.array([0.0, 1.0])]), [0.5, 0.5]
    )
