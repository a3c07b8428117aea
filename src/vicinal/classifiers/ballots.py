"""How a committee predicts: every member's neighbors vote, and the shares are averaged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils import gen_batches

from vicinal.classifiers.committee import Choice
from vicinal.classifiers.votes import Electorate, vote_shares
from vicinal.kernels.class_neighbors import all_neighbors

FloatArray: TypeAlias = NDArray[np.floating]
IndexArray: TypeAlias = NDArray[np.intp]

BATCH = 4096  # queries whose votes are held at a time


@dataclass(frozen=True)
class Ballot:
    """What the neighbors under one metric give to q queries, weight of the member included."""

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
    """(n, d) the training rows."""
    voters: Electorate
    metrics: FloatArray
    """(q, m, d)"""
    members: Sequence[Choice]

    def probabilities(self, queries: FloatArray) -> FloatArray:
        """(q, c) the shares summed by class."""
        c = len(self.voters.prior)
        P = np.empty((len(queries), c))
        for batch in gen_batches(len(queries), BATCH):
            P[batch] = self._batch_probabilities(queries[batch])
        return P

    def _batch_probabilities(self, queries: FloatArray) -> FloatArray:
        q, c = len(queries), len(self.voters.prior)
        sums, prior_share = np.zeros(q * c), np.zeros(q)
        for ballot in self._ballots(queries):
            cells = np.arange(q)[:, None] * c + self.voters.codes[ballot.ids]
            sums += np.bincount(cells.ravel(), weights=ballot.shares.ravel(), minlength=q * c)
            prior_share += ballot.prior_share
        return np.asarray(sums.reshape(q, c) + prior_share[:, None] * self.voters.prior)

    def row_shares(
        self, queries: FloatArray, own_rows: IndexArray | None = None
    ) -> tuple[csr_array, FloatArray]:
        """Sparse (q, n), the shares summed by training row, and (q,) the prior's share.

        `own_rows` (q,) names for each query a training row that may not vote: itself.
        """
        q, n = len(queries), len(self.X)
        total: Any = csr_array((q, n))
        prior_share = np.zeros(q)
        for ballot in self._ballots(queries, own_rows):
            k = ballot.ids.shape[1]
            ids = np.maximum(ballot.ids, 0)  # nobody has no share
            entries = (ballot.shares.ravel(), ids.ravel(), np.arange(0, q * k + 1, k))
            total = total + csr_array(entries, shape=(q, n))
            prior_share += ballot.prior_share
        total.eliminate_zeros()
        return total, prior_share

    def _ballots(self, queries: FloatArray, own: IndexArray | None = None) -> Iterator[Ballot]:
        """One neighbor search a metric serves all members that use it."""
        seats = sorted((q, i) for i, member in enumerate(self.members) for q in member.metrics)
        center = self.X.mean(axis=0)
        for q, group in groupby(seats, key=lambda seat: seat[0]):
            members = [self.members[i] for _, i in group]
            L = self.metrics[q]
            k = min(max(member.n_neighbors for member in members) + 1, len(self.X))
            found = all_neighbors((queries - center) @ L.T, (self.X - center) @ L.T, k, exclude=own)
            for member in members:
                shares, prior_share = vote_shares(
                    found, self.voters.weights, member.vote, member.n_neighbors
                )
                weight = member.weight / len(member.metrics)
                yield Ballot(
                    found.ids[:, : member.n_neighbors], weight * shares, weight * prior_share
                )
