"""MCML: its parameters and hard input."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from vicinal.exceptions import ExcludedRowsWarning
from vicinal.learners.mcml import MCML


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = rng.standard_normal((90, 5))
    X[:, :2] += np.array([[0, 0], [2, 0], [0, 2]])[y]
    return X, y


def test_evidence(data):
    learner = MCML().fit(*data)
    assert learner.converged_
    assert learner.history_[-1] == learner.objective_
    assert np.all(np.diff(learner.history_) <= 0)
    assert learner.n_excluded_ == 0
    assert_array_equal(learner.classes_, [0, 1, 2])


@pytest.mark.parametrize("init", ["auto", "pca", "lda", "random"])
def test_low_rank(data, init):
    learner = MCML(2, init=init, random_state=0).fit(*data)
    assert learner.components_.shape == (2, 5)
    assert_allclose(learner.objective_, MCML().fit(*data).objective_, rtol=0.05)


def test_start_has_unit_median_distance(data):
    L = MCML(tol=1e6).fit(*data).components_  # a tolerance that any start meets
    Z = data[0] @ L.T
    gaps = Z[:, None] - Z
    squares = (gaps**2).sum(axis=2)[np.triu_indices(90, 1)]
    assert_allclose(np.median(squares), 1.0, rtol=1e-9)


def test_units_do_not_matter(data):
    X, y = data
    M = MCML().fit(X, y).get_mahalanobis_matrix()
    for factor in (1e-150, 1e150):
        scaled = MCML().fit(factor * X, y).components_ * factor
        assert_allclose(scaled.T @ scaled, M, rtol=1e-3, atol=1e-4 * np.abs(M).max())


def test_samples_alone_in_their_class_are_left_out(data):
    X, y = data
    y = y.copy()
    y[0] = 7
    with pytest.warns(ExcludedRowsWarning, match="1 of 90"):
        learner = MCML().fit(X, y)
    assert learner.n_excluded_ == 1


def test_callback_stops(data):
    learner = MCML(callback=lambda progress: progress.n_iter == 2).fit(*data)
    assert (learner.stop_reason_, learner.n_iter_) == ("callback", 2)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "n_components"),
        ({"n_components": 9}, "n_components=9 exceeds"),
        ({"n_components": 2, "solver": "apg"}, "cannot keep it at rank"),
        ({"solver": "newton"}, "solver='newton'"),
        ({"backend": "cuda"}, "backend='cuda'"),
        ({"init": "best"}, "init='best'"),
        ({"max_iter": 0}, "max_iter"),
    ],
)
def test_wrong_parameters(data, parameters, message):
    with pytest.raises(ValueError, match=message):
        MCML(**parameters).fit(*data)


def test_labels_that_cannot_work(data):
    X, _ = data
    with pytest.raises(ValueError, match="at least two classes"):
        MCML().fit(X, np.zeros(90))
    with pytest.raises(ValueError, match="every class has one sample"):
        MCML().fit(X[:10], np.arange(10))
