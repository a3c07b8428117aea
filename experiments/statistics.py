"""Methods compared over data sets, as Demšar (JMLR 2006) recommends."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy import stats

from vicinal._typing import FloatArray

PRINTED_DECIMALS = 2
"""Of percentages: what is equal in print is a tie."""
MOST_SIGNS = 16
"""Differences up to which all their signs are gone through: 65,536."""


@dataclass(frozen=True)
class Friedman:
    """The test that k methods are alike on N data sets."""

    chi2: float
    p: float
    f: float
    """Iman and Davenport's F, (N − 1) χ² / (N (k − 1) − χ²), less conservative than χ²."""
    p_f: float


@dataclass(frozen=True)
class Duel:
    """One method against another, over data sets."""

    wins: int
    ties: int
    losses: int
    p: float
    """Two-sided Wilcoxon signed-rank test; 1 where all are equal."""

    def __str__(self) -> str:
        return f"{self.wins}/{self.ties}/{self.losses}"


def mean_ranks(scores: FloatArray) -> FloatArray:
    """(k,) mean over data sets of the rank of each method; 1 is the best, ties share.

    Parameters
    ----------
    scores : (N, k), higher is better

    Examples
    --------
    >>> mean_ranks(np.array([[0.9, 0.8, 0.8], [0.7, 0.6, 0.5]]))
    array([1.  , 2.25, 2.75])
    """
    return np.asarray(stats.rankdata(-scores, axis=1).mean(axis=0))


def friedman(scores: FloatArray) -> Friedman:
    """The test that all methods rank alike.

    Parameters
    ----------
    scores : (N, k), k ≥ 3
    """
    n, k = scores.shape
    chi2, p = stats.friedmanchisquare(*scores.T)
    rest = n * (k - 1) - chi2
    f = (n - 1) * chi2 / rest if rest > 0 else math.inf
    p_f = float(stats.f.sf(f, k - 1, (k - 1) * (n - 1)))
    return Friedman(float(chi2), float(p), float(f), p_f)


@cache  # the quantile takes a second
def critical_difference(k: int, n: int, level: float = 0.05) -> float:
    r"""Critical difference of the mean ranks of two of k methods, by Nemenyi's test.

    .. math:: CD = \frac{q_{k,\infty}}{\sqrt 2} \sqrt{\frac{k (k + 1)}{6 N}}

    Parameters
    ----------
    k : number of methods
    n : number of data sets
    level : of significance

    Examples
    --------
    Demšar's example, four methods on fourteen data sets:

    >>> round(critical_difference(4, 14), 2)
    1.25
    """
    q = float(stats.studentized_range.ppf(1 - level, k, np.inf))
    return q / math.sqrt(2) * math.sqrt(k * (k + 1) / (6 * n))


def duel(first: FloatArray, second: FloatArray) -> Duel:
    """Wins, ties and losses of the first, and whether they could be chance.

    Parameters
    ----------
    first, second : (N,) mean accuracies in percent
    """
    differences = np.round(first, PRINTED_DECIMALS) - np.round(second, PRINTED_DECIMALS)
    differences = np.round(differences, PRINTED_DECIMALS)
    return Duel(
        int((differences > 0).sum()),
        int((differences == 0).sum()),
        int((differences < 0).sum()),
        signed_rank_p(differences),
    )


def signed_rank_p(differences: FloatArray) -> float:
    """Two-sided p of Wilcoxon's signed-rank test, exact up to `MOST_SIGNS` differences.

    Where differences are equal SciPy may take the normal approximation, which makes fifteen wins
    out of fifteen ten times as likely as they are. Zeros are left out, as usual; NaN gives NaN.

    Parameters
    ----------
    differences : (N,)

    Examples
    --------
    >>> signed_rank_p(np.array([1.0, 1.0, 2.0, 3.0, 4.0])) == 2 / 2**5
    True
    """
    nonzero = differences[differences != 0]
    n = len(nonzero)
    if n > MOST_SIGNS or np.isnan(nonzero).any():
        return float(stats.wilcoxon(nonzero).pvalue)
    if n < 2:  # one difference has either sign as likely
        return 1.0
    ranks = np.sign(nonzero) * stats.rankdata(np.abs(nonzero))
    # Of a single sample it permutes the signs, and goes through all where it may make so many.
    test = stats.permutation_test(
        (ranks,), np.sum, permutation_type="samples", n_resamples=2**MOST_SIGNS
    )
    return float(test.pvalue)


def cliques(ranks: FloatArray, difference: float) -> list[tuple[int, int]]:
    """Maximal runs of methods, sorted by rank, whose ranks are within the critical difference.

    Parameters
    ----------
    ranks : (k,) ascending
    difference : the critical one

    Returns
    -------
    runs : (first, last) positions, each of at least two methods
    """
    runs: list[tuple[int, int]] = []
    for first in range(len(ranks)):
        last = int(np.searchsorted(ranks, ranks[first] + difference, side="right")) - 1
        if last > first and (not runs or last > runs[-1][1]):
            runs.append((first, last))
    return runs
