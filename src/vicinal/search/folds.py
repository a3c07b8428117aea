"""How the rows are divided for a search: the same folds for every setting."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, check_cv
from sklearn.utils import check_scalar

from vicinal._typing import IndexArray


class Fold(NamedTuple):
    """Rows to learn from, and rows to be classified by them."""

    train: IndexArray
    test: IndexArray


def make_folds(
    cv: Any, X: NDArray[Any], y: NDArray[Any], groups: NDArray[Any] | None, random_state: Any
) -> list[Fold]:
    """The folds that `cv` makes of the rows.

    A number means that many stratified folds, shuffled by `random_state`, groups kept together if
    there are any; at most as many folds as the largest class has members, and as there are groups.
    A smaller class is then missing from some folds. Anything else is for scikit-learn's
    ``check_cv``: a splitter, or an iterable of (train, test) rows.
    """
    if isinstance(cv, Integral) and not isinstance(cv, bool):
        check_scalar(cv, "cv", Integral, min_val=2)
        splitter = _stratified(int(cv), y, groups, random_state)
    else:
        splitter = check_cv(cv, y, classifier=True)
    with warnings.catch_warnings():
        # scikit-learn says that a class has fewer members than there are folds: so it has.
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        folds = [Fold(*map(np.asarray, split)) for split in splitter.split(X, y, groups)]
    if not folds or any(len(rows) == 0 for fold in folds for rows in fold):
        raise ValueError(
            f"cv={cv!r} makes folds without rows; use fewer folds, or another splitter"
        )
    return folds


def _stratified(n_splits: int, y: NDArray[Any], groups: Any, random_state: Any) -> Any:
    largest = int(np.unique(y, return_counts=True)[1].max())
    n_splits = max(2, min(n_splits, largest))
    if groups is None:
        return StratifiedKFold(n_splits, shuffle=True, random_state=random_state)
    n_groups = len(np.unique(groups))
    if n_groups < 2:
        raise ValueError(
            "groups has one group only, and no row can be judged by rows of another one; give at "
            "least two groups, or none"
        )
    return StratifiedGroupKFold(min(n_splits, n_groups), shuffle=True, random_state=random_state)
