"""Votes of the K nearest rows: how much each of them counts, for one K or for all at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

import numpy as np

from vicinal._typing import FloatArray, IndexArray
from vicinal.kernels.cpu.class_neighbors import Neighbors
from vicinal.voting.row_weights import RowWeights, TargetRows, VotingRows, probabilities

VoteName: TypeAlias = Literal[
    "majority",
    "epanechnikov",
    "gentle",
    "soft",
    "sharp",
    "local linear",
    "bending linear",
    "stiff linear",
    "global linear",
    "bending global",
    "stiff global",
    "sloped majority",
    "sloped epanechnikov",
    "sloped gentle",
    "sloped soft",
    "sloped sharp",
    "leaves",
    "boosted leaves",
]

LOCAL_LINEAR: VoteName = "local linear"
LINES: dict[VoteName, float] = {LOCAL_LINEAR: 1.0, "bending linear": 0.1, "stiff linear": 10.0}
"""Ridges of local linear votes, in units of the mean eigenvalue:
:mod:`vicinal.voting.local_linear`."""
GLOBAL_LINES: dict[VoteName, float] = {
    "global linear": 0.01,
    "bending global": 0.001,
    "stiff global": 0.1,
}
"""Ridges of lines through all rows, in the same units: :mod:`vicinal.voting.global_linear`."""
LEAVES: VoteName = "leaves"
"""The vote of a forest: :mod:`vicinal.voting.forest`."""
BOOSTED: VoteName = "boosted leaves"
"""The vote of trees that were grown one after the other: :mod:`vicinal.voting.boosting`."""
OF_TREES = (LEAVES, BOOSTED)
WITHOUT_K = (*OF_TREES, *GLOBAL_LINES)
FADING: tuple[VoteName, ...] = ("epanechnikov", "sloped epanechnikov", *LINES)
"""Votes whose weights look at the neighbor after the last."""
COUNTED: tuple[VoteName, ...] = ("majority", "epanechnikov")
SHARPNESS: dict[VoteName, float] = {"gentle": 0.3, "soft": 1.0, "sharp": 3.0}
"""Exponents of the soft votes. At 1 a neighbor weighs what it weighs in the objective."""
SLOPED: dict[VoteName, VoteName] = {
    "sloped majority": "majority",
    "sloped epanechnikov": "epanechnikov",
    "sloped gentle": "gentle",
    "sloped soft": "soft",
    "sloped sharp": "sharp",
}
"""Votes that are moved along a line through all rows, from where the neighbors lie on average to
the query: :mod:`vicinal.voting.global_linear`."""
N_NEIGHBORS = (1, 3, 5, 7, 9, 13, 19, 27, 37)
PRIOR_VOTES = VotingRows.prior_votes


def rules(ks: Sequence[int]) -> list[tuple[VoteName, int]]:
    """Every vote with every K it is tried with; soft votes fade by themselves and use all rows."""
    counted: list[tuple[VoteName, int]] = [(vote, k) for k in ks for vote in COUNTED]
    return counted + [(vote, max(ks)) for vote in SHARPNESS]


def vote_weights(
    neighbors: Neighbors,
    weights: FloatArray,
    vote: VoteName,
    k: int,
    prior_votes: float = PRIOR_VOTES,
) -> RowWeights:
    r"""Row weights of the K nearest rows.

    The j-th neighbor, at squared distance :math:`d_j`, has :math:`v_j` votes:

    * majority: :math:`v_j = w_j`;
    * epanechnikov: :math:`v_j = w_j \max(0, 1 - d_j / d_{K+1})`;
    * gentle, soft, sharp: :math:`v_j = e^{H} r_j`, with :math:`r_j \propto w_j e^{-s d_j}` of sum
      1 and entropy H, so that they have as many votes as they have effective neighbors.

    Its weight is :math:`v_j / (\sum_j v_j + p)`, and the prior, which counts for p rows, has the
    rest.

    Parameters
    ----------
    neighbors : distances and ids, both (q, K') with K' > K, ascending; missing are inf and -1
    weights : (n,) what the vote of each training row counts
    vote, k : the rule
    prior_votes : p
    """
    d, ids = neighbors.distances[:, :k], neighbors.ids[:, :k]
    votes = np.where(ids >= 0, weights[ids], 0.0)  # (q, K)
    if vote == "epanechnikov":
        votes = votes * (1.0 - relative_distances(d, neighbors.distances[:, k]))
    elif vote in SHARPNESS:
        votes = _soft_votes(d, votes, SHARPNESS[vote])
    totals = votes.sum(axis=1) + prior_votes
    return RowWeights.of(ids, votes / totals[:, None], prior_votes / totals)


def _soft_votes(d: FloatArray, weights: FloatArray, sharpness: float) -> FloatArray:
    """e^H r; 0 where no neighbor has a weight."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logits = np.log(weights) - sharpness * d  # −inf: no vote
        logits -= logits.max(axis=1, keepdims=True)
        e = np.exp(np.where(np.isnan(logits), -np.inf, logits))
    totals = e.sum(axis=1, keepdims=True)
    r = np.divide(e, totals, out=np.zeros_like(e), where=totals > 0)
    entropy = -np.sum(r * np.log(np.where(r > 0, r, 1.0)), axis=1, keepdims=True)
    return np.asarray(np.exp(entropy) * r)


def relative_distances(d: FloatArray, reach: FloatArray) -> FloatArray:
    """d_j / d_{K+1}; 0, so that all count fully, if d_{K+1} is missing or all rows coincide."""
    usable = np.isfinite(reach) & (reach > 0)
    reach = np.where(usable, reach, 1.0)[:, None]
    return np.where(usable[:, None] & np.isfinite(d), np.minimum(d / reach, 1.0), 0.0)


def all_votes(
    neighbors: Neighbors, rows: VotingRows, ks: Sequence[int]
) -> Iterator[tuple[VoteName, int, FloatArray]]:
    r"""The class probabilities (q, c) of all :func:`rules`, adding one neighbor at a time.

    :math:`\sum_{j \le K} w_j (1 - d_j / d_{K+1})` is the sum of the weights less the sum of
    :math:`w_j d_j`, over :math:`d_{K+1}`: both sums grow with K.
    """
    q, c = len(neighbors.ids), len(rows.prior)
    queries = np.arange(q)
    counts, reaches = np.zeros((q, c)), np.zeros((q, c))  # Σ w_j and Σ w_j d_j, by class
    for j in range(max(ks)):
        ids, d = neighbors.ids[:, j], neighbors.distances[:, j]
        codes = rows.codes[ids]
        w = np.where(ids >= 0, rows.weights[ids], 0.0)
        counts[queries, codes] += w
        reaches[queries, codes] += w * np.where(ids >= 0, d, 0.0)
        if j + 1 in ks:
            yield "majority", j + 1, _smooth(counts, rows.prior)
            reach = neighbors.distances[:, j + 1]
            usable = np.isfinite(reach) & (reach > 0)
            inverse = np.where(usable, 1.0 / np.where(usable, reach, 1.0), 0.0)
            votes = np.maximum(counts - reaches * inverse[:, None], 0.0)
            yield "epanechnikov", j + 1, _smooth(votes, rows.prior)
    for vote in SHARPNESS:
        soft = vote_weights(neighbors, rows.weights, vote, max(ks))
        yield vote, max(ks), soft.class_probabilities(rows)


def all_averages(
    neighbors: Neighbors, rows: TargetRows, ks: Sequence[int]
) -> Iterator[tuple[VoteName, int, FloatArray]]:
    """The averages (q, t) of the targets by all :func:`rules`, as sums along the neighbors."""
    k = max(ks)
    ids, d = neighbors.ids[:, :k], neighbors.distances[:, :k]
    w = np.where(ids >= 0, rows.weights[ids], 0.0)
    near = np.where(ids >= 0, d, 0.0)
    # The first column of values adds up the votes themselves.
    values = np.concatenate([np.ones((*ids.shape, 1)), rows.targets[ids]], axis=2)
    counts = np.cumsum(w[:, :, None] * values, axis=1)  # (q, K, t + 1)
    reaches = np.cumsum((w * near)[:, :, None] * values, axis=1)
    for j in ks:
        yield "majority", j, _averaged(counts[:, j - 1], rows)
        reach = neighbors.distances[:, j]
        usable = np.isfinite(reach) & (reach > 0)
        inverse = np.where(usable, 1.0 / np.where(usable, reach, 1.0), 0.0)
        yield (
            "epanechnikov",
            j,
            _averaged(counts[:, j - 1] - reaches[:, j - 1] * inverse[:, None], rows),
        )
    for vote in SHARPNESS:
        soft = vote_weights(neighbors, rows.weights, vote, k, rows.prior_votes)
        yield vote, k, probabilities(rows.shares(soft), rows.prior)


def _averaged(sums: FloatArray, rows: TargetRows) -> FloatArray:
    """(q, t) averages from sums (q, 1 + t) of votes and of votes times targets."""
    votes = np.maximum(sums[:, :1], 0.0)
    return np.asarray((sums[:, 1:] + rows.prior_votes * rows.prior) / (votes + rows.prior_votes))


def _smooth(votes: FloatArray, prior: FloatArray) -> FloatArray:
    """p_c = (v_c + ½ prior_c) / (Σ v + ½)."""
    totals = votes.sum(axis=1, keepdims=True) + PRIOR_VOTES
    return np.asarray((votes + PRIOR_VOTES * prior) / totals)


def majorities(labels: IndexArray, ks: Sequence[int] | IndexArray) -> IndexArray:
    """(len(ks), q) the most frequent of each query's first K labels, ties to the nearest.

    Parameters
    ----------
    labels : (q, k) classes as integers from 0, nearest first; -1 is a missing one, without a vote
    ks : the values of K, ascending, at most k

    Returns
    -------
    winners : (len(ks), q) ints; -1 where nobody has voted

    Examples
    --------
    >>> majorities(np.array([[2, 0, 0, 2, 1]]), [1, 2, 3, 5]).ravel()
    array([2, 2, 0, 2])
    """
    q, k = labels.shape
    queries = np.arange(q)
    # Votes, and as a fraction of a vote how early the first one came: no two classes are equal.
    scores = np.zeros((q, int(labels.max(initial=0)) + 1))
    winners = np.empty((len(ks), q), dtype=np.intp)
    counted = 0
    for i, stop in enumerate(ks):
        for j in range(counted, stop):
            cells = queries, labels[:, j]
            earliness = np.where(scores[cells] == 0, (k - j) / (k + 1), 0.0)
            scores[cells] += np.where(labels[:, j] >= 0, 1.0 + earliness, 0.0)
        counted = max(counted, int(stop))
        winners[i] = np.where(scores.any(axis=1), np.argmax(scores, axis=1), -1)
    return winners
