"""Learners from pairs, triplets, quadruplets or chunks, made from labels or given by the user.

Each base class below stands for one kind of supervision: ``_learn_labeled`` makes it from labels
and learns; ``fit_pairs``, ``fit_triplets``, … checks what the user gives and learns the same way.
Learning ends in ``store_fit`` or ``store_solution``.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import column_or_1d

from vicinal._typing import FloatArray, IndexArray, Seed
from vicinal.learners.base import MetricLearner
from vicinal.learners.descent import warn_excluded
from vicinal.learners.fit_input import FitInput, check_unlabeled
from vicinal.learners.labeled_data import check_weights, encode_labels
from vicinal.learners.parameters import check_parameters
from vicinal.supervision import Pairs, Triplets, nearest_triplets, sample_quadruplets


def check_pairs(pairs: ArrayLike, similar: ArrayLike, n: int) -> Pairs:
    """The user's pairs, checked: index pairs (p, 2), and +1/−1, 1/0 or booleans (p,)."""
    indices = _check_indices("pairs", pairs, n, width=2)
    flags = column_or_1d(similar)
    if len(flags) != len(indices):
        raise ValueError(f"similar has {len(flags)} entries for {len(indices)} pairs")
    values = set(np.unique(flags).tolist())
    if not (values <= {0, 1} or values <= {-1, 1}):
        raise ValueError(
            f"similar must be booleans, 1/0 or +1/-1 (similar/dissimilar), got {sorted(values)}"
        )
    if np.any(indices[:, 0] == indices[:, 1]):
        row = int(indices[np.flatnonzero(indices[:, 0] == indices[:, 1])[0], 0])
        raise ValueError(f"pairs joins row {row} with itself; leave such pairs out")
    return Pairs(indices[:, 0], indices[:, 1], flags > 0)


def check_triplets(triplets: ArrayLike, n: int) -> Triplets:
    """The user's triplets, checked: indices (t, 3), each row (i, j, l) with i nearer to j."""
    indices = _check_indices("triplets", triplets, n, width=3)
    i, j, l = indices.T  # noqa: E741
    if np.any((i == j) | (i == l) | (j == l)):
        raise ValueError("triplets names a row twice in one triplet; all three must differ")
    return Triplets(i, j, l)


def check_quadruplets(quadruplets: ArrayLike, n: int) -> IndexArray:
    """The user's quadruplets (q, 4), checked: a and b ought to be nearer than c and d."""
    indices = _check_indices("quadruplets", quadruplets, n, width=4)
    if np.any((indices[:, 0] == indices[:, 1]) & (indices[:, 2] == indices[:, 3])):
        raise ValueError("quadruplets compares two pairs that join a row with itself each")
    return indices


def check_chunks(chunks: ArrayLike, n: int) -> IndexArray:
    """The user's chunks (n,), checked, as codes 0 … c − 1, or −1 for rows that are in none."""
    given = column_or_1d(chunks)
    if len(given) != n:
        raise ValueError(f"chunks has {len(given)} entries for {n} samples")
    if given.dtype.kind == "f" and np.isfinite(given).all() and (given == np.round(given)).all():
        given = given.astype(np.intp)
    if given.dtype.kind not in "iu":
        raise ValueError(
            f"chunks must hold integers, negative ones for no chunk; got {given.dtype}"
        )
    codes = np.full(n, -1, dtype=np.intp)
    codes[given >= 0] = np.unique(given[given >= 0], return_inverse=True)[1]
    if not np.any(np.bincount(codes[codes >= 0], minlength=1) > 1):
        raise ValueError("chunks has no two samples that belong together")
    return codes


def _check_indices(name: str, given: ArrayLike, n: int, width: int) -> IndexArray:
    indices = np.asarray(given)
    if indices.ndim != 2 or indices.shape[1] != width or len(indices) == 0:
        raise ValueError(
            f"{name} must hold row indices of X in an array of shape (number, {width}), at least "
            f"one; got shape {indices.shape}"
        )
    if not np.issubdtype(indices.dtype, np.integer):
        raise ValueError(f"{name} must hold integers (row indices of X), got {indices.dtype}")
    if indices.min() < 0 or indices.max() >= n:
        raise ValueError(f"{name} names rows outside 0 … {n - 1}")
    return indices.astype(np.intp)


