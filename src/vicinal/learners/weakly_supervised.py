"""Learners from pairs or triplets: the same algorithm, fed by labels or by the user.

Another kind of supervision (quadruplets, chunks of samples that belong together) takes a frozen
value, a check of what users give, and a base class like those below: ``_learn_labeled`` makes the
supervision from labels and learns; ``fit_quadruplets`` or ``fit_chunks`` checks what the user gives
and learns the same way. Learning ends in ``store_fit`` or ``store_solution``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import column_or_1d

from vicinal._typing import FloatArray, IndexArray, Seed
from vicinal.learners.base import MetricLearner
from vicinal.learners.descent import warn_excluded
from vicinal.learners.fit_input import FitInput, check_unlabeled
from vicinal.learners.labeled_data import encode_labels
from vicinal.learners.parameters import check_parameters
from vicinal.objective.neighbor_sets import build_comparisons


@dataclass(frozen=True)
class Pairs:
    """Pairs (i, j) of row indices; ``similar`` says which ought to be near each other."""

    i: IndexArray
    j: IndexArray
    similar: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.i)

    def where(self, kept: NDArray[np.bool_]) -> Pairs:
        """The pairs that are marked."""
        return Pairs(self.i[kept], self.j[kept], self.similar[kept])


@dataclass(frozen=True)
class Triplets:
    """Triplets (i, j, l) of row indices: i ought to be nearer to j than to l."""

    i: IndexArray
    j: IndexArray
    l: IndexArray  # noqa: E741  (the paper's letter)

    def __len__(self) -> int:
        return len(self.i)


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


def sample_pairs(codes: IndexArray, n_pairs: int, rng: np.random.RandomState) -> Pairs:
    """Distinct pairs i ≠ j drawn from labels, half of them similar, half dissimilar.

    Within each half every unordered pair is equally likely; where fewer exist than asked for, all
    are taken. The order is: similar ones first, each half sorted.

    Parameters
    ----------
    codes : (n,)
        Class codes 0 … c − 1.
    """
    n = len(codes)
    half = max(1, n_pairs // 2)
    halves = []
    for same in (True, False):
        found = np.empty((0, 2), dtype=np.intp)
        sizes = np.bincount(codes)
        within = int((sizes * (sizes - 1) // 2).sum())
        available = within if same else n * (n - 1) // 2 - within
        if available <= 2 * half:
            i, j = np.triu_indices(n, 1)
            kept = (codes[i] == codes[j]) == same
            found = np.stack([i[kept], j[kept]], axis=1)
            if len(found) > half:
                found = found[np.sort(rng.choice(len(found), half, replace=False))]
        while len(found) < min(half, available):
            drawn = rng.randint(n, size=(4 * half, 2))
            drawn = np.sort(drawn[drawn[:, 0] != drawn[:, 1]], axis=1)
            drawn = drawn[(codes[drawn[:, 0]] == codes[drawn[:, 1]]) == same]
            found, first = np.unique(np.concatenate([found, drawn]), axis=0, return_index=True)
            # Keep those drawn first: a cut of the sorted list would prefer small indices.
            found = found[np.sort(np.argsort(first)[:half])]
        halves.append(found)
    indices = np.concatenate(halves)
    similar = np.repeat([True, False], [len(halves[0]), len(halves[1])])
    return Pairs(indices[:, 0], indices[:, 1], similar)


def nearest_triplets(
    X: FloatArray, codes: IndexArray, n_similar: int, n_dissimilar: int
) -> Triplets:
    """For every row, its nearest of the class × its nearest of the others (Euclidean, stable).

    Rows without one of either kind give none. Sorted by anchor, then by the similar, then by the
    dissimilar neighbor, nearest first.
    """
    order = np.argsort(codes, kind="stable")
    offsets = np.searchsorted(codes[order], np.arange(codes.max() + 2))
    X = _comparable(X)[order]
    sets = build_comparisons(X, offsets, similar=n_similar, dissimilar=n_dissimilar)
    assert sets.similar is not None
    assert sets.dissimilar is not None
    position = np.argsort(order, kind="stable")  # the sorted row of every row of X
    n_similar_of, n_dissimilar_of = sets.similar.counts[position], sets.dissimilar.counts[position]
    sizes = n_similar_of * n_dissimilar_of
    i = np.repeat(np.arange(len(codes)), sizes)
    place = np.arange(len(i)) - np.repeat(np.cumsum(sizes) - sizes, sizes)  # among those of i
    first, second = np.divmod(place, n_dissimilar_of[i])
    j = order[sets.similar.indices[sets.similar.indptr[position[i]] + first]]
    l = order[sets.dissimilar.indices[sets.dissimilar.indptr[position[i]] + second]]  # noqa: E741
    return Triplets(i, j, l)


def _comparable(X: FloatArray) -> FloatArray:
    """X times a power of two: exact, distances compare as before, and none overflows."""
    X = X.astype(np.float64)
    _, exponent = np.frexp(np.abs(X).max())
    return np.ldexp(X, -exponent)


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
