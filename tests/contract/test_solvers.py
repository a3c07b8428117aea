"""Every solver, through one bank of problems whose minima are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from vicinal.solvers import SOLVERS, Progress, Solution

PROJECTING = ("pgd", "apg", "sgd")
DESCENDING = ("pgd", "apg", "lbfgs")
ALL = tuple(SOLVERS)


def psd_part(M):
    w, V = np.linalg.eigh((M + M.T) / 2)
    return (V * np.maximum(w, 0)) @ V.T


# --------------------------------------------------------------------------------- bank of problems


class Unconstrained:
    n_rows = 1

    def project(self, params):
        return params


class QuadraticOnCone:
    """½⟨E, PEP⟩ + ⟨S, E⟩ + 3 over M ⪰ 0, with E = M − M*.

    M* ⪰ 0 has rank 2 and S ⪰ 0 lives on its null space, so ∇J(M*) = S, S ⪰ 0, ⟨S, M*⟩ = 0: the KKT
    conditions hold, M* is the minimum and J* = 3.
    """

    n_rows = 1
    lowest = 3.0

    def __init__(self):
        rng = np.random.default_rng(1)
        V = np.linalg.qr(rng.normal(size=(5, 5)))[0]
        self.solution = (V * [2.0, 1.0, 0.0, 0.0, 0.0]) @ V.T
        self.S = (V * [0.0, 0.0, 0.5, 1.0, 0.3]) @ V.T
        U = np.linalg.qr(rng.normal(size=(5, 5)))[0]
        self.P = (U * [0.5, 0.8, 1.0, 1.2, 1.5]) @ U.T
        self.start = np.eye(5) / 3

    def value_and_gradient(self, M, rows=None):
        E = M - self.solution
        curved = self.P @ E @ self.P
        return 3.0 + np.sum(E * curved) / 2 + np.sum(self.S * E), curved + self.S

    def project(self, M):
        return psd_part(M)


class LeastSquares(Unconstrained):
    """Σ_i ½‖L a_i − b_i‖² over L (2×3), from 90 rows with noise."""

    n_rows = 90

    def __init__(self):
        rng = np.random.default_rng(2)
        self.A = rng.normal(size=(90, 3))
        self.B = self.A @ rng.normal(size=(3, 2)) + rng.normal(size=(90, 2))
        self.solution = np.linalg.lstsq(self.A, self.B, rcond=None)[0].T
        self.lowest = np.sum((self.A @ self.solution.T - self.B) ** 2) / 2
        self.start = np.full((2, 3), 0.1)

    def value_and_gradient(self, L, rows=None):
        chosen = slice(None) if rows is None else rows
        A, B = self.A[chosen], self.B[chosen]
        residual = A @ L.T - B
        share = self.n_rows / len(A)
        return share * np.sum(residual**2) / 2, share * residual.T @ A


class Logistic(Unconstrained):
    """Σ_i ln(1 + exp(−y_i⟨x_i, θ⟩)) + ½‖θ‖²; the minimum from Newton's method, written out."""

    n_rows = 120

    def __init__(self):
        rng = np.random.default_rng(3)
        self.X = rng.normal(size=(120, 4)) * [1.0, 2.0, 0.5, 1.0]
        self.y = np.where(self.X @ [1.0, -1.0, 0.5, 0.0] + rng.normal(size=120) > 0, 1.0, -1.0)
        self.start = np.full(4, 0.2)
        theta = np.zeros(4)
        for _ in range(30):
            p = 1 / (1 + np.exp(self.y * (self.X @ theta)))
            hessian = (self.X.T * (p * (1 - p))) @ self.X + np.eye(4)
            theta = theta - np.linalg.solve(hessian, theta - self.X.T @ (self.y * p))
        self.solution, self.lowest = theta, self.value_and_gradient(theta)[0]

    def value_and_gradient(self, theta, rows=None):
        chosen = slice(None) if rows is None else rows
        X, y = self.X[chosen], self.y[chosen]
        share = self.n_rows / len(X)
        margin = y * (X @ theta)
        value = share * np.sum(np.logaddexp(0, -margin)) + theta @ theta / 2
        slope = -y / (1 + np.exp(margin))
        return value, share * X.T @ slope + theta


