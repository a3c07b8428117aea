"""Lemmas 2 and 3 of the paper (Eq. 12 to 19): the soft average, and γ ↔ K.

Lemma 3 as printed asks for a γ ≠ 0 at every K ≤ n. Exactly, K = n gives γ = 0, and K = 1 gives
γ = ±∞, as does every K for which the K extreme values are equal.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from vicinal.objective.soft_average import gamma_for_k, k_for_gamma, soft_average

INF = math.inf


def squared_distances(seed, n=25):
    """The distances of one sample to n others, as the lemmas are used; all distinct."""
    X = np.random.default_rng(seed).normal(size=(n + 1, 4))
    return np.sort(((X[1:] - X[0]) ** 2).sum(axis=1))


distinct = [squared_distances(seed) for seed in range(3)] + [np.array([-3.0, -1.0, 0.25, 8.0])]
tied = [np.array([1.0, 1.0, 1.0, 2.0, 5.0, 5.0]), np.array([0.0, 1.0, 1.0])]

ALL = pytest.mark.parametrize("a", distinct + tied)
DISTINCT = pytest.mark.parametrize("a", distinct)
SIDES = pytest.mark.parametrize("largest", [False, True])


def mean_of_extremes(a, K, largest):
    return math.fsum(sorted(a, reverse=largest)[:K]) / K


# ------------------------------------------------------------------------------------- Lemma 2


@ALL
def test_lemma_2_the_limit_at_plus_infinity_is_the_minimum(a):
    gammas = 2.0 ** np.arange(-5, 30)
    gap = np.array([soft_average(a, g) for g in gammas]) - a.min()
    assert (gap >= 0).all()
    assert (gap <= np.log(a.size) / gammas + 1e-14).all()  # Eq. 14 with all other terms dropped
    assert gap[-1] < 1e-7
    assert soft_average(a, INF) == a.min()


@ALL
def test_lemma_2_the_limit_at_minus_infinity_is_the_maximum(a):
    gammas = 2.0 ** np.arange(-5, 30)
    gap = a.max() - np.array([soft_average(a, -g) for g in gammas])
    assert (gap >= 0).all()
    assert (gap <= np.log(a.size) / gammas + 1e-14).all()
    assert gap[-1] < 1e-7
    assert soft_average(a, -INF) == a.max()


@ALL
def test_lemma_2_the_limit_at_zero_is_the_mean(a):
    mean = math.fsum(a) / a.size
    variance = math.fsum((a - mean) ** 2) / a.size
    for gamma in 2.0 ** np.arange(-8, -40, -1.0):
        # b(γ) = mean − γ/2·variance + O(γ²), from either side; the third cumulant bounds the rest
        for g in (gamma, -gamma):
            error = abs(soft_average(a, g) - (mean - g / 2 * variance))
            assert error <= g**2 * np.ptp(a) ** 3 / 6 + 1e-13
    assert soft_average(a, 0) == pytest.approx(mean, rel=1e-15)


@ALL
def test_lemma_2_strictly_decreasing(a):
    gammas = np.r_[-INF, -(2.0 ** np.arange(6, -12, -0.5)), 0, 2.0 ** np.arange(-12, 6, 0.5), INF]
    b = [soft_average(a, g) for g in gammas]
    assert (np.diff(b) < 0).all()


@pytest.mark.parametrize("value", [0.0, -1.75, 3e5])
def test_lemma_2_constant_where_all_are_equal(value):
    for gamma in (-INF, -100.0, -1e-9, 0.0, 1e-9, 100.0, INF):
        assert soft_average([value] * 4, gamma) == value


# ------------------------------------------------------------------------------------- Lemma 3


@SIDES
@ALL
def test_lemma_3_a_root_exists_for_every_k(a, largest):
    for K in range(1, a.size + 1):
        gamma = gamma_for_k(a, K, largest=largest)
        assert gamma <= 0 if largest else gamma >= 0
        target = mean_of_extremes(a, K, largest)
        assert soft_average(a, gamma) == pytest.approx(target, abs=1e-12 * np.ptp(a))


@SIDES
@DISTINCT
def test_lemma_3_the_root_is_unique(a, largest):
    for K in range(2, a.size):
        gamma = gamma_for_k(a, K, largest=largest)
        target = mean_of_extremes(a, K, largest)
        # b crosses the target there and nowhere else: strictly above for less, below for more
        for factor in (1e-6, 0.1, 0.9, 1 - 1e-6):
            inner, outer = soft_average(a, gamma * factor), soft_average(a, gamma / factor)
            assert (inner < target < outer) if largest else (inner > target > outer)
        opposite = soft_average(a, -gamma)
        assert opposite < target if largest else opposite > target


@SIDES
@DISTINCT
def test_lemma_3_gamma_falls_to_zero_as_k_grows_to_n(a, largest):
    gammas = [abs(gamma_for_k(a, K, largest=largest)) for K in range(1, a.size + 1)]
    assert gammas[0] == INF
    assert gammas[-1] == 0
    assert all(more > less for more, less in pairwise(gammas))


@ALL
def test_lemma_3_k_is_n_exactly_at_gamma_zero(a):
    assert gamma_for_k(a, a.size) == gamma_for_k(a, a.size, largest=True) == 0
    assert k_for_gamma(a, 0) == a.size
    assert k_for_gamma(a, 1e-3) < a.size
    assert k_for_gamma(a, -1e-3) < a.size


@DISTINCT
def test_lemma_3_k_is_1_exactly_at_infinite_gamma(a):
    assert gamma_for_k(a, 1) == INF
    assert gamma_for_k(a, 1, largest=True) == -INF
    assert k_for_gamma(a, INF) == k_for_gamma(a, -INF) == 1
    assert 1 < k_for_gamma(a, 1e6) < 1.01
    assert 1 < k_for_gamma(a, -1e6) < 1.01
    assert math.isfinite(gamma_for_k(a, 1 + 1e-9))


def test_lemma_3_with_ties_at_the_extremes():
    a = [1.0, 1.0, 1.0, 2.0, 5.0, 5.0]
    assert [gamma_for_k(a, K) for K in (1, 2, 2.5, 3)] == [INF] * 4
    assert [gamma_for_k(a, K, largest=True) for K in (1, 1.5, 2)] == [-INF] * 3
    assert 0 < gamma_for_k(a, 4) < gamma_for_k(a, 3.001) < INF
    assert -INF < gamma_for_k(a, 2.001, largest=True) < gamma_for_k(a, 3, largest=True) < 0
    # from γ the number of ties comes back, and it is the limit of large γ
    assert (k_for_gamma(a, INF), k_for_gamma(a, -INF)) == (3, 2)
    assert k_for_gamma(a, 1e8) == pytest.approx(3, abs=1e-6)
    assert k_for_gamma(a, -1e8) == pytest.approx(2, abs=1e-6)


@SIDES
@DISTINCT
def test_lemma_3_k_and_gamma_invert_each_other(a, largest):
    for K in np.r_[1 : a.size + 1, 1.25 : a.size : 0.5]:
        gamma = gamma_for_k(a, K, largest=largest)
        assert k_for_gamma(a, gamma) == pytest.approx(K, abs=1e-9)
    for gamma in (0.01, 0.1, 1.0, 10.0):
        gamma = -gamma if largest else gamma
        K = k_for_gamma(a, gamma)
        assert gamma_for_k(a, K, largest=largest) == pytest.approx(gamma, rel=1e-9)


@DISTINCT
def test_lemma_3_the_effective_k_falls_with_gamma(a):
    K = [k_for_gamma(a, g) for g in np.r_[0, 2.0 ** np.arange(-10, 12), INF]]
    assert (np.diff(K) < 0).all()
    assert (K[0], K[-1]) == (a.size, 1)
