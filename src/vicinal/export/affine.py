"""The transform of a fitted model as one affine map."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce, singledispatch

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from vicinal._typing import FloatArray
from vicinal.automatic.classifier import ANNClassifier
from vicinal.fitted_model import Transformer, anatomy
from vicinal.learners.base import MetricLearner
from vicinal.learners.rvml import RVML


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
    def linear(cls, L: FloatArray) -> AffineMap:
        """z = L x."""
        A = np.asarray(L, dtype=np.float64)
        return cls(A, np.zeros(A.shape[1]), np.zeros(A.shape[0]))

    def then(self, other: AffineMap) -> AffineMap:
        """z′ = A′ (z − center′) + offset′ of this map's z."""
        offset = other.A @ (self.offset - other.center) + other.offset
        return AffineMap(other.A @ self.A, self.center, offset)


def transform_steps(model: BaseEstimator) -> tuple[Transformer, ...]:
    """The fitted transformers of a model, in their order; a last step that predicts is left out."""
    steps = anatomy(model).steps
    if not steps:
        raise TypeError(
            f"{type(model).__name__} has no transform to export: give a metric learner, or a "
            "pipeline that contains one"
        )
    return steps


def composed(steps: Iterable[Transformer]) -> AffineMap:
    """One affine map for all the steps; TypeError or ValueError where there is none."""
    return reduce(AffineMap.then, map(affine_map, steps))


def working_dtype(steps: tuple[Transformer, ...]) -> np.dtype[np.floating]:
    """float32 where the model was fitted on float32, else float64."""
    last = steps[-1]
    fitted = last.X_fit_ if isinstance(last, ANNClassifier) else getattr(last, "components_", 0.0)
    return np.asarray(fitted).dtype


@singledispatch
def affine_map(step: Transformer) -> AffineMap:
    """The transform of a fitted step; TypeError or ValueError where it is not an affine map."""
    raise TypeError(
        f"the transform of {type(step).__name__} cannot be exported: of scikit-learn's only "
        "StandardScaler and PCA can stand before a learner"
    )


@affine_map.register
def _(step: MetricLearner) -> AffineMap:
    return AffineMap.linear(step.components_)


@affine_map.register
def _(step: RVML) -> AffineMap:
    if step.kernel != "linear":
        raise ValueError("RVML(kernel='rbf') has no linear transform; use kernel='linear'")
    return AffineMap.linear(step.components_)


@affine_map.register
def _(step: StandardScaler) -> AffineMap:
    d = step.n_features_in_
    scale = np.ones(d) if step.scale_ is None else np.asarray(step.scale_, dtype=np.float64)
    center = step.mean_ if step.with_mean else np.zeros(d)
    return AffineMap(np.diag(1.0 / scale), np.asarray(center, dtype=np.float64), np.zeros(d))


@affine_map.register
def _(step: PCA) -> AffineMap:
    A = np.asarray(step.components_, dtype=np.float64)
    if step.whiten:  # scikit-learn does not divide by deviations below this
        floor = np.finfo(step.explained_variance_.dtype).eps
        A = A / np.maximum(np.sqrt(step.explained_variance_), floor)[:, None]
    return AffineMap(A, np.asarray(step.mean_, dtype=np.float64), np.zeros(len(A)))
