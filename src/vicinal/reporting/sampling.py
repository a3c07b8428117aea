"""Samples that keep the proportions of the classes."""

from __future__ import annotations

import numpy as np

from vicinal._typing import IndexArray

SEED = 0  # the same data give the same page


def stratified_sample(codes: IndexArray, size: int) -> IndexArray:
    """Ascending rows, at most ``size``, as evenly spread over the classes as whole rows allow.

    Every class keeps its share of the rows, rounded, and at least one row while ``size`` allows.
    """
    n = len(codes)
    if n <= size:
        return np.arange(n)
    counts = np.bincount(codes)
    shuffle = np.random.default_rng(SEED).permutation(n)
    order = np.lexsort((shuffle, codes))
    starts = np.cumsum(counts) - counts
    rank = np.arange(n) - np.repeat(starts, counts)  # (n,) place of order[i] within its class
    # The row of rank r is wanted when a sample of (r + ½)/count of all is taken; rank 0 first.
    wanted = np.where(rank == 0, 0.0, (rank + 0.5) / np.repeat(np.maximum(counts, 1), counts))
    return np.sort(order[np.argsort(wanted, kind="stable")[:size]])
