"""How a committee predicts: every member's neighbors vote, and the shares are averaged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils import gen_batches

from vicinal._typing import FloatArray, IndexArray
from vicinal.automatic.committee import Choice
from vicinal.kernels.cpu.class_neighbors import Neighbors, all_neighbors
from vicinal.voting.votes import Electorate, vote_shares

BATCH = 4096  # queries whose votes are held at a time


@dataclass(frozen=True)
class Ballot:
    """What the neighbors under one metric give to q queries, weight of the member included."""

    asked: slice
    """The queries that it is about."""
    ids: IndexArray
    """(q, K) training rows; −1 is nobody."""
    shares: FloatArray
    """(q, K) of the probability."""
    prior_share: FloatArray
    """(q,)"""


@dataclass(frozen=True)
class Committee:
    """Metrics, members and voters: all that a prediction needs."""

    X: FloatArray
    """(n, p) the training rows, unfolded if metrics are about hats."""
    voters: Electorate
    metrics: FloatArray
    """(q, m, p)"""
    members: Sequence[Choice]

    def probabilities(self, queries: FloatArray) -> FloatArray:
        """(q, c) the shares summed by class."""
        q, c = len(queries), len(self.voters.prior)
        sums, prior_share = np.zeros((q, c)), np.zeros(q)
        for ballot in self._ballots(queries, batch=BATCH):
            size = len(ballot.ids)
            cells = np.arange(size)[:, None] * c + self.voters.codes[ballot.ids]
            votes = np.bincount(cells.ravel(), weights=ballot.shares.ravel(), minlength=size * c)
            sums[ballot.asked] += votes.reshape(size, c)
            prior_share[ballot.asked] += ballot.prior_share
        return np.asarray(sums + prior_share[:, None] * self.voters.prior)

    def row_shares(
        self, queries: FloatArray, own_rows: IndexArray | None = None
    ) -> tuple[csr_array, FloatArray]:
        """Sparse (q, n), the shares summed by training row, and (q,) the prior's share.

        `own_rows` (q,) names for each query a training row that may not vote: itself.
        """
        q, n = len(queries), len(self.X)
        total: Any = csr_array((q, n))
        prior_share = np.zeros(q)
        for ballot in self._ballots(queries, own_rows, batch=q):
            k = ballot.ids.shape[1]
            ids = np.maximum(ballot.ids, 0)  # nobody has no share
            entries = (ballot.shares.ravel(), ids.ravel(), np.arange(0, q * k + 1, k))
            total = total + csr_array(entries, shape=(q, n))
            prior_share += ballot.prior_share
        total.eliminate_zeros()
        return total, prior_share

    def mean_metric(self) -> FloatArray:
        """(p, p) mean of the members' metrics, each divided by its mean squared distance.

        A single metric stays as it is.
        """
        if len(self.metrics) == 1:
            return np.asarray(self.metrics[0].T @ self.metrics[0])
        deviations = self.X - self.X.mean(axis=0)
        mean = np.zeros((deviations.shape[1],) * 2)
        covariance = deviations.T @ deviations / len(deviations)
        for member in self.members:
            for L in self.metrics[list(member.metrics)]:
                spread = 2.0 * np.sum((L @ covariance) * L)
                mean += member.weight / len(member.metrics) / max(spread, 1e-300) * (L.T @ L)
        return mean

    def _ballots(
        self, queries: FloatArray, own: IndexArray | None = None, *, batch: int
    ) -> Iterator[Ballot]:
        """One neighbor search a metric serves all members that use it."""
        seats = sorted((q, i) for i, member in enumerate(self.members) for q in member.metrics)
        center = self.X.mean(axis=0)
        references, queries = self.X - center, queries - center
        for q, group in groupby(seats, key=lambda seat: seat[0]):
            members = [self.members[i] for _, i in group]
            k = min(max(member.n_neighbors for member in members) + 1, len(self.X))
            L = Projection.of(self.metrics[q])
            Z = L.project(references)
            for asked in gen_batches(len(queries), batch):
                exclude = None if own is None else own[asked]
                found = all_neighbors(L.project(queries[asked]), Z, k, exclude=exclude)
                for member in members:
                    yield self._ballot(asked, found, member)

    def _ballot(self, asked: slice, found: Neighbors, member: Choice) -> Ballot:
        k = member.n_neighbors
        shares, prior_share = vote_shares(found, self.voters.weights, member.vote, k)
        weight = member.weight / len(member.metrics)
        return Ballot(asked, found.ids[:, :k], weight * shares, weight * prior_share)


@dataclass(frozen=True)
class Projection:
    """x ↦ L x, without the columns around those that L looks at and without rows of zeros."""

    columns: slice
    L: FloatArray

    @classmethod
    def of(cls, L: FloatArray) -> Projection:
        """That of the factor L (m, p); of a factor of zeros one of its zeros stays."""
        rows, columns = (np.flatnonzero(np.any(L != 0, axis=axis)) for axis in (1, 0))
        if not len(rows):
            rows = columns = np.zeros(1, dtype=np.intp)
        seen = slice(columns[0], columns[-1] + 1)
        return cls(seen, L[rows, seen])

    def project(self, X: FloatArray) -> FloatArray:
        """(n, m) of samples (n, p)."""
        return np.asarray(X[:, self.columns] @ self.L.T)
