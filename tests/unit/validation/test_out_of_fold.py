"""All K from one neighbor search: exactly what the classifier says, one K at a time."""

from __future__ import annotations

import numpy as np
import pytest

from vicinal.validation import out_of_fold
from vicinal.validation.folds import Fold
from vicinal.validation.out_of_fold import Rows, correct_votes, gather_out_of_fold, predict_all_k
from vicinal.voting.class_mean import ClassMeanKNN

RULES = ("class_mean", "vote")
KS = np.array([1, 2, 3, 7, 20, 41])


def problem(seed, c, integers):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 3))
    codes = np.r_[np.arange(c), rng.choice(c, size=80 - c, p=rng.dirichlet(np.ones(c)))]
    # Integers coincide and tie all the time.
    return (np.round(1.5 * X) if integers else X), codes


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("integers", [False, True], ids=["reals", "ties"])
@pytest.mark.parametrize("c", [2, 6])
@pytest.mark.parametrize("memory", [out_of_fold.MEMORY, 4000], ids=["one block", "blocks"])
def test_same_as_the_classifier(rule, integers, c, memory, monkeypatch):
    monkeypatch.setattr(out_of_fold, "MEMORY", memory)
    X, codes = problem(c, c, integers)
    R, y, Z = X[:50], codes[:50], X[50:]
    predicted = predict_all_k(R, y, Z, KS, rule)
    assert predicted.shape == (len(KS), 30)
    for K, row in zip(KS, predicted, strict=True):
        np.testing.assert_array_equal(row, ClassMeanKNN(int(K), rule=rule).fit(R, y).predict(Z))


@pytest.mark.parametrize("rule", RULES)
def test_a_class_that_the_training_rows_lack_is_never_predicted(rule):
    X, codes = problem(0, 4, integers=False)
    codes = np.where(codes == 1, 3, codes)
    predicted = predict_all_k(X, codes, X, KS, rule)
    assert set(np.unique(predicted)) == {0, 2, 3}
    np.testing.assert_array_equal(predicted[0], codes)  # each row is its own nearest


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("labels", [np.arange(3), np.array(["a", "b", "c"])])
def test_correct_votes_for_every_k_are_those_of_the_classifier(rule, dtype, labels):
    X, codes = problem(1, 3, integers=False)
    rng = np.random.default_rng(0)
    order = rng.permutation(80)
    rows = Rows(X.astype(dtype), labels[codes])
    voters, asked = rows.take(order[:60]), rows.take(order[60:])
    for m in (1, 2, 3):
        L = rng.normal(size=(m, 3)).astype(dtype)
        found = correct_votes(lambda X, L=L: X @ L.T, voters, asked, KS, rule)
        classifiers = [ClassMeanKNN(int(K), rule=rule).fit(voters.X @ L.T, voters.y) for K in KS]
        expected = [np.sum(knn.predict(asked.X @ L.T) == asked.y) for knn in classifiers]
        np.testing.assert_array_equal(found, expected)


def test_rows_keep_what_is_given_per_row():
    rows = Rows(np.eye(3), np.arange(3), groups=np.array([5, 5, 6]))
    part = rows.take(np.array([2, 0]))
    assert part.y.tolist() == [2, 0]
    assert part.groups.tolist() == [6, 5]
    assert list(part.metadata) == ["groups"]


def test_predictions_out_of_fold_are_means_or_the_default():
    folds = [Fold(np.array([2, 3]), np.array([0, 1])), Fold(np.array([0, 3]), np.array([1]))]
    predictions = [np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([[0.0, 1.0]])]
    found = gather_out_of_fold(predictions, folds, np.tile([0.3, 0.7], (4, 1)))
    np.testing.assert_array_equal(found, [[1.0, 0.0], [0.25, 0.75], [0.3, 0.7], [0.3, 0.7]])


def test_codes_out_of_fold_stay_integers():
    folds = [Fold(np.array([2, 1]), np.array([0])), Fold(np.array([0]), np.array([2, 1]))]
    found = gather_out_of_fold([np.array([4]), np.array([7, 8])], folds, np.zeros(3, np.intp))
    assert found.dtype == np.intp
    assert found.tolist() == [4, 8, 7]
