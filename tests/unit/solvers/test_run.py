"""The record of a run: scale, feasibility of the start, and what counts as a move."""

from __future__ import annotations

import numpy as np
import pytest

from vicinal.solvers import SOLVERS
from vicinal.solvers.run import Run, norm


class Flat:
    """J = 6 + ⟨slope, θ⟩ over θ ≥ 0."""

    n_rows = 1

    def __init__(self, slope=(0.0, 3.0)):
        self.slope = np.array(slope)

    def value_and_gradient(self, params, rows=None):
        return 6.0 + self.slope @ params, self.slope

    def project(self, params):
        return np.maximum(params, 0)


def begin(start, problem=None):
    return Run(problem or Flat(), start, max_iter=10, tol=1e-5, callback=None)


def test_scale_is_the_norm_of_the_start():
    assert begin([3.0, 4.0]).scale == 5.0


def test_scale_of_zero_is_where_the_tangent_falls_to_zero():
    assert begin([0.0, 0.0]).scale == 2.0
    assert begin([0.0, 0.0], Flat((0.0, 0.0))).scale == 1.0


def test_scale_grows_with_the_iterates_and_never_shrinks():
    run = begin([3.0, 4.0])
    run.accept(run.evaluate(np.array([6.0, 8.0])))
    assert run.scale == 10.0
    run.accept(run.evaluate(np.array([0.0, 1.0])))
    assert run.scale == 10.0


def test_infeasible_start_is_projected():
    np.testing.assert_array_equal(begin([-1.0, 2.0]).start.params, [0.0, 2.0])


def test_start_that_only_rounding_makes_infeasible_is_kept():
    start = np.array([-1e-16, 2.0])
    np.testing.assert_array_equal(begin(start).start.params, start)


def test_projected_gradient_sees_the_boundary():
    """At (0, 2) the first coordinate cannot decrease, so only the second counts."""
    run = begin([0.0, 2.0], Flat((4.0, 3.0)))
    np.testing.assert_allclose(run.pg_norm(run.start), 3.0)
    assert begin([0.0, 0.0], Flat((4.0, 3.0))).pg_norm(run.start) > 0
    corner = begin([0.0, 0.0], Flat((4.0, 3.0)))
    assert corner.pg_norm(corner.start) == 0.0


@pytest.mark.parametrize(("dtype", "shortest"), [(np.float64, 1e-12), (np.float32, 1.2e-7)])
def test_shortest_move_depends_on_the_dtype(dtype, shortest):
    run = begin(np.array([3.0, 4.0], dtype=dtype))
    assert run.vanishes(0.99 * shortest * 5)
    assert not run.vanishes(1.01 * shortest * 5)


def test_lowest_point_is_kept():
    run = begin([1.0, 1.0])
    low = run.evaluate(np.array([1.0, 0.5]))
    run.keep(low)
    run.keep(run.evaluate(np.array([1.0, 0.7])))
    solution = run.solution("step")
    assert solution.params is low.params
    np.testing.assert_array_equal(solution.history, [9.0, 7.5])


def test_norm_of_float32_does_not_overflow():
    assert norm(np.full(4, 1e30, dtype=np.float32)) == pytest.approx(2e30)


@pytest.mark.parametrize("name", ["pgd", "apg", "lbfgs"])
def test_objective_without_a_minimum_has_not_converged(name):
    """−‖x‖² falls for ever; the run ends before it overflows."""

    class Falling(Flat):
        def value_and_gradient(self, params, rows=None):
            return float(-params @ params), -2 * params

    solution = SOLVERS[name](Falling(), np.ones(2), max_iter=100_000, tol=1e-5)
    assert np.isfinite(solution.params).all()
    assert (solution.stop_reason, solution.converged) == ("unbounded", False)
