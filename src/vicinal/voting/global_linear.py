"""Lines through all rows: ridge regression in the spaces of metrics, as weights of training rows.

Where a target follows its features evenly, averages over near rows are pulled toward the middle,
and lines through few of them are noisy. A line through all rows is a weighted sum over them too,
and so is an average over near rows that is moved along it: by the slope times the way from where
these rows lie on average to the query.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vicinal._typing import FloatArray, IndexArray
from vicinal.voting.row_weights import RowWeights

RIDGE = 0.01
"""Of the line that votes are moved along, in units of the mean eigenvalue."""


class GlobalLines:
    r"""The weighted sum of ridge regressions on all training rows, in the spaces z = L x.

    With shares :math:`a_j \propto w_j` of sum 1, the mean :math:`\bar x` and the covariance S of
    the rows :math:`L x_j`, the line has at x the value :math:`\sum_j b_j y_j` with

    .. math:: b_j = a_j \bigl(1 + (x - \bar x)^\top G (x_j - \bar x)\bigr), \qquad
              G = L^\top (S + \lambda I)^{-1} L, \quad \lambda = \rho \operatorname{tr}(S) / m.

    The :math:`b_j` sum to 1 and may be negative. A query beyond the range of the voting rows is
    moved to its end, column by column: no line is followed to where no row has been. Several lines
    have the weighted sum of their G, so that they cost what one does.

    Parameters
    ----------
    X : (n, p) training rows
    lines : for each line its weight, its ridge ρ and its factor L (m, p)
    row_weights : (n,) what each training row counts
    """

    def __init__(
        self,
        X: FloatArray,
        lines: Sequence[tuple[float, float, FloatArray]],
        row_weights: FloatArray,
    ) -> None:
        total = row_weights.sum()
        self._shares = row_weights / total if total > 0 else row_weights
        self._total = float(sum(weight for weight, _, _ in lines))
        self._center = self._shares @ X
        self._deviations = X - self._center
        voters = self._deviations[self._shares > 0]
        anywhere = np.full(X.shape[1], np.inf)
        self._low: FloatArray = voters.min(axis=0) if len(voters) else -anywhere
        self._high: FloatArray = voters.max(axis=0) if len(voters) else anywhere
        covariance = (self._deviations * self._shares[:, None]).T @ self._deviations
        G = np.zeros(covariance.shape)
        for weight, ridge, L in lines:
            L = L[np.any(L != 0, axis=1)]
            S = L @ covariance @ L.T
            penalty = ridge * np.trace(S) / max(len(S), 1)
            if penalty > 0:  # else the rows coincide
                G += weight * (L.T @ np.linalg.solve(S + penalty * np.eye(len(S)), L))
        self._G = G

    def row_weights(self, queries: FloatArray, own_rows: IndexArray | None = None) -> RowWeights:
        """Row weights of the queries (q, p), which sum to the weights of all lines.

        `own_rows` (q,) names a row that may not vote: the weights of the others are divided by
        what is left, which for one line is the line without that row, its penalty unchanged.
        """
        q, n = len(queries), len(self._shares)
        steps = self._within(queries) @ self._G
        b = self._shares * (self._total + steps @ self._deviations.T)
        if own_rows is not None:
            b[np.arange(q), own_rows] = 0.0
            left = b.sum(axis=1, keepdims=True)
            b *= self._total / np.where(left > 1e-10 * self._total, left, np.inf)
        ids = np.broadcast_to(np.arange(n), (q, n))
        return RowWeights.of(ids, b, self._total - b.sum(axis=1))

    def values(self, queries: FloatArray, targets: FloatArray) -> FloatArray:
        """(q, t) values of the lines that are fitted to targets (n, t)."""
        weighted = self._shares[:, None] * targets
        steps = self._within(queries) @ (self._G @ (self._deviations.T @ weighted))
        return np.asarray(self._total * weighted.sum(axis=0) + steps)

    def moves(
        self, votes: RowWeights, queries: FloatArray, own_rows: IndexArray | None = None
    ) -> RowWeights:
        """What is added to votes so that they are moved along the line to the queries (q, p).

        The weights sum to 0. What a row that may not vote would add is divided among the others.
        """
        q, n = len(queries), len(self._shares)
        near = votes.to_sparse(n)
        there = np.asarray(near.sum(axis=1))[:, None] * self._within(queries)
        steps = (there - near @ self._deviations) @ self._G
        b = self._shares * (steps @ self._deviations.T)
        if own_rows is not None:
            asked = np.arange(q)
            own, left = b[asked, own_rows], 1.0 - self._shares[own_rows]
            b += np.where(left > 1e-10, own / np.maximum(left, 1e-10), 0.0)[:, None] * self._shares
            b[asked, own_rows] = 0.0
        ids = np.broadcast_to(np.arange(n), (q, n))
        return RowWeights.of(ids, b, np.zeros(q))

    def _within(self, queries: FloatArray) -> FloatArray:
        """(q, p) the way from the center to the queries, within the range of the voting rows."""
        return np.asarray(np.clip(queries - self._center, self._low, self._high))


def line_of_features(X: FloatArray, n_features: int | None, row_weights: FloatArray) -> GlobalLines:
    """The line of the standardized features, the first columns of the rows X (n, p)."""
    voters = X[row_weights > 0]
    spread = voters.std(axis=0) if len(voters) else np.zeros(X.shape[1])
    flat = spread <= 1e-10 * np.abs(X).max(axis=0, initial=0.0)  # rounding of a constant
    flat[X.shape[1] if n_features is None else n_features :] = True
    scales = np.where(flat, 0.0, 1.0 / np.where(flat, 1.0, spread))
    return GlobalLines(X, [(1.0, RIDGE, np.diag(scales))], row_weights)
