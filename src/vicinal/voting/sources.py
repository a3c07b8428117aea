"""Sources of row weights: prepared once from the training rows, then asked many times.

A source keeps its training rows projected, checked and laid out for the neighbor search. That is
done at the first question, within a limit of memory; beyond it, every question prepares anew.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import groupby
from typing import Any, Generic, NamedTuple, Protocol, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils import gen_batches

from vicinal._typing import FloatArray, IndexArray
from vicinal.kernels.cpu.metric_index import SearchMetric, run_in_threads
from vicinal.learners.rank_one_metrics import factor
from vicinal.objective.soft_average import soft_average
from vicinal.voting.boosting import BoostedLeaves
from vicinal.voting.forest import Forest, LeafRows
from vicinal.voting.global_linear import GlobalLines, line_of_features
from vicinal.voting.nearest_rows import NearestRows, WeightedVote
from vicinal.voting.row_weights import RowWeights, Voters, probabilities
from vicinal.voting.votes import BOOSTED, GLOBAL_LINES, OF_TREES, VoteName

BATCH = 4096
"""Queries that are answered at a time, at most."""
ENTRIES = 2**22
"""Row weights that are held at a time."""
MEMORY_LIMIT = 2**30
"""Bytes that the prepared rows of one model may take."""
MANY_NEIGHBORS = 1000
"""Nearest rows that are sorted, unless more of them are needed."""
LEAF_ENTRIES = 4
"""Rows that a leaf adds to those of the others, about."""
THREAD_QUERIES = 256
"""Queries that a thread answers at a time."""

Value = TypeVar("Value")


def prepared(*names: str) -> Callable[[Callable[[Any], Value]], PreparedProperty[Value]]:
    """Decorate a method that prepares an object's attributes ``names`` for many questions.

    It becomes a property that is computed at its first use, and again after one of those
    attributes has been replaced. A value whose attribute ``keep`` is False is computed every time.

    Examples
    --------
    >>> class Line:
    ...     def __init__(self, points):
    ...         self.points = points
    ...
    ...     @prepared("points")
    ...     def total(self):
    ...         print("adding up")
    ...         return sum(self.points)
    >>> line = Line([1, 2])
    >>> line.total + line.total
    adding up
    6
    """
    return lambda build: PreparedProperty(build, names)


class PreparedProperty(Generic[Value]):
    """Property whose value is kept beside the object, not in it.

    So the value is never pickled, copied or saved, ``__dict__`` stays as it was, and the value is
    dropped together with the object. Threads may share it.
    """

    def __init__(self, build: Callable[[Any], Value], names: Sequence[str]) -> None:
        self._build, self._names = build, names
        self._kept: WeakKeyDictionary[object, tuple[list[object], Value]] = WeakKeyDictionary()
        self._lock = threading.Lock()
        self.__doc__ = build.__doc__

    def __get__(self, owner: object, kind: type) -> Value:
        if owner is None:
            raise AttributeError("is there only for objects, not for their class")
        made_from = [getattr(owner, name, None) for name in self._names]
        with self._lock:
            kept = self._kept.get(owner)
        if kept is None or any(a is not b for a, b in zip(kept[0], made_from, strict=True)):
            kept = made_from, self._build(owner)  # not locked: at worst two threads build it
            if getattr(kept[1], "keep", True):
                with self._lock:
                    self._kept[owner] = kept
        return kept[1]


class Projection(NamedTuple):
    """The map x ↦ L (x − center), restricted to the columns and rows where L is not 0."""

    columns: slice
    L: FloatArray
    center: FloatArray

    @classmethod
    def of(cls, L: FloatArray, center: FloatArray) -> Projection:
        """That of a factor L (m, p) and a center (p,); if L is 0, one of its zeros stays."""
        rows, columns = (np.flatnonzero(np.any(L != 0, axis=axis)) for axis in (1, 0))
        if not len(rows):
            rows = columns = np.zeros(1, dtype=np.intp)
        seen = slice(int(columns[0]), int(columns[-1]) + 1)
        return cls(seen, L[rows, seen], center[seen])

    def project(self, X: FloatArray) -> FloatArray:
        """(n, m) of samples (n, p)."""
        return np.asarray((X[:, self.columns] - self.center) @ self.L.T)


class Member(Protocol):
    """One vote under several metrics, or in the leaves of several forests, one per fold."""

    @property
    def vote(self) -> VoteName: ...

    @property
    def n_neighbors(self) -> int: ...

    @property
    def weight(self) -> float: ...

    @property
    def metrics(self) -> Sequence[int]: ...


class Committee:
    """Weighted mean of nearest rows under several metrics, of lines and of rows in leaves.

    Parameters
    ----------
    X : (n, p) training rows, expanded if metrics are about hat functions
    rows : what they vote for, classes or numbers
    metrics : (q, m, p) factors
    members : votes and the indices of the metrics or forests they use; the weights sum to 1
    forests : of the first d features
    calibration : strength of :meth:`~vicinal.voting.row_weights.Voters.calibrated`; of classes an
        exponent, of numbers the share of the prior
    n_features : d; None if X has no other columns
    memory_limit : bytes above which training rows are not kept from one question to the next

    Attributes
    ----------
    keep : bool, whether the expanded and projected rows are within the limit
    """

    def __init__(
        self,
        X: FloatArray,
        rows: Voters,
        metrics: FloatArray,
        members: Sequence[Member],
        memory_limit: int = MEMORY_LIMIT,
        *,
        forests: Sequence[Forest] = (),
        calibration: float = 1.0,
        n_features: int | None = None,
    ) -> None:
        self.X, self.rows, self.calibration = X, rows, calibration
        self._metrics, self._all_members = metrics, members
        apart = (*OF_TREES, *GLOBAL_LINES)
        self._members = [member for member in members if member.vote not in apart]
        self._center = X.mean(axis=0)
        votes = _votes_by_metric(self._members)
        projections = [Projection.of(metrics[q], self._center) for q in votes]
        used = [SearchMetric(projection.columns, projection.L) for projection in projections]
        left = memory_limit - X.nbytes
        project = NearestRows.memory(len(X), used) <= left
        self.keep = project or NearestRows.memory(len(X), used, project=False) <= left
        self._nearest = NearestRows(
            X, used, list(votes.values()), rows.weights,
            prior_votes=rows.prior_votes, keep=self.keep, project=project,
        )  # fmt: skip
        self.forests, self._leaves, self._boosted = [], [], []
        args = rows.weights, rows.prior_votes
        in_trees = _votes_by_metric([member for member in members if member.vote in OF_TREES])
        for f, vote in ((f, vote) for f, votes in in_trees.items() for vote in votes):
            self.forests.append((vote.weight, forests[f]))
            if vote.name == BOOSTED:
                trees = BoostedLeaves(X, forests[f], *args)
                self._boosted.append((vote.weight, trees, trees.leaf_values(rows.targets)))
            else:
                self._leaves.append((vote.weight, LeafRows(X, forests[f], *args)))
        through_all = [member for member in members if member.vote in GLOBAL_LINES]
        lines = [
            (vote.weight, GLOBAL_LINES[vote.name], metrics[q])
            for q, own in _votes_by_metric(through_all).items()
            for vote in own
        ]
        self._lines = GlobalLines(X, lines, rows.weights) if lines else None
        entries = sum(vote.n_neighbors for own in votes.values() for vote in own)
        entries += sum(LEAF_ENTRIES * len(forest.roots) for _, forest in self.forests)
        self._slope = None
        if any(self._nearest.sloped):
            self._slope = line_of_features(X, n_features, rows.weights)
        weighing_all = [self._lines, self._slope, *self._boosted[:1]]
        entries += len(X) * sum(source is not None for source in weighing_all)
        self._batch = max(1, min(BATCH, ENTRIES // max(entries, 1)))

    def batches(self, n_queries: int) -> Iterator[slice]:
        """Queries that are answered at a time."""
        return gen_batches(n_queries, self._batch)

    def row_weights(self, queries: FloatArray, own_rows: IndexArray | None = None) -> RowWeights:
        """Row weights of the queries (q, p).

        `own_rows` (q,) names for each query a training row that may not vote: itself.
        """
        weights = self._mean_weights(queries, own_rows)
        return self.rows.calibrated_weights(weights, self.calibration)

    def _mean_weights(
        self,
        queries: FloatArray,
        own_rows: IndexArray | None = None,
        threads: int | None = None,
    ) -> RowWeights:
        """The weighted mean of the members, not calibrated."""
        boosted = [
            (weight, trees.row_weights(queries, own_rows)) for weight, trees, _ in self._boosted
        ]
        return RowWeights.weighted_sum([*self._plain_parts(queries, own_rows, threads), *boosted])

    def _mean_shares(self, queries: FloatArray, threads: int | None) -> FloatArray:
        """(q, c + 1) the shares of `_mean_weights`; boosted trees weigh no row for them."""
        parts = self._plain_parts(queries, None, threads)
        shares = self.rows.shares(RowWeights.weighted_sum(parts)) if parts else 0.0
        for weight, trees, values in self._boosted:
            shares = shares + weight * trees.shares_from(values, queries)
        return np.asarray(shares)

    def _plain_parts(
        self, queries: FloatArray, own_rows: IndexArray | None, threads: int | None
    ) -> list[tuple[float, RowWeights]]:
        """The parts of the mean of all members but boosted trees."""
        parts = []
        if self._members:  # not all of them are forests
            near = self._nearest.row_weights(queries, own_rows, threads)
            parts.append((1.0, near))
            if self._slope is not None:
                terms = zip(near.terms, self._nearest.sloped, strict=True)
                moved = RowWeights(tuple(term for term, sloped in terms if sloped))
                parts.append((1.0, self._slope.moves(moved, queries, own_rows)))
        parts += [
            (weight, leaves.row_weights(queries, own_rows)) for weight, leaves in self._leaves
        ]
        if self._lines is not None:
            parts.append((1.0, self._lines.row_weights(queries, own_rows)))
        return parts

    def predictions(self, queries: FloatArray) -> FloatArray:
        """(q, c) probabilities of the classes, or averages of the targets, of queries (q, p)."""
        P, rows = np.empty((len(queries), len(self.rows.prior))), self.rows
        alone = self.keep and len(queries) > THREAD_QUERIES  # each thread has blocks of its own
        size = min(self._batch, THREAD_QUERIES) if alone else self._batch

        def predict_block(block: slice) -> None:
            shares = self._mean_shares(queries[block], 1 if alone else None)
            P[block] = probabilities(rows.calibrated(shares, self.calibration), rows.prior)

        run_in_threads(predict_block, list(gen_batches(len(queries), size)), None if alone else 1)
        return P

    def sparse_weights(
        self, queries: FloatArray, own_rows: IndexArray | None = None
    ) -> tuple[csr_array, FloatArray]:
        """Row weights as a sparse array (q, n), and (q,) the prior's share."""
        weights = self.row_weights(queries, own_rows)
        return weights.to_sparse(len(self.X)), weights.prior_share

    def local_weights(self, queries: FloatArray) -> csr_array:
        """(q, n) row weights by all members but boosted trees, whose weights are not local."""
        parts = self._plain_parts(queries, None, None)
        if not parts:
            return csr_array((len(queries), len(self.X)))
        return RowWeights.weighted_sum(parts).to_sparse(len(self.X))

    @cached_property
    def mean_metric(self) -> FloatArray:
        """M (p, p), the mean of the members' metrics: :func:`mean_metric`."""
        return mean_metric(self.X, self._metrics, self._all_members)

    def neighbors(
        self, queries: FloatArray, weights: csr_array, k: int, own_rows: IndexArray | None = None
    ) -> tuple[FloatArray, IndexArray]:
        """Distances under the mean metric and training rows (q, k), the largest weights first.

        Of equal weights the nearer row comes first; so do, where fewer than k rows have a weight,
        the nearest of the others.

        Parameters
        ----------
        queries : (q, p)
        weights : (q, n) their row weights
        k : number of neighbors
        own_rows : (q,) for each query a training row that is not its neighbor, or None
        """
        Z = self._mean_projection.project(queries)
        references = self._mean_references
        distances = np.empty((len(Z), k))
        indices = np.empty((len(Z), k), dtype=np.intp)
        for i, z in enumerate(Z):
            voted = slice(weights.indptr[i], weights.indptr[i + 1])
            rows, shares = weights.indices[voted], weights.data[voted]
            if len(rows) < k:
                rows, shares = np.arange(len(self.X)), weights[[i]].toarray()[0]
            to_rows = np.linalg.norm(references[rows] - z, axis=1)
            if own_rows is not None:
                to_rows[rows == own_rows[i]] = np.inf
            order = np.lexsort((to_rows, -shares))[:k]
            distances[i], indices[i] = to_rows[order], rows[order]
        return distances, indices

    @cached_property
    def _mean_projection(self) -> Projection:
        return Projection(slice(None), factor(self.mean_metric), self._center)

    @property
    def _mean_references(self) -> FloatArray:
        return self._kept_references if self.keep else self._mean_projection.project(self.X)

    @cached_property
    def _kept_references(self) -> FloatArray:
        return self._mean_projection.project(self.X)

    def effective_neighbors(
        self, queries: FloatArray, winners: IndexArray, codes: IndexArray
    ) -> FloatArray:
        """(q,) mean over the metrics of :func:`effective_counts` for the class that won.

        Without a metric: 1/Σ w² of the weights of the rows that voted for it.

        Parameters
        ----------
        queries : (q, p)
        winners : (q,) the class that won
        codes : (n,) the classes of the training rows
        """
        if not self._members:
            weights = self.sparse_weights(queries)[0].toarray()
            weights[codes != winners[:, None]] = 0.0
            return np.asarray(
                weights.sum(axis=1) ** 2 / np.maximum((weights**2).sum(axis=1), 1e-300)
            )
        counts = np.zeros(len(queries))
        shares = np.array([sum(vote.weight for vote in own) for own in self._nearest.votes])
        for label in np.unique(winners):
            won, voters = winners == label, np.flatnonzero(codes == label)
            for q, share in enumerate(shares / shares.sum()):
                distances = self._nearest.distances(q, queries[won], voters)
                counts[won] += share * effective_counts(distances)
        return counts


