"""Section 2: the two maps, and the neighbors of every point in both."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import orthogonal_procrustes
from sklearn.decomposition import PCA

from vicinal._typing import FloatArray, IndexArray
from vicinal.fitted_model import MeasuredRows
from vicinal.reporting.feature_columns import FeatureColumns
from vicinal.reporting.findings import Maps, Neighborhoods
from vicinal.voting.class_mean import ClassMeanKNN

SHARES_SHOWN = 3
"""Features per neighbor: the page grows with rows × neighbors × this."""
GOLDEN = 0.6180339887498949
NOTHING = 1e-12
"""A fraction of the variance that is rounding."""


@dataclass(frozen=True)
class VoterCounts:
    """The numbers of neighbors that decide in the model."""

    most: int
    fewer_too: bool = False
    """Whether other members of a committee ask fewer."""
    of_each_class: bool = False

    def beside(self, listed: int) -> str:
        """A sentence for those who see `listed` neighbors; empty where just these decide."""
        number = "1 neighbor" if self.most == 1 else f"{self.most} neighbors"
        whose = " of each class" if self.of_each_class else ""
        decide = f"The model decides by {'up to ' * self.fewer_too}{number}{whose}"
        if self.most > listed:
            return f"{decide}, more than the {listed} that are listed."
        if self.most < listed or self.of_each_class:
            return f"{decide}; the {listed} nearest are listed."
        return ""


@dataclass(frozen=True)
class Shown:
    """The n points on the page: training rows and, marked, held-out ones."""

    ids: tuple[str, ...]
    labels: IndexArray | FloatArray
    """(n,) classes, or numbers."""
    predictions: IndexArray | FloatArray
    plain: IndexArray | FloatArray
    """(n,) what plain K-NN predicts; -1, or of numbers NaN, where unknown."""
    held_out: NDArray[np.bool_]
    A: FloatArray
    """(n, d) features."""
    scale: FloatArray
    """(d,) their standard deviations over all the training rows; 1 where constant."""
    Z: FloatArray
    """(n, m) learned space."""
    n_rows: int
    """Of which these are a sample."""
    voters: VoterCounts
    columns: FeatureColumns


@dataclass(frozen=True)
class MapProjection:
    """The map of rows on two directions of largest variance."""

    points: FloatArray
    """(n, 2)"""
    spread: tuple[float, float]
    axes: FloatArray
    """(≤ 3, m) unit directions, largest variance first."""
    spreads: FloatArray
    """(≤ 3,) fraction of the variance in each."""


def project(
    Z: FloatArray, fit_rows: NDArray[np.bool_], labels: IndexArray | FloatArray
) -> MapProjection:
    """PCA of the rows ``fit_rows`` of Z (n, m), applied to all of them.

    Where there is only one direction, the second coordinate is not a measurement: it separates the
    classes and spreads their points, so that they can be seen.
    """
    directions = min(3, Z.shape[1], int(fit_rows.sum()))
    pca = PCA(n_components=directions, svd_solver="covariance_eigh").fit(Z[fit_rows])
    points = pca.transform(Z)[:, :2]
    spreads = np.nan_to_num(np.asarray(pca.explained_variance_ratio_))
    second = float(spreads[1]) if directions > 1 else 0.0
    if second < NOTHING:
        second = 0.0
        jitter = (np.arange(len(Z)) * GOLDEN) % 1.0  # low discrepancy: no clumps
        codes = np.zeros(len(Z)) if is_numeric(labels) else labels
        lanes = codes.max() - codes + 0.8 * jitter
        height = np.ptp(points[:, 0]) or 1.0
        points = np.column_stack([points[:, 0], lanes * (0.5 * height / (codes.max() + 1))])
    return MapProjection(points, (float(spreads[0]), second), pca.components_, spreads)


def is_numeric(labels: IndexArray | FloatArray) -> bool:
    """Whether labels are numbers to predict, not codes of classes."""
    return bool(labels.dtype.kind == "f")


def turned(after: FloatArray, before: FloatArray) -> FloatArray:
    """One map (n, 2), rotated or mirrored to lie as the other does: distances stay what they are.

    The orthogonal R that minimizes ‖after R − before‖ (Procrustes); maps are easier to compare so.
    """
    R, _ = orthogonal_procrustes(after - after.mean(axis=0), before - before.mean(axis=0))
    return np.asarray(after @ R)


def maps(
    shown: Shown,
    projections: tuple[MapProjection, MapProjection],
    learned: MeasuredRows | None,
    k: int,
) -> Maps:
    """Both maps with their neighborhoods; ``learned`` is None where there are no shares."""
    train = ~shown.held_out
    k = max(1, min(k, int(train.sum()) - 1))
    near_before = with_shares(
        neighborhoods(shown.A / shown.scale, shown.labels, train, k),
        MeasuredRows(shown.A, np.diag(shown.scale**-2.0)),
        shown.columns,
    )
    near_after = neighborhoods(shown.Z, shown.labels, train, k)
    if learned is not None:
        near_after = with_shares(near_after, learned, shown.columns)
    before, after = projections
    flat = min(before.spread[1], after.spread[1]) == 0  # the height is not a measurement
    focus, why = _focus(shown, near_before, near_after)
    return Maps(
        ids=shown.ids,
        labels=shown.labels,
        predictions=shown.predictions,
        held_out=shown.held_out,
        before=before.points,
        after=after.points if flat else turned(after.points, before.points),
        before_spread=before.spread,
        after_spread=after.spread,
        near_before=near_before,
        near_after=near_after,
        kept=mean_kept(near_before, near_after),
        n_rows=shown.n_rows,
        focus=focus,
        focus_why=why,
        voters=shown.voters.beside(k),
    )


def _focus(shown: Shown, before: Neighborhoods, after: Neighborhoods) -> tuple[int, str]:
    """The point where learning the metric changed the neighbors' labels most for the better."""
    labels = shown.labels
    if is_numeric(labels):
        near = [np.abs(labels[n.rows] - labels[:, None]).mean(axis=1) for n in (before, after)]
        nearer = near[0] - near[1]  # (n,)
        gained = "The targets of its neighbors came nearest to its own."
        return int(np.argmax(nearer)), gained if nearer.max() > 0 else ""
    own = [(labels[near.rows] == labels[:, None]).sum(axis=1) for near in (before, after)]
    gain = (own[1] - own[0]).astype(float)  # (n,)
    rescued = (shown.predictions == labels) & (shown.plain >= 0) & (shown.plain != labels)
    if rescued.any():
        best = int(np.argmax(np.where(rescued, gain, -np.inf)))
        return best, "Plain K-NN gets this row wrong; the learned metric gets it right."
    gained = "Its neighborhood gained the most rows of its own label."
    return int(np.argmax(gain)), gained if gain.max() > 0 else ""


