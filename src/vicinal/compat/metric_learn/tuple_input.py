"""Samples and tuples of samples, given as such or as indicators for a preprocessor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array

from vicinal._typing import FloatArray, IndexArray, LabelArray
from vicinal.compat.metric_learn.exceptions import PreprocessorError

Preprocessor: TypeAlias = Callable[[LabelArray], ArrayLike]
"""Indicators (n,) → samples (n, n_features)."""


@dataclass(frozen=True)
class ArrayIndexer:
    """The preprocessor that takes indicators as row indices of an array."""

    X: LabelArray

    def __call__(self, indices: LabelArray) -> LabelArray:
        return np.asarray(self.X[indices])


def make_preprocessor(given: ArrayLike | Preprocessor | None) -> Preprocessor | None:
    """The parameter ``preprocessor`` as a callable, or None."""
    if given is None or callable(given):
        return given
    if not any(hasattr(given, name) for name in ("__len__", "shape", "__array__")):
        raise ValueError(
            f"Invalid type for the preprocessor: {type(given)}. You should provide either None, an "
            "array-like object, or a callable."
        )
    return ArrayIndexer(as_array(given))


def as_array(given: object) -> LabelArray:
    """An array of whatever shape and type, or a sparse matrix; complex numbers are refused."""
    return check_array(
        given,
        accept_sparse=True,
        dtype=None,
        ensure_all_finite=False,
        ensure_2d=False,
        allow_nd=True,
        ensure_min_samples=0,
        ensure_min_features=0,
    )


@dataclass(frozen=True)
class TupleInput:
    """Reader of the samples and tuples of an estimator."""

    preprocessor: Preprocessor | None
    name: str
    """Of the estimator, for messages."""

    def samples(self, given: object, **checks: Any) -> LabelArray:
        """(n, d) samples: given as such, or made from indicators (n,)."""
        array = as_array(given)
        made = array.ndim == 1 and self.preprocessor is not None
        if made:
            array = self._apply(array)
        elif array.ndim != 2:
            raise ValueError(self._wrong_shape(array, points=True))
        array = check_array(
            array, allow_nd=True, ensure_2d=False, input_name="X", estimator=self.name, **checks
        )
        if array.ndim != 2:
            raise ValueError(self._wrong_shape(array, points=True, made=made))
        return array

    def tuples(self, given: object, size: int | None, **checks: Any) -> LabelArray:
        """(t, size, d) tuples of samples: given as such, or made from indicators (t, size)."""
        array = as_array(given)
        made = array.ndim == 2 and self.preprocessor is not None
        if made:
            array = np.stack([self._apply(column) for column in array.T], axis=1)
        elif array.ndim != 3:
            raise ValueError(self._wrong_shape(array, points=False))
        array = check_array(
            array, allow_nd=True, ensure_2d=False, input_name="X", estimator=self.name, **checks
        )
        if array.ndim != 3:
            raise ValueError(self._wrong_shape(array, points=False, made=made))
        if size is not None and array.shape[1] != size:
            raise ValueError(
                f"Tuples of {size} element(s) expected by {self.name}. Got tuples of "
                f"{array.shape[1]} element(s) instead (shape={array.shape}):\ninput={array}.\n"
            )
        return np.asarray(array)

    def _apply(self, indicators: LabelArray) -> LabelArray:
        assert self.preprocessor is not None
        try:
            return np.asarray(self.preprocessor(indicators))
        except Exception as error:  # it is the user's code: any may arise
            raise PreprocessorError(error) from error

    def _wrong_shape(self, array: LabelArray, *, points: bool, made: bool = False) -> str:
        what = "2D array of formed points" if points else "3D array of formed tuples"
        indicators = "1D" if points else "2D"
        why, hint = "", ""
        if made:
            why = " after the preprocessor has been applied"
        elif self.preprocessor is not None:
            why = " when using a preprocessor"
            what = f"{indicators} array of indicators or {what}"
        elif array.ndim == (1 if points else 2):
            hint = " and/or use a preprocessor"
        return (
            f"{what} expected by {self.name}{why}. Found {array.ndim}D array instead:\n"
            f"input={array}. Reshape your data{hint}.\n"
        )


def check_pair_labels(y: LabelArray) -> None:
    """Labels of pairs are +1 and −1."""
    if not np.array_equal(np.abs(y), np.ones_like(y)):
        raise ValueError(
            "When training on pairs, the labels (y) should contain only values in [-1, 1]. Found "
            "an incorrect value."
        )


def as_rows(tuples: FloatArray) -> tuple[FloatArray, IndexArray]:
    """X, the samples of all tuples (t, size, d) one below the other, and the tuples as row indices.

    For learners that look at nothing but the differences within tuples: to find the samples that
    occur in several of them takes as long as some of these learners do.
    """
    t, size, d = tuples.shape
    return tuples.reshape(t * size, d), np.arange(t * size).reshape(t, size)


def as_indices(tuples: FloatArray) -> tuple[FloatArray, IndexArray]:
    """X (n, d), the distinct samples, and the tuples as row indices of it (t, size).

    A sample that occurs twice in a tuple is two rows: a learner of vicinal refuses to compare a
    row with itself.
    """
    t, size, d = tuples.shape
    X, indices = np.unique(tuples.reshape(t * size, d), axis=0, return_inverse=True)
    indices = indices.reshape(t, size).astype(np.intp)
    twice = np.zeros((t, size), dtype=bool)
    for place in range(1, size):
        twice[:, place] = (indices[:, :place] == indices[:, [place]]).any(axis=1)
    if not twice.any():
        return X, indices
    return np.tile(X, (size, 1)), indices + len(X) * np.arange(size) * twice
