"""Accuracies of metrics for every K: one neighbor search a metric, whatever the number of K."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from vicinal._typing import FloatArray, IndexArray
from vicinal.kernels.cpu.class_neighbors import MEMORY, NeighborIndex
from vicinal.validation.folds import Fold
from vicinal.voting.neighbor_search import all_search, class_search
from vicinal.voting.votes import majorities

Rule: TypeAlias = Literal["class_mean", "vote"]


def score_path(
    metrics: Iterable[FloatArray],
    X: FloatArray,
    codes: IndexArray,
    fold: Fold,
    ks: IndexArray,
    rule: Rule = "vote",
    backend: str = "auto",
) -> NDArray[np.float64]:
    """Accuracies on the test rows of a fold, for every metric and every K.

    Parameters
    ----------
    metrics : q factors L, each (m, d); a generator is asked for one at a time
    X : (n, d) samples; codes : (n,) their classes as integers
    fold : (train, test) rows: each test row is classified by the training rows
    ks : (number of K,) numbers of neighbors, ascending
    rule : {"class_mean", "vote"}, as in :class:`~vicinal.voting.class_mean.ClassMeanKNN`
    backend : {"auto", "numba", "cuda"}, as there

    Returns
    -------
    accuracies : (q, number of K)
        Exactly what ``ClassMeanKNN(K, rule=rule, backend=backend)`` scores on X Lᵀ.

    Examples
    --------
    Whether the second feature counts, for K = 1 and K = 2:

    >>> X = np.array([[0.0, 0.0], [1.0, 9.0], [4.0, 0.0], [5.0, 9.0], [1.5, 0.0], [4.5, 9.0]])
    >>> codes, fold = np.array([0, 0, 1, 1, 0, 1]), Fold(np.arange(4), np.array([4, 5]))
    >>> score_path([np.diag([1.0, 0.0]), np.eye(2)], X, codes, fold, [1, 2], "class_mean")
    array([[1., 1.],
           [1., 1.]])
    """
    rows, classes, of = fold.train, codes[fold.train], codes[fold.test]
    predictions = (
        predict_all_k(X[rows] @ L.T, classes, X[fold.test] @ L.T, ks, rule, backend)
        for L in metrics
    )
    accuracies = [np.mean(predicted == of, axis=1) for predicted in predictions]
    return np.array(accuracies, dtype=np.float64).reshape(-1, len(ks))


def predict_all_k(
    references: FloatArray,
    codes: IndexArray,
    queries: FloatArray,
    ks: IndexArray,
    rule: Rule,
    backend: str = "auto",
) -> IndexArray:
    """(number of K, q) classes that the references (n, m), (n,) give to the queries (q, m)."""
    present, inner = np.unique(codes, return_inverse=True)  # a fold may lack a class
    winners = _class_mean_winners if rule == "class_mean" else _vote_winners
    blocks = winners(references, inner, queries, np.asarray(ks), backend)
    return np.asarray(present[np.concatenate(list(blocks), axis=1)])


def _class_mean_winners(
    R: FloatArray, codes: IndexArray, Z: FloatArray, ks: IndexArray, backend: str
) -> Iterator[IndexArray]:
    """argmin_c of the mean of the K smallest distances, (number of K, b) for blocks of queries."""
    order = np.argsort(codes, kind="stable")
    sizes = np.bincount(codes)  # (c,)
    offsets, k = np.append(0, np.cumsum(sizes)), int(min(max(ks), sizes.max()))
    find = class_search(NeighborIndex(R[order]), offsets, backend)
    for block in _blocks(len(Z), k * len(sizes)):
        distances, rows = find(Z[block], k=k)
        np.copyto(distances, 0.0, where=rows < 0)  # (b, c, k) a smaller class has fewer
        # Running sums would be cheaper, but round otherwise than the classifier does.
        yield np.array(
            [np.argmin(distances[:, :, :K].sum(axis=2) / np.minimum(sizes, K), axis=1) for K in ks]
        )


def _vote_winners(
    R: FloatArray, codes: IndexArray, Z: FloatArray, ks: IndexArray, backend: str
) -> Iterator[IndexArray]:
    """Most frequent class of the K nearest, ties to the nearest; (number of K, b) a block."""
    c, k = int(codes.max()) + 1, int(max(ks))
    find = all_search(NeighborIndex(R), backend)
    for block in _blocks(len(Z), k + c):
        labels = codes[find(Z[block], k=k).ids]  # (b, k), nearest first
        yield majorities(labels, ks)


def _blocks(n: int, neighbors: int) -> Iterator[slice]:
    return gen_batches(n, max(1, MEMORY // (16 * neighbors)))  # what fits into the block budget
