"""The paper's objective J, composed of a kernel, a loss and a parametrization."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np

from vicinal._typing import FloatArray, IndexArray
from vicinal.kernels.contract import Comparisons, Kernel
from vicinal.objective.losses import Loss
from vicinal.objective.parametrization import Parametrization


@dataclass(frozen=True)
class NeighborObjective:
    """J = Σ_i w_i ℓ(z_i) + λ Σ_i w_i Σ_{j∈S_i} d_ij, with z_i = (s_i − t_i)/γ.

    s_i = b(α; {d_ij : j ∈ S_i}) and t_i = b(1; {d_il : l ∈ D_i}) are soft averages (plain ones
    where ``shift`` says so) of squared distances d_ij = ‖L(x_i − x_j)‖². Its gradient is that of
    Σ_ij W_ij d_ij, where W_ij = w_i ℓ′(z_i)/γ · (r^s_ij − r^d_ij) + λ w_i 1[j ∈ S_i].
    """

    X: FloatArray
    """(n, d) the samples, sorted by class, centered."""
    comparisons: Comparisons
    kernel: Kernel
    parametrization: Parametrization
    loss: Loss
    alpha: float
    gamma: float
    shift: FloatArray
    """(n,) what is added to s_i − t_i: zeros, or :func:`plain_shift`."""
    weights: FloatArray
    """(n,) what each sample counts as an anchor."""
    pull: FloatArray
    """(d, d) λ Σ_i w_i Σ_{j∈S_i} X_ij: the regularizer is linear in M, so it is computed once."""

    @property
    def n_rows(self) -> int:
        return len(self.comparisons.anchors)

    def value_and_gradient(
        self, params: FloatArray, rows: IndexArray | None = None
    ) -> tuple[float, FloatArray]:
        """J and ∂J/∂params; with ``rows``, unbiased estimates from these of the anchors."""
        anchors = None if rows is None else self.comparisons.anchors[rows]
        scale = 1.0 if anchors is None else self.n_rows / len(anchors)
        losses = np.zeros(len(self.X))

        def respond(
            block: IndexArray, s: FloatArray, t: FloatArray
        ) -> tuple[FloatArray, FloatArray]:
            z = (s - t + self.shift[block]) / self.gamma
            w = scale * self.weights[block]
            losses[block] = w * self.loss.value(z)
            slope = w * self.loss.slope(z) / self.gamma
            return slope, -slope

        L = self.parametrization.factor(params).astype(self.X.dtype, copy=False)
        Z = self.X @ L.T  # (n, m)

        def laplacian(V: FloatArray, symmetric: bool) -> FloatArray:
            return self.kernel.sweep(
                Z, V, respond, alpha=self.alpha, symmetric=symmetric, rows=anchors
            )

        gradient = self.parametrization.gradient(params, self.X, laplacian)
        pull, pull_gradient = self.parametrization.linear(params, self.pull)
        return float(losses.sum()) + pull, gradient + pull_gradient

    def project(self, params: FloatArray) -> FloatArray:
        """The nearest feasible parameters."""
        return self.parametrization.project(params)


def plain_shift(comparisons: Comparisons, alpha: float) -> FloatArray:
    """(n,) s̃ − t̃ less s − t: plain soft averages are b̃(γ) = b(γ) − ln(n)/γ, a constant a row."""
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = np.log(comparisons.n_dissimilar) - np.log(comparisons.n_similar) / alpha
    return np.asarray(np.where(np.isfinite(shift), shift, 0.0))


def check_exponents(alpha: float, gamma: float) -> None:
    """α any real number or ±inf, γ positive and finite; a ValueError says what is wrong."""
    for name, value in (("alpha", alpha), ("gamma", gamma)):
        if not isinstance(value, Real) or np.isnan(value):
            raise ValueError(f"{name}={value!r} must be a real number")
    if not 0 < gamma < np.inf:
        raise ValueError(f"gamma={gamma!r} must be positive and finite: it divides the margin")
