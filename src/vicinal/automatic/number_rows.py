"""Numbers as targets of an automatic model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata, skew
from sklearn.base import BaseEstimator

from vicinal._typing import FloatArray, IndexArray
from vicinal.automatic.tuning_rows import Descent, Trial
from vicinal.kernels import make_kernel
from vicinal.kernels.cpu.class_neighbors import Neighbors
from vicinal.learners.labeled_data import LabeledData, center_and_scale, unlabeled_data
from vicinal.objective.losses import RESIDUAL_LOSSES, get_loss
from vicinal.objective.neighbor_sets import build_comparisons
from vicinal.objective.parametrization import Factor
from vicinal.objective.regression_objective import RegressionObjective
from vicinal.validation.folds import Fold
from vicinal.voting.row_weights import TargetRows, probabilities
from vicinal.voting.votes import GLOBAL_LINES, LINES, SLOPED, VoteName, all_averages

STRATA = 10
"""Intervals between quantiles of the target that every fold has its share of, at most."""
ROWS_PER_STRATUM = 10
SKEWED = 1.0
"""Skewness from which on metrics are learned from normal scores of the targets."""


@dataclass(frozen=True)
class NumberRows(TargetRows):
    """Rows of numbers: metrics of the regression objective, judged by squared error."""

    descents: ClassVar[tuple[Descent, ...]] = (
        Descent("squared", "standardized", "squared", False, 20.0),
        Descent("whitened squared", "whitened", "squared", False, 20.0),
        Descent("unfolded squared", "unfolded", "squared", False, 20.0),
    )
    iterates: ClassVar[tuple[int, ...]] = (3, 8, 15, 30)
    lines: ClassVar[tuple[VoteName, ...]] = tuple(LINES)
    global_lines: ClassVar[tuple[VoteName, ...]] = tuple(GLOBAL_LINES)
    plain_single: ClassVar[bool] = False
    no_calibration: ClassVar[float] = 0.0
    loss_names: ClassVar[tuple[str, ...]] = ("squared_error",)
    leaf_sizes: ClassVar[tuple[int, ...]] = (2,)
    boosted: ClassVar[tuple[int, ...]] = (50, 100, 200)
    cross_fits: ClassVar[bool] = True

    learned: FloatArray
    """(n, t) what metrics are learned from: the targets, or a monotone function of each."""

    @classmethod
    def standardized(cls, targets: FloatArray, weights: FloatArray) -> NumberRows:
        """Rows of targets (n, t) of mean 0 and variance 1; constant ones stay 0."""
        centered = (targets - targets.mean(axis=0)) / spreads(targets)
        weights = weights / weights.mean()
        prior = weights @ centered / weights.sum()
        learned = np.column_stack([_symmetric(y) for y in centered.T])
        return cls(centered, weights, prior, learned)

    def __getitem__(self, rows: IndexArray) -> Self:
        """Some of the rows, with the prior of all."""
        return replace(super().__getitem__(rows), learned=self.learned[rows])

    @property
    def strata(self) -> IndexArray:
        """Intervals between quantiles of the target (of the sum, if there are several)."""
        ranks = rankdata(self.targets.sum(axis=1), method="min") - 1
        n = len(ranks)
        strata = ranks * int(np.clip(n // ROWS_PER_STRATUM, 1, STRATA)) // n
        return np.asarray(np.unique(strata, return_inverse=True)[1], dtype=np.intp)

    def usable_folds(self, folds: Sequence[Fold]) -> list[Fold]:
        """Those with rows on both sides."""
        return [fold for fold in folds if len(fold.train) and len(fold.test)]

    def data(self, Z: FloatArray, groups: IndexArray | None) -> LabeledData:
        """The rows in their order."""
        return unlabeled_data(Z, sample_weight=self.weights, groups=groups)

    def objective(self, data: LabeledData, descent: Descent) -> RegressionObjective:
        """The squared error of averages over all others; of no rows if the targets are constant."""
        comparisons = build_comparisons(
            data.X, data.offsets, dissimilar="none", groups=data.groups, may_be_empty=True
        )
        targets, _ = center_and_scale(self.learned)
        usable = self.weights[comparisons.anchors] > 0
        anchors = comparisons.anchors[usable & bool(targets.any())]
        comparisons = replace(comparisons, anchors=anchors)
        kernel, m = make_kernel(comparisons, "auto"), data.X.shape[1]
        return RegressionObjective(
            X=data.X,
            comparisons=comparisons,
            kernel=kernel,
            parametrization=Factor(),
            loss=get_loss(descent.loss, RESIDUAL_LOSSES),
            weights=data.weights,
            pull=np.zeros((m, m)),
            targets=kernel.asarray(targets),
            unit=1.0,
        )

    def trials(self, neighbors: Neighbors, ks: Sequence[int]) -> Iterator[Trial]:
        """See :func:`~vicinal.voting.votes.all_averages`."""
        return all_averages(neighbors, self, ks)

    def sloped_trials(
        self, neighbors: Neighbors, ks: Sequence[int], line: FloatArray, at: FloatArray
    ) -> Iterator[Trial]:
        """A moved vote is the value of the line at the query, plus the vote on its residuals."""
        rest = replace(self, targets=self.targets - line, prior=np.zeros(len(self.prior)))
        names = {vote: sloped for sloped, vote in SLOPED.items()}
        for vote, k, residuals in all_averages(neighbors, rest, ks):
            yield names[vote], k, at + residuals

    def losses(self, predictions: FloatArray) -> FloatArray:
        """(1,) weighted sum of squared errors."""
        return np.array([np.sum(self.weights @ (predictions - self.targets) ** 2)])

    def rank(self, losses: FloatArray) -> IndexArray:
        """Candidates in order of their squared error."""
        return np.argsort(losses[:, 0], kind="stable")

    def tree(self, leaf: int) -> BaseEstimator:
        """A tree that looks at a third of the features per node."""
        from sklearn.tree import DecisionTreeRegressor

        return DecisionTreeRegressor(max_features=1 / 3, min_samples_leaf=leaf)

    def tree_targets(self) -> FloatArray:
        """(n, t) the numbers."""
        return self.targets

    def calibration(self, shares: FloatArray) -> float:
        """The part of the prior that makes the squared error least, from 0 to 1."""
        predictions = probabilities(shares, self.prior)
        to_prior = self.prior - predictions
        roots = np.sqrt(self.weights)[:, None]
        size = float(np.sum((roots * to_prior) ** 2))
        gain = float(np.sum((self.targets - predictions) * to_prior * roots**2))
        return float(np.clip(gain / size, 0.0, 1.0)) if size > 0 else 0.0


def spreads(targets: FloatArray) -> FloatArray:
    """(t,) standard deviations of targets (n, t); 1 of those that are constant."""
    spread = targets.std(axis=0)
    flat = np.ptp(targets, axis=0) == 0
    return np.where(flat, 1.0, np.where(spread > 0, spread, 1.0))


def _symmetric(y: FloatArray) -> FloatArray:
    """(n,) normal scores of skewed targets; others as they are."""
    if np.ptp(y) == 0 or abs(skew(y)) < SKEWED:
        return y
    return np.asarray(ndtri((rankdata(y) - 0.5) / len(y)))
