"""Who is near whom under a metric, and what each feature adds to the distance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vicinal._typing import FloatArray, IndexArray
from vicinal.features.hat_basis import HatBasis
from vicinal.reporting.findings import Neighborhoods
from vicinal.voting.class_mean import ClassMeanKNN
from vicinal.voting.explanation import contributions

SHARES_SHOWN = 3
"""Features a neighbor: the page grows with rows × neighbors × this."""


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
    """Rows as a distance sees them: columns and their metric."""

    columns: FloatArray
    """(n, p) the features, or more where they are unfolded."""
    M: FloatArray
    """(p, p)"""
    basis: HatBasis | None = None
    """None: the columns are the features."""

    @property
    def n_features(self) -> int:
        """d."""
        return len(self.M) if self.basis is None else self.basis.n_features

    def contributions(self, rows: IndexArray) -> FloatArray:
        """(n, d) what each feature adds to the squared distance from row i to row ``rows[i]``."""
        return self.by_feature(contributions(self.columns, self.columns[rows], self.M))

    def by_feature(self, parts: FloatArray) -> FloatArray:
        """(..., d) sums over the columns of each feature."""
        return parts if self.basis is None else self.basis.by_feature(parts)


def with_shares(near: Neighborhoods, measured: Measured) -> Neighborhoods:
    """The same, with the largest shares that features have in every squared distance."""
    n, k = near.rows.shape
    t = min(SHARES_SHOWN, measured.n_features)
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
