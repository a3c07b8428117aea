"""The arguments of a report: what is accepted, and what is said about the rest."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import vicinal as vc
from vicinal.automatic.classifier import ANNClassifier
from vicinal.reporting import examine
from vicinal.search.search_cv import ANNSearchCV


def test_features_of_a_pipeline_are_named_by_its_steps(wine):
    X, y, *_ = wine
    model = make_pipeline(StandardScaler(), PCA(5), vc.RVML(), KNeighborsClassifier(7)).fit(X, y)
    assert examine(model, X, y).features == tuple(f"pca{i}" for i in range(5))


@pytest.mark.parametrize("model", [GaussianNB(), make_pipeline(GaussianNB())])
def test_other_models_are_refused(model, iris):
    with pytest.raises(TypeError, match="cannot report on a GaussianNB"):
        examine(model.fit(*iris), *iris)


def test_unfitted_models_are_refused(iris):
    with pytest.raises(NotFittedError):
        examine(vc.NCA(), *iris)


def test_names_come_from_the_columns(iris):
    X = pd.DataFrame(iris[0], columns=["a", "b", "c", "d"])
    found = examine(vc.RVML().fit(X, iris[1]), X, iris[1], ids=[f"plant {i}" for i in range(150)])
    assert found.features == ("a", "b", "c", "d")
    assert found.maps.ids[3] == "plant 3"
    model = make_pipeline(StandardScaler(), vc.RVML()).fit(X, iris[1])
    assert examine(model, X, iris[1]).features == ("a", "b", "c", "d")


def test_rows_of_both_sets_can_have_ids(wine, wine_pipeline):
    X, y, X_test, y_test = wine
    n = len(y) + len(y_test)
    ids = [f"#{i}" for i in range(n)]
    found = examine(wine_pipeline, X, y, X_test=X_test, y_test=y_test, ids=ids)
    assert found.maps.ids == tuple(ids)
    assert found.maps.held_out.sum() == len(y_test)
    default = examine(wine_pipeline, X, y, X_test=X_test, y_test=y_test)
    assert default.maps.ids[0] == "row 0"
    assert default.maps.ids[len(y)] == "held-out 0"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X_test": [[1.0] * 4]}, "together"),
        ({"X_test": np.ones((2, 4)), "y_test": ["setosa"]}, "2 rows but 1 labels"),
        ({"X_test": np.ones((1, 3)), "y_test": ["setosa"]}, "3 features"),
        ({"feature_names": ["a"]}, "1 names for 4 features"),
        ({"ids": range(3)}, "3 entries for 150 rows"),
        ({"y": ["setosa"] * 150}, "one class only"),
    ],
)
def test_what_does_not_fit_together_is_said(change, message, iris, iris_ann):
    arguments = {"X": iris[0], "y": iris[1], **change}
    with pytest.raises(ValueError, match=message):
        examine(iris_ann, **arguments)


def test_provenance_is_text(iris, iris_ann):
    with pytest.raises(TypeError, match="provenance"):
        examine(iris_ann, *iris, provenance={"seed": 0})
    found = examine(
        iris_ann, *iris, provenance={"Seed": "0", "Columns": ["a", "b"], "Machine": "mine"}
    )
    facts = {fact.name: fact.lines for fact in found.provenance}
    assert facts["Seed"] == ("0",)
    assert facts["Columns"] == ("a", "b")
    assert facts["Machine"] == ("mine",)
    assert facts["Data"] == ("training: 150 rows × 4 features",)
    assert {"Settings", "Versions", "Written", "Classes"} <= set(facts)


def test_large_data_are_sampled(iris):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 2600)
    X = rng.normal(size=(2600, 3)) + y[:, None]
    found = examine(vc.RVML().fit(X, y), X, y)
    assert len(found.maps.ids) == 2000
    assert found.maps.n_rows == 2600
    assert found.headline.scores[0].total == 2600
    expected = np.bincount(y) / 2600
    np.testing.assert_allclose(np.bincount(found.maps.labels) / 2000, expected, atol=1e-3)


def test_columns_in_another_order_are_refused(iris):
    X = pd.DataFrame(iris[0], columns=["a", "b", "c", "d"])
    model = vc.RVML().fit(X, iris[1])
    with pytest.raises(ValueError, match="feature names"):
        examine(model, X[["b", "a", "c", "d"]], iris[1])


def test_named_columns_of_a_search_and_a_committee(iris, recwarn):
    X = pd.DataFrame(iris[0], columns=["a", "b", "c", "d"])
    search = ANNSearchCV(
        vc.ANN(tol=0.1), alphas=[1.0], gammas=[1.0], n_neighbors=[3], cv=2, standardize=True,
        random_state=0,
    )  # fmt: skip
    assert examine(search.fit(X, iris[1]), X, iris[1]).features == ("a", "b", "c", "d")
    committee = ANNClassifier(mode="single").fit(X, iris[1])
    found = examine(committee, X, iris[1], X_test=X[:60], y_test=iris[1][:60])
    assert found.features == ("a", "b", "c", "d")
    assert found.headline.scores[0].accuracy == committee.score(X[:60], iris[1][:60])
    assert not recwarn.list


def test_fewer_rows_than_were_fitted_are_refused(iris, iris_committee):
    with pytest.raises(ValueError, match="X has 90 rows, but the model was fitted on 150"):
        examine(iris_committee, iris[0][:90], iris[1][:90])


def test_labels_that_lack_a_class_of_the_model_are_refused(iris, iris_committee):
    with pytest.raises(ValueError, match="knows classes that y does not have"):
        examine(iris_committee, iris[0], iris[1] == "setosa")
