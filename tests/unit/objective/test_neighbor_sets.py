"""Neighbor sets against naive loops over all pairs of rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from vicinal.kernels.contract import Comparisons, IndexLists
from vicinal.objective.neighbor_sets import build_comparisons, lists_from_user

SIDES = pytest.mark.parametrize("same_class", [True, False])


# ------------------------------------------------------------------------------------- oracles


def class_of(offsets):
    return [c for c, size in enumerate(np.diff(offsets)) for _ in range(size)]


def candidates(i, offsets, groups, same_class):
    """The complete S_i or D_i, by definition."""
    classes = class_of(offsets)
    return [
        j
        for j in range(offsets[-1])
        if j != i
        and (classes[j] == classes[i]) == same_class
        and (groups is None or groups[j] != groups[i])
    ]


def nearest(i, k, X, offsets, groups, same_class):
    """The k nearest of the complete set; ties to the smaller row."""
    by_distance = sorted(
        (float(np.sum((X[i] - X[j]) ** 2)), j) for j in candidates(i, offsets, groups, same_class)
    )
    return sorted(j for _, j in by_distance[:k])


def rows_of(lists: IndexLists):
    return [sorted(members.tolist()) for members in np.split(lists.indices, lists.indptr[1:-1])]


def random_case(sizes, d=3, seed=0, n_groups=None):
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    groups = None if n_groups is None else rng.integers(0, n_groups, offsets[-1])
    return rng.standard_normal((offsets[-1], d)), offsets, groups


@st.composite
def grid_cases(draw):
    """Points of a small grid, so that ties and duplicates are the rule; distances are exact."""
    sizes = draw(st.lists(st.integers(1, 6), min_size=2, max_size=4))
    n = sum(sizes)
    cells = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=n, max_size=n)
    groups = draw(st.none() | st.lists(st.integers(0, 3), min_size=n, max_size=n).map(np.array))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return np.array(draw(cells), dtype=float), offsets, groups


# ------------------------------------------------------------------------------- complete sides


@pytest.mark.parametrize("n_groups", [None, 1000, 8, 3])
@pytest.mark.parametrize("sizes", [[5, 7], [4, 1, 6, 1], [1, 9], [3, 0, 4]])
def test_sizes_of_the_complete_sets(sizes, n_groups):
    X, offsets, groups = random_case(sizes, n_groups=n_groups)
    got = build_comparisons(X, offsets, groups=groups)
    n_similar = [len(candidates(i, offsets, groups, True)) for i in range(len(X))]
    n_dissimilar = [len(candidates(i, offsets, groups, False)) for i in range(len(X))]
    assert_array_equal(got.n_similar, n_similar)
    assert_array_equal(got.n_dissimilar, n_dissimilar)
    anchors = [i for i in range(len(X)) if n_similar[i] > 0 and n_dissimilar[i] > 0]
    assert_array_equal(got.anchors, anchors)
    assert got.similar is None
    assert got.dissimilar is None


@given(grid_cases())
def test_groups_of_one_row_each_change_nothing(case):
    X, offsets, _ = case
    assume(max(np.diff(offsets)) > 1)
    without = build_comparisons(X, offsets)
    with_groups = build_comparisons(X, offsets, groups=np.arange(len(X))[::-1].copy())
    assert_array_equal(without.anchors, with_groups.anchors)
    assert_array_equal(without.n_similar, with_groups.n_similar)
    assert_array_equal(without.n_dissimilar, with_groups.n_dissimilar)


def test_the_comparisons_carry_what_they_were_made_from():
    X, offsets, groups = random_case([4, 5], n_groups=6)
    got = build_comparisons(X, offsets, groups=groups)
    assert_array_equal(got.offsets, offsets)
    assert_array_equal(got.groups, groups)
    assert_array_equal(got.class_of_row, class_of(offsets))


# ------------------------------------------------------------------------------- nearest ones


def side(got: Comparisons, same_class):
    return (got.similar, got.n_similar) if same_class else (got.dissimilar, got.n_dissimilar)


def compare_nearest(X, offsets, groups, k, same_class):
    return build_comparisons(
        X, offsets, groups=groups, **{"similar" if same_class else "dissimilar": k}
    )


@SIDES
@pytest.mark.parametrize("n_groups", [None, 12])
@pytest.mark.parametrize("k", [1, 3, 8, 50])
def test_k_nearest(k, n_groups, same_class):
    """Also of classes with fewer than k others: then all of them."""
    X, offsets, groups = random_case([12, 1, 5, 20], n_groups=n_groups, seed=k)
    lists, sizes = side(compare_nearest(X, offsets, groups, k, same_class), same_class)
    expected = [nearest(i, k, X, offsets, groups, same_class) for i in range(len(X))]
    assert rows_of(lists) == expected
    assert_array_equal(sizes, [len(members) for members in expected])


@SIDES
@given(case=grid_cases(), k=st.integers(1, 7))
def test_ties_go_to_the_smaller_row_and_duplicates_are_neighbors(same_class, case, k):
    X, offsets, groups = case
    n = len(X)
    assume(any(all(candidates(i, offsets, groups, s) for s in (True, False)) for i in range(n)))
    got = compare_nearest(X, offsets, groups, k, same_class)
    expected = [nearest(i, k, X, offsets, groups, same_class) for i in range(n)]
    assert rows_of(side(got, same_class)[0]) == expected


def test_nobody_is_his_own_neighbor_however_many_duplicates_there_are():
    X, offsets = np.zeros((7, 2)), np.array([0, 5, 7])
    got = build_comparisons(X, offsets, similar=2)
    assert rows_of(got.similar) == [[1, 2], [0, 2], [0, 1], [0, 1], [0, 1], [6], [5]]


def test_both_sides_nearest_and_numpy_integers():
    X, offsets, _ = random_case([6, 9])
    got = build_comparisons(X, offsets, similar=np.int64(2), dissimilar=np.int32(3))
    for i in range(len(X)):
        assert rows_of(got.similar)[i] == nearest(i, 2, X, offsets, None, True)
        assert rows_of(got.dissimilar)[i] == nearest(i, 3, X, offsets, None, False)


# ---------------------------------------------------------------------------- lists of the user

ORDER = np.array([1, 3, 4, 0, 2, 5])  # sorted row r is row ORDER[r] of the data as given
CODES = np.array([1, 0, 1, 0, 0, 1])
PADDED = np.array([[2, 5], [3, -1], [0, -1], [-1, -1], [1, 3], [-1, 2]])
RAGGED = [[2, 5], [3], (0,), [], np.array([1, 3]), [2]]


@pytest.mark.parametrize("given_lists", [PADDED, PADDED.tolist(), RAGGED, PADDED.astype(np.int8)])
def test_lists_are_translated_to_sorted_rows(given_lists):
    lists = lists_from_user(given_lists, ORDER, CODES, same_class=True)
    got = rows_of(lists)
    for r, row in enumerate(ORDER):
        wanted = [j for j in RAGGED[row] if j >= 0]
        assert sorted(ORDER[got[r]]) == sorted(wanted)


def test_dissimilar_lists_are_translated_too():
    given_lists = [[1], [0, 2, 5], [3], [2], [5], [4, 1]]
    lists = lists_from_user(given_lists, ORDER, CODES, same_class=False)
    assert [sorted(ORDER[members]) for members in rows_of(lists)] == [
        sorted(given_lists[row]) for row in ORDER
    ]


def test_a_sample_named_twice_counts_once():
    doubled = [[2, 5, 2], [3], [0], [], [1, 3], [2]]
    got = lists_from_user(doubled, ORDER, CODES, same_class=True)
    assert rows_of(got) == rows_of(lists_from_user(RAGGED, ORDER, CODES, same_class=True))


def with_row(row, members):
    lists = [list(others) for others in RAGGED]
    lists[row] = members
    return lists


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        (RAGGED[:-1], "similar lists neighbors for 5 samples, X has 6"),
        (with_row(4, [1.0]), r"similar must hold row indices \(integers\), got float64"),
        (with_row(4, [True]), r"similar must hold row indices \(integers\), got bool"),
        (with_row(4, ["1"]), "similar must hold row indices"),
        (with_row(4, [6]), "similar of row 4 names row 6; X has 6 rows"),
        (with_row(4, [4]), "similar of row 4 names the row itself"),
        (with_row(4, [1, 0]), "similar of row 4 names a row of another class"),
    ],
)
def test_wrong_similar_lists_name_the_row(lists, message):
    with pytest.raises(ValueError, match=message):
        lists_from_user(lists, ORDER, CODES, same_class=True)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([0, 3], "dissimilar of row 4 names a row of the same class"),
        ([4], "dissimilar of row 4 names the row itself"),
        ([17], "dissimilar of row 4 names row 17; X has 6 rows"),
    ],
)
def test_wrong_dissimilar_lists_name_the_row(members, message):
    lists = [[], [], [], [], members, []]
    with pytest.raises(ValueError, match=message):
        lists_from_user(lists, ORDER, CODES, same_class=False)


# ------------------------------------------------------------------------- lists as comparisons


def as_lists(rows):
    indptr = np.concatenate([[0], np.cumsum([len(members) for members in rows])])
    return IndexLists(indptr, np.concatenate(rows).astype(np.intp))


def test_given_lists_are_taken_as_they_are_and_empty_ones_are_no_anchors():
    X, offsets, _ = random_case([4, 3])
    similar = as_lists([[1, 3], [], [0], [2], [5], [4, 6], [4]])
    dissimilar = as_lists([[4], [5], [], [6, 4], [0, 1], [2], []])
    got = build_comparisons(X, offsets, similar=similar, dissimilar=dissimilar)
    assert got.similar is similar
    assert got.dissimilar is dissimilar
    assert_array_equal(got.n_similar, [2, 0, 1, 1, 1, 2, 1])
    assert_array_equal(got.n_dissimilar, [1, 1, 0, 2, 2, 1, 0])
    assert_array_equal(got.anchors, [0, 3, 4, 5])


def test_groups_filter_the_given_lists():
    X, offsets, _ = random_case([4, 3])
    groups = np.array([0, 0, 1, 2, 2, 3, 3])
    similar = [[1, 3], [0], [0, 1, 3], [2], [5, 6], [4, 6], [4]]
    dissimilar = [[4], [4, 5], [5], [4, 6], [3, 1], [2], [0]]
    got = build_comparisons(
        X, offsets, similar=as_lists(similar), dissimilar=as_lists(dissimilar), groups=groups
    )
    for lists, rows in ((got.similar, similar), (got.dissimilar, dissimilar)):
        expected = [[j for j in rows[i] if groups[j] != groups[i]] for i in range(7)]
        assert rows_of(lists) == [sorted(members) for members in expected]
    assert_array_equal(got.n_similar, [1, 0, 3, 1, 2, 1, 1])
    assert_array_equal(got.anchors, [0, 2, 3, 4, 5, 6])


def test_lists_of_some_rows_one_after_the_other():
    lists = as_lists([[3, 1], [], [0], [2, 0, 1]])
    assert_array_equal(lists.counts, [2, 0, 1, 3])
    assert_array_equal(lists.of(np.array([3, 1, 0])), [2, 0, 1, 3, 1])
    assert_array_equal(lists.of(np.array([], dtype=int)), [])


# ----------------------------------------------------------------------------------- nothing left


@pytest.mark.parametrize("similar", ["all", 3])
@pytest.mark.parametrize(
    ("sizes", "groups"),
    [
        ([1, 1, 1], None),  # no class has two
        ([6], None),  # no other class
        ([3, 2], np.zeros(5, dtype=int)),  # all of one group
        ([2, 2], np.array([0, 0, 1, 1])),  # each class a group
    ],
)
def test_nothing_to_compare_is_an_error_that_says_what_is_missing(sizes, groups, similar):
    X, offsets, _ = random_case(sizes)
    with pytest.raises(ValueError, match="No sample has both a similar and a dissimilar one"):
        build_comparisons(X, offsets, similar=similar, groups=groups)


def test_no_row_with_both_lists_is_an_error():
    X, offsets, _ = random_case([2, 2])
    with pytest.raises(ValueError, match="No sample has both"):
        build_comparisons(
            X,
            offsets,
            similar=as_lists([[1], [], [], []]),
            dissimilar=as_lists([[], [2], [0], [1]]),
        )
