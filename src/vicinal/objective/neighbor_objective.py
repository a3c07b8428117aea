"""The paper's objective J, composed of a kernel, a loss and a parametrization."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from numbers import Real

import numpy as np

from vicinal._typing import Array, FloatArray, IndexArray
from vicinal.kernels.contract import Comparisons, Kernel, Response, SweepResult
from vicinal.objective.losses import Loss
from vicinal.objective.parametrization import Parametrization

PROMISED = 1e-5
"""The relative error of a gradient, where a kernel's exponents are rounded."""


@dataclass(frozen=True)
class NeighborObjective:
    """J = Σ_i w_i ℓ(z_i) + λ Σ_i w_i Σ_{j∈S_i} d_ij, with z_i = (s_i − t_i)/γ.

    s_i = b(α; {d_ij : j ∈ S_i}) and t_i = b(1; {d_il : l ∈ D_i}) are soft averages (plain ones
    where ``shift`` says so) of squared distances d_ij = ‖L(x_i − x_j)‖². Its gradient is that of
    Σ_ij W_ij d_ij, where W_ij = w_i ℓ′(z_i)/γ · (r^s_ij − r^d_ij) + λ w_i 1[j ∈ S_i].
    """

    X: Array
    """(n, d) the samples, sorted by class, centered; from the kernel's ``asarray``."""
    comparisons: Comparisons
    kernel: Kernel
    parametrization: Parametrization
    loss: Loss
    alpha: float
    gamma: float
    shift: Array
    """(n,) what is added to s_i − t_i: zeros, or :func:`plain_shift`; from ``asarray``."""
    weights: Array
    """(n,) the weight of each sample as an anchor; from ``asarray``."""
    pull: FloatArray
    """(d, d) λ Σ_i w_i Σ_{j∈S_i} X_ij: the regularizer is linear in M, so it is computed once."""

    @property
    def n_rows(self) -> int:
        return len(self.comparisons.anchors)

    def value_and_gradient(
        self, params: FloatArray, rows: IndexArray | None = None
    ) -> tuple[float, FloatArray]:
        """J and ∂J/∂params; with ``rows``, unbiased estimates from these of the anchors."""
        pull, pull_gradient = self.parametrization.linear(params, self.pull)
        sweep, symmetric = self._sweep(params, rows)
        value, gradient = self._sums(params, sweep, symmetric)
        # A mini-batch is an estimate: its noise is larger than any rounding.
        if rows is None and sweep.rounding > 0:
            # An error ε of the exponents is one of about εJ/‖θ‖ of the gradient.
            size = float(np.linalg.norm(gradient + pull_gradient) * np.linalg.norm(params))
            finer = sweep.refined(PROMISED * size / abs(value) if value else np.inf)
            if finer is not sweep:
                value, gradient = self._sums(params, finer, symmetric)
        return value + pull, gradient + pull_gradient

    def _sweep(self, params: FloatArray, rows: IndexArray | None) -> tuple[SweepResult, bool]:
        """The kernel's sums over the anchors, and whether they have the whole Laplacian."""
        kernel = self.kernel
        anchors = None if rows is None else self.comparisons.anchors[rows]
        scale = 1.0 if anchors is None else self.n_rows / len(anchors)
        Z = kernel.embed(self.X, self.parametrization.factor(params))  # (n, m)
        V, symmetric = self.parametrization.operand(
            self.X, Z, half_is_cheaper=kernel.half_is_cheaper
        )
        respond = partial(self._respond, scale)
        sweep = kernel.sweep(Z, V, respond, alpha=self.alpha, symmetric=symmetric, rows=anchors)
        return sweep, symmetric

    def _sums(
        self, params: FloatArray, sweep: SweepResult, symmetric: bool
    ) -> tuple[float, FloatArray]:
        """Σ_i w_i ℓ(z_i) and its gradient."""
        LapV = sweep.laplacian
        gradient = self.parametrization.pull_back(params, self.X, LapV, symmetric=symmetric)
        return float(sweep.total(sweep.value)), sweep.total(gradient)

    def _respond(self, scale: float, rows: Array, s: Array, t: Array) -> Response:
        """scale · w_i ℓ(z_i) of a block of rows, and its derivatives in s_i and t_i."""
        z = (s - t + self.shift[rows]) / self.gamma
        w = scale * self.weights[rows]
        value, slope = self.loss.value_and_slope(z)
        slope = w * slope / self.gamma
        return Response(w * value, slope, -slope)

    def project(self, params: FloatArray) -> FloatArray:
        """The nearest feasible parameters."""
        return self.parametrization.project(params)


def plain_shift(comparisons: Comparisons, alpha: float) -> FloatArray:
    """(n,) s̃ − t̃ less s − t: plain soft averages are b̃(γ) = b(γ) − ln(n)/γ, a constant per row."""
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