class PairLearner(MetricLearner):
    """Learns from pairs. Subclasses say how pairs come from labels, and what is learned of them."""

    random_state: Seed

    def _learn_labeled(self, given: FitInput) -> None:
        classes, codes = encode_labels(given.y)
        pairs = self._pairs_from_labels(codes, check_random_state(self.random_state))
        self._learn_pairs(given.adding(classes_=classes), pairs)

    def fit_pairs(self, X: ArrayLike, pairs: ArrayLike, similar: ArrayLike) -> Self:
        """Learn the metric from given pairs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        pairs : array-like of int of shape (n_pairs, 2)
            Row indices of X.
        similar : array-like of shape (n_pairs,)
            Which pairs ought to be near each other: booleans, 1/0 or +1/−1.
        """
        given = check_unlabeled(self, X)
        check_parameters(self)
        self._learn_pairs(given, check_pairs(pairs, similar, len(given.X)))
        return self

    def _pairs_from_labels(self, codes: IndexArray, rng: np.random.RandomState) -> Pairs:
        raise NotImplementedError

    def _learn_pairs(self, given: FitInput, pairs: Pairs) -> None:
        """Learn from the pairs, and set all attributes at the end."""
        raise NotImplementedError


class TripletLearner(MetricLearner):
    """Learns from triplets. Subclasses say what is learned of them."""

    n_similar: int
    n_dissimilar: int

    def _learn_labeled(self, given: FitInput) -> None:
        classes, codes = encode_labels(given.y)
        triplets, n_excluded = self._triplets_from_labels(given, codes)
        given = given.adding(classes_=classes, n_excluded_=n_excluded)
        self._learn_triplets(given, triplets, codes)

    def fit_triplets(self, X: ArrayLike, triplets: ArrayLike) -> Self:
        """Learn the metric from given triplets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        triplets : array-like of int of shape (n_triplets, 3)
            Row indices (i, j, l) of X: i ought to be nearer to j than to l.
        """
        given = check_unlabeled(self, X)
        check_parameters(self)
        self._learn_triplets(given, check_triplets(triplets, len(given.X)), None)
        return self

    def _triplets_from_labels(self, given: FitInput, codes: IndexArray) -> tuple[Triplets, int]:
        """The nearest triplets, and how many samples have none."""
        triplets = nearest_triplets(given.X, codes, self.n_similar, self.n_dissimilar)
        n_excluded = len(codes) - len(np.unique(triplets.i))
        reason = "have no other of their class and are not anchors of triplets"
        warn_excluded(n_excluded, len(codes), reason)
        return triplets, n_excluded

    def _learn_triplets(
        self, given: FitInput, triplets: Triplets, codes: IndexArray | None
    ) -> None:
        """Learn from the triplets, and set all attributes at the end."""
        raise NotImplementedError


class QuadrupletLearner(MetricLearner):
    """Learns from quadruplets. Subclasses say what is learned of them."""

    n_quadruplets: int | None
    random_state: Seed

    def _learn_labeled(self, given: FitInput) -> None:
        classes, codes = encode_labels(given.y)
        number = 20 * len(classes) ** 2 if self.n_quadruplets is None else int(self.n_quadruplets)
        rng = check_random_state(self.random_state)
        quadruplets = sample_quadruplets(codes, number, rng)
        if len(quadruplets) == 0:
            raise ValueError("the labels give no two samples of one class, hence no quadruplet")
        self._learn_quadruplets(given.adding(classes_=classes), quadruplets, None)

    def fit_quadruplets(
        self, X: ArrayLike, quadruplets: ArrayLike, weights: ArrayLike | None = None
    ) -> Self:
        """Learn the metric from given quadruplets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        quadruplets : array-like of int of shape (n_quadruplets, 4)
            Row indices (a, b, c, d) of X: a and b ought to be nearer to each other than c and d.
        weights : array-like of shape (n_quadruplets,), optional
            What each of them counts, relative to the others; alike where none are given.
        """
        given = check_unlabeled(self, X)
        check_parameters(self)
        checked = check_quadruplets(quadruplets, len(given.X))
        shares = None if weights is None else check_weights("weights", weights, len(checked))
        self._learn_quadruplets(given, checked, shares)
        return self

    def _learn_quadruplets(
        self, given: FitInput, quadruplets: IndexArray, weights: FloatArray | None
    ) -> None:
        """Learn from the quadruplets, and set all attributes at the end."""
        raise NotImplementedError


class ChunkLearner(MetricLearner):
    """Learns from chunks of samples that belong together; with labels, the classes are these."""

    def _learn_labeled(self, given: FitInput) -> None:
        classes, codes = encode_labels(given.y)
        self._learn_chunks(given.adding(classes_=classes), codes)

    def fit_chunks(self, X: ArrayLike, chunks: ArrayLike) -> Self:
        """Learn the metric from given chunks.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        chunks : array-like of int of shape (n_samples,)
            The chunk of every sample; negative numbers mean that it is in none.
        """
        given = check_unlabeled(self, X)
        check_parameters(self)
        self._learn_chunks(given, check_chunks(chunks, len(given.X)))
        return self

    def _learn_chunks(self, given: FitInput, chunks: IndexArray) -> None:
        """Learn from the chunk of every sample (−1: in none), and set all attributes at the end."""
        raise NotImplementedError
