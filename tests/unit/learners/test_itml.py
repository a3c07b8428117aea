"""ITML: parameters, bounds, supervision, evidence, hard input."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.utils.estimator_checks import check_estimator

from vicinal.exceptions import ConvergenceWarning
from vicinal.learners import itml
from vicinal.learners.itml import ITML, find_bounds


@pytest.fixture
def data():
    rng = np.random.RandomState(0)
    y = np.arange(40) % 3
    return rng.randn(40, 5) + y[:, None], y


@pytest.mark.parametrize("model", [ITML(), ITML(prior="covariance"), ITML(bounds="histogram")])
def test_is_a_scikit_learn_estimator(model):
    check_estimator(model, on_skip=None)


def test_labels_give_forty_pairs_times_the_classes_squared():
    rng = np.random.RandomState(0)
    y = np.arange(90) % 3
    model = ITML(0.1, random_state=0).fit(rng.randn(90, 3) + y[:, None], y)
    assert model.n_pairs_ == 360
    assert ITML(0.1, n_pairs=50, random_state=0).fit(rng.randn(90, 3), y).n_pairs_ == 50


def test_fit_follows_the_seed(data):
    first, again, other = (ITML(0.1, random_state=s, n_pairs=60).fit(*data) for s in (0, 0, 1))
    np.testing.assert_array_equal(first.components_, again.components_)
    assert not np.allclose(first.components_, other.components_)


def test_similar_pairs_come_nearer_than_dissimilar_ones(data):
    X, y = data
    model = ITML(1.0, random_state=0).fit(X, y)
    i, j = np.triu_indices(len(X), 1)
    distances = model.pair_distance(np.stack([X[i], X[j]], axis=1))
    before = np.linalg.norm(X[i] - X[j], axis=1)
    same = y[i] == y[j]
    ratio = distances[same].mean() / distances[~same].mean()
    assert ratio < before[same].mean() / before[~same].mean()


def test_histogram_bounds_are_centers_of_bins():
    rng = np.random.RandomState(0)
    X = np.random.RandomState(3).randn(50, 2)
    i, j = np.random.RandomState(0).randint(50, size=(2, 100))
    squared = ((X[i] - X[j]) ** 2).sum(axis=1)
    edges = np.histogram_bin_edges(squared, bins=100)
    centers = 0.5 * (edges[1:] + edges[:-1])
    assert_allclose(find_bounds("histogram", X, np.eye(2), rng), centers[[4, 94]], rtol=1e-10)


def test_percentiles_are_taken_under_the_prior():
    X = np.random.RandomState(3).randn(50, 2)
    rng = np.random.RandomState(0)
    plain = find_bounds("percentile", X, np.eye(2), rng)
    A0 = np.array([[2.0, 0.5], [0.5, 1.0]])
    i, j = np.triu_indices(50, 1)
    gaps = X[i] - X[j]
    expected = np.percentile(np.einsum("pi,ij,pj->p", gaps, A0, gaps), (5, 95))
    assert_allclose(find_bounds("percentile", X, A0, rng), expected, rtol=1e-10)
    assert not np.allclose(plain, expected)


def test_percentiles_of_many_rows_are_sampled(monkeypatch):
    X = np.random.RandomState(3).randn(1000, 2)
    exact = find_bounds("percentile", X, np.eye(2), np.random.RandomState(0))
    monkeypatch.setattr(itml, "MOST_ROWS", 300)
    sampled = find_bounds("percentile", X, np.eye(2), np.random.RandomState(0))
    assert not np.array_equal(sampled, exact)
    assert_allclose(sampled, exact, rtol=0.2)


def test_bounds_of_repeated_points_are_positive():
    X = np.repeat(np.eye(2), 30, axis=0)  # half of the distances are 0
    u, l = find_bounds("percentile", X, np.eye(2), np.random.RandomState(0))  # noqa: E741
    assert 0 < u < l


@pytest.mark.parametrize("scale", [1e-100, 1e-6, 1e6, 1e100])
@pytest.mark.parametrize("prior", ["identity", "covariance"])
def test_units_of_the_data_do_not_matter(scale, prior, data):
    X, y = data
    model = ITML(0.1, prior=prior, random_state=0).fit(X, y)
    scaled = ITML(0.1, prior=prior, random_state=0).fit(X * scale, y)
    M, found = model.get_mahalanobis_matrix(), scaled.components_
    if prior == "covariance":
        found = found * scale
    assert_allclose(found.T @ found, M, rtol=1e-8, atol=1e-10)
    assert scaled.n_iter_ == model.n_iter_


def test_tiny_gamma_stays_at_the_prior(data):
    A0 = np.diag([1.0, 2, 3, 4, 5])
    model = ITML(1e-9, prior=A0, random_state=0).fit(*data)
    assert_allclose(model.get_mahalanobis_matrix(), A0, atol=1e-5)


def test_equal_points_are_left_out(data):
    X, _ = data
    X = np.r_[X, X[:1]]
    pairs = [[0, 40], [0, 1], [0, 2]]
    model = ITML(random_state=0).fit_pairs(X, pairs, [-1, 1, -1])
    assert model.n_pairs_ == 2
    expected = ITML(random_state=0).fit_pairs(X, pairs[1:], [1, -1])
    np.testing.assert_array_equal(model.components_, expected.components_)
    with pytest.raises(ValueError, match="equal samples"):
        ITML().fit_pairs(X, pairs[:1], [True])


def test_stopping_early_warns_and_says_so(data):
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        model = ITML(max_iter=2, random_state=0).fit(*data)
    assert model.n_iter_ == 2
    assert model.stop_reason_ == "max_iter"
    assert not model.converged_
    assert len(model.history_) == 3


def test_evidence_of_convergence(data):
    model = ITML(0.1, random_state=0).fit(*data)
    assert model.converged_
    assert model.stop_reason_ == "multipliers"
    assert len(model.history_) == model.n_iter_ + 1
    assert model.history_[0] == 0
    assert np.diff(model.history_).min() > -1e-10
    assert_allclose(model.history_[-1], model.objective_, rtol=0.02)


def test_callback_sees_every_pass_and_can_stop(data):
    seen = []

    def callback(progress):
        seen.append((progress.n_iter, progress.objective, progress.components))
        return progress.n_iter == 3

    model = ITML(random_state=0, callback=callback).fit(*data)
    assert [n for n, _, _ in seen] == [1, 2, 3]
    assert_allclose([value for _, value, _ in seen], model.history_[1:])
    assert_allclose(seen[-1][2], model.components_)
    assert not np.allclose(seen[0][2], seen[1][2])
    assert model.stop_reason_ == "callback"
    assert not model.converged_


def test_verbose_logs(data, caplog):
    with caplog.at_level(logging.INFO, logger="vicinal"):
        ITML(0.1, random_state=0, verbose=2).fit(*data)
    assert "ITML iteration 1: objective" in caplog.text


def test_hard_bounds_that_can_be_met_are_met():
    X = np.array([[0.0, 0], [1, 0], [0, 1]])
    pairs, similar = [[0, 1], [0, 2]], [True, False]
    model = ITML(np.inf, bounds=(0.25, 4.0), tol=1e-12).fit_pairs(X, pairs, similar)
    assert_allclose(model.pair_distance(X[pairs]), [0.5, 2.0], rtol=1e-9)
    assert_allclose(model.history_[-1], model.objective_, rtol=1e-9)


def test_bounds_make_a_threshold(data):
    X, y = data
    model = ITML(0.1, random_state=0).fit(X, y)
    model.set_threshold(np.sqrt(model.bounds_.mean()))
    assert model.predict_pairs([[X[0], X[0]]]).all()


def hard_cases():
    rng = np.random.RandomState(1)
    y = np.arange(30) % 3
    X = rng.randn(30, 4) + y[:, None]
    return {
        "constant column": (np.c_[X, np.ones(30)], y),
        "duplicated columns": (np.c_[X, X], y),
        "fewer samples than features": (rng.randn(8, 20), np.arange(8) % 2),
        "a class of one sample": (X, np.r_[np.zeros(15), np.ones(14), 2]),
        "only classes of one sample": (X[:5], np.arange(5)),
        "rows shared by classes": (np.r_[X, X], np.r_[y, (y + 1) % 3]),
        "rows nearly shared": (np.r_[X, X + 1e-7 * rng.randn(30, 4)], np.r_[y, (y + 1) % 3]),
        "one feature": (X[:, :1], y),
        "two samples": (X[:2], y[:2]),
        "large offset": (X + 1e6, y),
    }


@pytest.mark.parametrize("name", hard_cases())
@pytest.mark.parametrize("prior", ["identity", "covariance"])
def test_hard_input(name, prior):
    X, y = hard_cases()[name]
    M = ITML(prior=prior, random_state=0).fit(X, y).get_mahalanobis_matrix()
    assert np.isfinite(M).all()
    assert np.linalg.eigvalsh(M)[0] >= -1e-9 * np.linalg.eigvalsh(M)[-1]


def test_float32_stays_and_agrees(data):
    X, y = data
    exact = ITML(0.1, random_state=0).fit(X, y)
    model = ITML(0.1, random_state=0).fit(X.astype(np.float32), y)
    assert model.components_.dtype == np.float32
    assert model.transform(X.astype(np.float32)).dtype == np.float32
    M = model.components_.T.astype(float) @ model.components_
    assert_allclose(M, exact.get_mahalanobis_matrix(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"gamma": 0.0}, "gamma"),
        ({"gamma": np.nan}, "gamma"),
        ({"gamma": "large"}, "gamma"),
        ({"n_pairs": 1}, "n_pairs"),
        ({"max_iter": 0}, "max_iter"),
        ({"tol": -1.0}, "tol"),
        ({"bounds": "percentiles"}, "bounds='percentiles'"),
        ({"bounds": (2.0, 1.0)}, "0 < u <= l"),
        ({"bounds": (0.0, 1.0)}, "0 < u <= l"),
        ({"bounds": (1.0, 2.0, 3.0)}, "0 < u <= l"),
        ({"prior": "identical"}, "prior='identical'"),
        ({"prior": np.zeros((5, 5))}, "positive definite"),
        ({"callback": 3}, "callback"),
    ],
)
def test_impossible_parameters(parameters, message, data):
    with pytest.raises(ValueError, match=message):
        ITML(**parameters).fit(*data)


def test_bounds_that_every_pair_is_at_settle_at_once():
    """d + 1 samples are equally far from each other under their own covariance: u = l = p."""
    X = np.random.RandomState(1).randn(5, 4)
    model = ITML(prior="covariance", random_state=0).fit(X, np.arange(5))
    assert model.converged_
    assert model.n_iter_ <= 3
    assert_allclose(model.pair_distance([[X[0], X[1]], [X[2], X[4]]]) ** 2, 10.0, rtol=1e-4)
