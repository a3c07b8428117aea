"""Mini-batches against a sampled reference set: the objective for more rows than n² allows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np

from vicinal._typing import FloatArray, IndexArray
from vicinal.kernels.contract import Comparisons, IndexLists, Kernel
from vicinal.objective.neighbor_objective import RowObjective
from vicinal.objective.neighbor_sets import Selection, build_comparisons


class SampledObjective:
    """Estimates J from some anchors and a random set of reference rows.

    Complete sides are replaced by what the sample holds of them; mean soft averages over a
    sample estimate those over all rows, and the shift of plain ones keeps the true set sizes;
    averages of targets over a sample estimate those over all rows.
    Listed sides stay whole, and the rows that they name are references too. A logarithm of a mean
    is biased: the nearest of a sample is farther than the nearest of all, so that estimates of J
    tend to be too large, the more so the fewer references there are.

    The references are a function of ``seed`` and of the anchors: evaluation is pure, and other
    anchors (those of the next epoch) have other references.
    """

    def __init__(
        self,
        objective: RowObjective,
        make_kernel: Callable[[Comparisons], Kernel],
        n_references: int,
        batch_size: int,
        seed: int,
    ) -> None:
        self._objective = objective
        self._make_kernel = make_kernel
        self._n_references = n_references
        self._batch_size = batch_size
        self._seed = seed
        self._classes = objective.comparisons.class_of_row

    @property
    def n_rows(self) -> int:
        return self._objective.n_rows

    def project(self, params: FloatArray) -> FloatArray:
        """The nearest feasible parameters."""
        return self._objective.project(params)

    def value_and_gradient(
        self, params: FloatArray, rows: IndexArray | None = None
    ) -> tuple[float, FloatArray]:
        """Estimates of J and its gradient; without ``rows``, from all anchors, batch by batch."""
        if rows is None:
            return self._from_all_anchors(params)
        full = self._objective
        anchors = full.comparisons.anchors[rows]
        sample = self._sample(anchors)
        comparisons = self._restrict(sample, anchors)
        usable = np.flatnonzero(np.isin(sample[comparisons.anchors], anchors))
        if len(usable) == 0:  # groups may leave a small sample without a single comparison
            return full.parametrization.linear(params, full.pull)
        small = full.at_rows(sample, comparisons, self._make_kernel(comparisons))
        share = self.n_rows / len(comparisons.anchors)
        small = replace(small, weights=small.weights * share)
        return small.value_and_gradient(params, usable)

    def _from_all_anchors(self, params: FloatArray) -> tuple[float, FloatArray]:
        """The mean of the estimates of one partition of the anchors: an epoch that stands still."""
        n_batches = -(-self.n_rows // self._batch_size)
        value, gradient = 0.0, np.zeros_like(params)
        anchors = np.random.default_rng(self._seed).permutation(self.n_rows)
        for rows in np.array_split(anchors, n_batches):
            estimate = self.value_and_gradient(params, np.sort(rows))
            share = len(rows) / self.n_rows
            value += share * estimate[0]
            gradient += share * estimate[1]
        return value, gradient

    def _sample(self, anchors: IndexArray) -> IndexArray:
        """Sorted rows: the anchors, the members of their lists, and references in every class."""
        comparisons = self._objective.comparisons
        rng = np.random.default_rng(np.append(self._seed, anchors).astype(np.uint32))
        listed = (comparisons.similar, comparisons.dissimilar)
        members = [anchors, *(lists.of(anchors) for lists in listed if lists is not None)]
        share = self._n_references / len(self._classes)
        for start, stop in pairwise(comparisons.offsets):
            # Two of a class at least, so that a rare anchor still meets its own.
            size = min(stop - start, max(2, round(share * (stop - start))))
            members.append(start + rng.choice(stop - start, size, replace=False, shuffle=False))
        return np.unique(np.concatenate(members))

    def _restrict(self, sample: IndexArray, anchors: IndexArray) -> Comparisons:
        """The comparisons of the anchors among the sampled rows."""
        full = self._objective.comparisons
        offsets = np.searchsorted(self._classes[sample], np.arange(len(full.offsets)))

        def restricted(lists: IndexLists | None) -> Selection:
            if lists is None:
                return "all"
            counts = np.zeros(len(sample), dtype=np.intp)
            counts[np.searchsorted(sample, anchors)] = lists.counts[anchors]
            indptr = np.concatenate([[0], np.cumsum(counts)])
            return IndexLists(indptr, np.searchsorted(sample, lists.of(np.sort(anchors))))

        return build_comparisons(
            self._objective.X[sample],
            offsets,
            similar=restricted(full.similar),
            dissimilar="none" if full.one_sided else restricted(full.dissimilar),
            groups=None if full.groups is None else full.groups[sample],
            may_be_empty=True,
        )
