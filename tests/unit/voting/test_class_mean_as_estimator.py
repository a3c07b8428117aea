"""ClassMeanKNN among scikit-learn's tools: its checks, pipelines, searches, labels, errors."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from vicinal.voting.class_mean import ClassMeanKNN

RULES = ("class_mean", "vote")


# Not parametrize_with_checks: in scikit-learn 1.6 it hands pytest a generator, which warns.
CHECKS = [pair for rule in RULES for pair in estimator_checks_generator(ClassMeanKNN(rule=rule))]


@pytest.mark.parametrize(
    ("estimator", "check"), CHECKS, ids=lambda x: x.rule if hasattr(x, "rule") else x.func.__name__
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.mark.parametrize("rule", RULES)
def test_pickle_and_clone(rule, iris):
    X, y = iris
    model = ClassMeanKNN(3, rule=rule).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    copy = clone(model)
    assert copy.get_params() == {"n_neighbors": 3, "rule": rule, "backend": "auto"}
    with pytest.raises(NotFittedError):
        copy.predict(X)
    with pytest.raises(NotFittedError):
        copy.kneighbors()


@pytest.mark.parametrize("rule", RULES)
def test_pipeline_and_search(rule, iris):
    X, y = iris
    pipeline = make_pipeline(StandardScaler(), ClassMeanKNN(rule=rule))
    search = GridSearchCV(pipeline, {"classmeanknn__n_neighbors": [1, 5, 11]}, cv=5, n_jobs=2)
    search.fit(X, y)
    plain = cross_val_score(search.best_estimator_, X, y, cv=5)
    assert search.best_score_ == pytest.approx(plain.mean())
    scores = cross_val_score(pipeline, X, y, cv=5, scoring="roc_auc_ovr")
    assert np.all(np.isfinite(scores))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    "names",
    [
        np.array(["setosa", "versicolor", "virginica"]),
        np.array(["setosa", "versicolor", "virginica"], dtype=object),
        np.array([-3, 7, 100]),
        np.array([False, True, True]),
    ],
    ids=["str", "object", "int", "bool"],
)
def test_labels_of_any_type(rule, names, iris):
    X, codes = iris
    y = names[codes]
    model = ClassMeanKNN(1, rule=rule).fit(X, y)
    assert model.classes_.tolist() == sorted(set(names.tolist()))
    assert np.mean(model.predict(X) == y) > 0.98  # two samples are equal
    assert model.predict(X).dtype == y.dtype


@pytest.mark.parametrize("rule", RULES)
def test_data_frames(rule, iris):
    X, y = iris
    frame = pd.DataFrame(X, columns=list("abcd"), index=np.arange(150) + 1000)
    labels = pd.Series(y, index=frame.index).map({0: "x", 1: "y", 2: "z"})
    model = ClassMeanKNN(rule=rule).fit(frame, labels)
    assert model.feature_names_in_.tolist() == list("abcd")
    expected = ClassMeanKNN(rule=rule).fit(X, labels.to_numpy()).predict(X)
    np.testing.assert_array_equal(model.predict(frame), expected)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list("abdc")])


@pytest.mark.parametrize("rule", RULES)
def test_one_class(rule):
    model = ClassMeanKNN(2, rule=rule).fit([[0.0], [1.0], [2.0]], ["only"] * 3)
    assert model.predict([[5.0]]) == ["only"]
    np.testing.assert_array_equal(model.predict_proba([[5.0]]), [[1.0]])
    assert model.decision_function([[5.0]]).shape == (1, 1)


def test_fitted_attributes_and_float32(iris):
    X, y = iris
    X = X.astype(np.float32)
    shuffled = np.random.default_rng(0).permutation(150)
    model = ClassMeanKNN().fit(X[shuffled], y[shuffled])
    assert (model.n_features_in_, model.n_samples_fit_) == (4, 150)
    assert model.references_.dtype == np.float32
    np.testing.assert_array_equal(model.references_, X[shuffled][model.rows_])
    np.testing.assert_array_equal(model.offsets_, [0, 50, 100, 150])
    np.testing.assert_array_equal(y[shuffled][model.rows_], np.repeat([0, 1, 2], 50))
    assert model.class_distances(X).dtype == np.float32
    assert model.class_distances(X.astype(np.float64)).dtype == np.float64
    assert model.kneighbors(X)[0].dtype == np.float32


def test_float32_beyond_its_squares():
    """Squared distances overflow float32, predictions do not; they may also vanish."""
    for unit in (1e25, 1e-25):
        X = np.float32(unit) * np.array([[0], [1], [5], [6]], dtype=np.float32)
        model = ClassMeanKNN(2).fit(X, [0, 0, 1, 1])
        np.testing.assert_array_equal(model.predict(X), [0, 0, 1, 1])
        distances, _ = model.kneighbors(X, 2)
        np.testing.assert_allclose(distances[:, 1], unit, rtol=1e-6)


@pytest.mark.parametrize("rule", RULES)
def test_sparse_input_is_refused(rule):
    X = sparse.csr_array(np.eye(6))
    with pytest.raises(TypeError, match="dense data is required"):
        ClassMeanKNN(1, rule=rule).fit(X, [0, 1] * 3)
    with pytest.raises(TypeError, match="dense data is required"):
        ClassMeanKNN(1, rule=rule).fit(X.toarray(), [0, 1] * 3).predict(X)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"n_neighbors": 0}, ValueError, "n_neighbors == 0, must be a whole number >= 1"),
        ({"n_neighbors": 2.0}, TypeError, "n_neighbors must be an instance of"),
        (
            {"rule": "mean"},
            ValueError,
            "rule='mean' is not possible; use one of 'class_mean'",
        ),
        ({"n_neighbors": 7, "rule": "vote"}, ValueError, "n_samples = 6: lower n_neighbors"),
    ],
)
def test_clear_errors(parameters, error, message):
    with pytest.raises(error, match=message):
        ClassMeanKNN(**parameters).fit(np.eye(6), [0, 1] * 3)


def test_more_neighbors_than_samples():
    model = ClassMeanKNN(100).fit(np.eye(6), [0, 1] * 3)  # every class uses all it has
    assert model.predict(np.eye(6)).tolist() == [0, 1] * 3
    with pytest.raises(ValueError, match="only 6 samples"):
        model.kneighbors(np.eye(6))
    with pytest.raises(ValueError, match="only 5 samples"):
        model.kneighbors(n_neighbors=6)
    with pytest.raises(ValueError, match="cannot vote"):
        model.set_params(rule="vote").predict(np.eye(6))


def test_values_whose_squares_overflow_are_refused():
    with pytest.raises(ValueError, match="rescale"):
        ClassMeanKNN().fit([[1e200], [0.0]], [0, 1])
    with pytest.raises(ValueError, match="rescale"):
        ClassMeanKNN().fit([[1.0], [0.0]], [0, 1]).predict([[1e200]])


@pytest.mark.parametrize(
    ("X", "y", "parameters"),
    [
        ([[1.0], [np.nan]], [0, 1], {}),
        ([[1.0, 2.0], [3.0, 1e200]], [0, 1], {}),
        ([[1.0], [2.0]], [0.5, 1.5], {}),
        ([[1.0], [2.0]], [0, 1], {"rule": "vote"}),
        ([[1.0], [2.0]], [0, 1], {"n_neighbors": 0}),
    ],
)
def test_a_refused_fit_leaves_the_classifier_as_it_was(X, y, parameters):
    model = ClassMeanKNN().fit(np.eye(4), [0, 1, 0, 1])
    before = {name: value for name, value in vars(model).items() if name.endswith("_")}
    model.set_params(**parameters)
    with pytest.raises(ValueError):  # noqa: PT011
        model.fit(X, y)
    after = {name: value for name, value in vars(model).items() if name.endswith("_")}
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] for name in before)
