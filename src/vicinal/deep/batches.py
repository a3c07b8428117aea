"""Which samples go into a batch together, and which are kept for validation."""

from __future__ import annotations

import numpy as np

from vicinal._typing import IndexArray

GROUP = 4
"""Samples of one class that stay together, so that anchors meet their class in every batch."""


def class_batches(
    codes: IndexArray, batch_size: int, rng: np.random.RandomState
) -> list[IndexArray]:
    """All samples once, in batches of about ``batch_size``, each made of small groups of a class.

    With few classes that is hardly different from a random order; with many, a random batch would
    hold one sample of most classes, and anchors without a positive teach nothing.

    Parameters
    ----------
    codes : (n,) ints, the classes
    batch_size : int
    rng : numpy.random.RandomState

    Returns
    -------
    batches : list of index arrays
    """
    n = len(codes)
    shuffled = rng.permutation(n)
    by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
    sizes = np.bincount(codes)
    rank = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)  # within the class
    # A group of one would have no positive: the last sample of a class joins the group before it.
    alone = (np.repeat(sizes, sizes) % GROUP == 1) & (rank == np.repeat(sizes, sizes) - 1)
    starts = (rank % GROUP == 0) & ~(alone & (rank > 0))
    group = np.cumsum(starts) - 1  # (n,)
    order = np.argsort(rng.permutation(group[-1] + 1)[group], kind="stable")
    return np.array_split(by_class[order], max(1, round(n / batch_size)))


def stratified_split(
    codes: IndexArray, fraction: float, rng: np.random.RandomState
) -> tuple[IndexArray, IndexArray]:
    """Rows to train on and rows to validate on: about ``fraction`` of every class.

    No class loses its last two samples. Unlike scikit-learn's splitters this takes classes of any
    size: what is too small is trained on.

    Parameters
    ----------
    codes : (n,) ints, the classes
    fraction : float
    rng : numpy.random.RandomState

    Returns
    -------
    train, validation : index arrays
    """
    held = []
    for code, size in enumerate(np.bincount(codes)):
        count = min(round(fraction * size), max(0, size - 2))
        held.append(rng.permutation(np.flatnonzero(codes == code))[:count])
    validation = np.sort(np.concatenate(held))
    return np.setdiff1d(np.arange(len(codes)), validation), validation
