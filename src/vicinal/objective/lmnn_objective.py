"""LMNN's objective: pull target neighbors near, push impostors beyond a margin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vicinal._typing import FloatArray, IndexArray
from vicinal.kernels.contract import Comparisons, IndexLists, Push, PushKernel, hinge_losses
from vicinal.objective.pair_sums import pair_distances, pair_laplacian
from vicinal.objective.parametrization import Coordinates, Parametrization


@dataclass(frozen=True)
class LMNNObjective:
    """E = (1 − μ) Σ_{i, j∈T_i} d_ij + μ Σ_{i, j∈T_i, l} h(1 + d_ij − d_il), convex in M.

    Its (sub)gradient is that of Σ_ij W_ij d_ij with W_ij = (1 − μ) 1[j ∈ T_i] + μ Σ_l h′ for
    targets and W_il = −μ Σ_j h′ for impostors.
    """

    X: FloatArray
    """(n, d) the samples, in the order that the push kernel knows, centered."""
    anchors: IndexArray
    push: PushKernel
    parametrization: Parametrization
    squared: bool
    push_weight: float
    """μ."""
    pull: FloatArray
    """(d, d) (1 − μ) Σ_i Σ_{j∈T_i} x_ij x_ijᵀ: the pull is linear in M, so it is computed once."""

    @property
    def n_rows(self) -> int:
        return len(self.anchors)

    def value_and_gradient(
        self, params: FloatArray, rows: IndexArray | None = None
    ) -> tuple[float, FloatArray]:
        """E and ∂E/∂params; with ``rows``, unbiased estimates from these of the anchors."""
        value, gradient, _ = self._evaluate(params, rows, 0.0)
        return value, gradient

    def smoothed(self, params: FloatArray, width: float) -> tuple[float, FloatArray, float]:
        """E with the kinks of its hinges smoothed over this width, its gradient, and E itself."""
        return self._evaluate(params, None, width)

    def _evaluate(
        self, params: FloatArray, rows: IndexArray | None, width: float
    ) -> tuple[float, FloatArray, float]:
        anchors = self.anchors if rows is None else self.anchors[rows]
        weight = self.push_weight * self.n_rows / len(anchors)
        L = self.parametrization.factor(params)
        Z = self.X @ L.T  # (n, m)
        V, symmetric = self.parametrization.operand(self.X, Z)
        push = self.push.sweep(
            Z, V, squared=self.squared, symmetric=symmetric, rows=anchors, width=width
        )
        gradient = self.parametrization.pull_back(
            params, self.X, weight * push.laplacian, symmetric=symmetric
        )
        pull, pull_gradient = self.parametrization.linear(params, self.pull)
        value = float(pull + weight * push.value)
        exact = value if self.squared else float(pull + weight * push.second)
        return value, gradient + pull_gradient, exact

    @property
    def has_kinks(self) -> bool:
        """Whether E is not differentiable everywhere."""
        return not self.squared

    @property
    def is_convex(self) -> bool:
        """E always is, in M."""
        return True

    @property
    def height(self) -> float:
        """The number of anchors, a natural size of E."""
        return float(self.n_rows)

    @property
    def bound(self) -> float:
        """A number that E is never below."""
        return 0.0

    @property
    def coordinates(self) -> Coordinates:
        """The coordinates in which the features are about uncorrelated and of one size."""
        return self.parametrization.coordinates(self.X)

    @property
    def measure(self) -> Coordinates:
        """The coordinates in which the certificate is measured: the same."""
        return self.coordinates

    def project(self, params: FloatArray) -> FloatArray:
        """The nearest feasible parameters."""
        return self.parametrization.project(params)


class TripletPush:
    """The push of given triplets (i, j, l), each of them once, instead of all impostors."""

    def __init__(self, i: IndexArray, j: IndexArray, l: IndexArray) -> None:  # noqa: E741
        self._i, self._j, self._l = i, j, l

    def sweep(
        self,
        Z: FloatArray,
        V: FloatArray,
        *,
        squared: bool,
        symmetric: bool,
        rows: IndexArray | None = None,
        width: float = 0.0,
    ) -> Push:
        """See :meth:`vicinal.kernels.contract.PushKernel.sweep`."""
        i, j, l = self._i, self._j, self._l  # noqa: E741
        if rows is not None:
            taken = np.isin(i, rows)
            i, j, l = i[taken], j[taken], l[taken]  # noqa: E741
        hinges = 1.0 + pair_distances(Z, i, j) - pair_distances(Z, i, l)
        active = hinges > 0
        i, j, l, hinges = i[active], j[active], l[active], hinges[active]  # noqa: E741
        losses, slopes = hinge_losses(hinges, squared, width)
        laplacian = pair_laplacian(
            np.concatenate([i, i]),
            np.concatenate([j, l]),
            np.concatenate([slopes, -slopes]),
            V,
            symmetric,
        )
        return Push(float(losses.sum()), laplacian, len(hinges), second=float(hinges.sum()))


def targets_of_triplets(i: IndexArray, j: IndexArray, n: int) -> Comparisons:
    """The distinct pairs (i, j) of given triplets as target lists, for the pull."""
    pairs = np.stack(np.divmod(np.unique(i * n + j), n))
    counts = np.bincount(pairs[0], minlength=n)
    return Comparisons(
        offsets=np.array([0, n]),
        anchors=np.flatnonzero(counts),
        n_similar=counts,
        n_dissimilar=counts,
        similar=IndexLists(np.concatenate([[0], np.cumsum(counts)]), pairs[1]),
    )
