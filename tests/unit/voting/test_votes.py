"""Votes, against loops."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from vicinal.automatic.committee import ADDITIONS, FIRST_MEMBERS, greedy_weights, rank
from vicinal.kernels.cpu.class_neighbors import Neighbors, all_neighbors
from vicinal.voting.votes import (
    SHARPNESS,
    Electorate,
    all_votes,
    class_probabilities,
    rules,
    vote_shares,
)


def voters(rng, n=40, c=3):
    codes = rng.integers(0, c, n)
    weights = rng.uniform(0.2, 2.0, n)
    return Electorate(codes, weights, np.bincount(codes, weights, c) / weights.sum())


def naive(distances, ids, electorate, vote, k):
    """p_c = (v_c + ½ prior_c) / (Σ v + ½), one query and one neighbor at a time."""
    P = np.zeros((len(ids), len(electorate.prior)))
    for i in range(len(ids)):
        votes = np.zeros(len(electorate.prior))
        reach = distances[i][k]
        for d, j in zip(distances[i][:k], ids[i][:k], strict=True):
            if j < 0:
                continue
            factor = 1.0
            if vote in SHARPNESS:
                continue
            if vote == "epanechnikov" and 0 < reach < np.inf:
                factor = max(0.0, 1.0 - d / reach)
            votes[electorate.codes[j]] += electorate.weights[j] * factor
        if vote in SHARPNESS:
            votes = naive_soft(distances[i][:k], ids[i][:k], electorate, SHARPNESS[vote])
        P[i] = (votes + 0.5 * electorate.prior) / (votes.sum() + 0.5)
    return P


def naive_soft(distances, ids, electorate, sharpness):
    raw = [
        electorate.weights[j] * math.exp(-sharpness * d)
        for d, j in zip(distances, ids, strict=True)
    ]
    shares = [value / sum(raw) for value in raw]
    effective = math.exp(-sum(r * math.log(r) for r in shares))
    votes = np.zeros(len(electorate.prior))
    for r, j in zip(shares, ids, strict=True):
        votes[electorate.codes[j]] += effective * r
    return votes


@given(seed=st.integers(0, 10**6), ties=st.booleans())
@settings(max_examples=25, deadline=None)
def test_every_way_to_count_agrees_with_the_loop(seed, ties):
    rng = np.random.default_rng(seed)
    electorate = voters(rng)
    R, Q = rng.normal(size=(40, 2)), rng.normal(size=(7, 2))
    if ties:
        R, Q = np.rint(R), np.rint(Q)
    found = all_neighbors(Q, R, 10)
    ks = (1, 3, 9)
    for vote, k, P in all_votes(found, electorate, ks):
        expected = naive(*found, electorate, vote, k)
        assert_allclose(P, expected, atol=1e-12)
        assert_allclose(class_probabilities(found, electorate, vote, k), expected, atol=1e-12)


@pytest.mark.parametrize("vote", sorted({vote for vote, _ in rules((1,))}))
def test_shares_and_the_prior_make_up_the_whole(vote):
    rng = np.random.default_rng(0)
    electorate = voters(rng)
    found = all_neighbors(rng.normal(size=(5, 2)), rng.normal(size=(40, 2)), 8)
    shares, prior_share = vote_shares(found, electorate.weights, vote, 7)
    assert np.all(shares >= 0)
    assert_allclose(shares.sum(axis=1) + prior_share, 1.0)


def test_coinciding_neighbors_and_missing_ones_are_no_division_by_zero():
    electorate = Electorate(np.array([0, 1]), np.ones(2), np.array([0.5, 0.5]))
    coinciding = Neighbors(np.zeros((1, 2)), np.array([[0, 1]]))
    missing = Neighbors(np.array([[1.0, np.inf]]), np.array([[0, -1]]))
    for found, expected in (
        (coinciding, [1.25 / 1.5, 0.25 / 1.5]),
        (missing, [1.25 / 1.5, 0.25 / 1.5]),
    ):
        P = class_probabilities(found, electorate, "epanechnikov", 1)
        assert_allclose(P[0], expected)


def test_soft_votes_far_away_neither_underflow_nor_lose_the_nearest():
    electorate = Electorate(np.array([0, 1]), np.ones(2), np.array([0.5, 0.5]))
    far = Neighbors(np.array([[1e6, 2e6, np.inf]]), np.array([[0, 1, -1]]))
    assert_allclose(class_probabilities(far, electorate, "soft", 2)[0], [1.25 / 1.5, 0.25 / 1.5])
    silent = Electorate(np.array([0, 1]), np.zeros(2), np.array([0.5, 0.5]))
    assert_allclose(class_probabilities(far, silent, "soft", 2)[0], [0.5, 0.5])


def test_greedy_choice_lowers_the_brier_score_as_the_loop_does():
    rng = np.random.default_rng(1)
    k, n, c = 15, 30, 3
    P = rng.dirichlet(np.ones(c), size=(k, n))
    codes, weights = rng.integers(0, c, n), rng.uniform(0.5, 2.0, n)
    target = np.eye(c)[codes]

    def brier(counts):
        mean = np.tensordot(counts / counts.sum(), P, axes=1)
        return weights @ ((mean - target) ** 2).sum(axis=1)

    counts = np.r_[np.ones(FIRST_MEMBERS), np.zeros(k - FIRST_MEMBERS)]
    for _ in range(ADDITIONS):
        trials = [brier(counts + np.eye(k)[j]) for j in range(k)]
        counts[int(np.argmin(trials))] += 1
    assert_allclose(greedy_weights(P, codes, weights), counts / counts.sum())


def test_rank_weighs_error_and_log_loss():
    errors, log_losses = np.array([0.1, 0.1, 0.2, 0.09]), np.array([0.5, 0.4, 0.1, 0.6])
    assert rank(errors, log_losses).tolist() == [1, 2, 0, 3]