class Hinge(Unconstrained):
    """max(0, 1 − x₁) + 2 max(0, 1 − x₂) + ¼‖x‖²: the minimum is the kink (1, 1), J* = ½."""

    solution, lowest = np.ones(2), 0.5

    def __init__(self):
        self.start = np.array([-0.7, 0.4])

    def value_and_gradient(self, x, rows=None):
        weight = np.array([1.0, 2.0])
        value = weight @ np.maximum(0, 1 - x) + x @ x / 4
        return value, -weight * (x < 1) + x / 2


class Rosenbrock(Unconstrained):
    """100 (x₂ − x₁²)² + (1 − x₁)² + 1: a bent valley; J* = 1 at (1, 1)."""

    solution, lowest = np.ones(2), 1.0

    def __init__(self):
        self.start = np.array([-1.2, 1.0])

    def value_and_gradient(self, x, rows=None):
        a, b = x[1] - x[0] ** 2, 1 - x[0]
        return 100 * a**2 + b**2 + 1, np.array([-400 * x[0] * a - 2 * b, 200 * a])


class Barrier(Unconstrained):
    """x − 0.01 ln x, which is not defined for x ≤ 0: the minimum is 0.01."""

    solution, lowest = np.array([0.01]), 0.01 - 0.01 * np.log(0.01)

    def __init__(self):
        self.start = np.array([1.0])

    def value_and_gradient(self, x, rows=None):
        with np.errstate(invalid="ignore", divide="ignore"):
            return float(x[0] - 0.01 * np.log(x[0])), 1 - 0.01 / x


class Scaled:
    """J'(θ) = value_scale · J(θ / params_scale)."""

    def __init__(self, problem, value_scale, params_scale):
        self.problem, self.by, self.units = problem, value_scale, params_scale
        self.n_rows = problem.n_rows
        self.start = problem.start * params_scale
        self.solution = problem.solution * params_scale
        self.lowest = problem.lowest * value_scale

    def value_and_gradient(self, params, rows=None):
        value, gradient = self.problem.value_and_gradient(params / self.units, rows)
        return self.by * value, (self.by / self.units) * gradient

    def project(self, params):
        return self.units * self.problem.project(params / self.units)


@dataclass
class Watched:
    """A problem that remembers where it was evaluated, and may interrupt."""

    problem: Any
    interrupt_at: int = 10**9
    params: list[np.ndarray] = field(default_factory=list)
    rows: list[Any] = field(default_factory=list)

    @property
    def n_rows(self):
        return self.problem.n_rows

    def value_and_gradient(self, params, rows=None):
        if len(self.params) + 1 == self.interrupt_at:
            raise KeyboardInterrupt
        self.params.append(params.copy())
        self.rows.append(rows)
        return self.problem.value_and_gradient(params, rows)

    def project(self, params):
        return self.problem.project(params)


def run(name: str, problem: Any, **options: Any) -> Solution:
    """One solver, with several mini-batches an epoch where it takes them."""
    options = {"max_iter": 1000, "tol": 1e-8, **options}
    if name == "sgd":
        options = {"batch_size": 32, "random_state": 0, **options}
    start = options.pop("start", getattr(problem, "start", None))
    return SOLVERS[name](problem, problem.problem.start if start is None else start, **options)


CASES = [
    (QuadraticOnCone, PROJECTING),
    (LeastSquares, ALL),
    (Logistic, ALL),
    (Hinge, ALL),
    (Rosenbrock, ("lbfgs", "apg")),
    (Barrier, ALL),
]
PAIRS = [pytest.param(P, s, id=f"{P.__name__}-{s}") for P, names in CASES for s in names]
SMOOTH = [p for p in PAIRS if p.values[0] not in (Hinge, Rosenbrock)]
each_solver = pytest.mark.parametrize("name", ALL)


# ----------------------------------------------------------------------------- it finds the minimum


def accuracy(make: type, name: str) -> float:
    """The relative error of J that is promised.

    Algorithm 1 is a descent method, and at the kink of a hinge the gradient need not descend: it
    stops short. The others get through. Estimates of J limit how well the best epoch is known.
    """
    if make is Hinge:
        return 0.5 if name == "pgd" else 1e-2
    return 2e-3 if name == "sgd" else 1e-7


