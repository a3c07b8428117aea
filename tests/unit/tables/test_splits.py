"""Folds: a partition, with classes spread and groups together."""

from __future__ import annotations

import numpy as np
import pytest

from vicinal.tables.errors import TableError
from vicinal.tables.splits import hold_out, make_folds

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("grouped", [False, True])
def test_folds_partition_the_rows(grouped):
    y = np.repeat(["a", "b", "c"], [40, 25, 10])
    groups = RNG.integers(20, size=75) if grouped else None
    folds = make_folds(y, groups, 5, 0)
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
    assert len(make_folds(y, None, 5, 0)) == 5
    assert len(make_folds(np.repeat([0, 1], [3, 3]), None, 5, 0)) == 3


def test_what_cannot_be_split_is_refused():
    with pytest.raises(TableError, match="two"):
        make_folds(np.array([0, 1, 2]), None, 5, 0)
    with pytest.raises(TableError, match="two groups"):
        make_folds(np.repeat([0, 1], 10), np.zeros(20), 5, 0)
    with pytest.raises(TableError, match="two classes"):
        make_folds(np.repeat([0, 1], 10), np.repeat([0, 1], 10), 2, 0)


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
