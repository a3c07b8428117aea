"""Small fitted models, one of each kind that a report takes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import vicinal as vc
from vicinal.automatic.classifier import ANNClassifier
from vicinal.search.search_cv import ANNSearchCV


@pytest.fixture(scope="session")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, np.array(["setosa", "versicolor", "virginica"])[y]


@pytest.fixture(scope="session")
def wine():
    X, y = load_wine(return_X_y=True)
    odd = np.arange(len(y)) % 3 == 0
    return X[~odd], y[~odd], X[odd], y[odd]


@pytest.fixture(scope="session")
def iris_ann(iris):
    return vc.ANN(n_components=2, tol=1e-2).fit(*iris)


@pytest.fixture(scope="session")
def wine_pipeline(wine):
    return make_pipeline(StandardScaler(), vc.NCA(tol=1e-2)).fit(*wine[:2])


@pytest.fixture(scope="session")
def iris_search(iris):
    search = ANNSearchCV(
        vc.ANN(tol=0.1), alphas=[0.5, 2.0], gammas=[0.5, 1.0, 2.0],
        n_neighbors=[5, 9, 15], search="grid", standardize=True, cv=3, random_state=0,
    )  # fmt: skip
    return search.fit(*iris)


@pytest.fixture(scope="session")
def iris_committee(iris):
    return ANNClassifier().fit(*iris)
