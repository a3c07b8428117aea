"""Validated training data in the form that the objective wants: sorted, centered, scaled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_consistent_length

from vicinal._typing import Array, ClassWeight, FloatArray, IndexArray, LabelArray


@dataclass(frozen=True)
class LabeledData:
    """n samples, rows sorted by class.

    The samples are centered and divided by one number, which changes no neighbor and lets
    solvers work at the scale of 1 whatever the units of the features are.
    """

    X: Array
    """(n, d) in [−1, 1], an array, or a tensor on a GPU; row r is row ``order[r]`` as given."""
    scale: float
    """Original units per unit of ``X``: L in original units is L / scale."""
    order: IndexArray
    codes: IndexArray
    """(n,) class codes of the data as given."""
    classes: LabelArray
    offsets: IndexArray
    """(c + 1,) class j is the slice ``offsets[j]:offsets[j + 1]`` of the rows."""
    weights: FloatArray
    """(n,) what each row counts as an anchor."""
    groups: IndexArray | None

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the samples: NumPy's name for it, where they are a tensor."""
        return np.dtype(str(self.X.dtype).removeprefix("torch."))


def sort_by_class(
    X: FloatArray,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight = None,
    groups: ArrayLike | None = None,
) -> LabeledData:
    """Encode the classes, sort the rows by class, center and scale the features."""
    classes, codes = encode_labels(y)
    order = np.argsort(codes, kind="stable")
    centered, scale = center_and_scale(X[order])
    weights = row_weights(X, y, sample_weight, class_weight)
    return LabeledData(
        X=centered,
        scale=scale,
        order=order,
        codes=codes,
        classes=classes,
        offsets=np.searchsorted(codes[order], np.arange(len(classes) + 1)),
        weights=weights[order],
        groups=None if groups is None else encode_groups(groups, X)[order],
    )


def unlabeled_data(
    X: Array, *, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
) -> LabeledData:
    """Samples without labels, centered and scaled: one class, in the order given."""
    n = len(X)
    centered, scale = center_and_scale(X)
    zeros = np.zeros(n, dtype=np.intp)
    return LabeledData(
        X=centered,
        scale=scale,
        order=np.arange(n),
        codes=zeros,
        classes=np.zeros(1, dtype=np.intp),
        offsets=np.array([0, n]),
        weights=row_weights(X, None, sample_weight, None),
        groups=None if groups is None else encode_groups(groups, X),
    )


def encode_labels(y: ArrayLike) -> tuple[LabelArray, IndexArray]:
    """Class labels and the code of every sample; at least two classes, labels of one type."""
    refuse_mixed_labels(np.asarray(y))
    check_classification_targets(y)
    classes, codes = np.unique(np.asarray(y), return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"The target has 1 class ({classes.tolist()[0]!r}); a metric is learned between at "
            "least two classes. Check the labels, or how the data was split."
        )
    return classes, codes


def refuse_mixed_labels(y: LabelArray) -> None:
    """Labels that cannot be sorted are an error that shows one of each type."""
    if y.dtype != object:
        return
    examples = {isinstance(label, str): label for label in y.flat}
    if len(examples) > 1:
        text, other = examples[True], examples[False]
        raise ValueError(
            f"y mixes labels that are text with others, such as {text!r} (str) and {other!r} "
            f"({type(other).__name__}); make them one type, for example with y.astype(str)"
        )


def center_and_scale(X: Array) -> tuple[Array, float]:
    """Subtract the mean, divide by the largest absolute value: safe for every finite input."""
    if not isinstance(X, np.ndarray):
        from vicinal.kernels.gpu import center_and_scale_samples  # imports torch

        return center_and_scale_samples(X)
    largest = float(np.abs(X).max())
    scaled = X / X.dtype.type(largest) if largest > 0 else X.copy()  # before the mean can overflow
    scaled -= scaled.mean(axis=0, dtype=np.float64).astype(X.dtype)
    spread = float(np.abs(scaled).max())
    if spread == 0:
        return scaled, 1.0
    scaled /= X.dtype.type(spread)
    return scaled, largest * spread


def safe_unit(X: FloatArray) -> float:
    """A number to divide X by so that no square over- or underflows; 1 unless X is extreme.

    A power of two: dividing by it changes no digit.
    """
    largest = float(np.abs(X).max())
    if largest == 0 or 1e-100 < largest < 1e100:
        return 1.0
    return float(np.ldexp(1.0, int(np.frexp(largest)[1]) - 1))


def refuse_extreme(X: FloatArray, method: str, name: str = "X") -> None:
    """Raise a ValueError where squares of X over- or underflow in a method that needs its units."""
    largest = float(np.abs(X).max())
    if largest > 1e145 or 0 < largest < 1e-145:
        raise ValueError(
            f"The largest value of {name} is {largest:.3g}, whose square float64 cannot hold, and "
            f"{method} depends on the units of {name}; standardize {name}, or multiply it by a "
            "number"
        )


def row_weights(
    X: Array, y: ArrayLike | None, sample_weight: ArrayLike | None, class_weight: ClassWeight
) -> FloatArray:
    """(n,) sample weight × class weight."""
    weights: FloatArray = np.ones(len(X))
    if sample_weight is not None:
        weights = check_weights("sample_weight", sample_weight, len(X))
    if class_weight is not None:
        weights = weights * compute_sample_weight(class_weight, y)
    return np.asarray(weights)


def check_weights(name: str, given: ArrayLike, n: int) -> FloatArray:
    """(n,) a copy of weights, none negative and not all zero."""
    weights = check_array(given, ensure_2d=False, dtype=np.float64, input_name=name).copy()
    if weights.shape != (n,):
        each = "sample" if name == "sample_weight" else "entry"
        raise ValueError(f"{name} must have one entry per {each} ({n}), got shape {weights.shape}")
    if np.any(weights < 0) or not np.any(weights > 0):
        raise ValueError(f"{name} must not be negative, nor zero for every sample")
    return np.asarray(weights)


def encode_groups(groups: ArrayLike, X: FloatArray) -> IndexArray:
    """(n,) group codes."""
    groups = np.asarray(groups)
    if groups.ndim != 1:
        raise ValueError(f"groups must be one label per sample, got shape {groups.shape}")
    check_consistent_length(X, groups)
    return np.unique(groups, return_inverse=True)[1].astype(np.intp)
