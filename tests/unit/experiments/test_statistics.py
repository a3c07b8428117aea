from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from experiments.statistics import (
    cliques,
    critical_difference,
    duel,
    friedman,
    mean_ranks,
    signed_rank_p,
)

SCORES = np.round(np.random.default_rng(0).uniform(60, 99, (14, 4)), 0)  # some ties

# Demšar, JMLR 2006, Table 5: critical values of Nemenyi's test, 5 %, for 2 … 10 methods.
NEMENYI = (1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164)


def test_ranks_are_one_more_than_the_number_of_better_ones():
    better = (SCORES[:, None, :] > SCORES[:, :, None]).sum(axis=2)
    equal = (SCORES[:, None, :] == SCORES[:, :, None]).sum(axis=2) - 1
    assert_allclose(mean_ranks(SCORES), (1 + better + equal / 2).mean(axis=0))


@pytest.mark.parametrize(("k", "q"), list(enumerate(NEMENYI, start=2)))
def test_critical_differences_are_those_of_the_published_table(k, q):
    assert critical_difference(k, 14) == pytest.approx(q * np.sqrt(k * (k + 1) / 84), abs=1e-3)


def test_friedman_by_hand():
    n, k = SCORES.shape
    r = mean_ranks(SCORES)
    chi2 = 12 * n / (k * (k + 1)) * ((r**2).sum() - k * (k + 1) ** 2 / 4)
    assert friedman(SCORES).chi2 == pytest.approx(chi2 / _tie_factor(SCORES), rel=1e-9)


def _tie_factor(scores):
    n, k = scores.shape
    ties = sum(
        (counts**3 - counts).sum()
        for counts in (np.unique(row, return_counts=True)[1] for row in scores)
    )
    return 1 - ties / (n * k * (k * k - 1))


def test_iman_davenport():
    found = friedman(SCORES)
    n, k = SCORES.shape
    assert found.f == pytest.approx((n - 1) * found.chi2 / (n * (k - 1) - found.chi2))
    assert found.p_f == pytest.approx(stats.f.sf(found.f, 3, 39))
    unanimous = np.tile([3.0, 2.0, 1.0], (5, 1))
    assert friedman(unanimous).f == np.inf
    assert friedman(unanimous).p_f == 0.0


def test_a_duel_counts_what_is_printed():
    found = duel(np.array([90.001, 80.0, 70.0]), np.array([90.003, 79.0, 71.0]))
    assert (found.wins, found.ties, found.losses) == (1, 1, 1)
    assert str(found) == "1/1/1"
    equal = duel(np.ones(4), np.ones(4))
    assert (equal.ties, equal.p) == (4, 1.0)


def test_wilcoxon_of_one_sided_results_is_exact():
    """All 8 differences of one sign: p = 2 / 2⁸."""
    first = np.arange(8.0) + np.arange(1, 9) / 10
    assert duel(first, np.arange(8.0)).p == pytest.approx(2 / 2**8)


def test_ties_and_zeros_leave_the_signed_rank_test_exact():
    ties = np.array([1.0, 1, 2, 2, 3, 4, 5, 5, 6, 7, 8, 9, 10, 11, 12])
    assert signed_rank_p(ties) == 2 / 2**15
    assert signed_rank_p(np.append(ties, 0.0)) == 2 / 2**15
    assert signed_rank_p(np.zeros(3)) == 1.0
    assert np.isnan(signed_rank_p(np.array([1.0, np.nan, 2.0])))


@given(st.lists(st.integers(-9, 9).filter(bool), min_size=1, max_size=7))
def test_signed_rank_p_is_that_of_all_signs(values):
    ranks = stats.rankdata(np.abs(values))
    sums = [np.dot(signs, ranks) for signs in itertools.product((-1, 1), repeat=len(values))]
    observed = abs(np.dot(np.sign(values), ranks))
    assert signed_rank_p(np.array(values, dtype=float)) == np.mean(np.abs(sums) >= observed)


def test_without_ties_it_is_scipys_test_for_few_and_for_many():
    for n in (12, 40):
        differences = np.random.default_rng(n).normal(0.3, 1, n)
        assert signed_rank_p(differences) == pytest.approx(stats.wilcoxon(differences).pvalue)


@given(st.lists(st.floats(1, 13), min_size=2, max_size=13), st.floats(0.1, 6))
def test_cliques_join_exactly_what_is_near(values, difference):
    ranks = np.sort(values)
    runs = cliques(ranks, difference)
    for i in range(len(ranks)):
        for j in range(i + 1, len(ranks)):
            joined = any(first <= i and j <= last for first, last in runs)
            assert joined == (ranks[j] <= ranks[i] + difference)
    for a in runs:
        assert not any(a != b and b[0] <= a[0] and a[1] <= b[1] for b in runs)  # maximal
