"""All K from one neighbor search: exactly what the classifier says, one K at a time."""

from __future__ import annotations

import numpy as np
import pytest

from vicinal.search import search_scores
from vicinal.search.search_scores import predict_all_k, score_path
from vicinal.validation.folds import Fold
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
@pytest.mark.parametrize("memory", [search_scores.MEMORY, 4000], ids=["one block", "blocks"])
def test_same_as_the_classifier(rule, integers, c, memory, monkeypatch):
    monkeypatch.setattr(search_scores, "MEMORY", memory)
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
def test_accuracies_of_a_path(rule, dtype):
    X, codes = problem(1, 3, integers=False)
    X = X.astype(dtype)
    rng = np.random.default_rng(0)
    order = rng.permutation(80)
    fold = Fold(order[:60], order[60:])
    metrics = [rng.normal(size=(m, 3)).astype(dtype) for m in (1, 2, 3)]
    scores = score_path(iter(metrics), X, codes, fold, KS, rule)
    expected = [
        [
            ClassMeanKNN(int(K), rule=rule)
            .fit(X[fold.train] @ L.T, codes[fold.train])
            .score(X[fold.test] @ L.T, codes[fold.test])
            for K in KS
        ]
        for L in metrics
    ]
    np.testing.assert_array_equal(scores, expected)
    assert score_path([], X, codes, fold, KS, rule).shape == (0, len(KS))
