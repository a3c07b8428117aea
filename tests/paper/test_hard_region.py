"""Figure 1: impostors that no metric can put outside the neighborhood.

With a, b the differences from x_i to its two targets and x_l − x_i = s a + t b: for s, t ≥ 0 and
s + t ≤ 1, the triangle, d(x_l) ≤ max(d(a), d(b)) under *every* metric. That is what the paper says,
and it holds for |s| + |t| ≤ 1 too: the hard region is the whole parallelogram of ±a and ±b.
Outside of it there is a metric, of rank one, that puts x_l outside the neighborhood.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from experiments.figure1 import IMPOSTORS, TARGETS, largest_ratio

seeds = st.integers(0, 2**32 - 1)


def random_metric(rng, d):
    """M = LᵀL of any rank, its eigenvalues over many orders of magnitude."""
    L = rng.standard_normal((rng.integers(1, d + 1), d)) * 10.0 ** rng.uniform(-3, 3, d)
    return L.T @ L


def squared(M, x):
    return float(x @ M @ x)


@given(seeds, st.integers(2, 6))
def test_no_metric_puts_a_point_of_the_triangle_outside(seed, d):
    rng = np.random.default_rng(seed)
    x_i, *targets = rng.standard_normal((3, d))
    weights = rng.dirichlet(np.ones(3))  # of x_i and the two targets
    x_l = weights @ np.array([x_i, *targets])
    M = random_metric(rng, d)
    reach = max(squared(M, target - x_i) for target in targets)
    assert squared(M, x_l - x_i) <= reach * (1 + 1e-9)


@given(seeds)
def test_the_whole_parallelogram_is_hard(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((2, 3))
    s, t = rng.dirichlet(np.ones(3))[:2] * rng.choice([-1, 1], 2)
    M = random_metric(rng, 3)
    assert squared(M, s * a + t * b) <= max(squared(M, a), squared(M, b)) * (1 + 1e-9)


@given(seeds, st.floats(1.01, 50))
def test_outside_of_it_some_metric_does(seed, size):
    """v with v·a = sign(s), v·b = sign(t) gives (v·x_l)² = (|s| + |t|)² > 1."""
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((2, 2))
    s, t = rng.dirichlet(np.ones(2)) * size * rng.choice([-1, 1], 2)
    v = np.linalg.solve(np.array([a, b]), [np.sign(s), np.sign(t)])
    M = np.outer(v, v)
    reach = max(squared(M, a), squared(M, b))
    assert_allclose(squared(M, s * a + t * b) / reach, size**2, rtol=1e-6)


@given(seeds)
def test_the_figures_computation_agrees_with_the_closed_form(seed):
    """sup over metrics of d(x_l) / max d(x_j) = (|s| + |t|)²; sampled metrics never exceed it."""
    rng = np.random.default_rng(seed)
    targets = rng.standard_normal((2, 2))
    coordinates = rng.uniform(-2, 2, (20, 2))
    impostors = coordinates @ targets
    largest = largest_ratio(impostors, targets)
    assert_allclose(largest, np.abs(coordinates).sum(axis=1) ** 2, rtol=1e-6)
    M = random_metric(rng, 2)
    reach = max(squared(M, x) for x in targets)
    assert all(
        squared(M, x) / reach <= bound * (1 + 1e-6)
        for x, bound in zip(impostors, largest, strict=True)
    )


def test_the_points_of_the_figure_are_where_it_says():
    coordinates = np.linalg.solve(TARGETS.T, IMPOSTORS.T).T
    inside, outside = coordinates
    assert inside.min() > 0
    assert inside.sum() < 1
    assert outside.sum() > 1
    assert largest_ratio(IMPOSTORS, TARGETS) == pytest.approx(
        [inside.sum() ** 2, outside.sum() ** 2]
    )
