"""Who is near whom under a metric, and what each feature adds to the distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from vicinal.classifiers.class_mean import ClassMeanKNN
from vicinal.reporting.findings import Neighborhoods

FloatArray: TypeAlias = NDArray[np.floating]
IndexArray: TypeAlias = NDArray[np.intp]

SHARES_SHOWN = 3
"""Features a neighbor: the page grows with rows × neighbors × this."""


def contributions(A: FloatArray, B: FloatArray, M: FloatArray) -> FloatArray:
    """(..., d) δ_f (Mδ)_f with δ = a − b: what each feature adds to the squared distance δᵀMδ.

    A contribution may be negative: where features are correlated under M, a difference in one can
    make up for a difference in another.

    Parameters
    ----------
    A, B : (..., d) rows
    M : (d, d) metric

    Examples
    --------
    >>> import numpy as np
    >>> M = np.array([[2.0, 0.5], [0.5, 1.0]])
    >>> contributions(np.array([1.0, 2.0]), np.zeros(2), M)
    array([3., 5.])
    """
    difference = A - B
    return np.asarray(difference * (difference @ M))


def neighborhoods(
    Z: FloatArray, labels: IndexArray, is_reference: NDArray[np.bool_], k: int
) -> Neighborhoods:
    """The k nearest reference points of every point of Z (n, m), none its own; no shares yet."""
    references = np.flatnonzero(is_reference)
    index = ClassMeanKNN().fit(Z[references], np.zeros(len(references), dtype=np.intp))
    rows = np.empty((len(Z), k), dtype=np.intp)
    distances = np.empty((len(Z), k))
    distances[references], rows[references] = index.kneighbors(n_neighbors=k)
    if len(references) < len(Z):
        others = ~is_reference
        distances[others], rows[others] = index.kneighbors(Z[others], n_neighbors=k)
    rows = references[rows]
    none = np.empty((len(Z), k, 0))
    judged = is_reference if is_reference.all() else ~is_reference
    agreement = float(np.mean(labels[rows[judged]] == labels[judged, None]))
    return Neighborhoods(rows, distances, none.astype(np.intp), none, agreement)


@dataclass(frozen=True)
class Measured:
    """Rows as a distance sees them: columns, their metric, and the features they belong to."""

    columns: FloatArray
    """(n, p) the features, or more where they are unfolded."""
    M: FloatArray
    """(p, p)"""
    owners: IndexArray
    """(p,) the feature of each column."""

    def contributions(self, rows: IndexArray) -> FloatArray:
        """(n, d) what each feature adds to the squared distance from row i to row ``rows[i]``."""
        return self.by_feature(contributions(self.columns, self.columns[rows], self.M))

    def by_feature(self, parts: FloatArray) -> FloatArray:
        """(..., d) sums over the columns of each feature."""
        sums = np.zeros((*parts.shape[:-1], int(self.owners.max()) + 1))
        np.add.at(np.moveaxis(sums, -1, 0), self.owners, np.moveaxis(parts, -1, 0))
        return sums


def with_shares(near: Neighborhoods, measured: Measured) -> Neighborhoods:
    """The same, with the largest shares that features have in every squared distance."""
    n, k = near.rows.shape
    t = min(SHARES_SHOWN, int(measured.owners.max()) + 1)
    features = np.empty((n, k, t), dtype=np.intp)
    shares = np.empty((n, k, t))
    for column in range(k):  # (n, d) at a time
        parts = measured.contributions(near.rows[:, column])
        squared = parts.sum(axis=1, keepdims=True)
        largest = np.argsort(-np.abs(parts), axis=1, kind="stable")[:, :t]
        features[:, column] = largest
        with np.errstate(invalid="ignore", divide="ignore"):
            part = np.take_along_axis(parts, largest, axis=1) / squared
        shares[:, column] = np.where(squared > 0, part, 0.0)  # the same spot: nothing to share
    return Neighborhoods(near.rows, near.distances, features, shares, near.agreement)


def mean_kept(before: Neighborhoods, after: Neighborhoods) -> float:
    """Mean number of neighbors in common."""
    common = before.rows[:, :, None] == after.rows[:, None, :]  # (n, k, k)
    return float(common.sum(axis=(1, 2)).mean())
