"""The predictions behind the headline, against scikit-learn doing the same."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import accuracy_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import vicinal as vc
from vicinal.reporting import examine
from vicinal.reporting.evaluation import left_out_k, left_out_neighbors, left_out_votes
from vicinal.voting.class_mean import ClassMeanKNN


def test_without_held_out_rows_a_learner_is_cross_validated(iris):
    X, y = iris
    learner = vc.RVML()
    found = examine(clone(learner).fit(X, y), X, y)
    model = make_pipeline(learner, vc.ClassMeanKNN(5, rule="vote"))
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    expected = accuracy_score(y, cross_val_predict(model, X, y, cv=folds))
    assert found.headline.scores[0].accuracy == pytest.approx(expected)
    assert "5-fold" in found.headline.protocol


def test_held_out_rows_are_predicted_by_the_fitted_model(wine):
    X, y, X_test, y_test = wine
    model = make_pipeline(StandardScaler(), vc.RVML(), KNeighborsClassifier(3)).fit(X, y)
    found = examine(model, X, y, X_test=X_test, y_test=y_test)
    score = found.headline.scores[0]
    assert score.accuracy == pytest.approx(model.score(X_test, y_test))
    assert score.total == len(y_test)
    assert "held-out" in found.headline.protocol
    np.testing.assert_array_equal(
        found.maps.predictions[found.maps.held_out], model.predict(X_test)
    )


def test_a_committee_brings_its_own_out_of_fold_predictions(iris, iris_committee):
    X, y = iris
    found = examine(iris_committee, X, y)
    assert found.headline.scores[0].accuracy == pytest.approx(iris_committee.best_score_)
    assert "Out-of-fold" in found.headline.protocol


def test_majority_class(wine, wine_pipeline):
    X, y, X_test, y_test = wine
    found = examine(wine_pipeline, X, y, X_test=X_test, y_test=y_test)
    most = np.bincount(y).argmax()
    assert found.headline.scores[2].correct == np.sum(y_test == most)


def test_left_out_k_has_the_fewest_errors(wine):
    X, y, *_ = wine
    S = StandardScaler().fit_transform(X)
    errors = {}
    for k in range(1, 32, 2):
        wrong = 0
        for i in range(len(S)):
            others = np.delete(np.arange(len(S)), i)
            near = others[np.argsort(np.sum((S[others] - S[i]) ** 2, axis=1))[:k]]
            wrong += np.bincount(y[near], minlength=3).argmax() != y[i]
        errors[k] = wrong
    assert left_out_k(S, y) == min(errors, key=lambda k: (errors[k], k))


def test_a_row_is_not_its_own_neighbor():
    S = np.repeat(np.arange(4.0), 5)[:, None]  # five rows on each spot
    rows = np.array([0, 7, 19])
    near = left_out_neighbors(S, rows, 3)
    assert not (near == rows[:, None]).any()
    np.testing.assert_array_equal(S[near][..., 0], np.tile(S[rows], 3))


def test_left_out_votes_break_ties_by_the_nearest():
    Z = np.array([[0.0], [1.0], [-2.0], [9.0]])
    assert left_out_votes(Z, np.array([2, 1, 0, 0]), np.array([0]), 2).tolist() == [1]


def test_left_out_k_breaks_ties_as_the_vote_does():
    """With many small classes nearly all votes are ties; the code of a class means nothing."""
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(40), 4)
    S = 2 * rng.normal(size=(40, 4))[codes] + rng.normal(size=(160, 4))
    right = {}
    for k in range(1, 32, 2):
        voter = ClassMeanKNN(k, rule="vote")
        rest = [np.delete(np.arange(160), i) for i in range(160)]
        right[k] = sum(
            voter.fit(S[others], codes[others]).predict(S[[i]])[0] == codes[i]
            for i, others in enumerate(rest)
        )
    assert left_out_k(S, codes) == max(right, key=lambda k: (right[k], -k))


def test_a_column_of_many_categories_does_not_outweigh_a_number_in_plain_knn():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=200), np.arange(200) % 2
    table = pd.DataFrame({"x": x + 2 * y, "kind": rng.choice(list("abcdefghij"), 200)})
    model = vc.ANNClassifier(effort=0.1, random_state=0).fit(table[:100], y[:100])
    found = examine(model, table[:100], y[:100], X_test=table[100:], y_test=y[100:])
    np.testing.assert_allclose(found.metric.plain, 0.5)
    numbers = (table["x"] - table["x"][:100].mean()) / table["x"][:100].std(ddof=0)
    levels = pd.get_dummies(table["kind"], dtype=float)
    S = np.column_stack([numbers, levels / np.sqrt(levels[:100].var(ddof=0).sum())])
    knn = ClassMeanKNN(left_out_k(S[:100], y[:100]), rule="vote").fit(S[:100], y[:100])
    assert found.headline.scores[1].accuracy == np.mean(knn.predict(S[100:]) == y[100:])
