"""The input of a fit, checked without touching the estimator, and the state that a fit leaves.

A fit checks everything, computes everything, and then sets all attributes at once
(:func:`store_fit`): one that is refused or interrupted leaves the estimator as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import (
    assert_all_finite,
    check_consistent_length,
    column_or_1d,
    validate_data,
)

from vicinal._typing import Array, FloatArray
from vicinal.kernels import DEVICE_BACKENDS

DTYPES = (np.float64, np.float32)
"""Types that are kept as given; everything else becomes the first."""

NOT_ALWAYS_SET = frozenset({"feature_names_in_", "classes_", "n_excluded_", "threshold_"})
"""Attributes that one fit sets and the next may not: none is left over from an earlier fit."""


@dataclass(frozen=True)
class FitInput:
    """Samples and labels, checked, and the attributes that they give the estimator."""

    X: Array
    """(n, d) an array of one of ``DTYPES``, or a tensor on a GPU."""
    y: Any
    """(n,) labels, or targets (n,) or (n, q); None where there are none."""
    attributes: Mapping[str, object]
    """``n_features_in_``, ``feature_names_in_``, and what is known so far."""

    def adding(self, **attributes: object) -> Self:
        """The same input with more attributes."""
        return replace(self, attributes={**self.attributes, **attributes})

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])


def check_labeled(estimator: BaseEstimator, X: object, y: object, **options: Any) -> FitInput:
    """Check samples and their labels as scikit-learn does, and assign nothing.

    Parameters
    ----------
    estimator : for its tags and its name in messages
    X : array-like, data frame or tensor of shape (n_samples, n_features)
    y : array-like or tensor of shape (n_samples,)
    **options : of scikit-learn's ``validate_data``
    """
    scratch = copy(estimator)  # validate_data assigns to the estimator that it is given
    options = {"dtype": DTYPES, "ensure_min_samples": 2, **options}
    X, y = validate_data(scratch, on_host(X), on_host(y), **options)
    return FitInput(X, y, _described(scratch))


def check_unlabeled(estimator: BaseEstimator, X: object) -> FitInput:
    """Check samples without labels, and assign nothing."""
    scratch = copy(estimator)
    X = validate_data(scratch, on_host(X), dtype=DTYPES, ensure_min_samples=2)
    return FitInput(X, None, _described(scratch))


def check_on_device(X: Array, y: ArrayLike, *, multi_output: bool = False) -> FitInput:
    """Check samples that are a tensor on a GPU, and leave them there."""
    from vicinal.kernels.gpu import check_samples  # imports torch

    X = check_samples(X)
    y = np.asarray(on_host(y) if multi_output else column_or_1d(on_host(y), warn=True))
    assert_all_finite(y, input_name="y")
    check_consistent_length(X, y)
    return FitInput(X, y, {"n_features_in_": int(X.shape[1])})


def _described(estimator: BaseEstimator) -> dict[str, object]:
    """The attributes that scikit-learn sets where it checks the samples of a fit."""
    names = ("n_features_in_", "feature_names_in_")
    return {name: getattr(estimator, name) for name in names if hasattr(estimator, name)}


def store_fit(estimator: object, attributes: Mapping[str, object]) -> None:
    """Set the attributes of a fit, all at once, in place of those of an earlier one."""
    kept = {name: value for name, value in vars(estimator).items() if name not in NOT_ALWAYS_SET}
    estimator.__dict__ = {**kept, **attributes}


def take_fit_metadata(
    estimator: object, metadata: Mapping[str, ArrayLike | None]
) -> tuple[ArrayLike | None, ArrayLike | None]:
    """``sample_weight`` and ``groups`` out of the keywords of ``fit``; others are a TypeError."""
    unknown = set(metadata) - {"sample_weight", "groups"}
    if unknown:
        raise TypeError(
            f"{type(estimator).__name__}.fit() got unexpected keyword arguments "
            f"{sorted(unknown)}; it takes sample_weight and groups"
        )
    return metadata.get("sample_weight"), metadata.get("groups")


def on_host(values: Array) -> Array:
    """An array for a torch tensor on whatever device; anything else as it is."""
    if not hasattr(values, "detach"):
        return values
    values = values.detach()
    if values.is_floating_point() and values.element_size() < 4:
        values = values.double()  # NumPy has no bfloat16
    return values.cpu().numpy()


def stays_on_device(X: object, backend: str) -> bool:
    """Whether a fit computes on the GPU that its samples are on: no backend asks for the CPU."""
    return bool(getattr(X, "is_cuda", False)) and backend in ("auto", *DEVICE_BACKENDS)


def in_units_of_data(L: FloatArray, scale: float, dtype: DTypeLike) -> FloatArray:
    """L / scale as components of the data's own type; a ValueError where that has no room for it.

    Parameters
    ----------
    L : (m, d) of data that were divided by ``scale``
    scale : original units per unit
    dtype : of the data
    """
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        components: FloatArray = np.asarray(L / scale, dtype=dtype)
    if not np.isfinite(components).all():
        raise ValueError(
            f"The learned matrix has entries that are too large for {np.dtype(dtype).name}: the "
            f"values of X differ by {scale:.3g} at most. Standardize X, or multiply it by a number."
        )
    return components
