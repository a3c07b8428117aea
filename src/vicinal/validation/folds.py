"""Folds, held-out rows and samples that keep the share of each stratum.

A stratum is what shall be spread evenly: a class, or an interval between quantiles of a number.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, check_cv

from vicinal._typing import FloatArray, IndexArray, LabelArray, Seed

MOST_PARTS = 20
"""A held-out share is a fraction with a denominator up to this, or 1/s."""


class Fold(NamedTuple):
    """Rows to learn from, and rows to test on."""

    train: IndexArray
    test: IndexArray


def make_folds(
    cv: Any, X: FloatArray, y: LabelArray, groups: LabelArray | None, random_state: Seed
) -> list[Fold]:
    """The folds of the `cv` argument of an estimator.

    A number means that many folds by :func:`stratified_folds`. Anything else is for
    scikit-learn's ``check_cv``: a splitter, or an iterable of (train, test) rows.
    """
    if isinstance(cv, Integral):
        folds = stratified_folds(int(cv), y, groups, random_state)
    else:
        splits = cv if cv is None or hasattr(cv, "split") else list(cv)
        if isinstance(splits, list) and not all(map(_is_pair, splits)):
            raise ValueError(f"cv={cv!r} does not consist of (train, test) pairs of rows")
        folds = _as_folds(check_cv(splits, y, classifier=True).split(X, y, groups))
    if not folds or any(len(rows) == 0 for fold in folds for rows in fold):
        raise ValueError(
            f"cv={cv!r} makes folds without rows; use fewer folds, or another splitter"
        )
    return folds


def stratified_folds(
    n_splits: int, strata: LabelArray, groups: LabelArray | None, random_state: Seed
) -> list[Fold]:
    """Shuffled folds over which each stratum is spread evenly; a group is never divided.

    There are at most as many folds as the largest stratum has rows, and as there are groups. A
    smaller stratum is then missing from some folds.

    Parameters
    ----------
    n_splits : number of folds, at least 2
    strata : (n,) the stratum of each row
    groups : (n,) or None
    random_state : int, RandomState or None
    """
    n_splits = min(n_splits, int(np.unique(strata, return_counts=True)[1].max()))
    if n_splits < 2:
        raise ValueError("cross-validation needs at least two rows of one class; give more rows")
    kind = StratifiedKFold
    if groups is not None:
        n_groups = len(np.unique(groups))
        if n_groups < 2:
            raise ValueError(
                "groups has only one group, and no row can be judged by rows of another one; give "
                "at least two groups, or none"
            )
        kind, n_splits = StratifiedGroupKFold, min(n_splits, n_groups)
    splitter = kind(n_splits, shuffle=True, random_state=random_state)
    return _as_folds(splitter.split(np.zeros((len(strata), 1)), strata, groups))


def usable_folds(folds: Iterable[Fold], y: LabelArray) -> list[Fold]:
    """The folds with something to test, and two different targets y (n,) to learn from."""
    usable = [fold for fold in folds if len(np.unique(y[fold.train])) > 1 and len(fold.test)]
    if not usable:
        raise ValueError("no fold has two classes to learn from; give more rows of each class")
    return usable


def hold_out(y: LabelArray, groups: LabelArray | None, share: float, seed: int) -> Fold:
    """Hold out about `share` of the rows: r of s stratified folds, with r/s near the share.

    At least two different targets y (n,) remain to learn from.
    """
    sizes = range(2, max(MOST_PARTS, round(1.0 / share)) + 1)
    parts = min(sizes, key=lambda s: (round(abs(_taken(share, s) / s - share), 12), s))
    folds = usable_folds(stratified_folds(parts, y, groups, seed), y)
    for taken in range(_taken(share, len(folds)), 0, -1):  # one alone always leaves two
        test = np.sort(np.concatenate([fold.test for fold in folds[:taken]]))
        train = np.setdiff1d(np.arange(len(y)), test)
        if len(np.unique(y[train])) > 1:
            break
    return Fold(train, test)


def stratified_sample(
    strata: IndexArray,
    size: int,
    *,
    at_least: int | None = None,
    random_state: np.random.RandomState | None = None,
) -> IndexArray:
    """Ascending rows of a sample in which each stratum keeps its share, rounded.

    Parameters
    ----------
    strata : (n,) integers ≥ 0
    size : rows wanted; if there are no more, all are returned
    at_least : int or None
        Rows that each stratum keeps if it has them, even if the sample grows larger for it. With
        None, the sample has exactly `size` rows: one of each stratum, as far as they go, and then
        those that bring each stratum nearest to its share.
    random_state : RandomState or None
        With None the same data always give the same sample.
    """
    n, counts = len(strata), np.bincount(strata)
    if n <= size:
        return np.arange(n)
    if at_least is not None:
        sizes = np.maximum(np.rint(size * counts / n), at_least)
        return sample_strata(strata, sizes, random_state)
    order, rank = _shuffled_within(strata, random_state)
    # The row of rank r is due in a sample of (r + ½)/count of all; that of rank 0 at once.
    due = np.where(rank == 0, 0.0, (rank + 0.5) / counts[strata[order]])
    return np.sort(order[np.argsort(due, kind="stable")[:size]])


def sample_strata(
    strata: IndexArray, sizes: FloatArray | IndexArray, random_state: np.random.RandomState | None
) -> IndexArray:
    """Ascending rows: of each stratum s as many as ``sizes[s]``, or all that it has."""
    order, rank = _shuffled_within(strata, random_state)
    return np.sort(order[rank < sizes[strata[order]]])


def _shuffled_within(
    strata: IndexArray, random_state: np.random.RandomState | None
) -> tuple[IndexArray, IndexArray]:
    """(n,) the rows stratum by stratum, each in random order, and their places in the stratum."""
    if random_state is None:
        order = np.lexsort((np.random.default_rng(0).permutation(len(strata)), strata))
    else:
        members = (np.flatnonzero(strata == stratum) for stratum in np.unique(strata))
        order = np.concatenate([random_state.permutation(rows) for rows in members])
    counts = np.bincount(strata)
    return order, np.arange(len(strata)) - np.repeat(np.cumsum(counts) - counts, counts)


def _is_pair(split: object) -> bool:
    return hasattr(split, "__len__") and len(split) == 2


def _as_folds(splits: Iterable[tuple[ArrayLike, ArrayLike]]) -> list[Fold]:
    with warnings.catch_warnings():
        # A class may have fewer rows than there are folds: it is then missing from some.
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        return [Fold(np.asarray(train), np.asarray(test)) for train, test in splits]


def _taken(share: float, parts: int) -> int:
    return max(1, min(round(share * parts), parts - 1))
