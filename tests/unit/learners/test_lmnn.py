"""LMNN: its parameters, its supervision, hard input."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.neighbors import KNeighborsClassifier

from vicinal.exceptions import ExcludedRowsWarning
from vicinal.learners.lmnn import LMNN


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = rng.standard_normal((90, 5)) * [1, 1, 1, 4, 4]
    X[:, :2] += 2 * np.array([[0, 0], [1, 0], [0, 1]])[y]
    return X, y


def test_neighbors_get_better(data):
    X, y = data
    before = KNeighborsClassifier(3).fit(X[::2], y[::2]).score(X[1::2], y[1::2])
    learner = LMNN().fit(X[::2], y[::2])
    after = KNeighborsClassifier(3).fit(learner.transform(X[::2]), y[::2])
    assert after.score(learner.transform(X[1::2]), y[1::2]) > before


def test_evidence(data):
    learner = LMNN().fit(*data)
    assert learner.converged_
    assert learner.stop_reason_ == "stationary"
    assert learner.history_[-1] == learner.objective_ == learner.history_.min()
    assert learner.n_excluded_ == 0
    assert_array_equal(learner.classes_, [0, 1, 2])
    assert learner.components_.shape == (5, 5)


@pytest.mark.parametrize("init", ["auto", "pca", "lda", "random"])
def test_low_rank(data, init):
    learner = LMNN(n_components=2, init=init, random_state=0).fit(*data)
    assert learner.components_.shape == (2, 5)
    assert learner.objective_ < learner.history_[0]


def test_init_is_taken_as_it_is(data):
    L = np.diag([1.0, 2.0, 0.5, 0.1, 0.1])
    given = LMNN(init=L, max_iter=1, tol=1e6).fit(*data)
    assert_allclose(given.components_, L, rtol=1e-12)  # a tolerance that any start meets
    same = LMNN(init="identity", max_iter=1, tol=1e6).fit(*data)
    assert_allclose(same.components_, np.eye(5), atol=1e-12)


def test_start_has_unit_distance_to_targets(data):
    learner = LMNN(push_weight=0.0, tol=1e6).fit(*data)
    assert_allclose(learner.objective_, 3 * 90, rtol=1e-9)


def test_push_weight_is_that_of_the_push(data):
    """More push, fewer violated triplets, longer distances to targets."""
    traces = [
        np.trace(LMNN(push_weight=mu).fit(*data).get_mahalanobis_matrix()) for mu in (0.1, 0.5, 0.9)
    ]
    assert traces[0] < traces[1] < traces[2]


def test_refreshed_targets(data):
    X, y = data
    fixed, refreshed = LMNN().fit(X, y), LMNN(refresh_every=5).fit(X, y)
    assert refreshed.n_iter_ > 5
    assert refreshed.objective_ < fixed.objective_  # nearer targets are easier to keep near


def test_large_n_neighbors_takes_what_the_class_has(data):
    X, y = data
    assert_allclose(
        LMNN(200, tol=1e-3).fit(X, y).components_, LMNN(29, tol=1e-3).fit(X, y).components_
    )


def test_callback_sees_and_stops(data):
    seen = []

    def stop_at_3(progress):
        seen.append((progress.objective, progress.components.shape))
        return progress.n_iter == 3

    learner = LMNN(callback=stop_at_3).fit(*data)
    assert learner.stop_reason_ == "callback"
    assert learner.n_iter_ == len(seen) == 3
    assert seen[0][1] == (5, 5)


def test_units_do_not_matter(data):
    X, y = data
    M = LMNN().fit(X, y).get_mahalanobis_matrix()
    for factor in (1e-6, 1e6):
        scaled = LMNN().fit(factor * X, y).get_mahalanobis_matrix()
        assert_allclose(scaled * factor**2, M, rtol=1e-3, atol=1e-4 * np.abs(M).max())


def test_samples_alone_in_their_class_are_impostors_only(data):
    X, y = data
    y = y.copy()
    y[:2] = [7, 8]
    with pytest.warns(ExcludedRowsWarning, match="2 of 90"):
        learner = LMNN().fit(X, y)
    assert learner.n_excluded_ == 2


def test_memory_does_not_hold_triplets_nor_pairs():
    rng = np.random.default_rng(0)
    X, y = 0.01 * rng.standard_normal((6000, 3)), rng.integers(2, size=6000)
    LMNN(init="identity", max_iter=1, tol=1e6).fit(X, y)  # compiles
    tracemalloc.start()
    LMNN(init="identity", max_iter=1, tol=1e6).fit(X, y)  # all others are impostors
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 160e6  # n² floats are 288 MB, the triplets 54 million


def test_fit_triplets(data):
    X, y = data
    rng = np.random.default_rng(3)
    i = rng.integers(90, size=400)
    j, other = (
        np.array([rng.choice(np.flatnonzero((y == y[a]) == same)) for a in i])
        for same in (True, False)
    )
    kept = i != j
    triplets = np.stack([i, j, other], axis=1)[kept]
    learner = LMNN().fit_triplets(X, triplets)
    assert learner.objective_ < learner.history_[0]
    d = ((X[triplets[:, [0, 0]]] - X[triplets[:, 1:]]) @ learner.components_.T) ** 2
    d = d.sum(axis=2)
    euclidean = ((X[triplets[:, [0, 0]]] - X[triplets[:, 1:]]) ** 2).sum(axis=2)
    assert (d[:, 0] < d[:, 1]).mean() > (euclidean[:, 0] < euclidean[:, 1]).mean() + 0.1
    low = LMNN(n_components=1, loss="squared_hinge").fit_triplets(X, triplets)
    assert low.components_.shape == (1, 5)


def test_triplets_need_no_labels_but_cannot_use_them(data):
    X, _ = data
    with pytest.raises(ValueError, match="refresh_every"):
        LMNN(refresh_every=5).fit_triplets(X, [[0, 1, 2]])
    with pytest.raises(ValueError, match="init='lda' needs class labels"):
        LMNN(init="lda").fit_triplets(X, [[0, 1, 2]])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors"),
        ({"push_weight": 1.5}, "push_weight"),
        ({"loss": "logistic"}, "loss='logistic'"),
        ({"solver": "newton"}, "solver='newton'"),
        ({"backend": "cuda"}, "backend='cuda'"),
        ({"init": "paper"}, "init='paper'"),
        ({"init": np.eye(3)}, "init has shape"),
        ({"n_components": 9}, "n_components=9 exceeds"),
        ({"n_components": 2, "solver": "pgd"}, "cannot keep it at rank"),
        ({"refresh_every": 0}, "refresh_every"),
        ({"max_iter": 0}, "max_iter"),
        ({"tol": -1.0}, "tol"),
        ({"callback": 3}, "callback"),
    ],
)
def test_wrong_parameters(data, parameters, message):
    with pytest.raises(ValueError, match=message):
        LMNN(**parameters).fit(*data)


def test_labels_that_cannot_work(data):
    X, _ = data
    with pytest.raises(ValueError, match="at least two classes"):
        LMNN().fit(X, np.zeros(90))
    with pytest.raises(ValueError, match="every class has one sample"):
        LMNN().fit(X[:10], np.arange(10))
