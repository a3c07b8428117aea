"""Directions that separate classes somewhere in the data: the basis sets of SCML."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.linalg import svd
from sklearn.exceptions import ConvergenceWarning

from vicinal._typing import FloatArray, IndexArray
from vicinal.learners.supervision import Triplets

RANK_TOLERANCE = 1e-10
"""Singular values of a pool below this fraction of the largest are rounding."""
SEPARATION_TOLERANCE = 1e-3
"""Directions whose share (0 … 1) of √(between / total scatter) is less separate nothing."""


def local_lda(
    X: FloatArray, codes: IndexArray, n_bases: int, rng: np.random.RandomState
) -> FloatArray:
    """(k, d) unit directions of Fisher's discriminant in regions of the data, k ≤ n_bases.

    Regions are the surroundings of k-means centers, at two scales: of every class, the s points
    nearest to the center, with s = 10 and 20 (20 and 50 for more than 50 features). Each gives
    min(c − 1, d) directions, fewer where its points separate less.
    """
    d = X.shape[1]
    per_region = min(int(codes.max()), d)
    centers = _centers(X, -(-n_bases // (2 * per_region)), rng)
    members = [np.flatnonzero(codes == code) for code in range(codes.max() + 1)]
    scales = (20, 50) if d > 50 else (10, 20)
    nearest = [_nearest_of_each(X, center, members, max(scales)) for center in centers]
    found = []
    for scale in scales:
        for region in nearest:
            pool = np.concatenate([rows[:scale] for rows in region])
            found.append(lda_directions(X[pool], codes[pool], per_region))
    return np.concatenate(found)[:n_bases]


def triplet_directions(
    X: FloatArray, triplets: Triplets, n_bases: int, rng: np.random.RandomState
) -> FloatArray:
    """(k, d) unit directions that triplets want long, where there are no labels.

    As local LDA, with pairs (i, l) for the scatter between and pairs (i, j) for the scatter within
    the classes; regions hold the 10 and the 20 anchors nearest to a center (20 and 50 for more
    than 50 features). Each gives up to d directions.
    """
    d = X.shape[1]
    order = np.argsort(triplets.i, kind="stable")
    anchors, starts = np.unique(triplets.i[order], return_index=True)
    groups = np.split(order, starts[1:])  # triplets of each anchor
    centers = _centers(X[anchors], -(-n_bases // (2 * d)), rng)
    found = []
    for scale in (20, 50) if d > 50 else (10, 20):
        for center in centers:
            near = _nearest_of_each(X, center, [anchors], scale)[0]
            r = np.concatenate([groups[g] for g in np.searchsorted(anchors, near)])
            far = X[triplets.i[r]] - X[triplets.l[r]]
            close = X[triplets.i[r]] - X[triplets.j[r]]
            found.append(_separating(np.concatenate([far, close]), far, d))
    return np.concatenate(found)[:n_bases]


def lda_directions(X: FloatArray, codes: IndexArray, n_directions: int) -> FloatArray:
    """(e, d) unit directions a of S_b a = λ S_t a, largest λ first, e ≤ n_directions.

    S_t = Σ_i x_i x_iᵀ over the centered points, S_b = Σ_c n_c m_c m_cᵀ over the classes' means. A
    singular S_t is restricted to its range.
    """
    X = X - X.mean(axis=0)
    present, codes = np.unique(codes, return_inverse=True)
    sizes = np.bincount(codes)
    sums = np.zeros((len(present), X.shape[1]))
    np.add.at(sums, codes, X)
    return _separating(X, sums / np.sqrt(sizes)[:, None], n_directions)


def _separating(total: FloatArray, between: FloatArray, n_directions: int) -> FloatArray:
    """Generalized eigenvectors of (betweenᵀbetween, totalᵀtotal), as unit rows."""
    _, s, Vt = svd(total, full_matrices=False)
    kept = s > RANK_TOLERANCE * max(s[0], np.finfo(float).tiny)
    whiten = Vt[kept].T / s[kept]  # (d, r)
    if not kept.any():
        return np.empty((0, total.shape[1]))
    _, share, directions = svd(between @ whiten, full_matrices=False)
    directions = directions[share > SEPARATION_TOLERANCE][:n_directions] @ whiten.T
    return directions / np.linalg.norm(directions, axis=1, keepdims=True)


def _centers(X: FloatArray, n_centers: int, rng: np.random.RandomState) -> FloatArray:
    from sklearn.cluster import KMeans

    k_means = KMeans(min(n_centers, len(X)), n_init=1, tol=1e-3, random_state=rng)
    with warnings.catch_warnings():
        # Fewer distinct points than centers: some centers coincide, which does no harm.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.asarray(k_means.fit(X).cluster_centers_)


def _nearest_of_each(
    X: FloatArray, center: FloatArray, members: list[IndexArray], n_nearest: int
) -> list[IndexArray]:
    """The n_nearest rows to the center among each list of rows, nearest first."""
    distances = np.sum((X - center) ** 2, axis=1)
    return [rows[np.argsort(distances[rows], kind="stable")[:n_nearest]] for rows in members]
