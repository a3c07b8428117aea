"""The compiled half of :mod:`vicinal.kernels.cpu.vote_counts`."""

from __future__ import annotations

import numpy as np

from vicinal.kernels.cpu.jit import compiled


@compiled
def count_majorities(labels, ks, n_classes, winners):
    """winners[j, q] ← the most frequent of the first ks[j] labels of query q, ties to the nearest.

    labels (n_queries, k) are in [0, n_classes), nearest first; ks ascend.
    """
    votes = np.empty(n_classes, dtype=np.int64)
    for q in range(labels.shape[0]):
        votes[:] = 0
        counted, most = 0, 0
        for j in range(ks.shape[0]):
            while counted < ks[j]:
                label = labels[q, counted]
                votes[label] += 1
                most = max(most, votes[label])
                counted += 1
            nearest = 0
            while votes[labels[q, nearest]] < most:
                nearest += 1
            winners[j, q] = labels[q, nearest]
