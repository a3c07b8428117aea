"""The pairs and quadruplets that the supervised twins draw from class labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vicinal._typing import FloatArray, LabelArray, Seed
from vicinal.compat.metric_learn.constraints import Constraints, wrap_pairs


def _number(n_constraints: int | str | None, y: LabelArray) -> int:
    return 20 * len(np.unique(y)) ** 2 if n_constraints is None else int(n_constraints)


def drawn_pairs(
    X: FloatArray, y: LabelArray, n_constraints: int | str | None, seed: Seed
) -> tuple[FloatArray, NDArray[np.intp]]:
    """Pairs of samples (n_pairs, 2, d), ``n_constraints`` of either kind, and their labels ±1."""
    found = Constraints(y).positive_negative_pairs(_number(n_constraints, y), random_state=seed)
    return wrap_pairs(X, found)


def drawn_quadruplets(
    X: FloatArray, y: LabelArray, n_constraints: int | str | None, seed: Seed
) -> FloatArray:
    """Quadruplets of samples (n_quadruplets, 4, d): two of one class, two of different ones."""
    found = Constraints(y).positive_negative_pairs(
        _number(n_constraints, y), same_length=True, random_state=seed
    )
    return X[np.column_stack(found)]
