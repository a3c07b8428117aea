"""The nearest training rows under several metrics, and the votes on them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from vicinal._typing import FloatArray, IndexArray
from vicinal.kernels.cpu.class_neighbors import Neighbors
from vicinal.kernels.cpu.metric_index import MetricIndex, SearchMetric
from vicinal.voting.local_linear import fit_lines_at, line_shares, with_prior
from vicinal.voting.row_weights import RowWeights, Term
from vicinal.voting.votes import LINES, PRIOR_VOTES, SLOPED, VoteName, vote_weights

FEW_QUERIES = 32
"""Up to so many, sorting the rows takes longer than it saves."""


class WeightedVote(NamedTuple):
    """A vote of the K nearest rows, and what it counts among others."""

    name: VoteName
    n_neighbors: int
    weight: float


class Seat(NamedTuple):
    """A metric, by its place, and what a vote under it counts."""

    metric: int
    weight: float


class NearestRows:
    """The nearest training rows under several metrics; one search serves all votes on them.

    Parameters
    ----------
    X : (n, p) training rows
    metrics : the metrics
    votes : for each metric its votes; all weights sum to ``weight``
    row_weights : (n,) what the vote of each training row counts
    prior_votes : how many rows the prior counts for
    keep : whether to keep what is prepared from one question to the next
    """

    def __init__(
        self,
        X: FloatArray,
        metrics: Sequence[SearchMetric],
        votes: Sequence[Sequence[WeightedVote]],
        row_weights: FloatArray,
        *,
        prior_votes: float = PRIOR_VOTES,
        keep: bool = True,
    ) -> None:
        self.metrics, self.votes = metrics, votes
        self._X, self._row_weights, self._prior_votes = X, row_weights, prior_votes
        self._keep = keep
        # Epanechnikov's vote looks at the neighbor after the last.
        self._ks = [min(1 + max(vote.n_neighbors for vote in own), len(X)) for own in votes]
        self._seats: dict[tuple[VoteName, int], list[Seat]] = {}
        for q, own in enumerate(votes):
            for vote in own:
                seats = self._seats.setdefault((vote.name, vote.n_neighbors), [])
                seats.append(Seat(q, vote.weight))

    def row_weights(
        self, queries: FloatArray, own_rows: IndexArray | None = None, threads: int | None = None
    ) -> RowWeights:
        """Row weights of the queries (q, p), which sum to the weights of all votes."""
        found = self._nearest(queries, own_rows, threads)
        return RowWeights(
            tuple(
                self._term(name, k, seats, found, queries)
                for (name, k), seats in self._seats.items()
            )
        )

    @property
    def sloped(self) -> list[bool]:
        """Of each term of the row weights, whether it is to be moved along a line."""
        return [name in SLOPED for name, _ in self._seats]

    def _nearest(
        self, queries: FloatArray, own_rows: IndexArray | None, threads: int | None
    ) -> Neighbors:
        if self._keep:
            return self._index.nearest(queries, self._ks, own_rows, threads)
        shape = len(self.metrics), len(queries), max(self._ks)
        found = Neighbors(np.full(shape, np.inf), np.full(shape, -1, dtype=np.int64))
        for q, (metric, k) in enumerate(zip(self.metrics, self._ks, strict=True)):
            index = MetricIndex(self._X, [metric], sort=len(queries) > FEW_QUERIES)
            distances, ids = index.nearest(queries, [k], own_rows, threads)
            found.distances[q, :, :k], found.ids[q, :, :k] = distances[0], ids[0]
        return found

    @cached_property
    def _index(self) -> MetricIndex:
        return MetricIndex(self._X, self.metrics)

    def _term(
        self, name: VoteName, k: int, seats: Sequence[Seat], found: Neighbors, queries: FloatArray
    ) -> Term:
        """The votes of one kind under all metrics that have a seat, in one go."""
        places = [seat.metric for seat in seats]
        s, q, width = len(seats), len(queries), found.ids.shape[2]
        asked = Neighbors(
            found.distances[places].reshape(s * q, width), found.ids[places].reshape(s * q, width)
        )
        if name in LINES:
            weights = self._lines(places, asked, queries, k, LINES[name])
        else:
            vote = SLOPED.get(name, name)
            weights = vote_weights(asked, self._row_weights, vote, k, self._prior_votes)
        (term,) = weights.terms
        shares = np.array([seat.weight for seat in seats])
        scaled = shares[:, None, None] * term.weights.reshape(s, q, k)
        return Term(
            term.ids.reshape(s, q, k).swapaxes(0, 1).reshape(q, s * k),
            scaled.swapaxes(0, 1).reshape(q, s * k),
            shares @ term.prior_share.reshape(s, q),
        )

    def _lines(
        self, places: Sequence[int], asked: Neighbors, queries: FloatArray, k: int, ridge: float
    ) -> RowWeights:
        """Local linear votes of neighbors (s q, K) under the metrics of s places."""
        ids, shares = asked.ids[:, :k], line_shares(asked, self._row_weights, k)
        fitted = np.empty_like(shares)
        for s, place in enumerate(places):
            own = slice(s * len(queries), (s + 1) * len(queries))
            fit_lines_at(
                queries, self._X, self.metrics[place], ids[own], shares[own], ridge, fitted[own]
            )
        return with_prior(ids, fitted, self._prior_votes)
