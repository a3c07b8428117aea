"""Constraints from labels, in metric-learn's form."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from vicinal._typing import FloatArray, IndexArray, LabelArray, Seed
from vicinal.compat.metric_learn.deprecated import renamed
from vicinal.exceptions import warn_user
from vicinal.learners.parameters import COUNT
from vicinal.supervision import (
    UNKNOWN,
    chunks_from_labels,
    pairs_from_labels,
    triplets_from_labels,
)

PairIndices = tuple[IndexArray, IndexArray, IndexArray, IndexArray]
"""Left and right rows of the positive pairs, then of the negative ones."""


class Constraints:
    """Pairs, triplets and chunks of rows from their labels; negative labels mean unknown.

    Parameters
    ----------
    partial_labels : array-like of int of shape (n_samples,)
        Class labels, −1 where unknown.
    """

    def __init__(self, partial_labels: ArrayLike) -> None:
        self.partial_labels = np.asanyarray(partial_labels, dtype=int)

    @property
    def _labels(self) -> IndexArray:
        return np.where(self.partial_labels < 0, UNKNOWN, self.partial_labels)

    def positive_negative_pairs(
        self,
        n_constraints: int,
        same_length: bool = False,
        random_state: Seed = None,
        num_constraints: int | str = "deprecated",
    ) -> PairIndices:
        """Draw ``n_constraints`` pairs of one class and as many of different classes.

        Parameters
        ----------
        n_constraints : int
        same_length : bool, default=False
            Whether to cut both kinds to the number of the rarer one.
        random_state : int, RandomState or None, default=None

        Returns
        -------
        a, b, c, d : ndarray of int of shape (n_constraints,)
            Rows of the positive pairs (a, b) and of the negative pairs (c, d), in random order;
            fewer, with a warning, where there are not as many.
        """
        n = int(renamed("num_constraints", num_constraints, "n_constraints", n_constraints))
        rng = check_random_state(random_state)
        pairs, similar = pairs_from_labels(self._labels, 2 * n, random_state=rng)
        found = [pairs[similar], pairs[~similar]]
        for kind, some in zip(("positive", "negative"), found, strict=True):
            if len(some) < n:
                warn_user(
                    f"Only generated {len(some)} {kind} constraints (requested {n})", UserWarning
                )
        found = [some[rng.permutation(len(some))] for some in found]
        if same_length:
            found = [some[: min(map(len, found))] for some in found]
        (a, b), (c, d) = found[0].T, found[1].T
        return a, b, c, d

    def generate_knntriplets(self, X: ArrayLike, k_genuine: int, k_impostor: int) -> IndexArray:
        """Each row with its nearest of the class and its nearest of others, (n_triplets, 3).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        k_genuine, k_impostor : int
            Neighbors of either kind; fewer, with a warning, where there are not as many.
        """
        labels = self._labels
        known = labels[labels != UNKNOWN]
        for label, count in zip(*np.unique(known, return_counts=True), strict=True):
            others = len(known) - count
            if k_genuine + 1 > count:
                warn_user(
                    f"The class {label} has {count} elements, which is not sufficient to generate "
                    f"{k_genuine + 1} genuine neighbors as specified by k_genuine. Will generate "
                    f"{count - 1} genuine neighbors instead.\n",
                    UserWarning,
                )
            if k_impostor > others:
                warn_user(
                    f"The class {label} has {others} elements of other classes, which is not "
                    f"sufficient to generate {k_impostor} impostor neighbors as specified by "
                    f"k_impostor. Will generate {others} impostor neighbors instead.\n",
                    UserWarning,
                )
        return triplets_from_labels(X, labels, k_genuine, k_impostor)

    def chunks(
        self,
        n_chunks: int = 100,
        chunk_size: int = 2,
        random_state: Seed = None,
        num_chunks: int | str = "deprecated",
    ) -> IndexArray:
        """Draw disjoint chunks of rows of one class: the chunk of every row, −1 for none."""
        n_chunks = int(renamed("num_chunks", num_chunks, "n_chunks", n_chunks))
        return chunks_from_labels(self._labels, n_chunks, chunk_size, random_state=random_state)


def wrap_pairs(X: FloatArray, constraints: PairIndices) -> tuple[FloatArray, NDArray[np.intp]]:
    """Pairs of samples (n_pairs, 2, n_features), positive ones first, and their labels ±1."""
    a, b, c, d = map(np.asarray, constraints)
    indices = np.concatenate([np.column_stack([a, b]), np.column_stack([c, d])])
    return X[indices], np.repeat([1, -1], [len(a), len(c)])


def _number(n_constraints: int | str | None, y: LabelArray) -> int:
    if n_constraints is None:
        return 20 * len(np.unique(y)) ** 2
    COUNT.check("n_constraints", n_constraints)
    return int(n_constraints)


def drawn_pairs(
    X: FloatArray, y: LabelArray, n_constraints: int | str | None, seed: Seed
) -> tuple[FloatArray, NDArray[np.intp]]:
    """Pairs of samples (n_pairs, 2, d), ``n_constraints`` of either kind, and their labels ±1."""
    found = Constraints(y).positive_negative_pairs(_number(n_constraints, y), random_state=seed)
    return wrap_pairs(X, found)


def drawn_quadruplets(
    X: FloatArray, y: LabelArray, n_constraints: int | str | None, seed: Seed
) -> FloatArray:
    """Quadruplets of samples (n_quadruplets, 4, d): two of one class, two of different ones."""
    found = Constraints(y).positive_negative_pairs(
        _number(n_constraints, y), same_length=True, random_state=seed
    )
    return X[np.column_stack(found)]
