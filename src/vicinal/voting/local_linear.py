"""Local linear votes: ridge regression on the nearest rows, as weights of training rows."""

from __future__ import annotations

import numpy as np

from vicinal._typing import FloatArray, IndexArray
from vicinal.kernels.cpu.class_neighbors import Neighbors
from vicinal.kernels.cpu.metric_index import SearchMetric
from vicinal.voting.row_weights import RowWeights
from vicinal.voting.votes import PRIOR_VOTES, relative_distances

LOCAL_ROWS = 60
"""Neighbors that a line is fitted to."""


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
    shares = line_shares(neighbors, weights, k)
    fitted = np.empty_like(shares)
    fit_lines_at(queries, references, None, neighbors.ids[:, :k], shares, ridge, fitted)
    return with_prior(neighbors.ids[:, :k], fitted, prior_votes)


def line_shares(neighbors: Neighbors, weights: FloatArray, k: int) -> FloatArray:
    """(q, k) Epanechnikov weights a of sum 1."""
    d, ids = neighbors.distances[:, :k], neighbors.ids[:, :k]
    votes = np.where(ids >= 0, weights[ids], 0.0)
    votes = votes * (1.0 - relative_distances(d, neighbors.distances[:, k]))
    totals = votes.sum(axis=1, keepdims=True)
    return np.asarray(votes / np.where(totals > 0, totals, 1.0))


def fit_lines_at(
    queries: FloatArray,
    references: FloatArray,
    metric: SearchMetric | None,
    ids: IndexArray,
    shares: FloatArray,
    ridge: float,
    fitted: FloatArray,
) -> None:
    """Write b (q, k) into `fitted`, from rows `ids` (q, k) of shares a (q, k) under a metric.

    None is the Euclidean metric. Shares of missing rows are 0.
    """
    from vicinal.kernels.cpu.line_fits import fit_lines  # imports Numba

    columns = slice(0, references.shape[1]) if metric is None else metric.columns
    factor = np.empty((0, 0)) if metric is None or metric.L is None else metric.L.T
    m = factor.shape[1] if factor.size else columns.stop - columns.start
    fit_lines(
        np.ascontiguousarray(references),
        np.ascontiguousarray(queries),
        (columns.start, m, np.ascontiguousarray(factor)),
        np.ascontiguousarray(ids),
        np.ascontiguousarray(shares),
        ridge,
        fitted,
    )


def with_prior(
    ids: IndexArray, weights: FloatArray, prior_votes: float = PRIOR_VOTES
) -> RowWeights:
    """Row weights that leave the prior a share, as if 1/Σ b² rows had voted.

    `weights` (q, k) sum to 1 per query; where they are all 0, the prior has everything.
    """
    squares = np.einsum("qk,qk->q", weights, weights)
    share = np.where(squares > 0, prior_votes * squares / (1.0 + prior_votes * squares), 1.0)
    return RowWeights.of(ids, weights * (1.0 - share)[:, None], share)
