"""Votes, against loops."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from vicinal.automatic.class_rows import ClassRows
from vicinal.automatic.committee import ADDITIONS, FIRST_MEMBERS, greedy_weights
from vicinal.kernels.cpu.class_neighbors import NeighborIndex, Neighbors
from vicinal.voting.row_weights import RowWeights, VotingRows
from vicinal.voting.votes import SHARPNESS, all_votes, majorities, rules, vote_weights


def voters(rng, n=40, c=3):
    codes = rng.integers(0, c, n)
    weights = rng.uniform(0.2, 2.0, n)
    return VotingRows(codes, weights, np.bincount(codes, weights, c) / weights.sum())


def class_probabilities(found, rows, vote, k):
    return vote_weights(found, rows.weights, vote, k).class_probabilities(rows)


def naive(distances, ids, rows, vote, k):
    """p_c = (v_c + ½ prior_c) / (Σ v + ½), one query and one neighbor at a time."""
    P = np.zeros((len(ids), len(rows.prior)))
    for i in range(len(ids)):
        votes = np.zeros(len(rows.prior))
        reach = distances[i][k]
        for d, j in zip(distances[i][:k], ids[i][:k], strict=True):
            if j < 0:
                continue
            factor = 1.0
            if vote in SHARPNESS:
                continue
            if vote == "epanechnikov" and 0 < reach < np.inf:
                factor = max(0.0, 1.0 - d / reach)
            votes[rows.codes[j]] += rows.weights[j] * factor
        if vote in SHARPNESS:
            votes = naive_soft(distances[i][:k], ids[i][:k], rows, SHARPNESS[vote])
        P[i] = (votes + 0.5 * rows.prior) / (votes.sum() + 0.5)
    return P


def naive_soft(distances, ids, rows, sharpness):
    raw = [rows.weights[j] * math.exp(-sharpness * d) for d, j in zip(distances, ids, strict=True)]
    shares = [value / sum(raw) for value in raw]
    effective = math.exp(-sum(r * math.log(r) for r in shares))
    votes = np.zeros(len(rows.prior))
    for r, j in zip(shares, ids, strict=True):
        votes[rows.codes[j]] += effective * r
    return votes


@given(seed=st.integers(0, 10**6), ties=st.booleans())
@settings(max_examples=25, deadline=None)
def test_every_way_to_count_agrees_with_the_loop(seed, ties):
    rng = np.random.default_rng(seed)
    rows = voters(rng)
    R, Q = rng.normal(size=(40, 2)), rng.normal(size=(7, 2))
    if ties:
        R, Q = np.rint(R), np.rint(Q)
    found = NeighborIndex(R).nearest(Q, 10)
    ks = (1, 3, 9)
    for vote, k, P in all_votes(found, rows, ks):
        expected = naive(*found, rows, vote, k)
        assert_allclose(P, expected, atol=1e-12)
        assert_allclose(class_probabilities(found, rows, vote, k), expected, atol=1e-12)


@pytest.mark.parametrize("vote", sorted({vote for vote, _ in rules((1,))}))
def test_shares_and_the_prior_make_up_the_whole(vote):
    rng = np.random.default_rng(0)
    rows = voters(rng)
    found = NeighborIndex(rng.normal(size=(40, 2))).nearest(rng.normal(size=(5, 2)), 8)
    found_weights = vote_weights(found, rows.weights, vote, 7)
    weights = found_weights.to_sparse(40)
    assert np.all(weights.data > 0)
    assert_allclose(weights.sum(axis=1) + found_weights.prior_share, 1.0)


def test_coinciding_neighbors_and_missing_ones_are_no_division_by_zero():
    rows = VotingRows(np.array([0, 1]), np.ones(2), np.array([0.5, 0.5]))
    coinciding = Neighbors(np.zeros((1, 2)), np.array([[0, 1]]))
    missing = Neighbors(np.array([[1.0, np.inf]]), np.array([[0, -1]]))
    for found, expected in (
        (coinciding, [1.25 / 1.5, 0.25 / 1.5]),
        (missing, [1.25 / 1.5, 0.25 / 1.5]),
    ):
        P = class_probabilities(found, rows, "epanechnikov", 1)
        assert_allclose(P[0], expected)


def test_soft_votes_far_away_neither_underflow_nor_lose_the_nearest():
    rows = VotingRows(np.array([0, 1]), np.ones(2), np.array([0.5, 0.5]))
    far = Neighbors(np.array([[1e6, 2e6, np.inf]]), np.array([[0, 1, -1]]))
    assert_allclose(class_probabilities(far, rows, "soft", 2)[0], [1.25 / 1.5, 0.25 / 1.5])
    silent = VotingRows(np.array([0, 1]), np.zeros(2), np.array([0.5, 0.5]))
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
    assert_allclose(greedy_weights(P, target, weights), counts / counts.sum())


def test_rank_weighs_error_and_log_loss():
    losses = np.array([[0.1, 0.5], [0.1, 0.4], [0.2, 0.1], [0.09, 0.6]])
    rows = ClassRows.of(np.array([0, 1]), np.ones(2))
    assert rows.rank(losses).tolist() == [1, 2, 0, 3]


@given(seed=st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_row_weights_are_a_sparse_matrix_of_what_follows_from_them(seed):
    """Members with rows in common, missing rows and negative weights, against dense sums."""
    rng = np.random.default_rng(seed)
    n, q, rows = 12, 5, voters(rng, n=12)
    dense, parts = np.zeros((q, n)), []
    for k, member in ((3, 0.25), (5, 0.75)):
        ids = np.array([rng.permutation(n)[:k] for _ in range(q)])
        weights = rng.normal(size=(q, k))
        missing = rng.random((q, k)) < 0.2
        ids[missing], weights[missing] = -1, 0.0
        parts.append((member, RowWeights.of(ids, weights, 1.0 - weights.sum(axis=1))))
        for i, j in zip(*np.nonzero(~missing), strict=True):
            dense[i, ids[i, j]] += member * weights[i, j]
    found = RowWeights.weighted_sum(parts)
    assert_allclose(found.to_sparse(n).toarray(), dense, atol=1e-15)
    assert_allclose(found.prior_share + dense.sum(axis=1), 1.0)
    P = dense @ np.eye(3)[rows.codes] + found.prior_share[:, None] * rows.prior
    assert_allclose(found.class_probabilities(rows), P, atol=1e-12)
    targets, mean = rng.normal(size=(n, 2)), rng.normal(size=2)
    expected = dense @ targets + found.prior_share[:, None] * mean
    assert_allclose(found.averages(targets, mean), expected, atol=1e-12)


@given(seed=st.integers(0, 10**6), c=st.integers(1, 5))
@settings(max_examples=50, deadline=None)
def test_majorities_for_every_k_agree_with_the_loop(seed, c):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, c, size=(20, 9))
    ks = np.unique(rng.integers(1, 10, size=4))
    for k, winners in zip(ks, majorities(labels, ks), strict=True):
        for row, winner in zip(labels[:, :k].tolist(), winners, strict=True):
            assert winner == max(row, key=row.count)  # the first of equally frequent ones
