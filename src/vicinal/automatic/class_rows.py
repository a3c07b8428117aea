"""Classes as targets of an automatic model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from vicinal._typing import FloatArray, IndexArray
from vicinal.automatic.tuning_rows import Descent, Trial
from vicinal.kernels import make_kernel
from vicinal.kernels.cpu.class_neighbors import Neighbors
from vicinal.learners.labeled_data import LabeledData, sort_by_class
from vicinal.objective.losses import get_loss
from vicinal.objective.neighbor_objective import NeighborObjective, plain_shift
from vicinal.objective.neighbor_sets import build_comparisons
from vicinal.objective.parametrization import Factor
from vicinal.validation.folds import Fold, usable_folds
from vicinal.voting.row_weights import VotingRows, calibrate, probabilities
from vicinal.voting.votes import LOCAL_LINEAR, VoteName, all_votes

LOG_LOSS_WEIGHT = 0.3
EXPONENTS = np.exp(np.linspace(np.log(0.5), np.log(3.0), 61))
EXPONENT_SPREAD = 0.25
"""How far the logarithm of the exponent is from 0 before any row is seen, about."""
TINY = 1e-12  # a class of weight 0 has no prior


class ClassRows(VotingRows):
    """Rows of classes: γ = α = 1, λ = 0, and the whole class is similar."""

    descents: ClassVar[tuple[Descent, ...]] = (
        Descent("logistic", "standardized", "logistic", True, 30.0),
        Descent("whitened logistic", "whitened", "logistic", True, 30.0),
        Descent("centered logistic", "centered", "logistic", True, 30.0),
        Descent("whitened hinge", "whitened", "hinge", False, 10.0),
        Descent("unfolded logistic", "unfolded", "logistic", True, 30.0),
        Descent("whitened kernel logistic", "whitened kernel", "logistic", True, 30.0),
        Descent("kernel logistic", "kernel", "logistic", True, 30.0),
    )
    iterates: ClassVar[tuple[int, ...]] = (2, 5, 10, 20, 40)
    lines: ClassVar[tuple[VoteName, ...]] = (LOCAL_LINEAR,)
    global_lines: ClassVar[tuple[VoteName, ...]] = ()
    plain_single: ClassVar[bool] = True
    no_calibration: ClassVar[float] = 1.0
    loss_names: ClassVar[tuple[str, ...]] = ("error", "log_loss")
    leaf_sizes: ClassVar[tuple[int, ...]] = (1,)
    boosted: ClassVar[tuple[int, ...]] = (50, 100)
    cross_fits: ClassVar[bool] = False

    @property
    def strata(self) -> IndexArray:
        """The classes, over which folds are stratified."""
        return self.codes

    def usable_folds(self, folds: Sequence[Fold]) -> list[Fold]:
        """See :func:`~vicinal.validation.folds.usable_folds`."""
        return usable_folds(folds, self.codes)

    def data(self, Z: FloatArray, groups: IndexArray | None) -> LabeledData:
        """The rows sorted by class."""
        return sort_by_class(Z, self.codes, sample_weight=self.weights, groups=groups)

    def objective(self, data: LabeledData, descent: Descent) -> NeighborObjective:
        """The objective of a loss; of no rows where no row has a similar and a dissimilar one."""
        comparisons = build_comparisons(data.X, data.offsets, groups=data.groups, may_be_empty=True)
        n, m = data.X.shape
        return NeighborObjective(
            X=data.X,
            comparisons=comparisons,
            kernel=make_kernel(comparisons, "auto"),
            parametrization=Factor(),
            loss=get_loss(descent.loss),
            alpha=1.0,
            gamma=1.0,
            shift=plain_shift(comparisons, 1.0) if descent.plain else np.zeros(n),
            weights=data.weights,
            pull=np.zeros((m, m)),
        )

    def trials(self, neighbors: Neighbors, ks: Sequence[int]) -> Iterator[Trial]:
        """See :func:`~vicinal.voting.votes.all_votes`."""
        return all_votes(neighbors, self, ks)

    def sloped_trials(
        self, neighbors: Neighbors, ks: Sequence[int], line: FloatArray, at: FloatArray
    ) -> Iterator[Trial]:
        """None."""
        return iter(())

    def losses(self, predictions: FloatArray) -> FloatArray:
        """(2,) weighted sums of errors and of log-losses."""
        return _loss_sums(predictions, self)

    def rank(self, losses: FloatArray) -> IndexArray:
        """By error + 0.3 log-loss."""
        return np.argsort(losses[:, 0] + LOG_LOSS_WEIGHT * losses[:, 1], kind="stable")

    def tree(self, leaf: int) -> BaseEstimator:
        """A tree that looks at √d features per node."""
        from sklearn.tree import DecisionTreeClassifier

        return DecisionTreeClassifier(max_features="sqrt", min_samples_leaf=leaf)

    def tree_targets(self) -> IndexArray:
        """(n,) the classes."""
        return self.codes

    def calibration(self, shares: FloatArray) -> float:
        """See :func:`fit_exponent`."""
        return fit_exponent(shares, self)


def _loss_sums(P: FloatArray, tested: VotingRows) -> FloatArray:
    """(2,) weighted sums of errors and of log-losses of the probabilities P (t, c)."""
    wrong = P.argmax(axis=1) != tested.codes
    truth = np.maximum(P[np.arange(len(P)), tested.codes], TINY)
    return np.array([tested.weights @ wrong, -tested.weights @ np.log(truth)])


def fit_exponent(shares: FloatArray, tested: VotingRows) -> float:
    r"""The exponent τ of :func:`~vicinal.voting.row_weights.calibrate` for out-of-fold shares.

    It minimizes the log-loss, summed over the rows, plus :math:`(\log \tau)^2 / (2 \sigma^2)`:
    few rows say little about it, and it stays near 1.
    """
    losses = [
        _loss_sums(probabilities(calibrate(shares, float(tau)), tested.prior), tested)[1]
        for tau in EXPONENTS
    ]
    penalized = np.array(losses) + np.log(EXPONENTS) ** 2 / (2.0 * EXPONENT_SPREAD**2)
    return float(EXPONENTS[np.argmin(penalized)])


def calibration_error(P: FloatArray, tested: VotingRows, bins: int = 10) -> float:
    """Expected calibration error: |confidence − accuracy|, averaged over bins of confidence."""
    confidence = P.max(axis=1)
    gaps = tested.weights * (confidence - (P.argmax(axis=1) == tested.codes))
    places = np.minimum((confidence * bins).astype(np.intp), bins - 1)
    return float(np.abs(np.bincount(places, weights=gaps)).sum() / tested.weights.sum())
