"""Neighbors, distances and shares against scikit-learn and plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from vicinal.fitted_model import MeasuredRows
from vicinal.reporting.feature_columns import FeatureColumns
from vicinal.reporting.maps import mean_kept, neighborhoods, with_shares
from vicinal.voting.explanation import contributions


@given(st.integers(0, 2**32 - 1), st.integers(1, 7))
def test_contributions_sum_to_the_squared_distance(seed, d):
    rng = np.random.default_rng(seed)
    a, b, L = rng.normal(size=d), rng.normal(size=d), rng.normal(size=(d + 1, d))
    expected = np.sum((L @ (a - b)) ** 2)
    assert contributions(a, b, L.T @ L).sum() == pytest.approx(expected, rel=1e-9)


def test_neighbors_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    Z, labels = rng.normal(size=(60, 3)), rng.integers(0, 3, 60)
    is_reference = np.arange(60) < 45
    near = neighborhoods(Z, labels, is_reference, 4)
    index = NearestNeighbors(n_neighbors=4).fit(Z[:45])
    for rows, (distances, expected) in (
        (slice(0, 45), index.kneighbors()),
        (slice(45, 60), index.kneighbors(Z[45:])),
    ):
        np.testing.assert_array_equal(near.rows[rows], expected)
        np.testing.assert_allclose(near.distances[rows], distances)
    held_out = [np.mean(labels[near.rows[i]] == labels[i]) for i in range(45, 60)]
    assert near.agreement == pytest.approx(np.mean(held_out))


def test_shares_are_the_largest_contributions_over_the_squared_distance():
    rng = np.random.default_rng(1)
    A, L = rng.normal(size=(30, 6)), rng.normal(size=(4, 6))
    near = neighborhoods(A @ L.T, np.zeros(30, dtype=int), np.ones(30, dtype=bool), 3)
    near = with_shares(near, MeasuredRows(A, L.T @ L), FeatureColumns.named("abcdef", "abcdef"))
    for i in range(30):
        for j in range(3):
            delta = A[i] - A[near.rows[i, j]]
            parts = delta * (L.T @ L @ delta)
            assert parts.sum() == pytest.approx(near.distances[i, j] ** 2)
            shares = parts / parts.sum()
            order = sorted(range(6), key=lambda f: -abs(shares[f]))[: near.features.shape[2]]
            assert near.features[i, j].tolist() == order
            np.testing.assert_allclose(near.shares[i, j], shares[order])


def test_shares_of_a_column_are_the_sums_of_those_of_its_features():
    rng = np.random.default_rng(1)
    A, M = rng.normal(size=(30, 5)), np.diag([1.0, 2.0, 3.0, 4.0, 5.0])
    near = neighborhoods(A, np.zeros(30, dtype=int), np.ones(30, dtype=bool), 2)
    near = with_shares(near, MeasuredRows(A, M), FeatureColumns.named("vwxyz", "kklml"))
    for i in range(30):
        parts = np.diag(M) * (A[i] - A[near.rows[i, 1]]) ** 2
        sums = np.array([parts[:2].sum(), parts[2] + parts[4], parts[3]]) / parts.sum()
        np.testing.assert_allclose(near.shares[i, 1], sums[near.features[i, 1]])
        assert sorted(near.features[i, 1].tolist()) == [0, 1, 2]


def test_all_shares_of_few_features_sum_to_one(iris):
    S = StandardScaler().fit_transform(iris[0][:, :3])
    near = neighborhoods(S, np.zeros(150, dtype=int), np.ones(150, dtype=bool), 5)
    columns = FeatureColumns.named("abc", "abc")
    shares = with_shares(near, MeasuredRows(S, np.eye(3)), columns).shares.sum(axis=2)
    apart = near.distances > 0  # iris has rows that are equal: there is nothing to share
    assert apart.any()
    assert not apart.all()
    np.testing.assert_allclose(shares[apart], 1)
    np.testing.assert_array_equal(shares[~apart], 0)


def test_kept_counts_common_neighbors():
    rng = np.random.default_rng(2)
    everyone, labels = np.ones(25, dtype=bool), np.zeros(25, dtype=int)
    first, second = (neighborhoods(rng.normal(size=(25, 2)), labels, everyone, 6) for _ in "ab")
    common = [len(set(a) & set(b)) for a, b in zip(first.rows, second.rows, strict=True)]
    assert mean_kept(first, second) == pytest.approx(np.mean(common))
