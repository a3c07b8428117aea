"""Predictions for rows that a model was not fitted to, and what K neighbors get right."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from sklearn.utils import gen_batches

from vicinal._typing import FloatArray, IndexArray, LabelArray
from vicinal.kernels.cpu.class_neighbors import MEMORY, NeighborIndex
from vicinal.validation.folds import Fold
from vicinal.voting.neighbor_search import all_search, class_search
from vicinal.voting.votes import majorities

Rule: TypeAlias = Literal["class_mean", "vote"]


@dataclass(frozen=True)
class Rows:
    """Rows X (n, d), their targets y (n,), and what else ``fit`` takes per row."""

    X: FloatArray
    y: LabelArray
    groups: LabelArray | None = None
    sample_weight: LabelArray | None = None

    @property
    def metadata(self) -> dict[str, LabelArray]:
        """The keywords of ``fit`` that are given."""
        given = {"sample_weight": self.sample_weight, "groups": self.groups}
        return {name: values for name, values in given.items() if values is not None}

    def take(self, rows: IndexArray) -> Rows:
        """These of the rows."""
        metadata = {name: values[rows] for name, values in self.metadata.items()}
        return Rows(self.X[rows], self.y[rows], **metadata)


def gather_out_of_fold(
    predictions: Iterable[LabelArray], folds: Sequence[Fold], default: LabelArray
) -> LabelArray:
    """Put together the predictions of every row by the folds that did not learn from it.

    Parameters
    ----------
    predictions : of each fold, for its test rows
    folds : a row may be tested by several of them: the result is then the mean
    default : (n, ...) predictions for rows that no fold tests

    Returns
    -------
    predictions : (n, ...)
    """
    predicted = np.zeros_like(default)
    times = np.zeros(len(default), dtype=np.intp)
    for fold, of_fold in zip(folds, predictions, strict=True):
        predicted[fold.test] += of_fold
        times[fold.test] += 1
    predicted[times == 0] = default[times == 0]
    if times.max() > 1:
        predicted /= np.maximum(times, 1).reshape(-1, *[1] * (predicted.ndim - 1))
    return predicted


def correct_votes(
    embed: Callable[[FloatArray], FloatArray],
    voters: Rows,
    asked: Rows,
    ks: IndexArray,
    rule: Rule = "vote",
    backend: str = "auto",
) -> IndexArray:
    """The number of rows that their K nearest voters classify correctly, for every K.

    Parameters
    ----------
    embed : rows (n, d) → (n, m), the space where neighbors are near
    voters, asked : rows with class labels
    ks : the values of K, ascending
    rule : {"vote", "class_mean"}, as in :class:`~vicinal.voting.class_mean.ClassMeanKNN`
    backend : {"auto", "numba", "cuda"}, as there

    Returns
    -------
    counts : (number of K,)
        Exactly what ``ClassMeanKNN(K, rule=rule, backend=backend)`` gets right.

    Examples
    --------
    Neighbors by the first feature, for K = 1 and K = 2:

    >>> X = np.array([[0.0, 0.0], [1.0, 9.0], [4.0, 0.0], [5.0, 9.0], [1.5, 0.0], [4.5, 9.0]])
    >>> rows = Rows(X, np.array([0, 0, 1, 1, 0, 1]))
    >>> voters, asked = rows.take(np.arange(4)), rows.take(np.array([4, 5]))
    >>> correct_votes(lambda X: X[:, :1], voters, asked, [1, 2], "class_mean")
    array([2, 2])
    """
    predicted = predict_all_k(embed(voters.X), voters.y, embed(asked.X), ks, rule, backend)
    return np.asarray((predicted == asked.y).sum(axis=1))


def predict_all_k(
    references: FloatArray,
    labels: LabelArray,
    queries: FloatArray,
    ks: IndexArray,
    rule: Rule,
    backend: str = "auto",
) -> LabelArray:
    """(number of K, q) labels that the references (n, m), (n,) give to the queries (q, m)."""
    present, codes = np.unique(labels, return_inverse=True)  # a fold may lack a class
    winners = _class_mean_winners if rule == "class_mean" else _vote_winners
    blocks = winners(references, codes, queries, np.asarray(ks), backend)
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
        np.copyto(distances, 0.0, where=rows < 0)  # (b, c, k) small classes have fewer
        # Running sums would be cheaper, but round otherwise than the classifier does.
        yield np.array(
            [np.argmin(distances[:, :, :K].sum(axis=2) / np.minimum(sizes, K), axis=1) for K in ks]
        )


def _vote_winners(
    R: FloatArray, codes: IndexArray, Z: FloatArray, ks: IndexArray, backend: str
) -> Iterator[IndexArray]:
    """Most frequent class of the K nearest, ties to the nearest; (number of K, b) per block."""
    c, k = int(codes.max()) + 1, int(max(ks))
    find = all_search(NeighborIndex(R), backend)
    for block in _blocks(len(Z), k + c):
        labels = codes[find(Z[block], k=k).ids]  # (b, k), nearest first
        yield majorities(labels, ks)


def _blocks(n: int, neighbors: int) -> Iterator[slice]:
    return gen_batches(n, max(1, MEMORY // (16 * neighbors)))  # what fits into the block budget
