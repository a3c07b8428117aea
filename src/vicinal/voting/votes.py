"""How neighbors vote: counted, fading or soft; for every K from one neighbor search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from vicinal._typing import FloatArray, IndexArray
from vicinal.kernels.cpu.class_neighbors import Neighbors

VoteName: TypeAlias = Literal["majority", "epanechnikov", "gentle", "soft", "sharp"]

COUNTED: tuple[VoteName, ...] = ("majority", "epanechnikov")
SHARPNESS: dict[VoteName, float] = {"gentle": 0.3, "soft": 1.0, "sharp": 3.0}
"""Exponents of the soft votes. At 1 a neighbor weighs what it weighs in the objective."""
N_NEIGHBORS = (1, 3, 5, 7, 9, 13, 19, 27, 37)
PRIOR_VOTES = 0.5
"""The prior counts like half a neighbor: no class is ever impossible, and log-loss stays finite."""


@dataclass(frozen=True)
class Electorate:
    """The training rows as voters."""

    codes: IndexArray
    """(n,) the class that each row votes for."""
    weights: FloatArray
    """(n,) what its vote counts, 1 on average."""
    prior: FloatArray
    """(c,) share of each class; what a sample is taken for before anybody has voted."""


def rules(ks: Sequence[int]) -> list[tuple[VoteName, int]]:
    """Every vote with every K it is tried with: soft ones fade by themselves, and take all."""
    counted: list[tuple[VoteName, int]] = [(vote, k) for k in ks for vote in COUNTED]
    return counted + [(vote, max(ks)) for vote in SHARPNESS]


def vote_shares(
    neighbors: Neighbors, weights: FloatArray, vote: VoteName, k: int
) -> tuple[FloatArray, FloatArray]:
    r"""What each of the K nearest rows contributes to the probabilities, and the prior.

    The j-th neighbor, at squared distance :math:`d_j`, has :math:`v_j` votes:

    * majority: :math:`v_j = w_j`;
    * epanechnikov: :math:`v_j = w_j \max(0, 1 - d_j / d_{K+1})`;
    * gentle, soft, sharp: :math:`v_j = e^{H} r_j`, with :math:`r_j \propto w_j e^{-s d_j}` of sum
      1 and entropy H, so that they have as many votes as they have effective neighbors.

    Its share is :math:`v_j / (\sum_j v_j + \frac12)`, and the prior has the rest.

    Parameters
    ----------
    neighbors : distances and ids, both (q, K') with K' > K, ascending; missing are inf and -1
    weights : (n,) what the vote of each training row counts
    vote, k : the rule

    Returns
    -------
    shares : (q, K), prior_share : (q,); together they sum to 1
    """
    d, ids = neighbors.distances[:, :k], neighbors.ids[:, :k]
    votes = np.where(ids >= 0, weights[ids], 0.0)  # (q, K)
    if vote == "epanechnikov":
        votes = votes * (1.0 - _relative(d, neighbors.distances[:, k]))
    elif vote in SHARPNESS:
        votes = _soft_votes(d, votes, SHARPNESS[vote])
    totals = votes.sum(axis=1) + PRIOR_VOTES
    return votes / totals[:, None], PRIOR_VOTES / totals


def _soft_votes(d: FloatArray, weights: FloatArray, sharpness: float) -> FloatArray:
    """e^H r; nothing where nobody has a weight."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logits = np.log(weights) - sharpness * d  # −inf: no vote
        logits -= logits.max(axis=1, keepdims=True)
        e = np.exp(np.where(np.isnan(logits), -np.inf, logits))
    totals = e.sum(axis=1, keepdims=True)
    r = np.divide(e, totals, out=np.zeros_like(e), where=totals > 0)
    entropy = -np.sum(r * np.log(np.where(r > 0, r, 1.0)), axis=1, keepdims=True)
    return np.asarray(np.exp(entropy) * r)


def _relative(d: FloatArray, reach: FloatArray) -> FloatArray:
    """d_j / d_{K+1}; where nothing lies that far, or all coincide, every neighbor counts fully."""
    usable = np.isfinite(reach) & (reach > 0)
    reach = np.where(usable, reach, 1.0)[:, None]
    return np.where(usable[:, None] & np.isfinite(d), np.minimum(d / reach, 1.0), 0.0)


def class_probabilities(
    neighbors: Neighbors, electorate: Electorate, vote: VoteName, k: int
) -> FloatArray:
    """(q, c) the sums of :func:`vote_shares` by class."""
    shares, prior_share = vote_shares(neighbors, electorate.weights, vote, k)
    q, c = len(shares), len(electorate.prior)
    cells = np.arange(q)[:, None] * c + electorate.codes[neighbors.ids[:, :k]]  # (q, K)
    sums = np.bincount(cells.ravel(), weights=shares.ravel(), minlength=q * c)
    return np.asarray(sums.reshape(q, c) + prior_share[:, None] * electorate.prior)


def all_votes(
    neighbors: Neighbors, electorate: Electorate, ks: Sequence[int]
) -> Iterator[tuple[VoteName, int, FloatArray]]:
    r"""The probabilities (q, c) of all :func:`rules`, adding one neighbor at a time.

    :math:`\sum_{j \le K} w_j (1 - d_j / d_{K+1})` is the sum of the weights less the sum of
    :math:`w_j d_j`, over :math:`d_{K+1}`: both sums grow with K.
    """
    q, c = len(neighbors.ids), len(electorate.prior)
    rows = np.arange(q)
    counts, reaches = np.zeros((q, c)), np.zeros((q, c))  # Σ w_j and Σ w_j d_j, by class
    for j in range(max(ks)):
        ids, d = neighbors.ids[:, j], neighbors.distances[:, j]
        codes = electorate.codes[ids]
        w = np.where(ids >= 0, electorate.weights[ids], 0.0)
        counts[rows, codes] += w
        reaches[rows, codes] += w * np.where(ids >= 0, d, 0.0)
        if j + 1 in ks:
            yield "majority", j + 1, _smooth(counts, electorate.prior)
            reach = neighbors.distances[:, j + 1]
            usable = np.isfinite(reach) & (reach > 0)
            inverse = np.where(usable, 1.0 / np.where(usable, reach, 1.0), 0.0)
            votes = np.maximum(counts - reaches * inverse[:, None], 0.0)
            yield "epanechnikov", j + 1, _smooth(votes, electorate.prior)
    for vote in SHARPNESS:
        yield vote, max(ks), class_probabilities(neighbors, electorate, vote, max(ks))


def _smooth(votes: FloatArray, prior: FloatArray) -> FloatArray:
    """p_c = (v_c + ½ prior_c) / (Σ v + ½)."""
    totals = votes.sum(axis=1, keepdims=True) + PRIOR_VOTES
    return np.asarray((votes + PRIOR_VOTES * prior) / totals)
