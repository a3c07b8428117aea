"""Forests as sources of row weights: the rows in the leaves of a query are its neighbors.

The prediction of a forest is a weighted average over training rows: a row counts in every tree
where it lies in the leaf of the query, divided by the rows of that leaf. Trees are grown by
scikit-learn and kept as plain arrays, in the units of the features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.base import BaseEstimator, clone

from vicinal._typing import FloatArray, IndexArray, LabelArray
from vicinal.voting.local_linear import with_prior
from vicinal.voting.row_weights import RowWeights
from vicinal.voting.votes import PRIOR_VOTES


class NodeArrays(Protocol):
    """The attribute ``tree_`` of a fitted tree of scikit-learn."""

    node_count: int
    feature: IndexArray
    threshold: FloatArray
    children_left: IndexArray
    children_right: IndexArray


@dataclass(frozen=True)
class Forest:
    """Decision trees, with the nodes of all of them in one list."""

    roots: IndexArray
    """(t,) the first node of each tree."""
    features: IndexArray
    """(v,) the feature that decides at each node; -1 at a leaf."""
    thresholds: FloatArray
    """(v,) values up to it go left, larger ones right."""
    children: IndexArray
    """(v, 2) left and right; children follow their parent. -1 at a leaf."""

    @classmethod
    def grow(
        cls,
        tree: BaseEstimator,
        n_trees: int,
        X: FloatArray,
        targets: LabelArray,
        weights: FloatArray,
        seed: int,
    ) -> Forest:
        """Grow trees on samples with replacement of rows X (n, d) of targets (n,).

        Trees see standardized features, since scikit-learn works in float32. They are what `tree`
        becomes, fit by fit, without checks of what is the same every time; a forest of scikit-learn
        may not be fitted in several threads, since it changes the filters of warnings.
        """
        rng = np.random.RandomState(seed)
        Z, center, scale = standardized_for_trees(X)
        nodes = []
        tree = clone(tree)
        for _ in range(n_trees):
            times = np.bincount(rng.randint(len(X), size=len(X)), minlength=len(X))
            tree.random_state = rng.randint(2**31 - 1)
            drawn = times * weights
            if not drawn.any():  # only rows of weight 0 were drawn
                drawn = times.astype(np.float64)
            with config_context(assume_finite=True, skip_parameter_validation=True):
                tree.fit(Z, targets, sample_weight=drawn, check_input=False)
            nodes.append(tree.tree_)
        return cls.of(nodes, center, scale)

    @classmethod
    def of(cls, nodes: Sequence[NodeArrays], center: FloatArray, scale: FloatArray) -> Forest:
        """Forest of the trees of scikit-learn, grown on rows (x − center) / scale."""
        starts = np.cumsum([0, *(tree.node_count for tree in nodes)]).astype(np.intp)
        features = np.concatenate([tree.feature for tree in nodes]).astype(np.intp)
        children = np.concatenate(
            [
                np.c_[tree.children_left, tree.children_right] + start
                for tree, start in zip(nodes, starts[:-1], strict=True)
            ]
        ).astype(np.intp)
        inner = features >= 0
        own = features[inner]
        thresholds = np.zeros(len(features))
        values = np.concatenate([tree.threshold for tree in nodes])[inner]
        thresholds[inner] = values * scale[own] + center[own]
        return cls(
            starts[:-1],
            np.where(inner, features, -1),
            thresholds,
            np.where(inner[:, None], children, -1),
        )

    @property
    def trees(self) -> list[slice]:
        """The nodes of each tree."""
        ends = [*self.roots[1:].tolist(), len(self.features)]
        return [slice(start, end) for start, end in zip(self.roots.tolist(), ends, strict=True)]

    def first(self, n_trees: int) -> Forest:
        """The first trees."""
        end = self.trees[n_trees - 1].stop
        return Forest(
            self.roots[:n_trees], self.features[:end], self.thresholds[:end], self.children[:end]
        )

    def leaves(self, X: FloatArray) -> IndexArray:
        """(n, t) the leaf of each row of X (n, d) in each tree."""
        from vicinal.learners.compiled_loops import descend_trees

        found = np.empty((len(X), len(self.roots)), dtype=np.intp)
        X = np.ascontiguousarray(X)
        descend_trees(X, self.roots, self.features, self.thresholds, self.children, found)
        return found

    def separations(self, x: FloatArray, rows: FloatArray) -> FloatArray:
        """(k, d) share of the trees in which a threshold of each feature separates x from a row.

        That is the feature of the node where the ways of x (d,) and of the row part; the shares of
        a row sum to 1 less the share of the trees in which it lies in the leaf of x.
        """
        found = np.zeros(rows.shape)
        samples = np.vstack([x, rows])
        nodes = np.tile(self.roots, (len(rows), 1))  # (k, t), as long as the ways agree
        index = np.arange(len(rows))[:, None]
        while (nodes >= 0).any():
            inner = (nodes >= 0) & (self.features[nodes] >= 0)
            own, limits = self.features[nodes], self.thresholds[nodes]
            right = samples[0][own] > limits
            apart = inner & (right != (rows[index, own] > limits))
            np.add.at(found, (np.broadcast_to(index, nodes.shape)[apart], own[apart]), 1.0)
            on = inner & ~apart
            nodes = np.where(on, self.children[nodes, right.astype(np.intp)], -1)
        return found / len(self.roots)


def standardized_for_trees(X: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Rows (x − center) / scale in the precision of scikit-learn's trees; center and scale (d,)."""
    center, scale = X.mean(axis=0), X.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    return np.ascontiguousarray((X - center) / scale, dtype=np.float32), center, scale


