"""Majority votes, for every number of neighbors at once."""

from __future__ import annotations

import numpy as np

from vicinal._typing import IndexArray


def majorities(labels: IndexArray, ks: IndexArray) -> IndexArray:
    """(len(ks), n) the most frequent of each query's first K labels, ties to the nearest.

    Parameters
    ----------
    labels : (n, k) classes as integers from 0, nearest first
    ks : the values of K, ascending, at most k

    Examples
    --------
    >>> majorities(np.array([[2, 0, 0, 2, 1]]), np.array([1, 2, 3, 5])).ravel()
    array([2, 2, 0, 2])
    """
    from vicinal.kernels.cpu._vote_counts_numba import count_majorities  # compiled when needed

    winners = np.empty((len(ks), len(labels)), dtype=np.intp)
    n_classes = int(labels.max(initial=0)) + 1
    count_majorities(labels, np.asarray(ks, dtype=np.intp), n_classes, winners)
    return winners
