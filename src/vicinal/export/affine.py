"""The transform of a fitted model as one affine map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from vicinal._typing import FloatArray
from vicinal.automatic.classifier import ANNClassifier
from vicinal.learners.base import MetricLearner
from vicinal.learners.rvml import RVML
from vicinal.search.search_cv import ANNSearchCV


@dataclass(frozen=True)
class AffineMap:
    """z = A (x − center) + offset.

    The center is subtracted first: in float32, A x and A·center would cancel, with the digits that
    matter.
    """

    A: FloatArray
    """(m, d)"""
    center: FloatArray
    """(d,)"""
    offset: FloatArray
    """(m,)"""

    @classmethod
    def linear(cls, L: NDArray[Any]) -> AffineMap:
        """z = L x."""
        A = np.asarray(L, dtype=np.float64)
        return cls(A, np.zeros(A.shape[1]), np.zeros(A.shape[0]))

    def then(self, other: AffineMap) -> AffineMap:
        """z′ = A′ (z − center′) + offset′ of this map's z."""
        offset = other.A @ (self.offset - other.center) + other.offset
        return AffineMap(other.A @ self.A, self.center, offset)


def affine_map(model: Any) -> AffineMap:
    """The transform of a fitted model; TypeError or ValueError where it is not an affine one."""
    steps = transform_steps(model)
    result = _map_of(steps[0])
    for step in steps[1:]:
        result = result.then(_map_of(step))
    return result


def transform_steps(model: Any) -> list[Any]:
    """The fitted transformers of a model, in their order; a last step that predicts is left out."""
    if not isinstance(model, BaseEstimator):
        raise TypeError(
            f"a {type(model).__name__} is no estimator; of a TableModel, export the estimator"
        )
    check_is_fitted(model)
    outer = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    steps = [inner for step in outer for inner in _inner_steps(step)]
    if not hasattr(steps[-1], "transform") and len(steps) > 1:
        steps = steps[:-1]
    for step in steps:
        if isinstance(step, ANNClassifier) and step.mode == "committee":
            raise ValueError(
                "a committee has several metrics, and no transform to export: fit "
                "ANNClassifier(mode='single')"
            )
        if not hasattr(step, "transform"):
            raise TypeError(
                f"{type(step).__name__} has no transform to export: give a metric learner, or a "
                "pipeline that contains one"
            )
    return steps


def working_dtype(model: Any) -> np.dtype[Any]:
    """float32 where the model was fitted on float32, else float64."""
    last = transform_steps(model)[-1]
    fitted = last.X_fit_ if isinstance(last, ANNClassifier) else last.components_
    return np.dtype(fitted.dtype)


def _inner_steps(step: Any) -> list[Any]:
    """A search stands for the learner that it has found, and for the scaler before it."""
    if not isinstance(step, ANNSearchCV):
        return [step]
    check_is_fitted(step, "best_estimator_", msg="there is no transform: fit with refit=True")
    return [inner for inner in (step.scaler_, step.best_estimator_) if inner is not None]


def _map_of(step: Any) -> AffineMap:
    if isinstance(step, StandardScaler):
        d = step.n_features_in_
        scale = np.ones(d) if step.scale_ is None else np.asarray(step.scale_, dtype=np.float64)
        center = step.mean_ if step.with_mean else np.zeros(d)
        return AffineMap(np.diag(1.0 / scale), np.asarray(center, dtype=np.float64), np.zeros(d))
    if isinstance(step, PCA):
        A = np.asarray(step.components_, dtype=np.float64)
        if step.whiten:  # scikit-learn takes no deviation below this
            floor = np.finfo(step.explained_variance_.dtype).eps
            A = A / np.maximum(np.sqrt(step.explained_variance_), floor)[:, None]
        return AffineMap(A, np.asarray(step.mean_, dtype=np.float64), np.zeros(len(A)))
    if isinstance(step, RVML) and step.kernel != "linear":
        raise ValueError("RVML(kernel='rbf') has no linear transform; use kernel='linear'")
    if not isinstance(step, MetricLearner | ANNClassifier):
        raise TypeError(
            f"the transform of {type(step).__name__} cannot be exported: of scikit-learn's only "
            "StandardScaler and PCA can stand before a learner"
        )
    return AffineMap.linear(step.components_)