def _votes_by_metric(members: Sequence[Member]) -> dict[int, list[WeightedVote]]:
    """For every metric in use the votes of its members, each with its part of their weight."""
    seats = sorted((q, i) for i, member in enumerate(members) for q in member.metrics)
    return {
        q: [
            WeightedVote(member.vote, member.n_neighbors, member.weight / len(member.metrics))
            for member in (members[i] for _, i in group)
        ]
        for q, group in groupby(seats, key=lambda seat: seat[0])
    }


def mean_metric(X: FloatArray, metrics: FloatArray, members: Sequence[Member]) -> FloatArray:
    """(p, p) mean of the members' metrics (q, m, p), each divided by its mean squared distance.

    The mean squared distance is that of two of the rows X (n, p). A single metric stays as it is;
    forests have none, and those of lines through all rows count only where no neighbors vote.
    """
    if len(metrics) == 1:
        return np.asarray(metrics[0].T @ metrics[0])
    deviations = X - X.mean(axis=0)
    mean = np.zeros((deviations.shape[1],) * 2)
    covariance = deviations.T @ deviations / len(deviations)
    members = [member for member in members if member.vote not in OF_TREES]
    members = [member for member in members if member.vote not in GLOBAL_LINES] or members
    for member in members:
        for L in metrics[list(member.metrics)]:
            spread = 2.0 * np.sum((L @ covariance) * L)
            mean += member.weight / len(member.metrics) / max(spread, 1e-300) * (L.T @ L)
    return mean / sum(member.weight for member in members)


def effective_counts(D: FloatArray) -> FloatArray:
    """:func:`~vicinal.k_for_gamma` at γ = 1 for every row of the squared distances D (q, n)."""
    n = D.shape[1]
    b = soft_average(D, 1.0, axis=1)[:, None]  # (q, 1)
    most = min(n, MANY_NEIGHBORS)
    while True:  # most of the rows are too far away to need their order
        a = np.sort(D if most == n else np.partition(D, most - 1, axis=1)[:, :most], axis=1)
        means = np.cumsum(a, axis=1) / np.arange(1, most + 1)
        j = np.sum(means <= b, axis=1).clip(1, most)  # m_j ≤ b < m_{j+1}
        if most == n or np.all(j < most):
            break
        most = n
    rows = np.arange(len(a))
    following = a[rows, np.minimum(j, most - 1)] - b[:, 0]
    beyond = b[:, 0] - means[rows, j - 1]
    inside = (j < n) & (following > 0)
    fraction = np.where(inside, beyond / np.where(inside, following, 1.0), 0.0)
    return np.asarray(j * (1.0 + np.maximum(fraction, 0.0)))
