"""Row weights: a prediction as a weighted average over training rows.

Every source of predictions (:mod:`vicinal.voting.sources`) gives each query a weight for every
training row and a share for the prior, which sum to 1. Probabilities, averages and neighbors all
follow from them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from vicinal._typing import FloatArray, IndexArray


class Voters(Protocol):
    """The training rows as voters, for classes (:class:`VotingRows`) or numbers."""

    @property
    def weights(self) -> FloatArray:
        """(n,) what the vote of each row counts, 1 on average."""

    @property
    def prior(self) -> FloatArray:
        """(c,) the prediction before any row has voted."""

    @property
    def prior_votes(self) -> float:
        """The number of rows that the prior counts for in a vote."""

    @property
    def targets(self) -> FloatArray:
        """(n, c) what the rows are averaged over: indicators of classes, or numbers."""

    def __getitem__(self, rows: IndexArray) -> Self:
        """Some of the rows, with the prior of all."""

    def shares(self, weights: RowWeights) -> FloatArray:
        """(q, c + 1) weighted sums of the targets, then the prior's share."""

    def calibrated(self, shares: FloatArray, strength: float) -> FloatArray:
        """The shares (q, c + 1) after calibration."""

    def calibrated_weights(self, weights: RowWeights, strength: float) -> RowWeights:
        """Row weights whose shares are those of `calibrated`."""


@dataclass(frozen=True)
class VotingRows:
    """The training rows as voters for classes."""

    prior_votes: ClassVar[float] = 0.5
    """The prior counts like half a neighbor: no class has probability 0, and log-loss is finite."""

    codes: IndexArray
    """(n,) the class that each row votes for."""
    weights: FloatArray
    """(n,) what its vote counts, 1 on average."""
    prior: FloatArray
    """(c,) share of each class: the probabilities before any row has voted."""

    @classmethod
    def of(cls, codes: IndexArray, weights: FloatArray) -> Self:
        """Rows of these classes and weights; the prior is the weighted share of each class."""
        weights = weights / weights.mean()
        return cls(codes, weights, class_prior(codes, weights))

    def __getitem__(self, rows: IndexArray) -> Self:
        """Some of the rows, with the prior of all."""
        return replace(self, codes=self.codes[rows], weights=self.weights[rows])

    @property
    def targets(self) -> FloatArray:
        """(n, c) indicators of the classes."""
        return np.eye(len(self.prior))[self.codes]

    def shares(self, weights: RowWeights) -> FloatArray:
        """See :meth:`RowWeights.class_shares`."""
        return weights.class_shares(self)

    def calibrated(self, shares: FloatArray, strength: float) -> FloatArray:
        """See :func:`calibrate`; the strength is its exponent."""
        return calibrate(shares, strength)

    def calibrated_weights(self, weights: RowWeights, strength: float) -> RowWeights:
        """See :meth:`RowWeights.calibrated`."""
        return weights.calibrated(self, strength)


@dataclass(frozen=True)
class TargetRows:
    """The training rows as voters for numbers."""

    prior_votes: ClassVar[float] = 1e-9
    """The prior counts only where nothing else does."""

    targets: FloatArray
    """(n, t) the numbers that each row votes for."""
    weights: FloatArray
    """(n,) what its vote counts, 1 on average."""
    prior: FloatArray
    """(t,) weighted mean of the targets: the prediction before any row has voted."""

    @classmethod
    def of(cls, targets: FloatArray, weights: FloatArray) -> Self:
        """Rows of these targets (n, t) and weights; the prior is the weighted mean."""
        weights = weights / weights.mean()
        return cls(targets, weights, weights @ targets / weights.sum())

    def __getitem__(self, rows: IndexArray) -> Self:
        """Some of the rows, with the prior of all."""
        return replace(self, targets=self.targets[rows], weights=self.weights[rows])

    def shares(self, weights: RowWeights) -> FloatArray:
        """(q, t + 1) weighted sums of the targets, then the prior's share."""
        sums = weights.averages(self.targets, np.zeros(len(self.prior)))
        return np.c_[sums, weights.prior_share]

    def calibrated(self, shares: FloatArray, strength: float) -> FloatArray:
        """The shares (q, t + 1) moved toward the prior, of which `strength` is the part."""
        only_prior = np.eye(shares.shape[1])[-1]
        return shares if strength == 0 else (1.0 - strength) * shares + strength * only_prior

    def calibrated_weights(self, weights: RowWeights, strength: float) -> RowWeights:
        """Row weights whose shares are those of `calibrated`."""
        if strength == 0:
            return weights
        (first, *others) = RowWeights.weighted_sum([(1.0 - strength, weights)]).terms
        with_prior = first._replace(prior_share=first.prior_share + strength)
        return RowWeights((with_prior, *others))


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
