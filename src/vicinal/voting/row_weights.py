"""Row weights: a prediction as a weighted average over training rows.

Every source of predictions (:mod:`vicinal.voting.sources`) gives each query a weight for every
training row and a share for the prior, which sum to 1. Probabilities, averages and neighbors all
follow from them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from vicinal._typing import FloatArray, IndexArray


@dataclass(frozen=True)
class VotingRows:
    """The training rows as voters for classes."""

    codes: IndexArray
    """(n,) the class that each row votes for."""
    weights: FloatArray
    """(n,) what its vote counts, 1 on average."""
    prior: FloatArray
    """(c,) share of each class: the probabilities before any row has voted."""

    @classmethod
    def of(cls, codes: IndexArray, weights: FloatArray) -> VotingRows:
        """Rows of these classes and weights; the prior is the weighted share of each class."""
        weights = weights / weights.mean()
        return cls(codes, weights, class_prior(codes, weights))

    def __getitem__(self, rows: IndexArray) -> VotingRows:
        """Some of the rows, with the prior of all."""
        return VotingRows(self.codes[rows], self.weights[rows], self.prior)


class Term(NamedTuple):
    """Sparse weights (q, n) by their entries: k training rows per query."""

    ids: IndexArray
    """(q, k) distinct training rows; -1 stands for a missing one, of weight 0."""
    weights: FloatArray
    """(q, k)"""
    prior_share: FloatArray
    """(q,)"""


@dataclass(frozen=True)
class RowWeights:
    """Weights of n training rows for q queries, as a sum of sparse terms.

    Weights of a query and its ``prior_share`` sum to 1. They need not be positive.
    """

    terms: tuple[Term, ...]

    @classmethod
    def of(cls, ids: IndexArray, weights: FloatArray, prior_share: FloatArray) -> RowWeights:
        """Row weights of one term."""
        return cls((Term(ids, weights, prior_share),))

    @classmethod
    def weighted_sum(cls, parts: Iterable[tuple[float, RowWeights]]) -> RowWeights:
        """Σ weight · part: the row weights of a committee, if the weights sum to 1."""
        return cls(
            tuple(
                Term(term.ids, weight * term.weights, weight * term.prior_share)
                for weight, part in parts
                for term in part.terms
            )
        )

    @property
    def prior_share(self) -> FloatArray:
        """(q,) the share of the prior."""
        return np.asarray(sum(term.prior_share for term in self.terms))

    def class_shares(self, rows: VotingRows) -> FloatArray:
        """(q, c + 1) the weights summed by class, then the prior's share."""
        c = len(rows.prior)
        sums = sum(class_sums(term.ids, rows.codes, c, term.weights) for term in self.terms)
        return np.c_[sums, self.prior_share]

    def class_probabilities(self, rows: VotingRows) -> FloatArray:
        """(q, c) the weights summed by class, plus the prior's share of the prior."""
        return probabilities(self.class_shares(rows), rows.prior)

    def calibrated(self, rows: VotingRows, exponent: float) -> RowWeights:
        """Row weights whose class shares are those of :func:`calibrate`.

        All rows of a class are scaled alike, so that they still sum to the probabilities.
        """
        shares = self.class_shares(rows)
        wanted = calibrate(shares, exponent)
        if wanted is shares:
            return self
        factors = np.divide(wanted, shares, out=np.zeros_like(shares), where=wanted > 0)
        queries = np.arange(len(shares))[:, None]
        return RowWeights(
            tuple(
                Term(
                    term.ids,
                    term.weights * factors[queries, rows.codes[term.ids]],
                    term.prior_share * factors[:, -1],
                )
                for term in self.terms
            )
        )

    def averages(self, targets: FloatArray, prior: FloatArray) -> FloatArray:
        """(q, t) averages of numeric targets (n, t); the prior's share is that of ``prior`` (t,).

        The regression counterpart of :meth:`class_probabilities`.
        """
        sums = sum(np.einsum("qk,qkt->qt", t.weights, targets[t.ids]) for t in self.terms)
        return np.asarray(sums + self.prior_share[:, None] * prior)

    def to_sparse(self, n: int) -> csr_array:
        """The sum of the terms as a sparse array (q, n) without zeros, columns in order."""
        q = len(self.terms[0].ids)
        rows = np.arange(q)[:, None] * n
        cells = np.concatenate([(rows + term.ids).ravel() for term in self.terms])
        weights = np.concatenate([term.weights.ravel() for term in self.terms])
        cells, inverse = np.unique(cells[weights != 0], return_inverse=True)
        data = np.bincount(inverse, weights=weights[weights != 0], minlength=len(cells))
        starts = np.searchsorted(cells, np.arange(q + 1) * n)
        return csr_array((data, cells % n, starts), shape=(q, n))


