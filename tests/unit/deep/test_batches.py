"""Batches hold every sample once and never one of a class alone; validation is stratified."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")

from vicinal.deep.training import class_batches, stratified_split

sizes = st.lists(st.integers(1, 13), min_size=1, max_size=9)
seeds = st.integers(0, 100)


def codes_of(sizes, seed):
    return np.random.RandomState(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))


@given(sizes, seeds, st.integers(1, 40))
def test_every_sample_is_in_one_batch(sizes, seed, batch_size):
    codes = codes_of(sizes, seed)
    batches = class_batches(codes, batch_size, np.random.RandomState(seed))
    np.testing.assert_array_equal(np.sort(np.concatenate(batches)), np.arange(len(codes)))
    assert max(map(len, batches)) - min(map(len, batches)) <= 1


def test_with_many_classes_hardly_any_anchor_is_alone():
    codes = np.repeat(np.arange(200), 7)
    batches = class_batches(codes, 100, np.random.RandomState(0))
    assert len(batches) == 14
    alone = sum(np.count_nonzero(np.bincount(codes[batch]) == 1) for batch in batches)
    assert alone <= 2 * len(batches)  # only where a batch ends
    assert any(np.diff(batch).max() > 50 for batch in batches)  # and groups are mixed


@given(sizes, seeds, st.floats(0, 0.9))
def test_validation_takes_its_share_of_every_class(sizes, seed, fraction):
    codes = codes_of(sizes, seed)
    train, held = stratified_split(codes, fraction, np.random.RandomState(seed))
    np.testing.assert_array_equal(np.sort(np.concatenate([train, held])), np.arange(len(codes)))
    for code, size in enumerate(sizes):
        count = np.count_nonzero(codes[held] == code)
        assert count == min(round(fraction * size), max(0, size - 2))
