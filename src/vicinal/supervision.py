"""Supervision made from class labels: pairs, triplets, quadruplets and chunks of row indices.

For learners without labels of their own and for code that wants to see, store or change what a
learner is told. A label of −1 means that the class is unknown: such rows occur nowhere.

=====================================  ==================================  =======================
function                               returns                             learn from it by
=====================================  ==================================  =======================
:func:`pairs_from_labels`              pairs (p, 2) and similar (p,)       ``fit_pairs``
:func:`triplets_from_labels`           triplets (t, 3)                     ``fit_triplets``
:func:`quadruplets_from_labels`        quadruplets (q, 4)                  ``fit_quadruplets``
:func:`chunks_from_labels`             chunks (n,), −1 for none            ``fit_chunks``
=====================================  ==================================  =======================
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_consistent_length, column_or_1d

from vicinal._typing import FloatArray, IndexArray, Seed
from vicinal.objective.neighbor_sets import build_comparisons

__all__ = [
    "chunks_from_labels",
    "pairs_from_labels",
    "quadruplets_from_labels",
    "triplets_from_labels",
]

UNKNOWN = -1


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


def pairs_from_labels(
    y: ArrayLike, n_pairs: int | None = None, *, random_state: Seed = None
) -> tuple[IndexArray, NDArray[np.bool_]]:
    """Draw distinct pairs of rows, half of them of one class, half of different classes.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Class labels; −1 means unknown.
    n_pairs : int, default=None
        How many pairs, at most: fewer where there are not as many. None is 40 c² for c classes.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    pairs : ndarray of int of shape (n_pairs, 2)
        Row indices i < j.
    similar : ndarray of bool of shape (n_pairs,)

    Examples
    --------
    >>> from vicinal.supervision import pairs_from_labels
    >>> pairs, similar = pairs_from_labels([0, 0, 1, 1, -1], 4, random_state=0)
    >>> pairs[similar].tolist()
    [[0, 1], [2, 3]]
    """
    known, codes = _known(y)
    drawn = sample_pairs(codes, _count(n_pairs, codes, each=40), check_random_state(random_state))
    return known[np.stack([drawn.i, drawn.j], axis=1)], drawn.similar


def triplets_from_labels(
    X: ArrayLike, y: ArrayLike, n_similar: int = 3, n_dissimilar: int = 10
) -> IndexArray:
    """Find, for every row, its nearest of the class × its nearest of the other classes.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Distances are Euclidean.
    y : array-like of shape (n_samples,)
        Class labels; −1 means unknown.
    n_similar, n_dissimilar : int, default=3 and 10
        Neighbors of either kind, fewer where there are not as many.

    Returns
    -------
    triplets : ndarray of int of shape (n_triplets, 3)
        Rows (i, j, l): i ought to be nearer to j than to l. Sorted by i; nearer ones first.

    Examples
    --------
    >>> from vicinal.supervision import triplets_from_labels
    >>> triplets_from_labels([[0.0], [1.0], [5.0], [7.0]], [0, 0, 1, 1], 1, 1).tolist()
    [[0, 1, 2], [1, 0, 2], [2, 3, 1], [3, 2, 1]]
    """
    known, codes = _known(y)
    rows: FloatArray = check_array(X, dtype=np.float64)
    check_consistent_length(rows, y)
    found = nearest_triplets(rows[known], codes, n_similar, n_dissimilar)
    return known[np.stack([found.i, found.j, found.l], axis=1)]


def quadruplets_from_labels(
    y: ArrayLike, n_quadruplets: int | None = None, *, random_state: Seed = None
) -> IndexArray:
    """Draw quadruplets: two rows of one class, then two of different classes.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Class labels; −1 means unknown.
    n_quadruplets : int, default=None
        How many, at most: fewer where there are fewer pairs of either kind. None is 20 c² for c
        classes.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    quadruplets : ndarray of int of shape (n_quadruplets, 4)
        Rows (a, b, c, d): a and b ought to be nearer to each other than c and d.

    Examples
    --------
    >>> from vicinal.supervision import quadruplets_from_labels
    >>> quadruplets_from_labels([0, 0, 1, 1], 2, random_state=0).shape
    (2, 4)
    """
    known, codes = _known(y)
    number = _count(n_quadruplets, codes, each=20)
    return known[sample_quadruplets(codes, number, check_random_state(random_state))]


def chunks_from_labels(
    y: ArrayLike, n_chunks: int = 100, chunk_size: int = 2, *, random_state: Seed = None
) -> IndexArray:
    """Draw disjoint chunks of rows that belong to one class.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Class labels; −1 means unknown.
    n_chunks : int, default=100
        How many chunks; a ValueError where the classes have not as many.
    chunk_size : int, default=2
        Rows per chunk.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    chunks : ndarray of int of shape (n_samples,)
        The chunk of every row, 0 … n_chunks − 1, or −1 where it is in none.

    Examples
    --------
    >>> from vicinal.supervision import chunks_from_labels
    >>> chunks_from_labels([0, 0, 1, 1, -1], 2, random_state=0).tolist()[-1]
    -1
    """
    known, codes = _known(y)
    rng = check_random_state(random_state)
    order = rng.permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]  # by class, at random within each
    sizes = np.bincount(codes)
    place = np.arange(len(codes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    full = place < np.repeat(sizes // chunk_size * chunk_size, sizes)
    possible = order[full].reshape(-1, chunk_size)
    if len(possible) < n_chunks:
        raise ValueError(
            f"Not enough possible chunks of {chunk_size} elements in each class to form expected "
            f"{n_chunks} chunks - maximum number of chunks is {len(possible)}"
        )
    chunks = np.full(len(np.asarray(y)), UNKNOWN, dtype=np.intp)
    chosen = possible[rng.permutation(len(possible))[:n_chunks]]
    chunks[known[chosen]] = np.arange(n_chunks)[:, None]
    return chunks


def _known(y: ArrayLike) -> tuple[IndexArray, IndexArray]:
    """The rows whose class is known, and their class codes."""
    labels = column_or_1d(y)
    known = np.arange(len(labels))
    if labels.dtype.kind in "if":
        known = known[labels != UNKNOWN]
    if len(known) == 0:
        raise ValueError("y has no known label; -1 means that the class of a row is unknown")
    return known, np.unique(labels[known], return_inverse=True)[1].astype(np.intp)


def _count(given: int | None, codes: IndexArray, each: int) -> int:
    """The number asked for, or the default for so many classes."""
    return each * (int(codes.max()) + 1) ** 2 if given is None else int(given)


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
            pool = np.concatenate([found, drawn])
            # By one number per pair: NumPy answers a Ctrl-C in a comparison of rows by a TypeError.
            _, first = np.unique(pool[:, 0] * n + pool[:, 1], return_index=True)
            # Keep those drawn first: a cut of the sorted list would prefer small indices.
            found = pool[first][np.sort(np.argsort(first)[:half])]
        halves.append(found)
    indices = np.concatenate(halves)
    similar = np.repeat([True, False], [len(halves[0]), len(halves[1])])
    return Pairs(indices[:, 0], indices[:, 1], similar)


def sample_quadruplets(
    codes: IndexArray, n_quadruplets: int, rng: np.random.RandomState
) -> IndexArray:
    """(q, 4) a random similar pair beside a random dissimilar one; every pair occurs once."""
    pairs = sample_pairs(codes, 2 * n_quadruplets, rng)
    indices = np.stack([pairs.i, pairs.j], axis=1)
    similar, dissimilar = indices[pairs.similar], indices[~pairs.similar]
    number = min(len(similar), len(dissimilar))
    chosen = [part[rng.permutation(len(part))[:number]] for part in (similar, dissimilar)]
    return np.concatenate(chosen, axis=1)


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
