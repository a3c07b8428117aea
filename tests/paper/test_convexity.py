"""Lemma 4: for α < 0 the objective is convex in M, for every convex increasing loss.

s_i = b(α; d) is convex in the distances for α < 0 (a log-sum-exp) and concave for α > 0, −t_i is
convex always, and the distances are linear in M. So the claim is Jensen's inequality on pairs of
positive semidefinite matrices; that it is not vacuous is shown by what happens for α > 0, and for
the sigmoid loss, which is not convex.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import lsq_linear

import vicinal as vc
from vicinal.exceptions import ConvergenceWarning
from vicinal.kernels import make_kernel
from vicinal.objective.losses import LOSSES, get_loss
from vicinal.objective.neighbor_objective import NeighborObjective
from vicinal.objective.neighbor_sets import build_comparisons
from vicinal.objective.pair_sums import pull_matrix
from vicinal.objective.parametrization import Metric

D = 3
CONVEX = ["hinge", "squared_hinge", "logistic", "linear"]


def objective(X, offsets, *, loss, alpha, gamma=1.0, strength=0.01, similar="all"):
    comparisons = build_comparisons(X, offsets, similar=similar)
    weights = np.ones(len(X))
    return NeighborObjective(
        X=X,
        comparisons=comparisons,
        kernel=make_kernel(comparisons, "numpy"),
        parametrization=Metric(),
        loss=get_loss(loss),
        alpha=alpha,
        gamma=gamma,
        shift=np.zeros(len(X)),
        weights=weights,
        pull=strength * pull_matrix(X, comparisons, weights),
    )


def random_problem(seed, **options):
    rng = np.random.default_rng(seed)
    offsets = np.array([0, 6, 10, 15])
    X = rng.standard_normal((15, D)) + rng.standard_normal((3, D)).repeat(np.diff(offsets), axis=0)
    return objective(X - X.mean(axis=0), offsets, **options)


def random_metric(rng, scale):
    """Of any rank, the singular ones on the boundary of the cone included."""
    A = rng.standard_normal((D, rng.integers(1, D + 1)))
    return scale * A @ A.T


def above_the_chord(J, M0, M1, share=0.5):
    """By how much J between two points exceeds the chord, beyond rounding; convex: never."""
    ends = np.array([J.value_and_gradient(M)[0] for M in (M0, M1)])
    middle, _ = J.value_and_gradient((1 - share) * M0 + share * M1)
    return middle - (1 - share) * ends[0] - share * ends[1] - 1e-10 * (1 + np.abs(ends).max())


problems = {
    "seed": st.integers(0, 2**31),
    "loss": st.sampled_from(CONVEX),
    "alpha": st.sampled_from([-1e-6, -0.01, -0.3, -1.0, -5.0, -100.0, -math.inf]),
    "gamma": st.sampled_from([0.05, 1.0, 20.0]),
    "similar": st.sampled_from(["all", 2]),
    "scale": st.sampled_from([0.01, 1.0, 10.0]),
}


@given(share=st.floats(0, 1), **problems)
def test_lemma_4(seed, loss, alpha, gamma, similar, scale, share):
    J = random_problem(seed, loss=loss, alpha=alpha, gamma=gamma, similar=similar)
    rng = np.random.default_rng(seed)
    M0, M1 = random_metric(rng, scale), random_metric(rng, scale)
    assert above_the_chord(J, M0, M1) <= 0
    assert above_the_chord(J, M0, M1, share) <= 0


@given(**problems)
def test_the_gradient_supports_the_objective_from_below(seed, loss, alpha, gamma, similar, scale):
    """J(M1) ≥ J(M0) + ⟨∇J(M0), M1 − M0⟩: at kinks too, where it is a subgradient."""
    J = random_problem(seed, loss=loss, alpha=alpha, gamma=gamma, similar=similar)
    rng = np.random.default_rng(seed)
    M0, M1 = random_metric(rng, scale), random_metric(rng, scale)
    value, gradient = J.value_and_gradient(M0)
    other, _ = J.value_and_gradient(M1)
    tangent = value + np.vdot(gradient, M1 - M0)
    assert other >= tangent - 1e-10 * (1 + abs(value) + abs(other) + abs(tangent))


# ------------------------------------------------------------------------------ where it ends

# In one dimension, M is a number m. The only sample of the other class is no anchor, and being
# alone makes t_i = m·(x_i − 10)² linear: all the curvature of J is that of s_i.
LINE = np.array([[0.0], [1.0], [3.0], [10.0]])
LINE_OFFSETS = np.array([0, 3, 4])


def on_the_line(m, *, alpha, loss="linear"):
    J = objective(LINE, LINE_OFFSETS, loss=loss, alpha=alpha, strength=0.0)
    return J.value_and_gradient(np.array([[m]]))[0]


@pytest.mark.parametrize(("alpha", "sign"), [(1.0, -1), (0.2, -1), (-1.0, 1), (-0.2, 1)])
def test_the_similar_side_curves_with_the_sign_of_alpha(alpha, sign):
    """Strictly: convex for α < 0, concave for α > 0, along the whole ray of metrics."""
    m = np.linspace(0.0, 2.0, 21)
    values = np.array([on_the_line(x, alpha=alpha) for x in m])
    assert (sign * np.diff(values, 2) > 1e-6).all()


def test_a_counterexample_for_positive_alpha():
    """The closed form of the same: J(½) = J(0) + ½ (J(1) − J(0)) + what convexity forbids."""

    def closed_form(m):
        def b(*d):
            return -math.log(sum(math.exp(-m * x) for x in d) / len(d))

        return b(1, 9) + b(1, 4) + b(9, 4) - m * (100 + 81 + 49)

    values = [on_the_line(m, alpha=1.0) for m in (0.0, 0.5, 1.0)]
    assert_allclose(values, [closed_form(m) for m in (0.0, 0.5, 1.0)], rtol=1e-12)
    assert values[1] > 0.5 * (values[0] + values[2]) + 0.1


@pytest.mark.parametrize("loss", CONVEX)
def test_not_convex_for_positive_alpha_with_any_of_the_losses(loss):
    """Found among random pairs, in more dimensions, with the paper's hinge too."""
    rng = np.random.default_rng(0)
    violations = []
    for seed in range(20):
        J = random_problem(seed, loss=loss, alpha=3.0, strength=0.0)
        violations += [
            above_the_chord(J, random_metric(rng, 1.0), random_metric(rng, 1.0)) for _ in range(10)
        ]
    assert max(violations) > 0.05


