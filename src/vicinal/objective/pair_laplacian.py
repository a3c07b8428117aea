"""The Laplacian of weights that sit on a list of pairs."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from vicinal._typing import FloatArray, IndexArray

VALUES_AT_ONCE = 2**22


def pair_laplacian(
    i: IndexArray, j: IndexArray, w: FloatArray, V: FloatArray, symmetric: bool
) -> FloatArray:
    """What the weights W_ij = w of pairs (i, j) make of V, as :meth:`Kernel.sweep` returns it.

    (n, c) the half H = ½ Δ V − W V, or Lap V = (Δ − W − Wᵀ) V, with Δ = diag(W·1 + Wᵀ·1).
    """
    n = len(V)
    W = csr_array((w, (i, j)), shape=(n, n))
    delta = np.bincount(i, w, n) + np.bincount(j, w, n)
    if symmetric:
        return np.asarray(delta[:, None] * V - W @ V - W.T @ V)
    return np.asarray(0.5 * delta[:, None] * V - W @ V)


def pair_distances(Z: FloatArray, i: IndexArray, j: IndexArray) -> FloatArray:
    """(p,) squared distances ‖z_i − z_j‖² of pairs, by differences, some pairs at a time."""
    out = np.empty(len(i))
    step = max(1, VALUES_AT_ONCE // max(Z.shape[1], 1))
    for start in range(0, len(i), step):
        part = slice(start, start + step)
        gaps = Z[i[part]] - Z[j[part]]  # (p, m)
        out[part] = np.einsum("pm,pm->p", gaps, gaps)
    return out
