"""Both K-NN rules against naive loops, and against scikit-learn's vote."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import KNeighborsClassifier

from vicinal.voting import class_mean
from vicinal.voting.class_mean import ClassMeanKNN

RULES = ("class_mean", "vote")


def squared(a, b):
    return sum((float(u) - float(v)) ** 2 for u, v in zip(a, b, strict=True))


def naive_class_distances(X, y, queries, k):
    """d(x, C_c) by the book, one query and class at a time."""
    return np.array(
        [
            [
                np.mean(
                    sorted(squared(q, x) for x, label in zip(X, y, strict=True) if label == c)[:k]
                )
                for c in np.unique(y)
            ]
            for q in queries
        ]
    )


def naive_vote(X, y, queries, k):
    winners = []
    for q in queries:
        order = sorted(range(len(X)), key=lambda i: (squared(q, X[i]), i))[:k]
        labels = [y[i] for i in order]
        most = max(labels.count(label) for label in labels)
        winners.append(next(label for label in labels if labels.count(label) == most))
    return np.array(winners)


def random_problem(seed, n=60, d=3, c=3, n_queries=25):
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(c), rng.integers(0, c, size=n - c)]
    return rng.normal(size=(n, d)) + 0.5 * y[:, None], y, rng.normal(size=(n_queries, d)) + 0.5


@pytest.mark.parametrize("k", [1, 4, 1000])
@pytest.mark.parametrize(
    ("c", "d", "offset", "dtype"),
    [
        (3, 3, 0, np.float64),
        (2, 3, 0, np.float64),
        (4, 1, 0, np.float64),
        (3, 5, 1e6, np.float64),
        (3, 3, 0, np.float32),
        (3, 3, 1e6, np.float32),
        (25, 3, 0, np.float64),  # some classes have fewer than k samples
    ],
)
def test_class_mean_against_loops(k, c, d, offset, dtype):
    X, y, queries = random_problem(c * d, d=d, c=c)
    X, queries = (X + offset).astype(dtype), (queries + offset).astype(dtype)
    expected = naive_class_distances(X, y, queries, k)
    model = ClassMeanKNN(k).fit(X, y)
    rtol = 1e-13 if dtype == np.float64 else 1e-6
    np.testing.assert_allclose(model.class_distances(queries), expected, rtol=rtol)
    np.testing.assert_array_equal(model.predict(queries), np.argmin(expected, axis=1))


def test_two_hundred_classes():
    X, y, queries = random_problem(0, n=700, c=200, n_queries=6)
    expected = naive_class_distances(X, y, queries, 5)
    model = ClassMeanKNN(5).fit(X, y)
    np.testing.assert_allclose(model.class_distances(queries), expected, rtol=1e-13)
    np.testing.assert_array_equal(model.predict(queries), np.argmin(expected, axis=1))


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 4))
def test_both_rules_with_ties_everywhere(seed, k, c):
    """Few integer points: duplicates, equal distances, tied votes, tied classes."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, size=(16, 2)).astype(float)
    y = np.r_[np.arange(c), rng.integers(0, c, size=16 - c)]
    queries = rng.integers(0, 3, size=(10, 2)).astype(float)
    vote = ClassMeanKNN(k, rule="vote").fit(X, y)
    np.testing.assert_array_equal(vote.predict(queries), naive_vote(X, y, queries, k))
    mean = ClassMeanKNN(k).fit(X, y)
    distances = naive_class_distances(X, y, queries, k)
    np.testing.assert_allclose(mean.class_distances(queries), distances, rtol=1e-13)
    chosen = distances[np.arange(10), mean.predict(queries)]
    np.testing.assert_allclose(chosen, distances.min(axis=1), rtol=1e-13)


def test_ties_between_classes_go_to_the_first():
    X = [[-1.0], [1.0], [-2.0], [2.0]]
    model = ClassMeanKNN(2).fit(X, ["b", "a", "a", "b"])
    np.testing.assert_array_equal(model.class_distances([[0.0]]), [[2.5, 2.5]])
    assert model.predict([[0.0]]) == ["a"]
    assert model.decision_function([[0.0]]) == 0


def test_tied_votes_go_to_the_nearest():
    X, y = [[1.0], [2.0], [-1.5], [-1.6], [9.0]], [1, 1, 0, 0, 2]
    model = ClassMeanKNN(4, rule="vote").fit(X, y)
    assert model.predict([[0.0]]) == [1]
    assert model.predict([[-0.5]]) == [0]
    np.testing.assert_array_equal(model.predict_proba([[0.0]]), [[0.5, np.nextafter(0.5, 1), 0]])


@pytest.mark.parametrize("k", [1, 3, 5, 15])
@pytest.mark.parametrize("c", [2, 3])
def test_vote_is_scikit_learns(k, c):
    X, y, queries = random_problem(k, n=300, c=c, n_queries=200)
    theirs = KNeighborsClassifier(k, algorithm="brute").fit(X, y)
    ours = ClassMeanKNN(k, rule="vote").fit(X, y)
    shares = theirs.predict_proba(queries)
    np.testing.assert_allclose(ours.predict_proba(queries), shares, atol=1e-15)
    clear = np.sum(shares == shares.max(axis=1, keepdims=True), axis=1) == 1
    assert clear.mean() > 0.5
    np.testing.assert_array_equal(ours.predict(queries[clear]), theirs.predict(queries[clear]))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("leave_one_out", [True, False])