def neighborhoods(
    Z: FloatArray, labels: IndexArray | FloatArray, is_reference: NDArray[np.bool_], k: int
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
    theirs, own = labels[rows[judged]], labels[judged, None]
    alike = np.abs(theirs - own) if is_numeric(labels) else theirs == own
    agreement = float(np.mean(alike))
    return Neighborhoods(rows, distances, none.astype(np.intp), none, agreement)


def with_shares(
    near: Neighborhoods, measured: MeasuredRows, columns: FeatureColumns
) -> Neighborhoods:
    """The same, with the largest shares that columns have in every squared distance."""
    n, k = near.rows.shape
    t = min(SHARES_SHOWN, len(columns.names))
    features = np.empty((n, k, t), dtype=np.intp)
    shares = np.empty((n, k, t))
    for neighbor in range(k):  # (n, d) at a time
        parts = columns.sums(measured.contributions(near.rows[:, neighbor]))
        squared = parts.sum(axis=1, keepdims=True)
        largest = np.argsort(-np.abs(parts), axis=1, kind="stable")[:, :t]
        features[:, neighbor] = largest
        with np.errstate(invalid="ignore", divide="ignore"):
            part = np.take_along_axis(parts, largest, axis=1) / squared
        shares[:, neighbor] = np.where(squared > 0, part, 0.0)  # the same spot: nothing to share
    return Neighborhoods(near.rows, near.distances, features, shares, near.agreement)


def mean_kept(before: Neighborhoods, after: Neighborhoods) -> float:
    """Mean number of neighbors in common."""
    common = before.rows[:, :, None] == after.rows[:, None, :]  # (n, k, k)
    return float(common.sum(axis=(1, 2)).mean())