def test_not_convex_with_the_sigmoid_loss():
    assert not LOSSES["sigmoid"].convex
    rng = np.random.default_rng(0)
    J = random_problem(0, loss="sigmoid", alpha=-1.0, strength=0.0)
    assert (
        max(above_the_chord(J, random_metric(rng, 1.0), random_metric(rng, 1.0)) for _ in range(50))
        > 0.05
    )


@pytest.mark.parametrize("loss", CONVEX)
def test_the_flag_of_the_loss_says_so(loss):
    assert LOSSES[loss].convex


# ------------------------------------------------------------------------------ where fits end


def fitted(X, offsets, loss, alpha, **options):
    y = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    options = {"max_iter": 2000, "regularization": 0.01, "similar": 3, **options}
    return vc.ANN(alpha, loss=loss, **options).fit(X, y)


@pytest.fixture(scope="module")
def overlapping():
    rng = np.random.default_rng(7)
    offsets = np.array([0, 14, 30, 45])
    X = rng.standard_normal((45, D)) + rng.standard_normal((3, D)).repeat(np.diff(offsets), axis=0)
    return X - X.mean(axis=0), offsets


@pytest.mark.parametrize("alpha", [-0.25, -4.0, -math.inf])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_every_start_and_solver_ends_at_the_one_minimum(overlapping, loss, alpha):
    """Or says that it has not converged, which the accelerated projected gradient may do."""
    X, offsets = overlapping
    runs = [fitted(X, offsets, loss, alpha)]
    runs += [fitted(X, offsets, loss, alpha, init="random", random_state=seed) for seed in range(3)]
    assert all(run.converged_ for run in runs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        runs.append(fitted(X, offsets, loss, alpha, solver="apg", max_iter=300))
    reached = [run.objective_ for run in runs if run.converged_]
    assert max(reached) <= min(run.objective_ for run in runs) + max(
        1e-3 * min(reached), 1e-4 * len(X)
    )


@pytest.mark.parametrize("solver", ["auto", "apg"])
@pytest.mark.parametrize("loss", CONVEX)
def test_units_of_the_features_do_not_move_the_end(overlapping, loss, solver):
    """In units that differ by 10⁴ a descent along the gradient slows down above the minimum."""
    X, offsets = overlapping
    options = {"similar": "all", "max_iter": 300}
    lowest = fitted(X, offsets, loss, -1.0, **options, tol=1e-8).objective_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        in_units = X * [0.01, 1.0, 100.0]
        found = fitted(in_units, offsets, loss, -1.0, **options, solver=solver)
    assert found.converged_ or solver == "apg"
    if found.converged_:
        assert found.objective_ <= lowest + max(1e-3 * abs(lowest), 1e-4 * len(X))


@pytest.mark.parametrize("alpha", [-0.25, -4.0])
def test_smallest_subgradient_at_the_kinks_of_the_hinge(overlapping, alpha):
    """By its definition: rows at their kink may have any slope in [0, 1]; least squares chooses.

    Gradients of single rows come from the linear loss, whose slope is 1 everywhere.
    """
    X, offsets = overlapping
    learner = fitted(X, offsets, "hinge", alpha, tol=1e-7)
    assert learner.stop_reason_ == "stationary"
    M = learner.get_mahalanobis_matrix()
    linear = objective(X, offsets, loss="linear", alpha=alpha, similar=3, strength=0.0)
    pull = objective(X, offsets, loss="linear", alpha=alpha, similar=3).pull
    n = linear.n_rows
    rows = [linear.value_and_gradient(M, np.array([i])) for i in range(n)]
    margins = np.array([1 + value / n for value, _ in rows])
    gradients = np.array([gradient.ravel() / n for _, gradient in rows])
    at_kink = np.abs(margins) <= 1e-3
    fixed = gradients[margins > 1e-3].sum(axis=0) + pull.ravel()
    assert at_kink.any()
    found = lsq_linear(gradients[at_kink].T, -fixed, bounds=(0, 1))
    smallest = (fixed + gradients[at_kink].T @ found.x).reshape(D, D)
    # M has full rank here, so that no constraint is active and the subgradient itself vanishes.
    assert np.linalg.eigvalsh(M)[0] > 1e-3
    assert np.linalg.norm(smallest) * np.linalg.norm(M) <= 0.01 * learner.objective_
    assert np.linalg.norm(fixed) > 3 * np.linalg.norm(smallest)
