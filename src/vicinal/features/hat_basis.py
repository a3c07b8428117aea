"""Hat functions of the features, so that a metric can see where along a feature values differ.

A linear metric treats a step along a feature alike wherever it is made. Expanded in hat functions,
a feature becomes one column per knot: 1 at the knot, falling to 0 at the next ones (piecewise
linear splines). Two values then differ by the knots they lie between: values that are far apart are
just different, codes of categories have a column each, and the metric learns which steps matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vicinal._typing import FloatArray, IndexArray

MAX_KNOTS = 8
MAX_EXPANDED = 30
"""Features; with more of them only principal components of the hats would be learned from."""


def worth_expanding(X: FloatArray) -> bool:
    """Whether X (n, d) has few enough features, and one of them more than two values."""
    return X.shape[1] <= MAX_EXPANDED and any(len(_knots(column)) > 2 for column in X.T)


@dataclass(frozen=True)
class HatBasis:
    """The map x ↦ (x, hats of every feature), to d + h columns."""

    knots: FloatArray
    """(d, k) in ascending order; features with fewer knots repeat their last one."""

    @classmethod
    def of(cls, X: FloatArray) -> HatBasis:
        """Place knots at all values of a feature of X (n, d) if they are few, else at quantiles.

        Values that many rows share (often zero) are knots, and the quantiles are those of the
        other values: so there is always a step from none to some.
        """
        found = [_knots(column) for column in X.T]
        k = max(len(knots) for knots in found)
        return cls(np.array([np.pad(knots, (0, k - len(knots)), "edge") for knots in found]))

    @property
    def n_features(self) -> int:
        """The number of features d."""
        return len(self.knots)

    @cached_property
    def _distinct(self) -> list[FloatArray]:
        return [np.unique(knots) for knots in self.knots]

    @cached_property
    def owners(self) -> IndexArray:
        """(d + h,) the feature that each column belongs to."""
        features = np.arange(self.n_features)
        return np.r_[features, np.repeat(features, [len(knots) for knots in self._distinct])]

    def expand(self, X: FloatArray) -> FloatArray:
        """(n, d + h) the features, then the hats of the first feature, of the second one, ..."""
        hats = [_hats(x, knots) for x, knots in zip(X.T, self._distinct, strict=True)]
        return np.hstack([X, *hats])

    def by_feature(self, parts: FloatArray) -> FloatArray:
        """(..., d) sums of parts (..., d + h) over the columns of each feature."""
        sums = np.zeros((*parts.shape[:-1], self.n_features))
        np.add.at(np.moveaxis(sums, -1, 0), self.owners, np.moveaxis(parts, -1, 0))
        return sums

    def slopes(self, X: FloatArray) -> FloatArray:
        """(d + h, d) slopes of the least-squares lines of the columns on their features."""
        own = X - X.mean(axis=0)
        variances = np.mean(own**2, axis=0)
        slopes = [np.eye(self.n_features)]
        for f, (x, knots) in enumerate(zip(X.T, self._distinct, strict=True)):
            lines = np.zeros((len(knots), self.n_features))
            if variances[f] > 0:
                lines[:, f] = own[:, f] @ _hats(x, knots) / (len(x) * variances[f])
            slopes.append(lines)
        return np.vstack(slopes)


def _knots(x: FloatArray) -> FloatArray:
    values, counts = np.unique(x, return_counts=True)
    if len(values) > MAX_KNOTS:
        common = values[counts * (MAX_KNOTS - 1) > len(x)]
        others = x[~np.isin(x, common)]
        intervals = max(1, round((MAX_KNOTS - 1) * len(others) / len(x)))
        shares = np.linspace(0, 1, min(intervals + 1, MAX_KNOTS - len(common)))
        values = np.union1d(common, np.quantile(others, shares, method="nearest"))
    apart = (
        np.diff(values, prepend=-np.inf) > 1e-10 * np.abs(values).max()
    )  # differences by rounding are not steps
    return values[apart]


def _hats(x: FloatArray, knots: FloatArray) -> FloatArray:
    """(n, k) linear between the knots, constant beyond the last; rows sum to 1."""
    if len(knots) == 1:
        return np.ones((len(x), 1))
    left = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 2)
    share = np.clip((x - knots[left]) / (knots[left + 1] - knots[left]), 0.0, 1.0)
    hats = np.zeros((len(x), len(knots)))
    rows = np.arange(len(x))
    hats[rows, left], hats[rows, left + 1] = 1.0 - share, share
    return hats
