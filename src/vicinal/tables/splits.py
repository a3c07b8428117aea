"""Folds and held-out parts that respect classes, and groups where there are any."""

from __future__ import annotations

import warnings
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from vicinal._typing import IndexArray
from vicinal.tables.errors import TableError

Split: TypeAlias = tuple[IndexArray, IndexArray]

MOST_PARTS = 20
"""A held-out share is a fraction with a denominator up to this, or 1/s."""


def make_folds(
    y: NDArray[Any], groups: NDArray[Any] | None, n_splits: int, seed: int
) -> list[Split]:
    """(training rows, test rows) of every fold; no group is in both.

    Fewer folds where no class has `n_splits` rows. A fold is left out if its training part does
    not have two classes, or its test part is empty.
    """
    sizes = np.unique(y, return_counts=True)[1]
    n_splits = min(n_splits, int(sizes.max()))
    if groups is not None:
        n_splits = min(n_splits, len(np.unique(groups)))
    if n_splits < 2:
        raise TableError(
            "cross-validation needs two rows of a class, and two groups if there are any; give "
            "more rows"
        )
    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    folds = kind(n_splits=n_splits, shuffle=True, random_state=seed)
    with warnings.catch_warnings():  # small classes are spread as far as they go
        warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
        splits = list(folds.split(np.zeros((len(y), 1)), y, groups))
    usable = [(a, b) for a, b in splits if len(np.unique(y[a])) > 1 and len(b)]
    if not usable:
        raise TableError("no fold has two classes to learn from; give more rows of each class")
    return usable


def hold_out(y: NDArray[Any], groups: NDArray[Any] | None, share: float, seed: int) -> Split:
    """Training rows and held-out rows, about `share` of all: r of s folds, r/s being near it."""
    sizes = range(2, max(MOST_PARTS, round(1.0 / share)) + 1)
    parts = min(sizes, key=lambda s: (round(abs(_taken(share, s) / s - share), 12), s))
    folds = [test for _, test in make_folds(y, groups, parts, seed)]
    for taken in range(_taken(share, len(folds)), 0, -1):  # one of them leaves two classes
        held_out = np.sort(np.concatenate(folds[:taken]))
        train = np.setdiff1d(np.arange(len(y)), held_out)
        if len(np.unique(y[train])) > 1:
            break
    return train, held_out


def _taken(share: float, parts: int) -> int:
    return max(1, min(round(share * parts), parts - 1))
