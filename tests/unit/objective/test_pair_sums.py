"""The pull matrix against the sum over pairs, one outer product at a time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import vicinal.objective.pair_sums as pull_module
from vicinal.kernels.contract import IndexLists
from vicinal.objective.neighbor_sets import build_comparisons
from vicinal.objective.pair_sums import pull_matrix


def naive_pull(X, comparisons, weights):
    """Σ_i w_i Σ_{j∈S_i} x_ij x_ijᵀ over the anchors i, by definition."""
    n, d = X.shape
    classes, groups = comparisons.class_of_row, comparisons.groups
    total = np.zeros((d, d))
    for i in comparisons.anchors:
        if comparisons.similar is None:
            members = [
                j
                for j in range(n)
                if j != i
                and classes[j] == classes[i]
                and (groups is None or groups[j] != groups[i])
            ]
        else:
            indptr = comparisons.similar.indptr
            members = comparisons.similar.indices[indptr[i] : indptr[i + 1]]
        for j in members:
            total += weights[i] * np.outer(X[i] - X[j], X[i] - X[j])
    return total


def random_case(sizes, d=3, seed=0):
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    n = offsets[-1]
    X = rng.standard_normal((n, d)) + 5.0  # not centered: nothing may rely on it
    return X, offsets, rng.uniform(0.0, 3.0, n), rng.integers(0, max(n // 2, 2), n)


@pytest.mark.parametrize("similar", ["all", 1, 4])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sizes", [[6, 9], [1, 7, 1, 4], [12, 2, 2]])
def test_equals_the_sum_over_pairs(sizes, weighted, grouped, similar):
    X, offsets, weights, groups = random_case(sizes)
    weights = weights if weighted else np.ones(len(X))
    comparisons = build_comparisons(X, offsets, similar=similar, groups=groups if grouped else None)
    got = pull_matrix(X, comparisons, weights)
    assert_allclose(got, naive_pull(X, comparisons, weights), rtol=1e-12, atol=1e-10)
    torch = pytest.importorskip("torch")
    of_tensor = pull_matrix(torch.as_tensor(X), comparisons, weights)
    assert isinstance(of_tensor, np.ndarray)
    assert_allclose(of_tensor, got, rtol=1e-12, atol=1e-10)


@given(
    sizes=st.lists(st.integers(1, 6), min_size=2, max_size=4).filter(lambda sizes: max(sizes) > 1),
    seed=st.integers(0, 1000),
    similar=st.sampled_from(["all", 2]),
)
def test_symmetric_and_linear_in_the_weights(sizes, seed, similar):
    X, offsets, weights, _ = random_case(sizes, seed=seed)
    comparisons = build_comparisons(X, offsets, similar=similar)
    got = pull_matrix(X, comparisons, weights)
    assert_allclose(got, got.T, atol=1e-11)
    ones = pull_matrix(X, comparisons, np.ones(len(X)))
    assert_allclose(pull_matrix(X, comparisons, 2 * weights + 1), 2 * got + ones, atol=1e-9)


@pytest.mark.parametrize("similar", ["all", 3])
def test_rows_that_are_no_anchors_pull_nothing(similar):
    """But they are still pulled: a row without weight stays in the sets of the others."""
    X, offsets, weights, _ = random_case([8, 6])
    comparisons = build_comparisons(X, offsets, similar=similar)
    comparisons = replace(comparisons, anchors=np.array([0, 3, 9]))
    got = pull_matrix(X, comparisons, weights)
    assert_allclose(got, naive_pull(X, comparisons, weights), rtol=1e-12, atol=1e-10)


def test_one_sample_classes_pull_nothing():
    X, offsets, weights, _ = random_case([1, 3, 1])
    alone = X.copy()
    alone[[0, 4]] = 1e6
    comparisons = build_comparisons(X, offsets)
    assert_allclose(
        pull_matrix(alone, comparisons, weights), pull_matrix(X, comparisons, weights), rtol=1e-12
    )


def test_rows_whose_dissimilar_list_is_empty_pull_nothing():
    X, offsets, weights, _ = random_case([3, 3])
    dissimilar = IndexLists(np.array([0, 1, 1, 2, 3, 3, 3]), np.array([3, 4, 0]))
    comparisons = build_comparisons(X, offsets, dissimilar=dissimilar)
    assert_array_equal(comparisons.anchors, [0, 2, 3])
    got = pull_matrix(X, comparisons, weights)
    assert_allclose(got, naive_pull(X, comparisons, weights), rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("chunk", [1, 7, 2**16])
def test_chunks_of_pairs_do_not_matter(chunk, monkeypatch):
    monkeypatch.setattr(pull_module, "PAIRS_AT_ONCE", chunk)
    X, offsets, weights, _ = random_case([8, 6])
    comparisons = build_comparisons(X, offsets, similar=3)
    got = pull_matrix(X, comparisons, weights)
    assert_allclose(got, naive_pull(X, comparisons, weights), rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("similar", ["all", 3])
def test_far_from_the_origin_nothing_cancels(similar):
    """Classes at 1e6 and −1e6, as wide as 1: x xᵀ is 1e12 times what is asked for."""
    X, offsets, weights, _ = random_case([10, 10])
    X[:10] += 1e6
    X[10:] -= 1e6
    comparisons = build_comparisons(X, offsets, similar=similar)
    got = pull_matrix(X, comparisons, weights)
    assert_allclose(got, naive_pull(X, comparisons, weights), rtol=1e-8)


@pytest.mark.parametrize("similar", ["all", 3])
def test_float32_points_are_summed_in_float64(similar):
    X, offsets, weights, _ = random_case([30, 40])
    X = X.astype(np.float32)
    comparisons = build_comparisons(X, offsets, similar=similar)
    got = pull_matrix(X, comparisons, weights)
    assert got.dtype == np.float64
    assert_allclose(got, naive_pull(X.astype(float), comparisons, weights), rtol=1e-9, atol=1e-7)
