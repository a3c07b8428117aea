r"""Boosted trees as sources of row weights.

Every tree is grown on what the trees before it have left of the targets, and a leaf adds a part of
the mean of its rows. Once the trees stand, all of this is linear in the targets: the prediction is
a weighted sum over training rows, of weights that sum to 1 and may be negative.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from sklearn import config_context
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import gen_batches

from vicinal._typing import FloatArray, IndexArray
from vicinal.kernels.cpu.metric_index import run_in_threads
from vicinal.voting.forest import Forest, NodeArrays, standardized_for_trees
from vicinal.voting.row_weights import RowWeights

RATE = 0.1
"""Part of the mean of a leaf that is added."""
PENALTY = 1.0
"""Rows of residual 0 that every leaf has besides its own: small leaves add less."""
DEPTH = 6
LEAST_ROWS = 3
"""Of a leaf."""
MOST_FEATURES = 40
"""Features that a node looks at, at most: a third of them, if these are fewer."""
THREAD_QUERIES = 16
"""Queries that a thread weighs the rows for at a time."""
VOTES = 100.0
"""Rows that a prediction counts for beside the prior."""


def grow_boosted(
    n_trees: int,
    X: FloatArray,
    targets: FloatArray,
    weights: FloatArray,
    seed: int,
    stop: Callable[[], bool] = lambda: False,
) -> Forest | None:
    """Grow trees on rows X (n, d), each for the residuals of the targets (n, t) so far.

    None if `stop` has ended it.
    """
    rng = np.random.RandomState(seed)
    weights = weights if weights.any() else np.ones(len(X))
    Z, center, scale = standardized_for_trees(X)
    d = Z.shape[1]
    looked_at = min(max(1, d // 3), MOST_FEATURES)
    left = targets - weights @ targets / weights.sum()
    nodes: list[NodeArrays] = []
    with config_context(assume_finite=True, skip_parameter_validation=True):
        for _ in range(n_trees):
            if stop():
                return None
            grown = DecisionTreeRegressor(
                max_depth=DEPTH,
                min_samples_leaf=LEAST_ROWS,
                max_features=looked_at,
                random_state=rng.randint(2**31 - 1),
            )
            grown.fit(Z, np.ascontiguousarray(left), weights, check_input=False)
            nodes.append(grown.tree_)
            leaves = grown.tree_.apply(Z)
            left -= _leaf_values(leaves, left, weights, grown.tree_.node_count)[leaves]
    return Forest.of(nodes, center, scale)


class BoostedLeaves:
    r"""The weighted sum of the training rows that boosted trees predict.

    With the rows' weights w, the leaf :math:`l` of tree t adds to every row in it, and to every
    query, :math:`\eta \sum_{j \in l} w_j r_j / (\sum_{j \in l} w_j + \rho)`, of the residuals r
    that the trees before t have left of the targets less their mean.

    Parameters
    ----------
    X : (n, d) training rows
    forest : the trees, in the order in which they were grown
    row_weights : (n,) what each training row counts
    prior_votes : how many rows the prior counts for
    """

    def __init__(
        self, X: FloatArray, forest: Forest, row_weights: FloatArray, prior_votes: float
    ) -> None:
        self._X, self._forest, self._row_weights = X, forest, row_weights
        self._prior_share = prior_votes / (VOTES + prior_votes)

    def shares(self, queries: FloatArray, targets: FloatArray) -> FloatArray:
        """(q, t + 1) weighted sums of targets (n, t), then the prior's share: no row is weighed."""
        return self.shares_from(self.leaf_values(targets), queries)

    def leaf_values(self, targets: FloatArray) -> FloatArray:
        """(v + 1, t) what every node adds; the last is the mean of the targets."""
        forest, weights = self._forest, self._row_weights
        total = weights.sum()
        mean = weights @ targets / total if total > 0 else np.zeros(targets.shape[1])
        values = np.zeros((len(forest.features) + 1, targets.shape[1]))
        values[-1] = mean
        left = targets - mean
        for t, nodes in enumerate(forest.trees):
            leaves = self._leaves[t]
            values[nodes] = _leaf_values(leaves, left, weights, nodes.stop - nodes.start)
            left -= values[nodes][leaves]
        return values

    def shares_from(self, values: FloatArray, queries: FloatArray) -> FloatArray:
        """(q, t + 1) the shares that follow from the values of the nodes."""
        sums = np.tile(values[-1], (len(queries), 1))
        leaves = self._forest.leaves(queries)
        for t in range(values.shape[1]):
            sums[:, t] += values[leaves, t].sum(axis=1)
        share = np.full((len(queries), 1), self._prior_share)
        return np.hstack([(1.0 - self._prior_share) * sums, share])

    def row_weights(self, queries: FloatArray, own_rows: IndexArray | None = None) -> RowWeights:
        """Row weights of the queries (q, d).

        `own_rows` (q,) names a row that may not vote: the weights of the others are divided by
        what is left.
        """
        from vicinal.learners.compiled_loops import add_boosted_weights

        forest, weights, n = self._forest, self._row_weights, len(self._X)
        q, total = len(queries), weights.sum()
        if not total > 0:
            return RowWeights.of(np.zeros((q, 1), np.intp), np.zeros((q, 1)), np.ones(q))
        steps = np.zeros(len(forest.features))
        for t, nodes in enumerate(forest.trees):
            sizes = np.bincount(self._leaves[t], weights, nodes.stop - nodes.start)
            steps[nodes] = RATE / (sizes + PENALTY)
        b = np.zeros((q, n))
        asked = forest.leaves(queries) - forest.roots

        def add(block: slice) -> None:
            args = self._leaves, asked[block], forest.roots, steps, weights
            add_boosted_weights(*args, b[block])

        run_in_threads(add, list(gen_batches(q, THREAD_QUERIES)))
        b += (1.0 - b.sum(axis=1))[:, None] * (weights / total)
        if own_rows is not None:
            b[np.arange(q), own_rows] = 0.0
            left = b.sum(axis=1, keepdims=True)
            b /= np.where(left > 1e-10, left, np.inf)
        b *= 1.0 - self._prior_share
        ids = np.broadcast_to(np.arange(n), (q, n))
        return RowWeights.of(ids, b, 1.0 - b.sum(axis=1))

    @cached_property
    def _leaves(self) -> IndexArray:
        """(t, n) the leaf of each row in each tree, counted from the tree's root."""
        found = self._forest.leaves(self._X) - self._forest.roots
        return np.ascontiguousarray(found.T)


def _leaf_values(
    leaves: IndexArray, left: FloatArray, weights: FloatArray, n_nodes: int
) -> FloatArray:
    """(v, t) what the nodes of one tree add, from residuals (n, t)."""
    sizes = np.bincount(leaves, weights, n_nodes)
    sums = [np.bincount(leaves, weights * column, n_nodes) for column in left.T]
    return np.asarray(RATE * np.stack(sums, axis=1) / (sizes + PENALTY)[:, None])