@pytest.mark.parametrize(("make", "name"), PAIRS)
def test_reaches_the_minimum(make, name):
    problem = make()
    solution = run(name, problem)
    value, _ = problem.value_and_gradient(solution.params)
    rtol = accuracy(make, name)
    assert solution.converged
    assert problem.lowest * (1 - 1e-12) <= value <= problem.lowest * (1 + rtol)
    np.testing.assert_allclose(solution.params, problem.solution, atol=5 * np.sqrt(rtol))


@pytest.mark.parametrize("scales", [(1e-8, 1e8), (1e8, 1e-8), (1e12, 1.0)])
@pytest.mark.parametrize(("make", "name"), PAIRS)
def test_no_scale_keeps_it_from_the_minimum(make, name, scales):
    problem = Scaled(make(), *scales)
    solution = run(name, problem)
    value, _ = problem.value_and_gradient(solution.params)
    assert solution.converged
    assert value <= problem.lowest * (1 + accuracy(make, name))


@pytest.mark.parametrize("scales", [(2.0**-40, 1.0), (2.0**40, 2.0**20), (1.0, 2.0**-20)])
@pytest.mark.parametrize(("make", "name"), PAIRS)
def test_scales_do_not_change_the_path(make, name, scales):
    """Powers of two change no digit of the arithmetic, so nothing at all may change."""
    plain = run(name, make(), tol=1e-5)
    scaled = run(name, Scaled(make(), *scales), tol=1e-5)
    assert (scaled.n_iter, scaled.stop_reason) == (plain.n_iter, plain.stop_reason)
    np.testing.assert_allclose(scaled.history / scales[0], plain.history, rtol=1e-9)
    np.testing.assert_allclose(scaled.params / scales[1], plain.params, rtol=1e-6, atol=1e-9)


# ------------------------------------------------------------------ the solution says what happened


@pytest.mark.parametrize(("make", "name"), PAIRS)
def test_history_and_value_are_those_of_the_iterates(make, name):
    problem = make()
    seen: list[Progress] = []
    solution = run(name, problem, callback=seen.append)
    history = solution.history
    assert history[0] == problem.value_and_gradient(problem.start)[0]
    assert solution.value == history.min()
    assert set(history[1:]) <= {progress.value for progress in seen} | {solution.value}
    assert [progress.n_iter for progress in seen] == list(range(1, solution.n_iter + 1))
    assert all(progress.step >= 0 for progress in seen)
    if name != "sgd":
        assert solution.value == problem.value_and_gradient(solution.params)[0]


@pytest.mark.parametrize(("make", "name"), [p for p in PAIRS if p.values[1] in DESCENDING])
def test_descent_is_monotone(make, name):
    solution = run(name, make())
    decrease = -np.diff(solution.history)
    assert len(decrease) >= 3
    assert np.all(decrease > 0) if name in ("pgd", "apg") else np.all(decrease >= 0)
    assert solution.value == solution.history[-1]


@pytest.mark.parametrize(("make", "name"), SMOOTH)
def test_tol_bounds_the_error_in_the_same_way(make, name):
    """Well-conditioned problems: the relative error of J is of the order of tol everywhere."""
    n_iter = []
    for tol in (1e-3, 1e-5, 1e-7):
        problem = make()
        solution = run(name, problem, tol=tol)
        value, _ = problem.value_and_gradient(solution.params)
        assert solution.stop_reason in ("gradient", "decrease", "step")
        assert value / problem.lowest - 1 <= max(30 * tol, 2e-3 if name == "sgd" else 0)
        n_iter.append(solution.n_iter)
    assert n_iter == sorted(n_iter)
    assert n_iter[0] < n_iter[-1]


