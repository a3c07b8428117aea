"""The columns that metrics of a committee are about: features, their hats and kernel functions."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from vicinal._typing import FloatArray
from vicinal.features.hat_basis import HatBasis, worth_expanding
from vicinal.features.kernel_basis import KernelBasis


@dataclass(frozen=True)
class Expansion:
    """The map x ↦ (x, hats of every feature, kernel functions), from d to p columns.

    A metric is about the features and hats or about the kernel functions: none joins the two.
    """

    n_features: int
    """d."""
    hats: HatBasis | None = None
    kernel: KernelBasis | None = None

    @classmethod
    def of(cls, X: FloatArray, members: Collection[str]) -> Expansion:
        """The functions of the samples X (n, d) that members of these kinds need."""
        return cls(
            X.shape[1],
            HatBasis.of(X) if "hat" in members and worth_expanding(X) else None,
            KernelBasis.of(X) if "kernel" in members else None,
        )

    @property
    def n_straight(self) -> int:
        """The number of columns before the kernel functions."""
        return self.n_features if self.hats is None else len(self.hats.owners)

    @property
    def n_columns(self) -> int:
        """The number of columns p."""
        return self.n_straight + (0 if self.kernel is None else self.kernel.size)

    def expand(self, X: FloatArray) -> FloatArray:
        """(n, p) the columns of the samples X (n, d)."""
        straight = X if self.hats is None else self.hats.expand(X)
        return straight if self.kernel is None else np.hstack([straight, self.kernel.values(X)])

    def used_by(self, metrics: FloatArray) -> tuple[FloatArray, Expansion]:
        """The metrics (q, m, p) without the hats or kernel functions that none of them uses."""
        d, s = self.n_features, self.n_straight
        left, used = [metrics[:, :, :d]], Expansion(d)
        for name, block in (("hats", metrics[:, :, d:s]), ("kernel", metrics[:, :, s:])):
            if block.any():
                left.append(block)
                used = replace(used, **{name: getattr(self, name)})
        return np.concatenate(left, axis=2), used

    def contributions(self, x: FloatArray, rows: FloatArray, M: FloatArray) -> FloatArray:
        """(k, d) what each feature adds to the squared distances from x to rows (k, p).

        x is one row (p,) or one for each (k, p), M (p, p). For features and their hats that is
        δ_f (M δ)_f, for kernel functions :meth:`KernelBasis.contributions`.
        """
        d, s = self.n_features, self.n_straight
        differences = rows[:, :s] - x[..., :s]
        parts: FloatArray = differences * (differences @ M[:s, :s])
        if self.hats is not None:
            parts = self.hats.by_feature(parts)
        if self.kernel is None:
            return parts
        starts = np.broadcast_to(x, rows.shape)
        curved = [
            self.kernel.contributions(start[:d], row[:d], M[s:, s:])
            for start, row in zip(starts, rows, strict=True)
        ]
        return np.asarray(parts + np.reshape(curved, parts.shape))

    def slopes(self, X: FloatArray) -> FloatArray:
        """(p, d) slopes of the columns as functions of the features, by least squares on X."""
        straight = np.eye(self.n_features) if self.hats is None else self.hats.slopes(X)
        return straight if self.kernel is None else np.vstack([straight, self.kernel.slopes(X)])
