"""BoostMetric: parameters, errors, weak supervision, hard input."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale
from sklearn.utils.estimator_checks import parametrize_with_checks

from vicinal.exceptions import ConvergenceWarning, ExcludedRowsWarning, SaturatedStartWarning
from vicinal.learners import rank_one_metrics as composition
from vicinal.learners.boostmetric import LOSSES as LOSS
from vicinal.learners.boostmetric import Boosting, BoostMetric
from vicinal.learners.rank_one_metrics import TripletSums
from vicinal.supervision import nearest_triplets

VARIANTS = ["stagewise", "corrective"]
LOSSES = ["exponential", "logistic"]


def blobs(n=60, d=5, classes=3, seed=0):
    rng = np.random.RandomState(seed)
    y = np.arange(n) % classes
    return rng.standard_normal((n, d)) + 1.5 * rng.standard_normal((classes, d))[y], y


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([BoostMetric(), BoostMetric(variant="stagewise")])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_evidence(variant, loss):
    learner = BoostMetric(variant=variant, loss=loss).fit(*blobs())
    assert np.all(np.diff(learner.history_) < 0)
    assert learner.objective_ == learner.history_[-1]
    assert len(learner.history_) == learner.n_iter_ + 1 == len(learner.eigenvalues_)
    assert learner.converged_
    assert learner.n_excluded_ == 0
    L = np.sqrt(learner.weights_)[:, None] * learner.bases_ / learner.scale_
    np.testing.assert_allclose(learner.get_mahalanobis_matrix(), L.T @ L, atol=1e-12)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("units", [1e-150, 1e-6, 1e6, 1e150])
def test_units_do_not_matter(variant, loss, units):
    X, y = blobs()
    learner = BoostMetric(variant=variant, loss=loss)
    Z = clone(learner).fit(X, y).transform(X)
    scaled = learner.fit(X * units, y).transform(X * units)
    D = np.linalg.norm(Z - Z[0], axis=1)
    np.testing.assert_allclose(np.linalg.norm(scaled - scaled[0], axis=1), D, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("variant", VARIANTS)
def test_order_of_rows_and_rotation(variant):
    X, y = blobs()
    learner = BoostMetric(variant=variant, tol=1e-8)
    M = clone(learner).fit(X, y).get_mahalanobis_matrix()
    order = np.random.RandomState(0).permutation(len(X))
    shuffled = clone(learner).fit(X[order], y[order]).get_mahalanobis_matrix()
    np.testing.assert_allclose(shuffled, M, rtol=1e-5, atol=1e-5)
    Q = np.linalg.qr(np.random.RandomState(1).standard_normal((5, 5)))[0]
    rotated = clone(learner).fit(X @ Q, y).get_mahalanobis_matrix()
    np.testing.assert_allclose(rotated, Q.T @ M @ Q, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("variant", VARIANTS)
def test_separable_triplets_end(variant):
    X, y = load_wine(return_X_y=True)
    learner = BoostMetric(variant=variant).fit(scale(X), y)
    assert learner.stop_reason_ == "separated"
    assert learner.converged_
    assert learner.objective_ == pytest.approx(-1, abs=1e-3)


def test_the_trace_has_a_price():
    X, y = blobs()
    traces = [BoostMetric(v, tol=1e-8).fit(X, y).weights_.sum() for v in (1e-7, 1e-3, 1e-2, 1e-1)]
    assert np.all(np.diff(traces) < 0)
    with pytest.warns(SaturatedStartWarning, match="metric is zero"):
        learner = BoostMetric(1e3).fit(X, y)
    np.testing.assert_array_equal(learner.components_, np.zeros((1, 5)))
    assert learner.objective_ == pytest.approx(np.log(9 * 60))


def test_the_corrections_do_not_depend_on_how_much_fits_in_memory(monkeypatch):
    X, y = blobs()
    whole = BoostMetric().fit(X, y).get_mahalanobis_matrix()
    monkeypatch.setattr(composition, "MAX_ELEMENTS", 700)
    parts = BoostMetric().fit(X, y).get_mahalanobis_matrix()
    np.testing.assert_allclose(parts, whole, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("variant", VARIANTS)
def test_triplets_without_labels(variant):
    X, y = blobs()
    rng = np.random.RandomState(0)
    triplets = []
    while len(triplets) < 600:
        i, j, k = rng.choice(60, 3, replace=False)
        if y[i] == y[j] != y[k]:
            triplets.append((i, j, k))
    learner = BoostMetric(variant=variant).fit_triplets(X, triplets)
    assert learner.history_[0] == pytest.approx(np.log(600))
    assert learner.objective_ < 6
    assert not hasattr(learner, "classes_")


def test_n_components_truncates_the_metric():
    X, y = blobs()
    M = BoostMetric().fit(X, y).get_mahalanobis_matrix()
    values, vectors = np.linalg.eigh(M)
    for m in (1, 3, 5):
        learner = BoostMetric(n_components=m).fit(X, y)
        assert learner.components_.shape == (m, 5)
        nearest = vectors[:, -m:] * values[-m:] @ vectors[:, -m:].T
        np.testing.assert_allclose(learner.get_mahalanobis_matrix(), nearest, atol=1e-10)


def test_float32_is_kept():
    X, y = blobs()
    narrow = BoostMetric().fit(X.astype(np.float32), y)
    assert narrow.components_.dtype == np.float32
    wide = BoostMetric().fit(X.astype(np.float32).astype(float), y)
    np.testing.assert_allclose(narrow.components_, wide.components_, rtol=1e-6, atol=1e-6)


def test_callback_sees_and_stops():
    seen = []
    learner = BoostMetric(callback=lambda p: seen.append(p) or p.n_iter == 3).fit(*blobs())
    assert [p.n_iter for p in seen] == [1, 2, 3]
    assert [p.objective for p in seen] == list(learner.history_[1:])
    assert learner.stop_reason_ == "callback"
    assert seen[-1].components.shape[1] == 5


def test_interruption_keeps_what_was_learned():
    def interrupt(progress):
        if progress.n_iter == 2:
            raise KeyboardInterrupt

    learner = BoostMetric(callback=interrupt)
    with pytest.raises(KeyboardInterrupt, match="kept"):
        learner.fit(*blobs())
    assert learner.stop_reason_ == "interrupted"
    assert learner.n_iter_ == 2


def test_too_few_iterations_warn():
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        BoostMetric(max_iter=2).fit(*blobs())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"v": -1}, "v"),
        ({"variant": "greedy"}, "variant='greedy'"),
        ({"loss": "hinge"}, "loss='hinge'"),
        ({"max_iter": 0}, "max_iter"),
        ({"tol": -1}, "tol"),
        ({"n_similar": 0}, "n_similar"),
        ({"n_dissimilar": 0}, "n_dissimilar"),
        ({"n_components": 6}, "exceeds the 5 features"),
        ({"callback": 1}, "callback"),
    ],
)
def test_wrong_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        BoostMetric(**options).fit(*blobs())


def test_one_sample_classes_are_left_out():
    X, y = blobs()
    y = y.copy()
    y[:2] = [7, 8]
    with pytest.warns(ExcludedRowsWarning, match="2 of 60"):
        learner = BoostMetric().fit(X, y)
    assert learner.n_excluded_ == 2


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_hard_input(variant, loss):
    X, y = blobs()
    wide = np.random.RandomState(0).standard_normal((12, 40))
    cases = {
        "constant and duplicated columns": (np.hstack([X, X[:, :1], np.ones((60, 1))]), y),
        "fewer samples than features": (wide, np.arange(12) % 2),
        "duplicated rows across classes": (np.vstack([X, X]), np.r_[y, (y + 1) % 3]),
        "two samples a class": (X[:6], y[:6]),
        "few distinct rows": (np.repeat(X[:3], 20, axis=0), np.tile(y[:3], 20)),
        "one point": (np.ones((12, 3)), np.arange(12) % 2),
    }
    for name, (A, b) in cases.items():
        learner = BoostMetric(variant=variant, loss=loss, max_iter=60).fit(A, b)
        assert np.isfinite(learner.components_).all(), name
        assert np.isfinite(learner.objective_), name


def test_no_price_on_the_trace_is_possible():
    for loss in LOSSES:
        learner = BoostMetric(0.0, loss=loss).fit(*blobs())
        assert np.isfinite(learner.components_).all()


def test_without_a_price_a_line_search_may_find_no_weight():
    """The leading eigenvalue is above v = 0 by rounding only; then there is nothing to correct."""
    X, y = blobs()
    boosting = Boosting(TripletSums(X, nearest_triplets(X, y, 1, 1)), LOSS["exponential"], 0.0)
    boosting.correct(np.empty((0, X.shape[1])), 1e-9)
    assert len(boosting.weights) == 0
