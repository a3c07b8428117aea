"""The parts of fitted models, against the models themselves."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import vicinal as vc
from vicinal.fitted_model import (
    CommitteeVotes,
    EuclideanMetric,
    LearnedMetric,
    MeanMetric,
    NeighborVotes,
    anatomy,
)

X, Y = load_iris(return_X_y=True)
Y = np.array(["setosa", "versicolor", "virginica"])[Y]
SEARCH = vc.ANNSearchCV(
    vc.PNCA(tol=0.1), alphas=[1.0], n_neighbors=[3], cv=2, standardize=True, random_state=0
)

MODELS = {
    "plain": vc.ClassMeanKNN(3, rule="vote"),
    "plain of scikit-learn": KNeighborsClassifier(3),
    "PCA, class means": make_pipeline(PCA(2), vc.ClassMeanKNN(3)),
    "learner, K-NN": make_pipeline(vc.GMML(), KNeighborsClassifier(3)),
    "scaler, PCA, learner, vote": make_pipeline(
        StandardScaler(), PCA(3), vc.RVML(), vc.ClassMeanKNN(3, rule="vote")
    ),
    "kernel": make_pipeline(vc.RVML(kernel="rbf"), vc.ClassMeanKNN(3)),
    "a pipeline in a pipeline": make_pipeline(
        make_pipeline(MinMaxScaler(), PCA(3)), make_pipeline(vc.GMML(), vc.ClassMeanKNN(2))
    ),
    "search": SEARCH,
    "search, K-NN": make_pipeline(StandardScaler(), clone(SEARCH), vc.ClassMeanKNN(5)),
    "committee": vc.ANNClassifier(effort=0.02),
    "scaler, committee": make_pipeline(StandardScaler(), vc.ANNClassifier(effort=0.02)),
    "single": vc.ANNClassifier("single", effort=0.02),
}


@pytest.fixture(scope="module")
def models():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few rows, few iterations
        return {name: model.fit(X, Y) for name, model in MODELS.items()}


@pytest.fixture(params=MODELS)
def model(request, models):
    return models[request.param]


def test_preparation_metric_and_votes_are_the_model(model):
    fitted = anatomy(model)
    A = fitted.prepare(X[:20])
    np.testing.assert_array_equal(fitted.voting().probabilities(A), model.predict_proba(X[:20]))
    np.testing.assert_array_equal(fitted.voting().classes, model.classes_)
    np.testing.assert_array_equal(fitted.voting().labels(), Y)


def test_neighbors_lie_in_the_space_of_the_metric(model):
    fitted = anatomy(model)
    A = fitted.prepare(X)
    Z = fitted.metric.embed(A)
    distances, rows = fitted.voting().nearest(A[:10], 4)
    every = cdist(Z[:10], Z)
    expected = np.take_along_axis(every, rows, axis=1)
    np.testing.assert_allclose(distances, expected, atol=1e-7)
    assert fitted.voting().nearest(A, 1000)[1].shape == (len(X), len(X))


def test_the_matrix_gives_the_distances_of_the_rows_as_given(model):
    fitted = anatomy(model)
    Z = fitted.metric.embed(fitted.prepare(X[:8]))
    measured = fitted.metric.measure(fitted.prepare(X[:8]))
    if measured is None:
        with pytest.raises(ValueError, match="not a quadratic form"):
            fitted.matrix()
        return
    squared = cdist(Z, Z, "sqeuclidean")
    if measured.expansion is None:
        M = fitted.matrix()
        differences = X[:8, None] - X[None, :8]
        found = np.einsum("ijk,kl,ijl->ij", differences, M, differences)
        np.testing.assert_allclose(found, squared, rtol=1e-8, atol=1e-9 * squared.max())
    to_next = measured.contributions(np.r_[1:8, 0]).sum(axis=1)
    expected = squared[np.arange(8), np.r_[1:8, 0]]
    np.testing.assert_allclose(to_next, expected, rtol=1e-8, atol=1e-9 * squared.max())


@pytest.mark.parametrize(
    ("name", "metric", "votes", "learner", "n_steps"),
    [
        ("plain", EuclideanMetric, NeighborVotes, None, 0),
        ("PCA, class means", EuclideanMetric, NeighborVotes, None, 1),
        ("scaler, PCA, learner, vote", LearnedMetric, NeighborVotes, vc.RVML, 3),
        ("a pipeline in a pipeline", LearnedMetric, NeighborVotes, vc.GMML, 3),
        ("search", LearnedMetric, NeighborVotes, vc.PNCA, 2),
        ("search, K-NN", LearnedMetric, NeighborVotes, vc.PNCA, 3),
        ("single", LearnedMetric, CommitteeVotes, None, 1),
    ],
)
def test_parts_of_each_kind_of_model(models, name, metric, votes, learner, n_steps):
    fitted = anatomy(models[name])
    assert isinstance(fitted.metric, metric)
    assert isinstance(fitted.votes, votes)
    assert isinstance(fitted.learner, learner or type(None))
    assert len(fitted.steps) == n_steps
    assert (fitted.search is not None) == ("search" in name)
    assert (fitted.committee is not None) == (name == "single")


def test_a_committee_has_a_mean_metric_and_no_transform(models):
    fitted = anatomy(models["committee"])
    assert isinstance(fitted.metric, MeanMetric)
    with pytest.raises(ValueError, match="several metrics"):
        _ = fitted.steps


def test_an_unfitted_copy_is_the_same_model(models):
    model = models["scaler, PCA, learner, vote"]
    again = anatomy(model).unfitted().fit(X, Y)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_explanations_add_up_to_the_distance_in_the_features_as_given(models):
    for name in ("plain", "PCA, class means", "scaler, PCA, learner, vote", "search"):
        for vote in anatomy(models[name]).explain(X[7] + 0.01, X, 6):
            assert vote.contributions.sum() == pytest.approx(vote.distance**2, rel=1e-7)
            assert vote.label == Y[vote.row]


def test_weights_of_an_explanation_add_up_to_the_probabilities(model):
    fitted = anatomy(model)
    if fitted.metric.matrix() is None:  # a kernel: nothing that each feature adds
        return
    x = (X[50] + X[101]) / 2  # between two classes
    votes = fitted.explain(x, X, len(X))
    shares = [sum(v.weight for v in votes if v.label == label) for label in model.classes_]
    assert sum(shares) > 0.9  # the rest is the prior's
    if fitted.committee is None:
        np.testing.assert_allclose(shares, model.predict_proba(x[None])[0], rtol=1e-12)


def test_votes_by_the_inverse_distance_are_not_explained():
    model = KNeighborsClassifier(3, weights="distance").fit(X, Y)
    with pytest.raises(ValueError, match="weights='distance' cannot be explained"):
        anatomy(model).explain(X[0], X, 3)


def test_other_classifiers_have_a_transform_at_most():
    model = make_pipeline(StandardScaler(), vc.GMML(), LogisticRegression()).fit(X, Y)
    fitted = anatomy(model)
    assert len(fitted.steps) == 2
    with pytest.raises(TypeError, match="does not predict by neighbors"):
        fitted.voting()


@pytest.mark.parametrize("model", [vc.NCA(), vc.ClassMeanKNN(), make_pipeline(PCA(), vc.NCA())])
def test_unfitted_models_are_refused(model):
    with pytest.raises(NotFittedError):
        anatomy(model)


def test_a_search_without_a_refit_is_refused():
    search = vc.ANNSearchCV(vc.PNCA(tol=0.1), alphas=[1.0], n_neighbors=[3], cv=2, refit=False)
    with pytest.raises(NotFittedError, match="refit=True"):
        anatomy(search.fit(X, Y))


def test_what_is_not_an_estimator_is_refused():
    with pytest.raises(TypeError, match="is not an estimator"):
        anatomy({"components_": X})
