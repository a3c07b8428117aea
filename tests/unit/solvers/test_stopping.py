"""The one stopping rule: what it promises, and that no unit of J or θ matters to it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vicinal.solvers.stopping import (
    WINDOW,
    negligible_decrease,
    negligible_gradient,
    stop_reason,
)

sizes = st.floats(1e-6, 1e6)
tols = st.floats(0.0, 0.1)
powers = st.integers(-40, 40).map(lambda k: 2.0**k)
descents = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=12).map(
    lambda values: sorted(values, reverse=True)
)


def geometric(n, ratio, floor=0.0):
    return [floor + ratio**k for k in range(n)]


# ------------------------------------------------------------------------------------ gradient


@given(pg=sizes, scale=sizes, value=sizes, tol=tols, j=powers, t=powers)
def test_gradient_test_has_no_units(pg, scale, value, tol, j, t):
    """J' = jJ and θ' = tθ make pg' = (j/t)·pg."""
    plain = negligible_gradient(pg, scale, value, tol)
    assert negligible_gradient(pg * j / t, scale * t, value * j, tol) == plain


@given(pg=sizes, scale=sizes, value=sizes, tol=tols)
def test_sign_of_the_objective_does_not_matter(pg, scale, value, tol):
    assert negligible_gradient(pg, scale, -value, tol) == negligible_gradient(pg, scale, value, tol)


def test_gradient_threshold():
    assert negligible_gradient(0.5, 2.0, 100.0, 0.01)
    assert not negligible_gradient(0.5001, 2.0, 100.0, 0.01)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_only_a_zero_gradient_is_small_beside_zero(value):
    assert negligible_gradient(0.0, 1.0, value, 0.0)
    assert not negligible_gradient(1e-300, 1.0, 0.0, 0.1)
    assert not negligible_gradient(math.inf, 1.0, value, 0.1)


@given(curvature=sizes, distance=st.floats(1e-6, 1.0), tol=st.floats(1e-9, 0.1))
def test_gradient_test_bounds_the_error_of_a_convex_objective(curvature, distance, tol):
    """J = 1 + ½c(θ − 1)²: where the test holds, J − J* ≤ tol·J·‖θ − θ*‖/‖θ‖."""
    theta = 1 + distance
    value = 1 + curvature * distance**2 / 2
    if negligible_gradient(curvature * distance, theta, value, tol):
        assert value - 1 <= tol * value * distance / theta * (1 + 1e-9)


# ------------------------------------------------------------------------------------ decrease


@given(lowest=descents, tol=tols, j=powers)
def test_decrease_test_has_no_units(lowest, tol, j):
    scaled = [j * value for value in lowest]
    assert negligible_decrease(scaled, tol) == negligible_decrease(lowest, tol)


@given(lowest=descents, tol=tols, more=tols)
def test_a_larger_tol_stops_no_later(lowest, tol, more):
    assert negligible_decrease(lowest, tol + more) >= negligible_decrease(lowest, tol)


@given(st.integers(1, WINDOW))
def test_never_before_the_window_is_full(n):
    assert not negligible_decrease([1.0] * n, 0.1)
    assert negligible_decrease([1.0] * (WINDOW + 1), 0.0)


def test_mean_over_the_window_is_what_counts():
    """One large step among short ones is progress; it is forgotten five iterations later."""
    tol = 1e-3
    values = [2.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    assert not negligible_decrease(values[:6], tol)
    assert not negligible_decrease(values, tol)
    assert negligible_decrease([*values, 1.0], tol)


@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_threshold_is_the_mean_relative_decrease(tol):
    values = [1 + WINDOW * tol * 0.999, *[1.0] * WINDOW]
    assert negligible_decrease(values, tol)
    values[0] = 1 + WINDOW * tol * 1.001
    assert not negligible_decrease(values, tol)


def test_negative_objectives_are_relative_to_their_size():
    assert negligible_decrease([-1000.0 - 0.001 * k for k in range(9)], 1e-5)
    assert not negligible_decrease([-1.0 - 0.001 * k for k in range(9)], 1e-5)


def test_descent_to_zero_ends():
    """Halving J never is a small decrease, but below rounding of what it was it is zero."""
    assert not negligible_decrease(geometric(40, 0.5), 1e-5)
    assert negligible_decrease(geometric(80, 0.5), 1e-5)


# ------------------------------------------------------------------------------------ the order


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({}, None),
        ({"pg_norm": 0.0}, "gradient"),
        ({"lowest": [1.0] * 9}, "decrease"),
        ({"n_iter": 10}, "max_iter"),
        ({"n_iter": 10, "lowest": [1.0] * 9}, "decrease"),
        ({"n_iter": 10, "lowest": [1.0] * 9, "pg_norm": 0.0}, "gradient"),
    ],
)
def test_convergence_comes_before_exhaustion(changed, reason):
    state = {
        "pg_norm": 1.0,
        "scale": 1.0,
        "lowest": geometric(9, 0.5),
        "n_iter": 9,
        "max_iter": 10,
        "tol": 1e-5,
    }
    assert stop_reason(**{**state, **changed}) == reason