def test_kneighbors_is_scikit_learns(rule, leave_one_out):
    X, y, queries = random_problem(1, n=120)
    queries = None if leave_one_out else queries
    theirs = KNeighborsClassifier(5, algorithm="brute").fit(X, y)
    ours = ClassMeanKNN(5, rule=rule).fit(X, y)
    for k in (None, 1, 30):
        distances, rows = ours.kneighbors(queries, k)
        expected_distances, expected_rows = theirs.kneighbors(queries, k)
        np.testing.assert_array_equal(rows, expected_rows)
        np.testing.assert_allclose(distances, expected_distances, rtol=1e-9)
    np.testing.assert_array_equal(ours.kneighbors(queries, 30, return_distance=False), rows)


def test_kneighbors_orders_ties_as_the_training_data():
    model = ClassMeanKNN().fit([[1.0], [1.0], [-1.0], [1.0]], [1, 0, 1, 0])
    np.testing.assert_array_equal(model.kneighbors([[0.0]], 3, return_distance=False), [[0, 1, 2]])
    left = model.kneighbors(n_neighbors=2, return_distance=False)
    np.testing.assert_array_equal(left, [[1, 3], [0, 3], [0, 1], [0, 1]])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("c", [1, 2, 5])
@pytest.mark.parametrize("grid", [True, False])
def test_scores_agree_with_predict(rule, c, grid, dtype):
    rng = np.random.default_rng(c)
    X, y, queries = random_problem(c, n=200, c=c, n_queries=500)
    if grid:  # ties
        X, queries = np.round(X), np.round(queries)
    queries[:50] = X[:50]
    model = ClassMeanKNN(int(rng.integers(1, 8)), rule=rule).fit(X.astype(dtype), y)
    queries = queries.astype(dtype)
    predicted, proba = model.predict(queries), model.predict_proba(queries)
    assert proba.dtype == dtype
    np.testing.assert_array_equal(model.classes_[np.argmax(proba, axis=1)], predicted)
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-6 if dtype == np.float32 else 1e-12)
    assert proba.min() >= 0
    scores = model.decision_function(queries)
    assert scores.dtype == dtype
    if c == 2:
        assert scores.shape == (500,)
        np.testing.assert_array_equal(model.classes_[(scores > 0).astype(int)], predicted)
    else:
        assert scores.shape == (500, c)
        np.testing.assert_array_equal(model.classes_[np.argmax(scores, axis=1)], predicted)


def test_rounding_cannot_turn_the_winner():
    """Two classes one unit in the last place apart have the same rounded probability."""
    nearer, farther = np.nextafter(1.0, 0), 1.0
    model = ClassMeanKNN(1).fit([[farther], [-nearer], [5.0], [-5.0]], [0, 1, 0, 1])
    assert model.predict([[0.0]]) == [1]
    assert np.argmax(model.predict_proba([[0.0]])) == 1
    assert model.decision_function([[0.0]]) > 0


def test_decision_is_the_papers_h_turned_over():
    X, y, queries = random_problem(4, c=2)
    distances = naive_class_distances(X, y, queries, 5)
    h = distances[:, 1] - distances[:, 0]  # pointed class 1, the rest is class 0
    model = ClassMeanKNN(5).fit(X, y)
    np.testing.assert_allclose(model.decision_function(queries), -h, rtol=1e-9)
    np.testing.assert_array_equal(model.predict(queries) == 1, h < 0)
    X, y, queries = random_problem(4, c=4)
    scores = ClassMeanKNN(5).fit(X, y).decision_function(queries)
    np.testing.assert_allclose(scores, -naive_class_distances(X, y, queries, 5), rtol=1e-13)


def test_probabilities_are_the_documented_formula():
    X, y, queries = random_problem(5, d=4)
    within = sum(squared(x, X[y == label].mean(axis=0)) for x, label in zip(X, y, strict=True))
    s = 2 * within / (len(X) - 3) / np.sqrt(4)
    weights = np.exp(-naive_class_distances(X, y, queries, 5) / s)
    expected = weights / weights.sum(axis=1, keepdims=True)
    model = ClassMeanKNN(5).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(queries), expected, rtol=1e-10)


@pytest.mark.parametrize("unit", [1e-30, 1e-3, 1e30])
def test_probabilities_have_no_unit(unit):
    X, y, queries = random_problem(6)
    expected = ClassMeanKNN().fit(X, y).predict_proba(queries)
    scaled = ClassMeanKNN().fit(unit * X, y).predict_proba(unit * queries)
    np.testing.assert_allclose(scaled, expected, rtol=1e-9)


def test_probabilities_without_spread_within_the_classes():
    one_each = ClassMeanKNN().fit([[0.0], [2.0]], [0, 1])
    assert one_each.scale_ == 2 * 2  # total variance 2
    np.testing.assert_array_equal(one_each.predict_proba([[1.0]]), [[0.5, 0.5]])
    all_equal = ClassMeanKNN().fit(np.ones((4, 2)), [0, 0, 1, 1])
    np.testing.assert_array_equal(all_equal.predict_proba([[3.0, 1.0]]), [[0.5, 0.5]])


def test_probabilities_far_out_do_not_overflow():
    model = ClassMeanKNN(1).fit([[0.0], [1e-150], [1.0]], [0, 0, 1])
    np.testing.assert_array_equal(model.predict_proba([[-1e100]]), [[0.5, 0.5]])
    np.testing.assert_array_equal(model.predict_proba([[0.9]]), [[0, 1]])


@pytest.mark.parametrize("rule", RULES)
def test_blocks_of_queries_change_nothing(rule, monkeypatch):
    X, y, queries = random_problem(7, c=6)
    model = ClassMeanKNN(rule=rule).fit(X, y)
    expected = model.predict_proba(queries)
    monkeypatch.setattr(class_mean, "MEMORY", 1500)
    np.testing.assert_array_equal(model.predict_proba(queries), expected)
    assert model.fit(X, y).scale_ == pytest.approx(ClassMeanKNN().fit(X, y).scale_)


def test_importing_does_not_import_numba():
    code = "import sys, vicinal.voting.class_mean; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
