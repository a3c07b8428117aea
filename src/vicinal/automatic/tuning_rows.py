"""Interface of the rows that are tuned on: all that depends on classes or numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeAlias

from sklearn.base import BaseEstimator

from vicinal._typing import FloatArray, IndexArray
from vicinal.features.spaces import SpaceName
from vicinal.kernels.cpu.class_neighbors import Neighbors
from vicinal.learners.labeled_data import LabeledData
from vicinal.objective.neighbor_objective import RowObjective
from vicinal.validation.folds import Fold
from vicinal.voting.row_weights import Voters
from vicinal.voting.votes import VoteName

Trial: TypeAlias = tuple[VoteName, int, FloatArray]
"""A vote, its K and the predictions (q, c)."""


@dataclass(frozen=True)
class Descent:
    """One way down the objective, with exponents 1 and no pull."""

    name: str
    space: SpaceName
    loss: str
    plain: bool
    """Of classes: whether the soft averages are plain ones."""
    perplexity: float
    """Mean number of neighbors that a row sees at the start, which sets its scale."""


class TuningRows(Voters, Protocol):
    """Rows of classes or of numbers, and how models of them are learned and judged."""

    descents: ClassVar[tuple[Descent, ...]]
    iterates: ClassVar[tuple[int, ...]]
    """Iterations of a descent whose metrics are kept."""
    lines: ClassVar[tuple[VoteName, ...]]
    """Local linear votes that are tried."""
    global_lines: ClassVar[tuple[VoteName, ...]]
    """Lines through all rows that are tried; with them votes that are moved along one."""
    plain_single: ClassVar[bool]
    """Whether a single metric has no local linear votes and no calibration."""
    leaf_sizes: ClassVar[tuple[int, ...]]
    """Of the forests: the rows that a leaf has at least."""
    boosted: ClassVar[tuple[int, ...]]
    """Numbers of boosted trees that are tried where all rows are tuned on, ascending."""
    cross_fits: ClassVar[bool]
    """Whether predictions out of fold are those of committees that were chosen without their rows,
    and their row weights are kept: intervals follow from them."""
    no_calibration: ClassVar[float]
    """The strength that changes nothing that needs no change."""
    loss_names: ClassVar[tuple[str, ...]]
    """Of the columns of `losses`."""

    @property
    def strata(self) -> IndexArray:
        """(n,) what folds and samples keep the shares of; also the groups of the whitened space."""

    def usable_folds(self, folds: Sequence[Fold]) -> list[Fold]:
        """The folds that something can be learned from and tested on."""

    def data(self, Z: FloatArray, groups: IndexArray | None) -> LabeledData:
        """The rows, at places Z (n, m), as the objective wants them."""

    def objective(self, data: LabeledData, descent: Descent) -> RowObjective:
        """The objective of a descent; of no rows where there is nothing to learn."""

    def trials(self, neighbors: Neighbors, ks: Sequence[int]) -> Iterator[Trial]:
        """Predictions for queries with these neighbors, by every vote."""

    def sloped_trials(
        self, neighbors: Neighbors, ks: Sequence[int], line: FloatArray, at: FloatArray
    ) -> Iterator[Trial]:
        """The same for votes moved along a line.

        Its values are `line` (n, c) at the rows and `at` (q, c) at the queries.
        """

    def losses(self, predictions: FloatArray) -> FloatArray:
        """(l,) weighted sums of the losses of predictions (n, c) for these rows."""

    def rank(self, losses: FloatArray) -> IndexArray:
        """Candidates of losses (k, l) from best to worst; the first wins ties."""

    def tree(self, leaf: int) -> BaseEstimator:
        """The tree that forests consist of, with at least so many rows in a leaf."""

    def tree_targets(self) -> FloatArray | IndexArray:
        """(n,) or (n, t) what it is grown for."""

    def calibration(self, shares: FloatArray) -> float:
        """The strength of `calibrated` that is best for out-of-fold shares (n, c + 1)."""
