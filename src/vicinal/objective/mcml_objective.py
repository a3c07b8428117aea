"""MCML's objective: the divergence from neighbors that all collapse onto their class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vicinal._typing import FloatArray, IndexArray
from vicinal.kernels.contract import Comparisons, Kernel, Response
from vicinal.objective.pair_sums import pull_matrix
from vicinal.objective.parametrization import Parametrization


@dataclass(frozen=True)
class MCMLObjective:
    """J = Σ_i KL(p⁰_i ‖ p_i) = Σ_i [ mean_{j∈S_i} d_ij + ln Σ_{k≠i} e^{−d_ik} − ln |S_i| ].

    The logarithm comes from the framework's soft averages with exponent 1: with
    s_i = b(1; S_i) and t_i = b(1; D_i),

        Σ_{k≠i} e^{−d_ik} = |S_i| e^{−s_i} + |D_i| e^{−t_i}.
    """

    X: FloatArray
    """(n, d) the samples, sorted by class, centered."""
    comparisons: Comparisons
    kernel: Kernel
    parametrization: Parametrization
    pull: FloatArray
    """(d, d) Σ_i mean_{j∈S_i} x_ij x_ijᵀ: linear in M, so it is computed once."""

    @property
    def n_rows(self) -> int:
        return len(self.comparisons.anchors)

    def value_and_gradient(
        self, params: FloatArray, rows: IndexArray | None = None
    ) -> tuple[float, FloatArray]:
        """J and ∂J/∂params; with ``rows``, unbiased estimates from these of the anchors."""
        anchors = self.comparisons.anchors if rows is None else self.comparisons.anchors[rows]
        scale = self.n_rows / len(anchors)
        log_similar = np.log(self.comparisons.n_similar[anchors])
        log_sizes = np.full((2, len(self.X)), np.nan)
        log_sizes[0, anchors] = log_similar
        log_sizes[1, anchors] = np.log(self.comparisons.n_dissimilar[anchors])

        def respond(block: IndexArray, s: FloatArray, t: FloatArray) -> Response:
            similar, dissimilar = log_sizes[0, block] - s, log_sizes[1, block] - t
            total = np.logaddexp(similar, dissimilar)
            ds, dt = np.exp(similar - total), np.exp(dissimilar - total)
            return Response(total, -scale * ds, -scale * dt)

        Z = self.kernel.embed(self.X, self.parametrization.factor(params))  # (n, m)
        V, symmetric = self.parametrization.operand(self.X, Z)
        sweep = self.kernel.sweep(Z, V, respond, alpha=1.0, symmetric=symmetric, rows=anchors)
        gradient = self.parametrization.pull_back(
            params, self.X, sweep.laplacian, symmetric=symmetric
        )
        pull, pull_gradient = self.parametrization.linear(params, self.pull)
        value = pull + scale * float(sweep.value - log_similar.sum())
        return value, gradient + pull_gradient

    def project(self, params: FloatArray) -> FloatArray:
        """The nearest feasible parameters."""
        return self.parametrization.project(params)


def mean_pull(X: FloatArray, comparisons: Comparisons) -> FloatArray:
    """Σ_i mean_{j∈S_i} x_ij x_ijᵀ over the anchors."""
    return pull_matrix(X, comparisons, 1.0 / np.maximum(comparisons.n_similar, 1))
