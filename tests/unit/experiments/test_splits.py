from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from experiments.datasets import Dataset
from experiments.splits import NOISE, folds, prepare, train_and_test, with_wrong_labels


def test_splits_are_stratified_seeded_and_disjoint(iris):
    train, test = train_and_test(iris.y, 4)
    assert sorted([*train, *test]) == list(range(150))
    assert_array_equal(np.bincount(iris.y[test]), [15, 15, 15])
    assert_array_equal(train, train_and_test(iris.y, 4)[0])
    assert not np.array_equal(train, train_and_test(iris.y, 5)[0])


def test_a_class_of_one_row_does_not_stop_a_split():
    y = np.array([0] * 20 + [1] * 20 + [2])
    train, test = train_and_test(y, 0)
    assert len(test) == pytest.approx(0.3 * 41, abs=1)
    assert len(train) + len(test) == 41


def test_the_test_part_has_no_say_in_the_preparation(iris):
    train, test = train_and_test(iris.y, 0)
    moved = iris.X.copy()
    moved[test] += 100.0
    before, after = prepare(iris, 0), prepare(replace(iris, X=moved), 0)
    assert_allclose(after.X_train, before.X_train)
    assert_allclose(before.X_train.mean(axis=0), 0, atol=1e-12)
    assert_allclose(before.X_train.std(axis=0), 1)
    by_hand = (iris.X[test] - iris.X[train].mean(axis=0)) / iris.X[train].std(axis=0)
    assert_allclose(before.X_test, by_hand)


def test_more_than_150_features_become_150_components():
    rng = np.random.default_rng(0)
    data = Dataset("wide", rng.normal(size=(300, 160)), np.arange(300) % 2, "test")
    parts = prepare(data, 0)
    assert parts.X_train.shape == (210, 150)
    assert parts.X_test.shape == (90, 150)
    covariance = parts.X_train.T @ parts.X_train / 210
    assert_allclose(covariance, np.diag(np.diag(covariance)), atol=1e-10)  # principal axes


def test_folds_hold_out_every_row_once(iris):
    found = folds(iris.X, iris.y, 0)
    assert len(found) == 5
    assert sorted(np.concatenate([fold.test for fold in found])) == list(range(150))
    for fold in found:
        assert not set(fold.train) & set(fold.test)
        assert_array_equal(np.bincount(iris.y[fold.test]), [10, 10, 10])


def test_a_limit_tunes_on_a_stratified_sample(iris):
    found = folds(iris.X, iris.y, 0, limit=60)
    rows = np.concatenate([fold.test for fold in found])
    assert len(set(rows)) == 60
    assert_array_equal(np.bincount(iris.y[rows]), [20, 20, 20])
    assert all(set(fold.train) <= set(rows) for fold in found)


@pytest.mark.parametrize("labels", [(0, 1, 2), (3, 7)])
def test_a_fifth_of_the_training_labels_is_wrong(iris, labels):
    clean = prepare(replace(iris, y=np.array(labels)[iris.y % len(labels)]), 0)
    noisy = with_wrong_labels(clean, 0)
    assert (noisy.y_train != clean.y_train).sum() == round(NOISE * len(clean.y_train)) == 21
    assert set(noisy.y_train) == set(labels)
    assert_array_equal(noisy.y_test, clean.y_test)
    assert_array_equal(noisy.X_train, clean.X_train)
    assert_array_equal(noisy.y_train, with_wrong_labels(clean, 0).y_train)
    assert not np.array_equal(noisy.y_train, with_wrong_labels(clean, 1).y_train)
