"""Folds, held-out rows and samples: classes spread evenly, groups together."""

from __future__ import annotations

import numpy as np
import pytest

from vicinal.validation.folds import (
    hold_out,
    stratified_folds,
    stratified_sample,
    usable_folds,
)

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("grouped", [False, True])
def test_folds_partition_the_rows(grouped):
    y = np.repeat(["a", "b", "c"], [40, 25, 10])
    groups = RNG.integers(20, size=75) if grouped else None
    folds = stratified_folds(5, y, groups, 0)
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(75))
    for train, test in folds:
        assert not set(train) & set(test)
        assert len(train) + len(test) == 75
        if grouped:
            assert not set(groups[train]) & set(groups[test])
        else:
            assert np.unique(y[test], return_counts=True)[1].tolist() == [8, 5, 2]


def test_small_classes_do_not_prevent_folds():
    y = np.repeat([0, 1, 2], [20, 2, 1])
    assert len(stratified_folds(5, y, None, 0)) == 5
    assert len(stratified_folds(5, np.repeat([0, 1], [3, 3]), None, 0)) == 3


def test_what_cannot_be_split_is_refused():
    with pytest.raises(ValueError, match="two"):
        stratified_folds(5, np.array([0, 1, 2]), None, 0)
    with pytest.raises(ValueError, match="two groups"):
        stratified_folds(5, np.repeat([0, 1], 10), np.zeros(20), 0)
    y = np.repeat([0, 1], 10)
    with pytest.raises(ValueError, match="two classes"):
        usable_folds(stratified_folds(2, y, groups=y, random_state=0), y)


@pytest.mark.parametrize("share", [0.02, 0.1, 0.15, 0.25, 0.3, 0.4, 0.5])
def test_the_held_out_share(share):
    y = np.repeat([0, 1], [120, 80])
    train, test = hold_out(y, None, share, 0)
    assert len(test) == pytest.approx(200 * share, abs=1)
    assert y[test].mean() == pytest.approx(0.4, abs=0.02 if share >= 0.1 else 0.2)
    assert sorted([*train, *test]) == list(range(200))


@pytest.mark.parametrize("share", [0.2, 0.4])
def test_the_held_out_share_of_groups(share):
    y, groups = np.tile([0, 1], 100), np.repeat(np.arange(40), 5)
    train, test = hold_out(y, groups, share, 0)
    assert not set(groups[train]) & set(groups[test])
    assert len(test) == pytest.approx(200 * share, abs=10)


@pytest.mark.parametrize("seed", range(8))
def test_two_classes_remain_to_learn_from(seed):
    y, groups = np.repeat([0, 1], [6, 2]), np.array([0, 0, 1, 1, 2, 2, 3, 3])
    train, test = hold_out(y, groups, 0.5, seed)
    assert len(np.unique(y[train])) == 2
    assert sorted([*train, *test]) == list(range(8))


@pytest.mark.parametrize("size", [7, 40, 100])
def test_samples_keep_the_proportions_of_the_classes(size):
    codes = np.repeat([0, 1, 2, 3], [600, 300, 99, 1])
    rows = stratified_sample(codes, size)
    assert len(rows) == len(set(rows.tolist())) == size
    assert (np.diff(rows) > 0).all()
    counts = np.bincount(codes[rows], minlength=4)
    assert (counts >= 1).all()
    assert np.abs(counts - size * np.array([0.6, 0.3, 0.099, 0.001])).max() <= 2


def test_small_samples_are_whole():
    np.testing.assert_array_equal(stratified_sample(np.array([1, 0, 1]), 3), [0, 1, 2])


def test_strata_keep_a_least_number_of_rows_or_all():
    codes = np.repeat([0, 1, 2, 3], [600, 300, 95, 5])
    rows = stratified_sample(codes, 100, at_least=10, random_state=np.random.RandomState(0))
    assert np.bincount(codes[rows]).tolist() == [60, 30, 10, 5]
    assert (np.diff(rows) > 0).all()
    other = stratified_sample(codes, 100, at_least=10, random_state=np.random.RandomState(1))
    assert rows.tolist() != other.tolist()