class LeafRows:
    """The training rows in the leaves of the queries.

    Parameters
    ----------
    X : (n, d) training rows
    forest : its trees
    row_weights : (n,) what each training row counts
    prior_votes : how many rows the prior counts for
    """

    def __init__(
        self,
        X: FloatArray,
        forest: Forest,
        row_weights: FloatArray,
        prior_votes: float = PRIOR_VOTES,
    ) -> None:
        self._X, self._forest, self._row_weights = X, forest, row_weights
        self._prior_votes = prior_votes

    def row_weights(self, queries: FloatArray, own_rows: IndexArray | None = None) -> RowWeights:
        """Row weights of the queries (q, d); `own_rows` (q,) names a row that may not vote.

        A tree whose leaf has no row that may vote does not count.
        """
        return with_prior(*_padded(self._weights(queries, own_rows)), self._prior_votes)

    def _weights(self, queries: FloatArray, own_rows: IndexArray | None) -> csr_array:
        """(q, n) mean over the trees, of sum 1."""
        leaves = self._forest.leaves(queries)
        members, totals = self._members
        sizes = totals[leaves]
        if own_rows is not None:
            shared = self._leaves[own_rows] == leaves
            sizes = sizes - np.where(shared, self._row_weights[own_rows][:, None], 0.0)
        counts = sizes > 1e-10 * totals[leaves]
        trees = np.maximum(counts.sum(axis=1, keepdims=True), 1)
        shares = np.where(counts, 1.0 / np.where(counts, sizes, 1.0), 0.0) / trees
        q, t = leaves.shape
        visits = csr_array(
            (shares.ravel(), leaves.ravel(), np.arange(q + 1) * t), shape=(q, len(totals))
        )
        weights = csr_array(visits @ members)
        if own_rows is not None:
            asked = np.repeat(np.arange(q), np.diff(weights.indptr))
            weights.data[weights.indices == own_rows[asked]] = 0.0
        return weights

    @cached_property
    def _leaves(self) -> IndexArray:
        return self._forest.leaves(self._X)

    @cached_property
    def _members(self) -> tuple[csr_array, FloatArray]:
        """(v, n) the weight of each row in its leaves, and (v,) its sums."""
        n, t = self._leaves.shape
        v = len(self._forest.features)
        weights = np.repeat(self._row_weights, t)
        rows = csr_array((weights, self._leaves.ravel(), np.arange(n + 1) * t), shape=(n, v))
        totals = np.bincount(self._leaves.ravel(), weights=weights, minlength=v)
        return csr_array(rows.T), np.asarray(totals, dtype=np.float64)


def _padded(weights: csr_array) -> tuple[IndexArray, FloatArray]:
    """Columns and values (q, k) of a sparse array; missing ones are -1 and 0."""
    lengths = np.diff(weights.indptr)
    queries = np.repeat(np.arange(len(lengths)), lengths)
    places = np.arange(len(queries)) - weights.indptr[queries]
    ids = np.full((len(lengths), int(lengths.max(initial=1))), -1, dtype=np.intp)
    values = np.zeros(ids.shape)
    ids[queries, places], values[queries, places] = weights.indices, weights.data
    return ids, values
