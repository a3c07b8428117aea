"""Local linear votes: ridge regression on the nearest rows, as weights of training rows."""

from __future__ import annotations

import numpy as np
from sklearn.utils import gen_batches

from vicinal._typing import FloatArray, IndexArray
from vicinal.kernels.cpu.class_neighbors import Neighbors
from vicinal.voting.row_weights import RowWeights
from vicinal.voting.votes import PRIOR_VOTES, relative_distances

LOCAL_ROWS = 60
"""Neighbors that a line is fitted to."""
BLOCK = 2**21
"""Coordinates of neighbors that are held at a time."""


def local_linear_weights(
    neighbors: Neighbors,
    queries: FloatArray,
    references: FloatArray,
    weights: FloatArray,
    *,
    k: int = LOCAL_ROWS,
    ridge: float = 1.0,
    prior_votes: float = PRIOR_VOTES,
) -> RowWeights:
    r"""Row weights of the ridge regression on the K nearest rows.

    With Epanechnikov weights :math:`a_j \propto w_j \max(0, 1 - d_j / d_{K+1})` of sum 1, mean
    :math:`\bar z = \sum_j a_j z_j` and covariance
    :math:`S = \sum_j a_j (z_j - \bar z)(z_j - \bar z)^\top`, the line that is fitted to any
    targets of the rows has at the query z the value :math:`\sum_j b_j y_j` with

    .. math:: b_j = a_j \bigl(1 + (z - \bar z)^\top (S + \lambda I)^{-1} (z_j - \bar z)\bigr),
              \qquad \lambda = \rho \operatorname{tr}(S) / m.

    The :math:`b_j` sum to 1 and may be negative. The prior has the share
    :math:`p / (1 / \sum_j b_j^2 + p)`, as after a vote of :math:`1 / \sum b_j^2` rows.

    Parameters
    ----------
    neighbors : distances and ids, both (q, K') with K' > K, ascending; missing are inf and -1
    queries : (q, m)
    references : (n, m) the training rows, which the ids refer to
    weights : (n,) what each training row counts
    k : K
    ridge : ρ, the ridge in units of the mean eigenvalue of S
    prior_votes : p
    """
    d, ids = neighbors.distances[:, :k], neighbors.ids[:, :k]
    votes = np.where(ids >= 0, weights[ids], 0.0)
    votes = votes * (1.0 - relative_distances(d, neighbors.distances[:, k]))
    totals = votes.sum(axis=1, keepdims=True)
    shares = votes / np.where(totals > 0, totals, 1.0)  # a_j
    fitted = np.empty_like(shares)
    length = max(1, BLOCK // (k * max(k, references.shape[1])))
    for block in gen_batches(len(ids), length):
        fitted[block] = _line(queries[block], references[ids[block]], shares[block], ridge)
    return with_prior(ids, fitted, prior_votes)


def _line(Z: FloatArray, R: FloatArray, shares: FloatArray, ridge: float) -> FloatArray:
    """(q, k) b of the queries Z (q, m), from neighbors R (q, k, m) with shares a (q, k)."""
    means = np.einsum("qk,qkm->qm", shares, R)
    offsets = Z - means
    roots = np.sqrt(shares)
    B = (R - means[:, None]) * roots[:, :, None]  # S = Bᵀ B
    k, m = B.shape[1:]
    traces = np.einsum("qkm,qkm->q", B, B)
    # Rows that coincide, but for the rounding of their mean, have no slope.
    flat = traces <= 1e-24 * np.einsum("qm,qm->q", means, means)
    penalties = np.where(flat, 1.0, ridge * traces / m)[:, None, None]
    transposed = np.swapaxes(B, 1, 2)
    if m <= k:
        solved = np.linalg.solve(transposed @ B + penalties * np.eye(m), offsets[:, :, None])
        slopes = (B @ solved)[:, :, 0]
    else:  # (Bᵀ B + λ)⁻¹ Bᵀ = Bᵀ (B Bᵀ + λ)⁻¹
        right = B @ offsets[:, :, None]
        slopes = np.linalg.solve(B @ transposed + penalties * np.eye(k), right)[:, :, 0]
    return shares + np.where(flat[:, None], 0.0, roots * slopes)


def with_prior(
    ids: IndexArray, weights: FloatArray, prior_votes: float = PRIOR_VOTES
) -> RowWeights:
    """Row weights that leave the prior a share, as if 1/Σ b² rows had voted.

    `weights` (q, k) sum to 1 per query; where they are all 0, the prior has everything.
    """
    squares = np.einsum("qk,qk->q", weights, weights)
    share = np.where(squares > 0, prior_votes * squares / (1.0 + prior_votes * squares), 1.0)
    return RowWeights.of(ids, weights * (1.0 - share)[:, None], share)
