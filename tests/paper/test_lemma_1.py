"""Lemma 1 of the paper, corrected.

The paper (Eq. 9, 11) calls the mean of the K smallest squared Mahalanobis distances

    f(M) = (1/K) Σ_{k≤K} d^[k](M),      d_j(M) = v_jᵀ M v_j,  v_j = x_i − x_j

discontinuous in M where the K nearest change. At such a swap the two distances are equal, so there
is no jump: f is a minimum of finitely many linear functions (one a K-subset), thus continuous,
concave and piecewise linear; what it lacks is differentiability at the swaps. That, and no more, is
what the soft average mends.
"""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest

from vicinal.objective.soft_average import gamma_for_k, soft_average, soft_weights

N, D = 9, 3
SEEDS = pytest.mark.parametrize("seed", range(5))
KS = pytest.mark.parametrize("K", [1, 2, 4, N - 1])


def distances(M, V):
    return np.array([v @ M @ v for v in V])


def mean_of_nearest(M, V, K):
    return np.sort(distances(M, V))[:K].mean()


def nearest(M, V, K):
    return frozenset(np.argsort(distances(M, V))[:K].tolist())


def crossings(V, M0, M1):
    """Where in [0, 1] two distances are equal on the segment: each is linear there."""
    d0, d1 = distances(M0, V), distances(M1, V)
    times = [0.0, 1.0]
    for i, j in combinations(range(N), 2):
        gap0, gap1 = d0[i] - d0[j], d1[i] - d1[j]
        if gap0 * gap1 < 0:
            times.append(gap0 / (gap0 - gap1))
    return np.sort(times)


def swaps(V, M0, M1, K):
    """The crossings at which the set of the K nearest changes: (t, left metric, right metric)."""
    times = crossings(V, M0, M1)
    for before, t, after in zip(times, times[1:], times[2:], strict=False):
        left, right = (before + t) / 2, (t + after) / 2
        if nearest(M0 + left * (M1 - M0), V, K) != nearest(M0 + right * (M1 - M0), V, K):
            yield t, left, right


def problem_with_swap(seed, K):
    """V (n, d), the ends M0, M1 (d, d) of a segment of metrics, and a swap on it.

    The first random ones with a swap at t that is well apart from all other crossings.
    """
    rng = np.random.default_rng(seed)
    while True:
        V, L = rng.normal(size=(N, D)), rng.normal(size=(2, D, D))
        M0, M1 = L[0].T @ L[0], L[1].T @ L[1]
        for t, left, right in swaps(V, M0, M1, K):
            if min(t - left, right - t) > 0.01:
                return V, M0, M1, t, left, right


# ---------------------------------------------------------------------------------- continuous


@KS
@SEEDS
def test_continuous_with_a_lipschitz_constant(seed, K):
    V, M0, M1, *_ = problem_with_swap(seed, K)
    longest = max(v @ v for v in V)
    t = np.linspace(0, 1, 400)
    f = np.array([mean_of_nearest(M0 + s * (M1 - M0), V, K) for s in t])
    assert len({nearest(M0 + s * (M1 - M0), V, K) for s in t}) > 1  # it does cross swaps
    bound = longest * np.linalg.norm(M1 - M0, 2) * np.diff(t)
    assert (np.abs(np.diff(f)) <= bound).all()


@KS
@SEEDS
def test_no_jump_across_a_swap(seed, K):
    V, M0, M1, t, left, right = problem_with_swap(seed, K)
    at = M0 + t * (M1 - M0)
    gone = nearest(M0 + left * (M1 - M0), V, K) - nearest(M0 + right * (M1 - M0), V, K)
    come = nearest(M0 + right * (M1 - M0), V, K) - nearest(M0 + left * (M1 - M0), V, K)
    (out,), (new,) = gone, come
    # the paper's "jump", Tr((X_iK − X_iK+1) M)/K of Eq. 11, is zero exactly there
    jump = np.trace((np.outer(V[out], V[out]) - np.outer(V[new], V[new])) @ at) / K
    assert abs(jump) <= 1e-13
    for h in 10.0 ** np.arange(-3, -11, -1):
        f = [mean_of_nearest(M0 + s * (M1 - M0), V, K) for s in (t - h, t + h)]
        assert abs(f[1] - f[0]) <= 100 * h


# ------------------------------------------------------------------------------------- concave