def class_prior(codes: IndexArray, weights: FloatArray, n_classes: int = 0) -> FloatArray:
    """(c,) weighted share of each class among rows of codes (n,) and weights (n,)."""
    sums = np.bincount(codes, weights=weights, minlength=n_classes)
    return np.asarray(sums / sums.sum())


def probabilities(shares: FloatArray, prior: FloatArray) -> FloatArray:
    """(..., c) of the shares (..., c + 1) of classes and prior; the prior is divided as it says."""
    return np.asarray(shares[..., :-1] + shares[..., -1:] * prior)


def calibrate(shares: FloatArray, exponent: float) -> FloatArray:
    r"""Shares (q, c + 1) of the classes and of the prior, made nonnegative and more extreme.

    With class shares :math:`r_c`, those below 0 set to 0, and the prior's share s, they become

    .. math:: s' = \frac{s^\tau}{s^\tau + (1 - s)^\tau}, \qquad
              r_c' = (1 - s') \frac{r_c^\tau}{\sum_b r_b^\tau}.

    An exponent τ above 1 makes them more confident, one below 1 less. Shares that need no change
    are returned as they are.
    """
    if exponent == 1.0 and shares.min(initial=0.0) >= 0:
        return shares
    r, s = np.maximum(shares[:, :-1], 0.0), np.clip(shares[:, -1], 0.0, 1.0)
    r = r / np.maximum(r.max(axis=1, keepdims=True), 1e-300)
    powers = r**exponent
    totals = powers.sum(axis=1)
    s = np.where(totals > 0, s**exponent / (s**exponent + (1.0 - s) ** exponent), 1.0)
    scale = (1.0 - s) / np.where(totals > 0, totals, 1.0)
    return np.c_[powers * scale[:, None], s]


def class_sums(
    ids: IndexArray, codes: IndexArray, n_classes: int, weights: FloatArray | None = None
) -> FloatArray:
    """(q, c) sums over the rows ``ids`` (q, k) by their class, of weights (q, k) or, without, of 1.

    ``codes`` (n,) are the classes of all rows. A missing row, -1, must have weight 0.
    """
    q = len(ids)
    cells = np.arange(q)[:, None] * n_classes + codes[ids]
    sums = np.bincount(
        cells.ravel(),
        weights=None if weights is None else weights.ravel(),
        minlength=q * n_classes,
    )
    return np.asarray(sums.reshape(q, n_classes))


def check_row_numbers(rows: ArrayLike, n: int) -> IndexArray:
    """Row numbers from 0 to n − 1; a ValueError where one is not."""
    numbers = np.asarray(rows)
    if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
        raise ValueError(
            f"rows must be row numbers, one integer each; got {numbers.dtype} {numbers.shape}"
        )
    numbers = numbers.astype(np.intp)
    if np.any((numbers < 0) | (numbers >= n)):
        raise ValueError(f"rows must be from 0 to {n - 1}; got {numbers.min()} to {numbers.max()}")
    return numbers
