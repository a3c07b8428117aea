"""SCML: parameters, errors, weak supervision, hard input."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale
from sklearn.utils.estimator_checks import parametrize_with_checks

from vicinal.exceptions import ConvergenceWarning, ExcludedRowsWarning, SaturatedStartWarning
from vicinal.learners import scml_problem
from vicinal.learners.scml import SCML

SOLVERS = ["smoothed", "dual_averaging", "adagrad"]


def blobs(n=60, d=5, classes=3, seed=0):
    rng = np.random.RandomState(seed)
    y = np.arange(n) % classes
    return rng.standard_normal((n, d)) + 1.5 * rng.standard_normal((classes, d))[y], y


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([SCML()])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.mark.parametrize("solver", SOLVERS)
def test_evidence(solver):
    learner = SCML(solver=solver, random_state=0).fit(*blobs())
    assert learner.history_[0] == 1
    assert np.all(np.diff(learner.history_) < 0)
    assert learner.objective_ == learner.history_[-1]
    assert learner.converged_ == (solver == "smoothed")
    assert learner.stop_reason_ == ("stationary" if solver == "smoothed" else "max_iter")
    assert (learner.weights_ > 0).all()
    assert learner.n_excluded_ == 0
    L = np.sqrt(learner.weights_)[:, None] * learner.bases_ / learner.scale_
    np.testing.assert_allclose(learner.get_mahalanobis_matrix(), L.T @ L, atol=1e-12)
    np.testing.assert_array_equal(learner.classes_, [0, 1, 2])


@pytest.mark.parametrize("solver", SOLVERS)
def test_same_seed_same_result(solver):
    learner = SCML(solver=solver, random_state=3, max_iter=500)
    if solver == "smoothed":
        learner.set_params(max_iter=None)
    first = clone(learner).fit(*blobs()).components_
    np.testing.assert_array_equal(learner.fit(*blobs()).components_, first)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("units", [1e-150, 1e-6, 1e6, 1e150])
def test_units_do_not_matter(solver, units):
    X, y = blobs()
    Z = SCML(solver=solver, random_state=0).fit(X, y).transform(X)
    scaled = SCML(solver=solver, random_state=0).fit(X * units, y).transform(X * units)
    D = np.linalg.norm(Z - Z[0], axis=1)
    np.testing.assert_allclose(np.linalg.norm(scaled - scaled[0], axis=1), D, rtol=2e-3, atol=1e-6)


def test_the_stochastic_steps_do_not_depend_on_how_much_fits_in_memory(monkeypatch):
    X, y = blobs()
    options = {"solver": "adagrad", "max_iter": 400, "random_state": 0}
    whole = SCML(**options).fit(X, y)
    monkeypatch.setattr(scml_problem, "MAX_PROJECTIONS", 5000)
    parts = SCML(**options).fit(X, y)
    np.testing.assert_allclose(
        parts.get_mahalanobis_matrix(), whole.get_mahalanobis_matrix(), rtol=1e-9, atol=1e-9
    )


def test_triplets_without_labels():
    X, y = blobs()
    rng = np.random.RandomState(0)
    triplets = []
    while len(triplets) < 600:
        i, j, k = rng.choice(60, 3, replace=False)
        if y[i] == y[j] != y[k]:
            triplets.append((i, j, k))
    learner = SCML(random_state=0).fit_triplets(X, triplets)
    assert learner.objective_ < 0.5
    assert not hasattr(learner, "classes_")
    Z = learner.transform(X)
    i, j, k = Z[np.array(triplets).T]
    held = ((i - j) ** 2).sum(axis=1) < ((i - k) ** 2).sum(axis=1)
    i, j, k = X[np.array(triplets).T]
    assert held.mean() > (((i - j) ** 2).sum(axis=1) < ((i - k) ** 2).sum(axis=1)).mean()
    with pytest.raises(ValueError, match="needs labels"):
        SCML(basis="lda").fit_triplets(X, triplets)


def test_n_components_truncates_the_metric():
    X, y = blobs()
    M = SCML(random_state=0).fit(X, y).get_mahalanobis_matrix()
    values, vectors = np.linalg.eigh(M)
    for m in (1, 3, 5):
        learner = SCML(n_components=m, random_state=0).fit(X, y)
        assert learner.components_.shape == (m, 5)
        nearest = vectors[:, -m:] * values[-m:] @ vectors[:, -m:].T
        np.testing.assert_allclose(learner.get_mahalanobis_matrix(), nearest, atol=1e-10)


@pytest.mark.parametrize("basis", ["lda", "triplets"])
def test_bases_that_were_found_before_change_nothing(basis):
    X, y = blobs()
    learner = SCML(basis=basis, random_state=3)
    bases = learner.find_bases(X, y)
    np.testing.assert_allclose(np.linalg.norm(bases, axis=1), 1)
    assert not hasattr(learner, "n_features_in_")
    again = SCML(basis=bases, random_state=3).fit(X, y)
    np.testing.assert_array_equal(again.components_, learner.fit(X, y).components_)


def test_few_bases_give_few_rows():
    X, y = blobs()
    learner = SCML(basis=np.eye(5)[:2]).fit(X, y)
    assert learner.components_.shape == (2, 5)


def test_float32_is_kept():
    X, y = blobs()
    narrow = SCML(random_state=0).fit(X.astype(np.float32), y)
    assert narrow.components_.dtype == np.float32
    wide = SCML(random_state=0).fit(X.astype(np.float32).astype(float), y)
    np.testing.assert_allclose(narrow.components_, wide.components_, rtol=1e-6, atol=1e-6)


def test_callback_sees_and_stops():
    seen = []
    learner = SCML(callback=lambda p: seen.append(p) or p.n_iter == 3, random_state=0).fit(*blobs())
    assert [p.n_iter for p in seen] == [1, 2, 3]
    assert learner.stop_reason_ == "callback"
    assert not learner.converged_
    assert seen[-1].components.shape[1] == 5
    draws = SCML(solver="adagrad", callback=lambda p: p.n_iter >= 1000, random_state=0)
    assert draws.fit(*blobs()).n_iter_ == 1000


def test_interruption_keeps_what_was_learned():
    def interrupt(progress):
        if progress.n_iter >= 5:
            raise KeyboardInterrupt

    for solver in SOLVERS:
        learner = SCML(solver=solver, callback=interrupt, random_state=0)
        with pytest.raises(KeyboardInterrupt, match="kept"):
            learner.fit(*blobs())
        assert learner.stop_reason_ == "interrupted"
        assert learner.components_.shape[1] == 5


def test_too_few_iterations_warn():
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        SCML(max_iter=2, random_state=0).fit(*blobs())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beta": -1}, "beta"),
        ({"gamma": 0}, "gamma"),
        ({"basis": "pca"}, "basis='pca'"),
        ({"basis": np.eye(3)}, "3 columns"),
        ({"basis": np.zeros((2, 5))}, "row of zeros"),
        ({"basis": np.eye(5), "n_basis": 4}, "5 rows"),
        ({"solver": "sgd"}, "solver='sgd'"),
        ({"n_basis": 0}, "n_basis"),
        ({"batch_size": 0}, "batch_size"),
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
        SCML(**options).fit(*blobs())


def test_one_sample_classes_are_left_out():
    X, y = blobs()
    y = y.copy()
    y[:2] = [7, 8]
    with pytest.warns(ExcludedRowsWarning, match="2 of 60"):
        learner = SCML(random_state=0).fit(X, y)
    assert learner.n_excluded_ == 2
    with pytest.raises(ValueError, match="similar"):
        SCML().fit(X[:5], np.arange(5))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", SOLVERS)
def test_hard_input(solver):
    X, y = blobs()
    wide = np.random.RandomState(0).standard_normal((12, 40))
    cases = {
        "constant and duplicated columns": (np.hstack([X, X[:, :1], np.ones((60, 1))]), y),
        "fewer samples than features": (wide, np.arange(12) % 2),
        "duplicated rows across classes": (np.vstack([X, X]), np.r_[y, (y + 1) % 3]),
        "two samples a class": (X[:6], y[:6]),
        "few distinct rows": (np.repeat(X[:3], 20, axis=0), np.tile(y[:3], 20)),
    }
    for name, (A, b) in cases.items():
        learner = SCML(solver=solver, max_iter=300, random_state=0).fit(A, b)
        assert np.isfinite(learner.components_).all(), name
        assert np.isfinite(learner.objective_), name


def test_nothing_to_learn_is_said():
    X, y = np.ones((12, 3)), np.arange(12) % 2
    with pytest.warns(SaturatedStartWarning, match="learned nothing"):
        learner = SCML(random_state=0).fit(X, y)
    assert learner.objective_ == 1
    np.testing.assert_array_equal(learner.transform(X), np.zeros((12, 1)))


def test_wine_becomes_easier():
    X, y = load_wine(return_X_y=True)
    X = scale(X)
    learner = SCML(random_state=0).fit(X, y)
    assert learner.objective_ < 0.02
    assert len(learner.weights_) < 130  # of 260