@KS
@SEEDS
def test_concave(seed, K):
    V, M0, M1, *_ = problem_with_swap(seed, K)
    f0, f1 = mean_of_nearest(M0, V, K), mean_of_nearest(M1, V, K)
    gains = [
        mean_of_nearest((1 - s) * M0 + s * M1, V, K) - ((1 - s) * f0 + s * f1)
        for s in np.linspace(0, 1, 21)
    ]
    assert min(gains) >= -1e-13
    assert max(gains) > 1e-3  # and not linear


@KS
@SEEDS
def test_is_the_least_of_the_linear_functions_of_all_subsets(seed, K):
    V, M0, M1, *_ = problem_with_swap(seed, K)
    for M in (M0, M1, (M0 + M1) / 2):
        d = distances(M, V)
        least = min(sum(d[list(subset)]) / K for subset in combinations(range(N), K))
        assert mean_of_nearest(M, V, K) == pytest.approx(least, rel=1e-13)


# ---------------------------------------------------------------------------- piecewise linear


@KS
@SEEDS
def test_linear_between_crossings_with_falling_slopes(seed, K):
    V, M0, M1, *_ = problem_with_swap(seed, K)
    slopes = []
    for start, end in pairwise(crossings(V, M0, M1)):
        t = np.linspace(start, end, 7)
        f = np.array([mean_of_nearest(M0 + s * (M1 - M0), V, K) for s in t])
        assert np.abs(np.diff(f, 2)).max() <= 1e-12
        if end - start > 1e-4:
            slopes.append((f[-1] - f[0]) / (end - start))
    assert (np.diff(slopes) <= 1e-8).all()
    assert slopes[0] - slopes[-1] > 1e-2  # piecewise: more than one piece


# -------------------------------------------------------------------------- not differentiable


@KS
@SEEDS
def test_different_one_sided_derivatives_at_a_swap(seed, K):
    V, M0, M1, t, left, right = problem_with_swap(seed, K)
    direction = M1 - M0
    before, after = nearest(M0 + left * direction, V, K), nearest(M0 + right * direction, V, K)
    change = distances(direction, V)
    expected = [change[list(subset)].mean() for subset in (before, after)]
    h = min(t - left, right - t)
    at = mean_of_nearest(M0 + t * direction, V, K)
    one_sided = [
        (at - mean_of_nearest(M0 + (t - h) * direction, V, K)) / h,
        (mean_of_nearest(M0 + (t + h) * direction, V, K) - at) / h,
    ]
    assert one_sided == pytest.approx(expected, abs=1e-9)
    assert one_sided[0] - one_sided[1] > 1e-3


def test_the_smallest_example():
    # x_i = 0 with neighbors e_1, e_2 and K = 1: f(M) = min(m_11, m_22), a kink at M = I
    V, direction = np.eye(2), np.diag([1.0, -1.0])
    for h in (0.5, 2.0**-20):
        right = (mean_of_nearest(np.eye(2) + h * direction, V, 1) - 1) / h
        left = (1 - mean_of_nearest(np.eye(2) - h * direction, V, 1)) / h
        assert (left, right) == (1, -1)


# ------------------------------------------------------------------- what the soft average mends


@KS
@SEEDS
@pytest.mark.parametrize("side", [1, -1])
def test_the_soft_average_equals_it_and_is_differentiable_there(seed, K, side):
    V, M0, M1, t, _, _ = problem_with_swap(seed, K)
    direction = M1 - M0
    at = distances(M0 + t * direction, V)
    gamma = side * gamma_for_k(at, K + 0.5)
    if side > 0 and K > 1:  # Lemma 3: some γ gives the value of f at the swap itself
        value = soft_average(at, gamma_for_k(at, K))
        assert value == pytest.approx(mean_of_nearest(M0 + t * direction, V, K), rel=1e-12)
    expected = soft_weights(at, gamma) @ distances(direction, V)
    curvature = abs(gamma) * np.ptp(distances(direction, V)) ** 2  # bounds 4·|second derivative|
    for h in (1e-4, 1e-5):
        plus = soft_average(distances(M0 + (t + h) * direction, V), gamma)
        minus = soft_average(distances(M0 + (t - h) * direction, V), gamma)
        middle = soft_average(at, gamma)
        for slope in ((plus - middle) / h, (middle - minus) / h):
            assert abs(slope - expected) <= curvature * h + 1e-9
