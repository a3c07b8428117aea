"""Statistics of the target by level, for columns of many levels, without leakage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d

from vicinal._typing import FloatArray, IndexArray, LabelArray, Seed
from vicinal.features.column_codes import level_codes, unknown_levels
from vicinal.features.table_values import Cells, Column
from vicinal.learners.labeled_data import refuse_mixed_labels

TARGET_TYPES = ("auto", "classes", "number")
SHRINKAGE = 10.0
"""Rows that the overall mean counts for in the statistics of a level."""
N_FOLDS = 5


@dataclass(frozen=True)
class Targets:
    """Indicators (n, k) of classes, or numbers (n, 1).

    Attributes
    ----------
    values : (n, k) array
    labels : tuple of str
        The classes of the indicators; of two classes only the second has one.
    codes : (n,) array or None
        The classes, by which folds are stratified; None of numbers.
    seed : int, RandomState or None
        Deals rows into the folds of cross-fitting.
    """

    values: FloatArray
    labels: tuple[str, ...]
    codes: IndexArray | None
    seed: Seed

    @classmethod
    def of(cls, y: ArrayLike, target_type: str, seed: Seed) -> Targets:
        """The targets y (n,): by `target_type`, where that is not "auto"; numbers may be (n, k)."""
        shape = np.asarray(y).shape
        if target_type == "number" and shape[1:] not in [(), (1,)]:
            names = tuple(f"mean of target {i}" for i in range(shape[1]))
            return cls(np.asarray(y, dtype=np.float64), names, None, seed)
        labels: LabelArray = column_or_1d(y, warn=shape[1:] != (1,))
        refuse_mixed_labels(labels)
        is_number = target_type == "number"
        if is_number or (target_type == "auto" and type_of_target(labels) == "continuous"):
            return cls(labels.astype(np.float64)[:, None], ("mean",), None, seed)
        classes, codes = np.unique(labels, return_inverse=True)
        shown = np.arange(1 if len(classes) == 2 else 0, len(classes))
        values = (codes[:, None] == shown).astype(np.float64)
        return cls(values, tuple(str(classes[c]) for c in shown), codes, seed)

    def take(self, rows: IndexArray) -> Targets:
        """Those of some rows."""
        codes = None if self.codes is None else self.codes[rows]
        return Targets(self.values[rows], self.labels, codes, self.seed)

    def folds(self) -> list[tuple[IndexArray, IndexArray]]:
        """Folds of cross-fitting, stratified where every class has a row for each."""
        n = len(self.values)
        if self.codes is None:
            return list(
                KFold(min(N_FOLDS, n), shuffle=True, random_state=self.seed).split(self.values)
            )
        counts = np.bincount(self.codes)
        counts = counts[counts > 0]
        n_folds = int(np.clip(counts.max(), 2, min(N_FOLDS, n)))
        kind = KFold if counts.min() < n_folds else StratifiedKFold
        stratified = kind(n_folds, shuffle=True, random_state=self.seed)
        return list(stratified.split(self.values, self.codes))


@dataclass(frozen=True, eq=False)
class TargetCode:
    """x → the shares of the classes, or the mean of the target, among the rows of its level.

    The statistics of a level are shrunk to those of all rows, which are the last line of
    ``statistics`` and stand for levels that are not known.
    """

    levels: NDArray[np.object_]
    statistics: FloatArray
    labels: tuple[str, ...]
    kind: ClassVar[str] = "target"

    @classmethod
    def of(cls, column: Column, targets: Targets) -> Self:
        """The statistics of the rows of each level of a training column."""
        levels = np.unique(column.texts())
        codes = level_codes(column, levels.tolist())
        return cls(levels, _statistics(codes, targets.values, len(levels)), targets.labels)

    @property
    def suffixes(self) -> tuple[str, ...]:
        return tuple(f"→{label}" for label in self.labels)

    def codes(self, column: Column) -> IndexArray:
        """(n,) indices of levels; their number where a value is not one of them."""
        return level_codes(column, self.levels.tolist())

    def features(self, column: Column) -> FloatArray:
        return self.statistics[self.codes(column)]

    def unseen(self, column: Column) -> NDArray[np.bool_]:
        return unknown_levels(column, self.levels.tolist())

    def restore(self, block: FloatArray) -> Cells:
        """The known level with the nearest statistics: others may have the same."""
        distances = ((block[:, None] - self.statistics[None, :-1]) ** 2).sum(axis=2)
        return np.asarray(self.levels[distances.argmin(axis=1)])

    def __str__(self) -> str:
        return f"{len(self.levels)} levels, by the mean of the target in each"


@dataclass(frozen=True)
class TargetColumn:
    """A training column that is encoded by target statistics.

    Attributes
    ----------
    features : slice
        Where its features are among those of the table.
    codes : (n,) array
        The levels of the training rows.
    n_levels : int
    weight : float
        What the features are multiplied by.
    """

    features: slice
    codes: IndexArray
    n_levels: int
    weight: float

    def fill(self, X: FloatArray, targets: Targets, train: IndexArray, test: IndexArray) -> None:
        """Set the features of the test rows of X from the targets of the training rows."""
        table = _statistics(self.codes[train], targets.values[train], self.n_levels)
        X[test, self.features] = table[self.codes[test]] * self.weight


@dataclass(frozen=True)
class TargetFeatures:
    """The features of training rows that depend on targets: other ones in every fold."""

    targets: Targets
    columns: Sequence[TargetColumn]

    def take(self, rows: IndexArray) -> TargetFeatures:
        """Those of some rows."""
        columns = [replace(column, codes=column.codes[rows]) for column in self.columns]
        return TargetFeatures(self.targets.take(rows), columns)

    def cross_fitted(self, X: FloatArray) -> FloatArray:
        """X (n, e) with these features of every row from the targets of other rows."""
        found = X.copy()
        self._cross_fit(found, np.arange(len(X)))
        return found

    def in_fold(self, X: FloatArray, train: IndexArray, test: IndexArray) -> FloatArray:
        """X (n, e) as it is if only the training rows have targets.

        Their own features are cross-fitted among them; those of the test rows follow from all of
        them.
        """
        found = X.copy()
        self._cross_fit(found, train)
        for column in self.columns:
            column.fill(found, self.targets, train, test)
        return found

    def _cross_fit(self, X: FloatArray, rows: IndexArray) -> None:
        for train, test in self.targets.take(rows).folds():
            for column in self.columns:
                column.fill(X, self.targets, rows[train], rows[test])


def _statistics(codes: IndexArray, targets: FloatArray, n_levels: int) -> FloatArray:
    """(n_levels + 1, k) shrunk means of targets (n, k) by level, then the mean of all."""
    overall = targets.mean(axis=0)
    sums = np.zeros((n_levels + 1, targets.shape[1]))
    np.add.at(sums, codes, targets)
    counts = np.bincount(codes, minlength=n_levels + 1)[:, None]
    sums[-1] = counts[-1] = 0
    return (sums + SHRINKAGE * overall) / (counts + SHRINKAGE)