@pytest.mark.parametrize("max_iter", [0, 1, 2, 7])
@each_solver
def test_max_iter_counts_iterations(name, max_iter):
    watched = Watched(Logistic())
    solution = run(name, watched, max_iter=max_iter, tol=0.0)
    assert (solution.n_iter, solution.stop_reason) == (max_iter, "max_iter")
    assert not solution.converged
    assert len(solution.history) <= max_iter + 1
    if max_iter == 0:
        np.testing.assert_array_equal(solution.params, watched.problem.start)
        assert solution.value == watched.problem.value_and_gradient(watched.problem.start)[0]
        assert len(watched.params) == 1


@pytest.mark.parametrize("name", DESCENDING)
def test_tol_zero_ends_where_no_step_descends(name):
    solution = run(name, Logistic(), tol=0.0, max_iter=5000)
    assert solution.stop_reason in ("step", "decrease", "gradient")
    assert solution.value / Logistic().lowest - 1 < 1e-12


# ---------------------------------------------------------------------------- stopping from outside


@each_solver
def test_callback_stops(name):
    seen: list[Progress] = []

    def third_time(progress):
        seen.append(progress)
        return progress.n_iter == 3

    solution = run(name, LeastSquares(), callback=third_time, tol=0.0)
    assert (solution.n_iter, solution.stop_reason, len(seen)) == (3, "callback", 3)
    assert not solution.converged
    assert solution.value <= min(progress.value for progress in seen)


@each_solver
def test_callback_may_stop_like_those_of_scipy(name):
    def stop(progress):
        raise StopIteration

    solution = run(name, LeastSquares(), callback=stop)
    assert (solution.n_iter, solution.stop_reason) == (1, "callback")


@each_solver
def test_callback_cannot_spoil_the_run(name):
    def scribble(progress):
        progress.params[...] = np.nan

    spoiled = run(name, LeastSquares(), callback=scribble)
    np.testing.assert_array_equal(spoiled.params, run(name, LeastSquares()).params)


@pytest.mark.parametrize("interrupt_at", [2, 3, 8])
@each_solver
def test_interrupt_keeps_the_best(name, interrupt_at):
    problem = LeastSquares()
    watched = Watched(problem, interrupt_at)
    solution = run(name, watched, tol=0.0)
    assert solution.stop_reason == "interrupted"
    assert not solution.converged
    assert len(watched.params) == interrupt_at - 1
    if name == "sgd":
        assert solution.value == solution.history.min()
    else:
        assert solution.value == problem.value_and_gradient(solution.params)[0]
    if name in ("pgd", "lbfgs"):  # apg also evaluates ahead of itself, where it does not stay
        assert solution.value == min(problem.value_and_gradient(p)[0] for p in watched.params)


@each_solver
def test_interrupt_in_the_callback_keeps_the_best(name):
    def interrupt(progress):
        if progress.n_iter == 4:
            raise KeyboardInterrupt

    solution = run(name, LeastSquares(), callback=interrupt, tol=0.0)
    assert (solution.n_iter, solution.stop_reason) == (4, "interrupted")
    assert solution.value == solution.history.min() < solution.history[0]


@each_solver
def test_interrupt_before_the_first_value_is_passed_on(name):
    with pytest.raises(KeyboardInterrupt):
        run(name, Watched(LeastSquares(), interrupt_at=1))


# ------------------------------------------------------------------------------------ what comes in


@pytest.mark.parametrize(("make", "name"), SMOOTH)
def test_float32_stays_float32(make, name):
    watched = Watched(make())
    start = watched.problem.start.astype(np.float32)
    solution = run(name, watched, start=start, tol=1e-5)
    value, _ = watched.problem.value_and_gradient(solution.params.astype(np.float64))
    assert solution.params.dtype == np.float32
    assert {params.dtype for params in watched.params} == {np.dtype(np.float32)}
    assert solution.history.dtype == np.float64
    assert solution.converged
    assert value / watched.problem.lowest - 1 < 1e-3


@each_solver
def test_float32_does_not_overflow(name):
    problem = Scaled(LeastSquares(), 2.0**60, 2.0**-20)  # ‖∇J‖² is beyond the range of float32
    solution = run(name, problem, start=problem.start.astype(np.float32), tol=1e-5)
    value, _ = problem.value_and_gradient(solution.params.astype(np.float64))
    assert value / problem.lowest - 1 < 1e-3


