"""The nearest training rows under several metrics, and the votes on them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from vicinal._typing import FloatArray, IndexArray
from vicinal.kernels.cpu.class_neighbors import Neighbors
from vicinal.kernels.cpu.metric_index import Blocks, MetricIndex, SearchMetric
from vicinal.voting.local_linear import fit_lines_at, line_shares, with_prior
from vicinal.voting.row_weights import RowWeights, Term
from vicinal.voting.votes import LINES, PRIOR_VOTES, SLOPED, VoteName, vote_weights

FEW_QUERIES = 32
"""Up to so many, sorting the rows takes longer than it saves."""
WIDE = 4096
"""Entries of a factor above which rows are projected by it, once, rather than differences."""


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
    project : whether to keep the rows projected by wide factors, too
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
        project: bool = True,
    ) -> None:
        self.metrics, self.votes = metrics, votes
        self._X, self._row_weights, self._prior_votes = X, row_weights, prior_votes
        self._center = X.mean(axis=0)
        self._layout = _layout(metrics) if keep and project else list(metrics)
        self._wide = [
            metric
            for metric, place in zip(metrics, self._layout, strict=True)
            if place is not metric
        ]
        self._keep = keep
        # Epanechnikov's vote looks at the neighbor after the last.
        self._ks = [min(1 + max(vote.n_neighbors for vote in own), len(X)) for own in votes]
        self._seats: dict[tuple[VoteName, int], list[Seat]] = {}
        for q, own in enumerate(votes):
            for vote in own:
                seats = self._seats.setdefault((vote.name, vote.n_neighbors), [])
                seats.append(Seat(q, vote.weight))

    @staticmethod
    def memory(n: int, metrics: Sequence[SearchMetric], *, project: bool = True) -> int:
        """Bytes that are kept of n rows, beside the rows themselves."""
        places = _layout(metrics) if project else metrics
        wide = project and any(map(_is_wide, metrics))
        kept = max((place.columns.stop for place in places), default=0) if wide else 0
        return 8 * n * kept + MetricIndex.memory(n, places)

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

    def distances(self, q: int, queries: FloatArray, rows: IndexArray) -> FloatArray:
        """(q, k) squared distances from queries (q, p) to some training rows under a metric."""
        X, at, metric = self._under(q, queries)
        columns = metric.columns
        near, at = X[rows][:, columns], at[:, columns]
        if metric.L is not None:
            center = self._center[columns]
            near, at = (near - center) @ metric.L.T, (at - center) @ metric.L.T
        return np.asarray(cdist(at, near, "sqeuclidean"))

    def _nearest(
        self, queries: FloatArray, own_rows: IndexArray | None, threads: int | None
    ) -> Neighbors:
        if self._keep:
            return self._index.nearest(self._laid_out(queries), self._ks, own_rows, threads)
        shape = len(self.metrics), len(queries), max(self._ks)
        found = Neighbors(np.full(shape, np.inf), np.full(shape, -1, dtype=np.int64))
        for q, (metric, k) in enumerate(zip(self.metrics, self._ks, strict=True)):
            index = MetricIndex(self._X, [metric], sort=len(queries) > FEW_QUERIES)
            distances, ids = index.nearest(queries, [k], own_rows, threads)
            found.distances[q, :, :k], found.ids[q, :, :k] = distances[0], ids[0]
        return found

    @cached_property
    def _index(self) -> MetricIndex:
        return MetricIndex(self._rows, self._layout)

    @cached_property
    def _rows(self) -> Blocks:
        """The training rows: a block that narrow metrics share, and one of each wide metric."""
        if not self._wide:
            return Blocks.of(self._X)
        shared = _shared_columns(self.metrics)
        widths = [shared] * (shared > 0) + [_rank(metric) for metric in self._wide]
        rows = Blocks.empty(len(self._X), widths)
        blocks = iter(rows)
        if shared:
            next(blocks)[:] = self._X[:, :shared]
        for block, metric in zip(blocks, self._wide, strict=True):
            self._project(self._X, metric, block)
        return rows

    def _laid_out(self, X: FloatArray) -> FloatArray:
        """(q, p') the columns of samples (q, p) that the metrics of the layout are about."""
        if not self._wide:
            return X
        parts = [
            X[:, : _shared_columns(self.metrics)],
            *(self._projected(X, m) for m in self._wide),
        ]
        return np.concatenate(parts, axis=1)

    def _under(self, q: int, queries: FloatArray) -> tuple[FloatArray, FloatArray, SearchMetric]:
        """Training rows and queries as the metric at a place needs them, and that metric."""
        metric, place = self.metrics[q], self._layout[q]
        if not self._keep:
            return self._X, queries, metric
        rows, inside = self._rows.block(place.columns)
        if place is metric:
            return rows, queries, metric
        return rows, self._projected(queries, metric), SearchMetric(inside, None)

    def _projected(self, X: FloatArray, metric: SearchMetric) -> FloatArray:
        """(q, m) of samples (q, p), by a wide metric; the same whatever the other samples are."""
        found = np.empty((len(X), _rank(metric)))
        self._project(X, metric, found)
        return found

    def _project(self, X: FloatArray, metric: SearchMetric, found: FloatArray) -> None:
        from vicinal.kernels.cpu.metric_search import project  # imports Numba

        assert metric.L is not None  # it is wide
        columns = metric.columns
        project(X[:, columns], self._center[columns], np.ascontiguousarray(metric.L.T), found)

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
            rows, at, metric = self._under(place, queries)
            fit_lines_at(at, rows, metric, ids[own], shares[own], ridge, fitted[own])
        return with_prior(ids, fitted, self._prior_votes)


def _rank(metric: SearchMetric) -> int:
    return metric.columns.stop - metric.columns.start if metric.L is None else len(metric.L)


def _is_wide(metric: SearchMetric) -> bool:
    return metric.L is not None and metric.L.size > WIDE


def _shared_columns(metrics: Sequence[SearchMetric]) -> int:
    """The columns up to the last that a metric which is not wide is about."""
    return max((metric.columns.stop for metric in metrics if not _is_wide(metric)), default=0)


def _layout(metrics: Sequence[SearchMetric]) -> list[SearchMetric]:
    """The same metrics, of rows in which the wide ones have columns of their own, projections."""
    stop = _shared_columns(metrics)
    places = []
    for metric in metrics:
        if _is_wide(metric):
            places.append(SearchMetric(slice(stop, stop + _rank(metric)), None))
            stop += _rank(metric)
        else:
            places.append(metric)
    return places
