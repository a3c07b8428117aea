"""Plain K-NN for comparison: standardized features, Euclidean, K by leave-one-out."""

from __future__ import annotations

import numpy as np
from sklearn.preprocessing import StandardScaler

from vicinal._typing import FloatArray, IndexArray
from vicinal.kernels.cpu.class_neighbors import NeighborIndex
from vicinal.validation.folds import stratified_sample
from vicinal.voting.class_mean import ClassMeanKNN
from vicinal.voting.neighbor_search import all_search
from vicinal.voting.votes import majorities

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
    candidates = range(1, largest + 1, 2)
    predicted = majorities(codes[left_out_neighbors(S, rows, largest)], candidates)
    return candidates[int(np.argmax((predicted == codes[rows]).sum(axis=1)))]


def left_out_neighbors(S: FloatArray, rows: IndexArray, k: int) -> IndexArray:
    """(q, k) nearest others of some of the rows of S, nearest first."""
    return all_search(NeighborIndex(S), "auto")(S[rows], k=k, exclude=rows).ids


def left_out_votes(Z: FloatArray, codes: IndexArray, rows: IndexArray, k: int) -> IndexArray:
    """(q,) class of most of the k nearest others; ties go to the class with the nearest of them."""
    k = min(k, len(Z) - 1)
    return majorities(codes[left_out_neighbors(Z, rows, k)], [k])[0]
