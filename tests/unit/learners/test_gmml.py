"""GMML: parameters, supervision, hard input."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.utils.estimator_checks import check_estimator

from vicinal.learners.gmml import GMML


@pytest.fixture
def data():
    rng = np.random.RandomState(0)
    y = np.arange(40) % 3
    return rng.randn(40, 5) + y[:, None], y


@pytest.mark.parametrize("model", [GMML(), GMML(n_pairs=60), GMML(prior="covariance")])
def test_is_a_scikit_learn_estimator(model):
    check_estimator(model, on_skip=None)


def test_labels_and_all_pairs_say_the_same(data):
    X, y = data
    i, j = np.triu_indices(len(y), 1)
    given = GMML(0.3).fit_pairs(X, np.stack([i, j], axis=1), y[i] == y[j])
    expected = GMML(0.3).fit(X, y).get_mahalanobis_matrix()
    assert_allclose(given.get_mahalanobis_matrix(), expected, rtol=1e-10, atol=1e-12)
    assert not hasattr(given, "classes_")


def test_sampled_pairs_approach_all_pairs(data):
    X, y = data
    expected = GMML().fit(X, y).get_mahalanobis_matrix()
    found = GMML(n_pairs=600, random_state=0).fit(X, y).get_mahalanobis_matrix()
    assert_allclose(found / np.trace(found), expected / np.trace(expected), atol=0.05)


def test_sampling_follows_the_seed(data):
    first, again, other = (
        GMML(n_pairs=50, random_state=seed).fit(*data).components_ for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


def test_evidence_of_a_closed_form(data):
    model = GMML().fit(*data)
    assert model.converged_ is True
    assert model.stop_reason_ == "closed form"
    assert model.regularized_ is False
    assert model.components_.shape == (5, 5)


@pytest.mark.parametrize("t", [0.0, 0.2, 0.5, 1.0])
@pytest.mark.parametrize("scale", [1e-30, 1e-6, 1e6, 1e30])
def test_units_of_the_data_only_scale_the_metric(t, scale, data):
    X, y = data
    M = GMML(t).fit(X, y).get_mahalanobis_matrix()
    scaled = GMML(t).fit(X * scale, y).get_mahalanobis_matrix()
    assert_allclose(scaled / np.trace(scaled), M / np.trace(M), rtol=1e-8, atol=1e-12)


def test_large_offset_is_harmless(data):
    X, y = data
    M = GMML().fit(X, y).get_mahalanobis_matrix()
    assert_allclose(GMML().fit(X + 1e6, y).get_mahalanobis_matrix(), M, rtol=1e-6, atol=1e-8)


def hard_cases():
    rng = np.random.RandomState(1)
    y = np.arange(30) % 3
    X = rng.randn(30, 4) + y[:, None]
    return {
        "constant column": (np.c_[X, np.ones(30)], y),
        "duplicated columns": (np.c_[X, X], y),
        "fewer samples than features": (rng.randn(8, 20), np.arange(8) % 2),
        "a class of one sample": (X, np.r_[np.zeros(15), np.ones(14), 2]),
        "rows shared by classes": (np.r_[X, X], np.r_[y, (y + 1) % 3]),
        "one feature": (X[:, :1], y),
    }


@pytest.mark.parametrize("name", hard_cases())
@pytest.mark.parametrize("prior", [None, "identity", "covariance"])
def test_hard_input(name, prior):
    X, y = hard_cases()[name]
    model = GMML(prior=prior).fit(X, y)
    M = model.get_mahalanobis_matrix()
    assert np.isfinite(M).all()
    assert np.linalg.eigvalsh(M)[0] >= -1e-9 * np.linalg.eigvalsh(M)[-1]
    if "column" in name or "fewer" in name:
        assert model.regularized_


def test_float32_stays_and_agrees(data):
    X, y = data
    exact = GMML().fit(X, y)
    model = GMML().fit(X.astype(np.float32), y)
    assert model.components_.dtype == np.float32
    assert model.transform(X.astype(np.float32)).dtype == np.float32
    assert_allclose(
        model.get_mahalanobis_matrix(), exact.get_mahalanobis_matrix(), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"t": -0.1}, "t =="),
        ({"t": 1.1}, "t =="),
        ({"ridge": -1.0}, "ridge"),
        ({"n_pairs": 1}, "n_pairs"),
        ({"prior": "unknown"}, "prior='unknown'"),
        ({"prior": np.eye(3)}, "shape"),
        ({"prior": np.triu(np.ones((5, 5)))}, "symmetric"),
        ({"prior": -np.eye(5)}, "positive definite"),
        ({"prior": "identity", "ridge": 0.0}, "ridge"),
    ],
)
def test_impossible_parameters(parameters, message, data):
    with pytest.raises(ValueError, match=message):
        GMML(**parameters).fit(*data)


def test_singular_scatter_without_ridge_is_an_error(data):
    X, y = data
    with pytest.raises(ValueError, match="singular"):
        GMML(ridge=0.0).fit(np.c_[X, X], y)


def test_both_kinds_of_pairs_are_needed(data):
    X, _ = data
    with pytest.raises(ValueError, match="dissimilar pairs"):
        GMML().fit_pairs(X, [[0, 1], [2, 3]], [1, 1])
    with pytest.raises(ValueError, match="needs similar pairs"):
        GMML().fit(X[:5], np.arange(5))


def test_covariance_prior_needs_samples_that_differ():
    with pytest.raises(ValueError, match="samples that differ"):
        GMML(prior="covariance").fit(np.ones((6, 2)), np.arange(6) % 2)


@pytest.mark.parametrize("constrained", [False, True])
def test_rows_whose_transform_would_overflow_are_refused(constrained):
    """With t = ½, M does not depend on the units: a transform is as large as the data."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), np.arange(30) % 2
    X[0, 0] = 1.7e308
    X[:, 1] *= 1e-300
    learner = GMML(t=0.9, n_pairs=60 if constrained else None, random_state=0)
    with pytest.raises(ValueError, match="divide X by a large number"):
        learner.fit(X, y)
    assert not hasattr(learner, "components_")
    assert np.isfinite(learner.fit(X * 1e-308, y).transform(X * 1e-308)).all()
