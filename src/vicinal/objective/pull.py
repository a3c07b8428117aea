"""The pull term Σ_i w_i Σ_{j∈S_i} d_ij: linear in M, hence one constant matrix."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from vicinal._typing import FloatArray
from vicinal.kernels.contract import Comparisons, IndexLists

PAIRS_AT_ONCE = 2**16


def pull_matrix(X: FloatArray, comparisons: Comparisons, weights: FloatArray) -> FloatArray:
    """C = Σ_i w_i Σ_{j∈S_i} (x_i − x_j)(x_i − x_j)ᵀ over the anchors i, so that the term is ⟨C, M⟩.

    Complete classes need no pairs: within a set K of rows, the sum over all ordered pairs is
    |K|·Σ w x xᵀ + (Σ w)·Σ x xᵀ − p qᵀ − q pᵀ with p = Σ w x and q = Σ x.
    """
    w = np.zeros(len(X))
    w[comparisons.anchors] = weights[comparisons.anchors]
    X = X.astype(np.float64, copy=False)
    if comparisons.similar is not None:
        return _listed_scatter(X, comparisons.similar, w)
    total = np.zeros((X.shape[1], X.shape[1]))
    for start, stop in pairwise(comparisons.offsets):
        rows = slice(start, stop)
        total += _scatter(X[rows], w[rows])
        if comparisons.groups is not None:
            total -= _scatter_within_groups(X[rows], w[rows], comparisons.groups[rows])
    return total


def _scatter(X: FloatArray, w: FloatArray) -> FloatArray:
    """Σ_ij w_i x_ij x_ijᵀ over all ordered pairs of the rows of X."""
    X = X - X.mean(axis=0)
    p, q = w @ X, X.sum(axis=0)
    crossed = np.outer(p, q)
    return len(X) * (X.T * w) @ X + w.sum() * X.T @ X - crossed - crossed.T


def _scatter_within_groups(X: FloatArray, w: FloatArray, groups: NDArray[np.intp]) -> FloatArray:
    """The part of the scatter that joins rows of one group."""
    total = np.zeros((X.shape[1], X.shape[1]))
    order = np.argsort(groups, kind="stable")
    cuts = np.flatnonzero(np.diff(groups[order])) + 1
    for members in np.split(order, cuts):
        if len(members) > 1:
            total += _scatter(X[members], w[members])
    return total


def _listed_scatter(X: FloatArray, lists: IndexLists, w: FloatArray) -> FloatArray:
    """Σ_i w_i Σ_j x_ij x_ijᵀ over the listed pairs."""
    total = np.zeros((X.shape[1], X.shape[1]))
    anchors = np.repeat(np.arange(len(X)), lists.counts)
    for start in range(0, len(anchors), PAIRS_AT_ONCE):
        i, j = anchors[start : start + PAIRS_AT_ONCE], lists.indices[start : start + PAIRS_AT_ONCE]
        gaps = X[i] - X[j]  # (p, d)
        total += (gaps.T * w[i]) @ gaps
    return total
