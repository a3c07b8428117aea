"""RVML: parameters, kernel form, transport at all scales, hard input."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator

from vicinal.learners.rvml import RVML, choose_landmarks, mean_distance, sinkhorn

FORMS = [
    RVML(),
    RVML(virtual_points="transport"),
    RVML(kernel="rbf"),
    RVML(kernel="rbf", virtual_points="transport", gamma=0.1),
]


@pytest.fixture
def data():
    rng = np.random.RandomState(0)
    y = np.arange(40) % 3
    return rng.randn(40, 5) + y[:, None], y


@pytest.mark.parametrize("model", FORMS)
def test_is_a_scikit_learn_estimator(model):
    check_estimator(model, on_skip=None)


@pytest.mark.parametrize("model", FORMS)
def test_distances_are_those_of_the_embedding(model, data):
    X, y = data
    model = clone(model).fit(X, y)
    queries = np.random.RandomState(1).randn(6, 5)
    Z = model.transform(queries)
    expected = np.linalg.norm(Z[:3] - Z[3:], axis=1)
    pairs = np.stack([queries[:3], queries[3:]], axis=1)
    assert_allclose(model.pair_distance(pairs), expected, rtol=1e-10)
    assert_allclose(model.pair_score(pairs), -expected, rtol=1e-10)
    metric = model.get_metric()
    found = [metric(u, v) for u, v in pairs]
    assert_allclose(found, expected, rtol=1e-10)
    assert_allclose([metric(u, v, squared=True) for u, v in pairs], expected**2, rtol=1e-10)
    assert len(model.get_feature_names_out()) == Z.shape[1]
    model.set_threshold(1.001 * np.median(expected))  # beside a distance: rounding decides at it
    np.testing.assert_array_equal(model.predict_pairs(pairs), expected <= model.threshold_)


def test_shapes_of_the_embedding(data):
    X, y = data
    assert RVML().fit(X, y).components_.shape == (3, 5)
    assert RVML(virtual_points="transport").fit(X, y).components_.shape == (5, 5)
    model = RVML(kernel="rbf").fit(X, y)
    assert model.components_.shape == (3, 40)
    assert model.transform(X[:7]).shape == (7, 3)


def test_kernel_form_has_no_matrix(data):
    model = RVML(kernel="rbf").fit(*data)
    with pytest.raises(ValueError, match="kernel='rbf' learns no Mahalanobis matrix"):
        model.get_mahalanobis_matrix()
    with pytest.raises(ValueError, match=r"shape \(n_pairs, 2, 5\)"):
        model.pair_distance(np.zeros((3, 2, 4)))


def test_kernel_form_can_be_refitted_as_linear(data):
    model = RVML(kernel="rbf").fit(*data)
    metric = model.get_metric()
    X = data[0]
    before = metric(X[0], X[1])
    model.set_params(kernel="linear").fit(*data)
    np.testing.assert_array_equal(model.components_, RVML().fit(*data).components_)
    assert model.get_mahalanobis_matrix().shape == (5, 5)
    assert metric(X[0], X[1]) == before  # an earlier metric keeps what it was


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_unfitted(kernel):
    model = RVML(kernel=kernel)
    for call in (model.get_mahalanobis_matrix, model.get_metric):
        with pytest.raises(NotFittedError):
            call()
    for call in (model.transform, model.pair_distance):
        with pytest.raises(NotFittedError):
            call(np.zeros((1, 2)))


@pytest.mark.parametrize("model", FORMS)
def test_translation_and_relabeling_change_no_distance(model, data):
    X, y = data
    pairs = np.stack([X[:10], X[10:20]], axis=1)
    expected = clone(model).fit(X, y).pair_distance(pairs)
    moved = clone(model).fit(X + 100, y).pair_distance(pairs + 100)
    assert_allclose(moved, expected, rtol=1e-6)
    renamed = clone(model).fit(X, np.array(["b", "c", "a"])[y]).pair_distance(pairs)
    assert_allclose(renamed, expected, rtol=1e-6)


def test_class_embedding_is_near_the_corners(data):
    X, y = data
    Z = RVML(1e-4, kernel="rbf").fit(X, y).transform(X)
    np.testing.assert_array_equal(Z.argmax(axis=1), y)


def test_evidence_of_a_closed_form(data):
    model = RVML().fit(*data)
    assert model.converged_ is True
    assert model.stop_reason_ == "closed form"


def test_landmarks_are_at_least_one_a_class():
    X = np.array([[0.0], [0.1], [0.2], [5.0]])
    assert len(choose_landmarks(X - X.mean(), 3)) == 3
    assert len(choose_landmarks(X, 4)) == 4  # all samples
    assert choose_landmarks(np.ones((5, 2)), 2).tolist() == [0, 1]


def test_mean_distance_goes_by_blocks():
    X = np.random.RandomState(0).randn(2100, 3)
    expected = np.mean([np.linalg.norm(X - x, axis=1).mean() for x in X])
    assert_allclose(mean_distance(X), expected, rtol=1e-7)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e3, 1e6, 1e12])
def test_sinkhorn_rows_are_exact_at_every_scale(scale):
    cost = scale * np.random.RandomState(0).rand(30, 7)
    plan, g = sinkhorn(cost, np.zeros(7))
    assert np.isfinite(g).all()
    assert_allclose(plan.sum(axis=1), 1 / 30, rtol=1e-3 if scale > 1e10 else 1e-9)
    if scale <= 1:
        assert_allclose(plan.sum(axis=0), 1 / 7, atol=1e-8)


def test_sinkhorn_survives_a_landmark_that_nobody_is_near():
    """Plain scalings would divide by e^{−5000} = 0."""
    cost = np.zeros((6, 3))
    cost[:, 2] = 5000.0
    plan, _ = sinkhorn(cost, np.zeros(3))
    assert_allclose(plan, 1 / 18, rtol=1e-8)


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
        "one feature": (X[:, :1], y),
        "two samples": (X[:2], y[:2]),
        "equal samples": (np.ones((6, 2)), np.arange(6) % 2),
        "tiny": (1e-30 * X, y),
        "huge": (1e30 * X, y),
    }


@pytest.mark.parametrize("name", hard_cases())
@pytest.mark.parametrize("model", [*FORMS, RVML(1e-300)])
def test_hard_input(name, model):
    X, y = hard_cases()[name]
    model = clone(model).fit(X, y)
    assert np.isfinite(model.components_).all()
    assert np.isfinite(model.transform(X)).all()


def test_undetermined_directions_stay_zero(data):
    """A penalty below the rounding of XᵀX must not blow up what X does not determine."""
    X, y = data
    L = RVML(1e-300).fit(np.c_[X, X], y).components_
    expected = RVML(1e-12).fit(X, y).components_
    assert_allclose(L[:, :5] + L[:, 5:], expected, rtol=1e-5, atol=1e-7)
    undetermined = L[:, :5] - L[:, 5:]  # by rounding alone, other on every machine
    assert np.linalg.norm(undetermined) < 0.015 * np.linalg.norm(expected)


@pytest.mark.parametrize("model", FORMS)
def test_float32_stays_and_agrees(model, data):
    X, y = data
    exact = clone(model).fit(X, y).transform(X)
    found = clone(model).fit(X.astype(np.float32), y)
    Z = found.transform(X.astype(np.float32))
    assert found.components_.dtype == Z.dtype == np.float32
    assert_allclose(Z, exact, atol=1e-3)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"regularization": 0.0}, "regularization"),
        ({"regularization": -1.0}, "regularization"),
        ({"virtual_points": "corners"}, "virtual_points='corners'"),
        ({"kernel": "poly"}, "kernel='poly'"),
        ({"gamma": 0.0}, "gamma"),
    ],
)
def test_impossible_parameters(parameters, message, data):
    with pytest.raises(ValueError, match=message):
        RVML(**parameters).fit(*data)
