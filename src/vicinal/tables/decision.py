"""How a fitted estimator came to decide, whichever of the kinds it is.

ANNClassifier answers by itself. Otherwise there is a learner, or none for plain K-NN, and a
ClassMeanKNN on what the learner makes of the rows: a Pipeline of the two, or an ANNSearchCV.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from vicinal._typing import FloatArray, IndexArray
from vicinal.learners.triplet_margins import factor
from vicinal.voting.class_mean import ClassMeanKNN


def nearest(estimator: Any, X: FloatArray, k: int) -> tuple[FloatArray, IndexArray]:
    """Distances and training rows (n, k) of the neighbors that count most."""
    learner, knn = parts(estimator)
    k = min(k, knn.n_samples_fit_)
    distances, rows = knn.kneighbors(X if learner is None else learner.transform(X), n_neighbors=k)
    return distances, rows


def training_labels(estimator: Any) -> NDArray[Any]:
    """(n,) the classes of the training rows."""
    _, knn = parts(estimator)
    if not isinstance(knn, ClassMeanKNN):
        return np.asarray(knn.classes_[knn.y_fit_])
    labels = np.empty(knn.n_samples_fit_, dtype=knn.classes_.dtype)
    labels[knn.rows_] = np.repeat(knn.classes_, np.diff(knn.offsets_))
    return labels


def metric(estimator: Any) -> FloatArray:
    """M (d, d) of the squared distance by which a ClassMeanKNN decides."""
    learner, knn = parts(estimator)
    return np.eye(knn.n_features_in_) if learner is None else learner.get_mahalanobis_matrix()


def embed(estimator: Any, X: FloatArray) -> FloatArray:
    """Z (n, m) whose Euclidean distances are the learned ones.

    A committee has several metrics: there Z is that of their mean, by the directions of its
    eigenvectors, those of eigenvalue 0 left out.
    """
    learner, knn = parts(estimator)
    if learner is not None:
        return np.asarray(learner.transform(X))
    if isinstance(knn, ClassMeanKNN):
        return X
    if hasattr(knn, "components_"):
        return np.asarray(knn.transform(X))
    return np.asarray(knn.unfold(X) @ factor(knn.mean_metric()).T)


def parts(estimator: Any) -> tuple[Any, Any]:
    """The learner (None if there is none beside the classifier) and the classifier."""
    if isinstance(estimator, Pipeline):
        return estimator[0], estimator[-1]
    if hasattr(estimator, "best_estimator_"):
        return estimator.best_estimator_, estimator.classifier_
    return None, estimator
