"""The nearest rows of every row under a metric, and what each feature adds to the distance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vicinal._typing import FloatArray, IndexArray
from vicinal.fitted_model import MeasuredRows
from vicinal.reporting.findings import Neighborhoods
from vicinal.voting.class_mean import ClassMeanKNN

SHARES_SHOWN = 3
"""Features per neighbor: the page grows with rows × neighbors × this."""


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


def with_shares(near: Neighborhoods, measured: MeasuredRows) -> Neighborhoods:
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
