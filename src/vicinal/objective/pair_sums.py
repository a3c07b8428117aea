"""Sums over pairs of rows: the pull matrix, and distances and Laplacians of listed pairs.

The pull term Σ_i w_i Σ_{j∈S_i} d_ij is linear in M, hence one constant matrix.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array

from vicinal._typing import Array, FloatArray, IndexArray
from vicinal.kernels.contract import Comparisons, IndexLists
from vicinal.objective.losses import array_namespace

PAIRS_AT_ONCE = 2**16
VALUES_AT_ONCE = 2**22


def pull_matrix(X: Array, comparisons: Comparisons, weights: FloatArray) -> FloatArray:
    """C = Σ_i w_i Σ_{j∈S_i} (x_i − x_j)(x_i − x_j)ᵀ over the anchors i, so that the term is ⟨C, M⟩.

    Complete classes need no pairs: within a set K of rows, the sum over all ordered pairs is
    |K|·Σ w x xᵀ + (Σ w)·Σ x xᵀ − p qᵀ − q pᵀ with p = Σ w x and q = Σ x. A tensor X stays on its
    device; only C (d, d) is copied.
    """
    xp = array_namespace(X)
    X = xp.asarray(X, dtype=xp.float64)
    w: Array = np.zeros(len(X))
    w[comparisons.anchors] = weights[comparisons.anchors]
    w = w if xp is np else X.new_tensor(w)
    total: Array = 0.0
    if comparisons.similar is not None:
        total = _listed_scatter(X, comparisons.similar, w)
    else:
        for start, stop in pairwise(comparisons.offsets):
            rows = slice(start, stop)
            total = total + _scatter(X[rows], w[rows])
            if comparisons.groups is not None:
                total = total - _scatter_within_groups(X[rows], w[rows], comparisons.groups[rows])
    return total if xp is np else np.asarray(total.cpu())


def _scatter(X: Array, w: Array) -> Array:
    """Σ_ij w_i x_ij x_ijᵀ over all ordered pairs of the rows of X."""
    X = X - X.mean(axis=0)
    p, q = w @ X, X.sum(axis=0)
    crossed = p[:, None] * q
    return len(X) * (X.T * w) @ X + w.sum() * X.T @ X - crossed - crossed.T


def _scatter_within_groups(X: Array, w: Array, groups: IndexArray) -> Array:
    """The part of the scatter that joins rows of one group."""
    order = np.argsort(groups, kind="stable")
    members = np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)
    return sum(_scatter(X[rows], w[rows]) for rows in members if len(rows) > 1)


def _listed_scatter(X: Array, lists: IndexLists, w: Array) -> Array:
    """Σ_i w_i Σ_j x_ij x_ijᵀ over the listed pairs."""
    total = X[:0].T @ X[:0]  # (d, d) zeros
    anchors = np.repeat(np.arange(len(X)), lists.counts)
    for start in range(0, len(anchors), PAIRS_AT_ONCE):
        i, j = anchors[start : start + PAIRS_AT_ONCE], lists.indices[start : start + PAIRS_AT_ONCE]
        gaps = X[i] - X[j]  # (p, d)
        total = total + (gaps.T * w[i]) @ gaps
    return total


def pair_laplacian(
    i: IndexArray, j: IndexArray, w: FloatArray, V: FloatArray, symmetric: bool
) -> FloatArray:
    """The Laplacian of the weights W_ij = w of pairs (i, j), applied to V.

    (n, c), as :meth:`Kernel.sweep` returns it: the half H = ½ Δ V − W V, or
    Lap V = (Δ − W − Wᵀ) V, with Δ = diag(W·1 + Wᵀ·1).
    """
    n = len(V)
    W = csr_array((w, (i, j)), shape=(n, n))
    delta = np.bincount(i, w, n) + np.bincount(j, w, n)
    if symmetric:
        return np.asarray(delta[:, None] * V - W @ V - W.T @ V)
    return np.asarray(0.5 * delta[:, None] * V - W @ V)


def pair_distances(Z: FloatArray, i: IndexArray, j: IndexArray) -> FloatArray:
    """(p,) squared distances ‖z_i − z_j‖² of pairs, by differences, block by block."""
    out = np.empty(len(i))
    step = max(1, VALUES_AT_ONCE // max(Z.shape[1], 1))
    for start in range(0, len(i), step):
        part = slice(start, start + step)
        gaps = Z[i[part]] - Z[j[part]]  # (p, m)
        out[part] = np.einsum("pm,pm->p", gaps, gaps)
    return out
