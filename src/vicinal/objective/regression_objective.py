"""The regression objective: every target predicted by the average over the neighbors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Self

from vicinal._typing import Array, FloatArray, IndexArray
from vicinal.kernels.contract import Comparisons, Kernel, SweepResult, TargetResponse
from vicinal.objective.neighbor_objective import RowObjective


@dataclass(frozen=True)
class RegressionObjective(RowObjective):
    """J = Σ_i w_i Σ_q ℓ(u (y_iq − ŷ_iq)) + λ Σ_i w_i Σ_{j∈S_i} d_ij, with ŷ_i = Σ_j p_ij y_j.

    p_ij ∝ exp(−d_ij) over the neighbors j ∈ S_i of sample i: all others, those of other groups, or
    those of a list. From ∂ŷ_i/∂d_ij = p_ij (ŷ_i − y_j), the gradient is that of Σ_ij W_ij d_ij with

        W_ij = p_ij Σ_q g_iq (ŷ_iq − y_jq),     g_iq = ∂J/∂ŷ_iq = −w_i u ℓ′(u (y_iq − ŷ_iq)).

    Every row of W adds up to 0: a common change of all distances of a sample changes nothing.
    """

    targets: Array
    """(n, q) y, centered, of a size of about 1; from ``asarray``."""
    unit: float
    """u: what residuals are multiplied by before the loss sees them."""

    def value_and_gradient(
        self, params: FloatArray, rows: IndexArray | None = None
    ) -> tuple[float, FloatArray]:
        """J and ∂J/∂params; with ``rows``, unbiased estimates from these of the anchors."""
        anchors, scale = self._anchors(rows)
        respond = partial(self._respond, scale)

        def sweep_at(Z: Array, V: Array, symmetric: bool) -> SweepResult:
            return self.kernel.sweep_targets(
                Z, V, self.targets, respond, symmetric=symmetric, rows=anchors
            )

        value, gradient, _ = self._total(params, sweep_at, refine=anchors is None)
        return value, gradient

    def at_rows(self, sample: IndexArray, comparisons: Comparisons, kernel: Kernel) -> Self:
        """See :meth:`RowObjective.at_rows`."""
        return replace(super().at_rows(sample, comparisons, kernel), targets=self.targets[sample])

    def _respond(self, scale: float, rows: Array, averages: Array) -> TargetResponse:
        """scale · w_i Σ_q ℓ of a block of rows, and its derivatives in ŷ_iq."""
        value, slope = self.loss.value_and_slope(self.unit * (self.targets[rows] - averages))
        w = scale * self.weights[rows]
        return TargetResponse(w * value.sum(1), (-self.unit * w)[:, None] * slope)
