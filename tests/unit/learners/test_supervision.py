"""Pairs and triplets, given or drawn from labels."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from vicinal.learners.weakly_supervised import check_pairs, check_triplets
from vicinal.supervision import (
    chunks_from_labels,
    nearest_triplets,
    pairs_from_labels,
    quadruplets_from_labels,
    sample_pairs,
    triplets_from_labels,
)


def as_set(pairs):
    return set(zip(pairs.i.tolist(), pairs.j.tolist(), strict=True))


@pytest.mark.parametrize("similar", [[1, -1, 1], [1, 0, 1], [True, False, True], [1.0, 0.0, 1.0]])
def test_given_pairs_are_kept_in_order(similar):
    pairs = check_pairs([[0, 1], [2, 0], [1, 3]], similar, n=4)
    assert len(pairs) == 3
    assert_array_equal(pairs.i, [0, 2, 1])
    assert_array_equal(pairs.j, [1, 0, 3])
    assert_array_equal(pairs.similar, [True, False, True])
    assert pairs.similar.dtype == bool
    assert pairs.i.dtype == np.intp


@pytest.mark.parametrize("similar", [[1, 1], [0, 0], [-1, -1]])
def test_pairs_of_one_kind_are_allowed(similar):
    assert_array_equal(check_pairs([[0, 1], [1, 2]], similar, n=3).similar, np.array(similar) > 0)


def test_marked_pairs():
    pairs = check_pairs([[0, 1], [2, 0], [1, 3]], [1, -1, 1], n=4)
    kept = pairs.where(np.array([False, True, True]))
    assert_array_equal(np.stack([kept.i, kept.j]), [[2, 1], [0, 3]])
    assert_array_equal(kept.similar, [False, True])


@pytest.mark.parametrize(
    ("pairs", "similar", "message"),
    [
        ([[0, 1, 2]], [1], r"shape \(number, 2\).*got shape \(1, 3\)"),
        ([0, 1], [1], r"got shape \(2,\)"),
        (np.empty((0, 2), dtype=int), [], "at least one"),
        ([[0.0, 1.0]], [1], "integers .*float64"),
        ([[0, 4]], [1], "outside 0 … 3"),
        ([[-1, 0]], [1], "outside 0 … 3"),
        ([[0, 1]], [1, 1], "2 entries for 1 pairs"),
        ([[0, 1], [1, 2]], [1, 2], r"got \[1, 2\]"),
        ([[0, 1], [1, 2], [2, 3]], [-1, 0, 1], r"got \[-1, 0, 1\]"),
        ([[0, 1], [2, 2]], [1, 0], "row 2 with itself"),
    ],
)
def test_wrong_pairs_are_named(pairs, similar, message):
    with pytest.raises(ValueError, match=message):
        check_pairs(pairs, similar, n=4)


def test_given_triplets_are_kept_in_order():
    triplets = check_triplets([[2, 0, 1], [0, 3, 1]], n=4)
    assert len(triplets) == 2
    assert_array_equal(np.stack([triplets.i, triplets.j, triplets.l]), [[2, 0], [0, 3], [1, 1]])


@pytest.mark.parametrize(
    ("triplets", "message"),
    [
        ([[0, 1]], r"shape \(number, 3\)"),
        (np.empty((0, 3), dtype=int), "at least one"),
        ([[0.0, 1.0, 2.0]], "integers"),
        ([[0, 1, 4]], "outside 0 … 3"),
        ([[0, 0, 1]], "all three must differ"),
        ([[0, 1, 0]], "all three must differ"),
        ([[0, 1, 1]], "all three must differ"),
    ],
)
def test_wrong_triplets_are_named(triplets, message):
    with pytest.raises(ValueError, match=message):
        check_triplets(triplets, n=4)


@pytest.mark.parametrize("n_pairs", [2, 10, 101, 400])
@pytest.mark.parametrize("seed", [0, 1])
def test_drawn_pairs_are_distinct_and_half_similar(n_pairs, seed):
    codes = np.arange(60) % 3
    pairs = sample_pairs(codes, n_pairs, np.random.RandomState(seed))
    half = n_pairs // 2
    assert len(pairs) == len(as_set(pairs)) == 2 * half
    assert np.all(pairs.i < pairs.j)
    assert_array_equal(pairs.similar, np.arange(2 * half) < half)
    assert_array_equal(pairs.similar, codes[pairs.i] == codes[pairs.j])
    for kept in (pairs.similar, ~pairs.similar):
        rows = list(zip(pairs.i[kept].tolist(), pairs.j[kept].tolist(), strict=True))
        assert rows == sorted(rows)


def test_where_few_pairs_exist_all_are_taken():
    codes = np.array([0, 1, 0, 1, 0, 2])
    pairs = sample_pairs(codes, 1000, np.random.RandomState(0))
    assert as_set(pairs) == set(combinations(range(6), 2))
    assert pairs.similar.sum() == 4


def test_one_class_gives_similar_pairs_only():
    pairs = sample_pairs(np.zeros(5, dtype=np.intp), 4, np.random.RandomState(0))
    assert len(pairs) == 2
    assert pairs.similar.all()


def test_draws_repeat_with_their_seed():
    codes = np.arange(100) % 4
    first, again, other = (
        as_set(sample_pairs(codes, 50, np.random.RandomState(seed))) for seed in (0, 0, 1)
    )
    assert first == again
    assert first != other


@pytest.mark.parametrize("n_pairs", [6, 40])  # some of many; a choice among all that exist
def test_every_pair_is_equally_likely(n_pairs):
    codes = np.arange(14) % 2  # 42 similar pairs, 49 dissimilar ones
    counts = np.zeros((14, 14))
    draws, rng = 2000, np.random.RandomState(0)
    for _ in range(draws):
        pairs = sample_pairs(codes, n_pairs, rng)
        counts[pairs.i, pairs.j] += 1
    for same, available in ((True, 42), (False, 49)):
        i, j = np.triu_indices(14, 1)
        observed = counts[i, j][(codes[i] == codes[j]) == same]
        p = n_pairs / 2 / available
        assert len(observed) == available
        assert np.abs(observed - draws * p).max() < 5 * np.sqrt(draws * p * (1 - p))


def naive_triplets(X, codes, n_similar, n_dissimilar):
    found = []
    by_class = np.argsort(codes, kind="stable").tolist()  # equal distances: by class, then by row
    for i in range(len(X)):
        order = sorted(by_class, key=lambda j, i=i: ((X[i] - X[j]) ** 2).sum())
        similar = [j for j in order if codes[j] == codes[i] and j != i][:n_similar]
        dissimilar = [j for j in order if codes[j] != codes[i]][:n_dissimilar]
        found += [(i, j, l) for j in similar for l in dissimilar]  # noqa: E741
    return np.array(found)


@pytest.mark.parametrize(("n_similar", "n_dissimilar"), [(1, 1), (3, 10), (2, 100), (50, 2)])
def test_nearest_triplets_are_those_of_loops(n_similar, n_dissimilar):
    rng = np.random.default_rng(0)
    X, codes = rng.standard_normal((40, 3)), np.r_[0, rng.integers(1, 4, 37), 4, 4]
    triplets = nearest_triplets(X, codes, n_similar, n_dissimilar)
    expected = naive_triplets(X, codes, n_similar, n_dissimilar)
    assert_array_equal(np.stack([triplets.i, triplets.j, triplets.l], axis=1), expected)
    assert 0 not in triplets.i  # alone in its class
    assert triplets.i.dtype == triplets.j.dtype == triplets.l.dtype == np.intp


def test_ties_of_nearest_triplets_are_stable():
    X = np.zeros((6, 2))
    codes = np.array([1, 0, 1, 0, 1, 2])
    triplets = nearest_triplets(X, codes, 2, 3)
    assert_array_equal(
        np.stack([triplets.i, triplets.j, triplets.l], axis=1), naive_triplets(X, codes, 2, 3)
    )


def test_no_triplets_without_two_of_a_class():
    with pytest.raises(ValueError, match="both a similar and a dissimilar"):
        nearest_triplets(np.eye(3), np.arange(3), 1, 1)


PARTLY_KNOWN = np.array([0, 1, -1, 0, 2, 1, -1, 0, 2, 2, 1, 0])
NAMED = np.array(["a", "b", "c"])[[0, 1, 0, 2, 1, 0, 2, 2, 1, 0]]


def test_pairs_of_known_labels():
    pairs, similar = pairs_from_labels(PARTLY_KNOWN, random_state=0)
    assert len({tuple(pair) for pair in pairs.tolist()}) == 45  # all pairs of ten known rows
    assert_array_equal(similar, PARTLY_KNOWN[pairs[:, 0]] == PARTLY_KNOWN[pairs[:, 1]])
    assert (PARTLY_KNOWN[pairs] >= 0).all()
    few, _ = pairs_from_labels(PARTLY_KNOWN, 6, random_state=1)
    assert_array_equal(few, pairs_from_labels(PARTLY_KNOWN, 6, random_state=1)[0])
    assert few.shape == (6, 2)


def test_triplets_of_known_labels():
    X = np.arange(12.0)[:, None] ** 1.1
    triplets = triplets_from_labels(X, PARTLY_KNOWN, 2, 3)
    i, j, l = PARTLY_KNOWN[triplets].T  # noqa: E741
    assert_array_equal(i, j)
    assert (i != l).all()
    assert (PARTLY_KNOWN[triplets] >= 0).all()
    assert len(triplets) == 10 * 2 * 3
    with pytest.raises(ValueError, match="inconsistent numbers"):
        triplets_from_labels(X[1:], PARTLY_KNOWN)


def test_quadruplets_of_known_labels():
    quadruplets = quadruplets_from_labels(PARTLY_KNOWN, 8, random_state=0)
    a, b, c, d = PARTLY_KNOWN[quadruplets].T
    assert len(quadruplets) == 8
    assert_array_equal(a, b)
    assert (c != d).all()
    assert min(a.min(), c.min(), d.min()) >= 0
    assert len(quadruplets_from_labels(PARTLY_KNOWN)) == 12  # as many as similar pairs
    assert_array_equal(quadruplets, quadruplets_from_labels(PARTLY_KNOWN, 8, random_state=0))


def test_chunks_of_known_labels():
    chunks = chunks_from_labels(PARTLY_KNOWN, 4, 2, random_state=0)
    assert_array_equal(np.bincount(chunks[chunks >= 0]), [2, 2, 2, 2])
    for chunk in range(4):
        assert len(set(PARTLY_KNOWN[chunks == chunk].tolist())) == 1
    assert (chunks[PARTLY_KNOWN < 0] == -1).all()
    assert_array_equal(chunks, chunks_from_labels(PARTLY_KNOWN, 4, 2, random_state=0))
    drawn = {tuple(chunks_from_labels(PARTLY_KNOWN, 2, random_state=s)) for s in range(20)}
    assert len(drawn) > 10
    with pytest.raises(ValueError, match="maximum number of chunks is 4"):
        chunks_from_labels(PARTLY_KNOWN, 5)


def test_names_are_labels_and_all_unknown_is_an_error():
    pairs, similar = pairs_from_labels(NAMED, 10, random_state=0)
    assert_array_equal(similar, NAMED[pairs[:, 0]] == NAMED[pairs[:, 1]])
    with pytest.raises(ValueError, match="no known label"):
        pairs_from_labels([-1, -1])
