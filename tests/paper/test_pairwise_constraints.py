"""Pairwise constraints: what is feasible for (u, l) costs nothing in ANN with α = −∞.

Pairwise methods ask for d_ij < u for all similar and d_ij > l for all dissimilar pairs, u ≤ l. Then
for every row the farthest similar sample is nearer than the nearest dissimilar one, by l − u at
least: s_i − t_i < −(l − u), and the hinge with γ ≤ l − u is zero. The converse fails: ANN compares
within a row only, and rows may live at different scales.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from vicinal.kernels import make_kernel
from vicinal.objective.neighbor_sets import build_comparisons

BACKENDS = pytest.mark.parametrize("backend", ["numpy", "numba"])
SIZES = (5, 4, 6)


def random_case(seed, separation):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(3), SIZES)
    X = rng.standard_normal((15, 3)) + separation * rng.standard_normal((3, 3))[y]
    L = rng.standard_normal((rng.integers(1, 4), 3)) * 10.0 ** rng.uniform(-1, 1)
    return X, y, L


def pair_distances(X, y, L):
    """(d of the similar pairs, d of the dissimilar pairs), by loops."""
    similar, dissimilar = [], []
    for i in range(len(X)):
        for j in range(i):
            d = (X[i] - X[j]) @ L.T @ L @ (X[i] - X[j])
            (similar if y[i] == y[j] else dissimilar).append(d)
    return np.array(similar), np.array(dissimilar)


def feasible(X, y, L, upper, lower):
    similar, dissimilar = pair_distances(X, y, L)
    return bool((similar < upper).all() and (dissimilar > lower).all())


def margins(X, y, L, backend="numpy"):
    """s_i − t_i of ANN with α = −∞ and a hard minimum, from the kernel."""
    offsets = np.searchsorted(y, np.arange(len(np.unique(y)) + 1))
    comparisons = build_comparisons(X, offsets)
    z = np.full(len(X), np.nan)

    def respond(block, s, t):
        z[block] = s - t
        return np.zeros((3, len(block)))

    Z = (X - X.mean(axis=0)) @ L.T
    make_kernel(comparisons, backend).sweep(Z, Z, respond, alpha=-np.inf, beta=np.inf)
    return z


def hinge_sum(z, gamma):
    return np.maximum(0.0, 1.0 + z / gamma).sum()


@BACKENDS
@pytest.mark.parametrize("seed", range(10))
def test_the_margin_is_the_farthest_similar_less_the_nearest_dissimilar(seed, backend):
    """Eq. of the set A: what the containment below is about, and no softer than that."""
    X, y, L = random_case(seed, separation=3.0)
    distances = np.array([[np.sum((L @ (a - b)) ** 2) for b in X] for a in X])
    expected = [
        max(distances[i, j] for j in range(15) if y[j] == y[i])  # i itself is at 0: never farthest
        - min(distances[i, j] for j in range(15) if y[j] != y[i])
        for i in range(15)
    ]
    tolerance = 1e-12 * distances.max()
    np.testing.assert_allclose(margins(X, y, L, backend), expected, rtol=1e-9, atol=tolerance)


@BACKENDS
@given(
    seed=st.integers(0, 2**31),
    separation=st.sampled_from([1.0, 10.0, 40.0]),
    position=st.floats(0, 1),
    gap=st.floats(0, 1),
)
def test_feasible_metrics_cost_nothing(backend, seed, separation, position, gap):
    """For thresholds that the metric just meets, somewhere between its two kinds of pairs."""
    X, y, L = random_case(seed, separation)
    similar, dissimilar = pair_distances(X, y, L)
    room = dissimilar.min() - similar.max()
    assume(room > 1e-3 * dissimilar.min())
    upper = similar.max() + room * (0.01 + 0.9 * position)
    lower = upper + 0.99 * (dissimilar.min() - upper) * gap
    assert feasible(X, y, L, upper, lower)
    z = margins(X, y, L, backend)
    assert (z < upper - lower).all()
    if lower > upper:
        assert hinge_sum(z, gamma=lower - upper) == 0.0


def test_containment_on_random_metrics_and_thresholds():
    """P(u, l) ⊆ A over random (M, u, l); all four cases but the forbidden one occur."""
    rng = np.random.default_rng(0)
    counts = {(a, b): 0 for a in (False, True) for b in (False, True)}
    for seed in range(600):
        X, y, L = random_case(seed, separation=12.0)
        typical = np.median(pair_distances(X, y, L)[1])
        upper = typical * rng.uniform(0.01, 0.8)
        lower = upper * rng.uniform(1.0, 1.2)
        counts[feasible(X, y, L, upper, lower), bool((margins(X, y, L) < 0).all())] += 1
    assert counts[True, False] == 0
    assert min(counts[True, True], counts[False, True], counts[False, False]) > 20


# Two classes that are near each other and small, one far away and wide.
SCATTERED = np.array([[0.0], [0.1], [1.0], [1.1], [100.0], [110.0]])
LABELS = np.array([0, 0, 1, 1, 2, 2])


def test_containment_is_strict():
    """ANN costs nothing, though no u ≤ l whatever separates all the pairs."""
    L = np.eye(1)
    z = margins(SCATTERED, LABELS, L)
    assert hinge_sum(z, gamma=0.5) == 0.0
    similar, dissimilar = pair_distances(SCATTERED, LABELS, L)
    assert similar.max() == pytest.approx(100.0)
    assert dissimilar.min() == pytest.approx(0.81)
    candidates = np.unique(np.concatenate([similar, dissimilar]))
    edges = np.concatenate([[0.0], 0.5 * (candidates[1:] + candidates[:-1]), [1e6]])
    thresholds = [(upper, lower) for upper in edges for lower in edges if upper <= lower]
    assert not any(feasible(SCATTERED, LABELS, L, *pair) for pair in thresholds)


def test_strict_on_random_metrics_too():
    """Metrics in A at which the best threshold still misorders some similar pair."""
    found = 0
    for seed in range(300):
        X, y, L = random_case(seed, separation=8.0)
        similar, dissimilar = pair_distances(X, y, L)
        found += bool((margins(X, y, L) < 0).all() and similar.max() >= dissimilar.min())
    assert found > 5