@each_solver
def test_start_is_not_written_to(name):
    problem = LeastSquares()
    start = problem.start.copy()
    start.setflags(write=False)
    solution = run(name, problem, start=start, max_iter=5)
    assert not np.shares_memory(solution.params, start)
    assert solution.params.shape == start.shape
    again = run(name, problem, start=start, max_iter=0)
    assert not np.shares_memory(again.params, start)


@each_solver
def test_integers_become_float64(name):
    solution = run(name, LeastSquares(), start=[[1, 0, 0], [0, 1, 0]], max_iter=3)
    assert solution.params.dtype == np.float64
    assert solution.value < solution.history[0]


@pytest.mark.parametrize(("make", "name"), [p for p in PAIRS if p.values[0] is not Barrier])
def test_start_at_zero(make, name):
    """Zero has no length for the first step to be a fraction of."""
    problem = make()
    solution = run(name, problem, start=np.zeros_like(problem.start))
    value, _ = problem.value_and_gradient(solution.params)
    assert value <= problem.lowest * (1 + accuracy(make, name))


@pytest.mark.parametrize("far", [1e-4, 1e4])
@pytest.mark.parametrize("name", DESCENDING)
def test_start_of_a_wrong_size(name, far):
    problem = LeastSquares()
    solution = run(name, problem, start=far * problem.start)
    assert solution.value <= problem.lowest * (1 + 1e-6)


@each_solver
def test_zero_gradient_at_the_start(name):
    class Flat(LeastSquares):
        def value_and_gradient(self, params, rows=None):
            return 2.0, np.zeros_like(params)

    watched = Watched(Flat())
    solution = run(name, watched, tol=0.0)
    assert (solution.n_iter, solution.stop_reason) == (0, "gradient")
    assert len(watched.params) == 1
    np.testing.assert_array_equal(solution.history, [2.0])


@pytest.mark.parametrize("name", PROJECTING)
def test_gradient_that_points_out_of_the_cone_is_no_gradient(name):
    """At M = 0 with ∇J ⪰ 0 no feasible direction descends."""

    class Trace(QuadraticOnCone):
        def value_and_gradient(self, M, rows=None):
            return 1.0 + np.trace(M), np.eye(5)

    solution = run(name, Trace(), start=np.zeros((5, 5)), tol=0.0)
    assert (solution.n_iter, solution.stop_reason) == (0, "gradient")


@pytest.mark.parametrize("name", PROJECTING)
def test_every_point_is_feasible(name):
    watched = Watched(QuadraticOnCone())
    solution = run(name, watched, start=np.diag([1.0, -1.0, 1.0, 1.0, 1.0]))
    assert solution.value <= 3.0 * (1 + accuracy(QuadraticOnCone, name))
    for M in [*watched.params, solution.params]:
        assert np.linalg.eigvalsh(M)[0] > -1e-12


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@each_solver
def test_start_that_is_not_finite_is_an_error(name, bad):
    class Bad(LeastSquares):
        def value_and_gradient(self, params, rows=None):
            return bad, np.zeros_like(params)

    with pytest.raises(ValueError, match="not finite at the start"):
        run(name, Bad())


@pytest.mark.parametrize("options", [{"max_iter": -1}, {"tol": -1e-3}, {"tol": np.nan}])
@each_solver
def test_senseless_limits_are_errors(name, options):
    with pytest.raises(ValueError, match="must not be negative"):
        run(name, LeastSquares(), **options)


@each_solver
def test_infinite_tails_are_never_entered(name):
    """Wherever a step leads outside, the run goes on inside; no history holds an infinity."""
    solution = run(name, Barrier(), start=[0.05])
    assert np.isfinite(solution.history).all()
    assert solution.params[0] > 0


# ---------------------------------------------------------------------------------------- the table


def test_the_table_names_every_solver():
    from vicinal import solvers

    named: list[Callable[..., Solution]] = [
        solvers.projected_gradient,
        solvers.accelerated_projected_gradient,
        solvers.lbfgs,
        solvers.stochastic,
    ]
    assert list(SOLVERS) == ["pgd", "apg", "lbfgs", "sgd"]
    assert list(SOLVERS.values()) == named
