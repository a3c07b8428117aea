"""Plain K-NN, the line to beat: standardized features, Euclidean, K by leave-one-out."""

from __future__ import annotations

import numpy as np
from sklearn.preprocessing import StandardScaler

from vicinal._typing import FloatArray, IndexArray
from vicinal.validation.folds import stratified_sample
from vicinal.voting.class_mean import ClassMeanKNN

LARGEST_K = 31
N_QUERIES = 5_000
"""Rows whose left-out votes choose K; more would not change it."""


def plain_predictions(A: FloatArray, codes: IndexArray, Q: FloatArray) -> tuple[IndexArray, int]:
    """Codes that plain K-NN on the rows A (n, d) predicts for Q (q, d), and its K."""
    scaler = StandardScaler().fit(A)
    S = scaler.transform(A)
    k = left_out_k(S, codes)
    voter = ClassMeanKNN(k, rule="vote").fit(S, codes)
    return np.asarray(voter.predict(scaler.transform(Q)), dtype=np.intp), k


def left_out_k(S: FloatArray, codes: IndexArray) -> int:
    """The odd K up to 31 with the fewest leave-one-out errors; the smallest of equals."""
    largest = min(LARGEST_K, len(S) - 1)
    if largest < 1:
        return 1
    rows = stratified_sample(codes, N_QUERIES)
    votes = codes[left_out_neighbors(S, rows, largest)]  # (q, largest)
    candidates = range(1, largest + 1, 2)
    right = [np.sum(_winners(votes[:, :k]) == codes[rows]) for k in candidates]
    return candidates[int(np.argmax(right))]


def left_out_neighbors(S: FloatArray, rows: IndexArray, k: int) -> IndexArray:
    """(q, k) nearest others of some of the rows of S, nearest first."""
    index = ClassMeanKNN().fit(S, np.zeros(len(S), dtype=np.intp))
    if len(rows) == len(S):
        return np.asarray(index.kneighbors(n_neighbors=k, return_distance=False))
    found = np.asarray(index.kneighbors(S[rows], n_neighbors=k + 1, return_distance=False))
    # Drop the row itself; where more than k rows lie on the same spot, it may not be among them.
    itself = found == rows[:, None]
    itself[~itself.any(axis=1), -1] = True
    return found[~itself].reshape(len(rows), k)


def left_out_votes(Z: FloatArray, codes: IndexArray, rows: IndexArray, k: int) -> IndexArray:
    """(q,) class of most of the k nearest others; ties go to the class with the nearest of them."""
    return _winners(codes[left_out_neighbors(Z, rows, min(k, len(Z) - 1))])


def _winners(votes: IndexArray) -> IndexArray:
    """(q,) class of most of the votes (q, k), nearest first; the vote of ClassMeanKNN."""
    counts = (votes[:, :, None] == votes[:, None, :]).sum(axis=2)  # (q, k) of each voter's class
    return np.asarray(votes[np.arange(len(votes)), np.argmax(counts, axis=1)])
