"""Who sits in the committee: the best metrics and votes, weighed by a greedy ensemble."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vicinal._typing import FloatArray, IndexArray
from vicinal.voting.votes import VoteName

LOG_LOSS_WEIGHT = 0.3
CANDIDATES = 50
FIRST_MEMBERS = 3
ADDITIONS = 15


@dataclass(frozen=True)
class Choice:
    """One member of the committee: a metric of every fold, and how its neighbors vote."""

    configuration: str
    iterate: int
    vote: VoteName
    n_neighbors: int
    weight: float
    metrics: tuple[int, ...]
    """Indices into ``metrics_``, one a fold."""


def rank(errors: FloatArray, log_losses: FloatArray) -> IndexArray:
    """Candidates from best to worst by error + 0.3 log-loss; the first wins ties."""
    return np.argsort(errors + LOG_LOSS_WEIGHT * log_losses, kind="stable")


def greedy_weights(
    probabilities: FloatArray, codes: IndexArray, row_weights: FloatArray
) -> FloatArray:
    r"""Weights of the candidates: counts of a greedy choice with replacement.

    Starts with the first three and adds fifteen, each time the one that most lowers the Brier
    score :math:`\sum_i w_i \|\bar p_i - y_i\|^2` of the mean. That is quadratic in the weights, so
    that the inner products of the candidates are all it needs.

    Parameters
    ----------
    probabilities : (k, n, c) out-of-fold probabilities of the candidates, best first
    codes : (n,) the classes
    row_weights : (n,)

    Returns
    -------
    weights : (k,) that sum to 1
    """
    k, n, c = probabilities.shape
    roots = np.sqrt(row_weights)[:, None]
    flat = (probabilities * roots).reshape(k, n * c)
    target = np.zeros((n, c))
    target[np.arange(n), codes] = 1.0
    products = flat @ flat.T  # (k, k)
    hits = flat @ (target * roots).ravel()  # (k,)
    counts = np.zeros(k)
    counts[:FIRST_MEMBERS] = 1.0
    for _ in range(ADDITIONS):
        size = counts.sum() + 1.0
        # Brier of (Σ counts P + P_j)/size, less what does not depend on j.
        quadratic = (2.0 * products @ counts + np.diag(products)) / size**2
        counts[np.argmin(quadratic - 2.0 * hits / size)] += 1.0
    return np.asarray(counts / counts.sum())
