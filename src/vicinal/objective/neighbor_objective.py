"""Objectives composed of a kernel, a loss and a parametrization; the paper's J."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Self, TypeAlias

import numpy as np

from vicinal._typing import Array, FloatArray, IndexArray
from vicinal.kernels.contract import Comparisons, Kernel, Respond, Response, SweepResult
from vicinal.objective.losses import Loss
from vicinal.objective.parametrization import Coordinates, Parametrization

PROMISED = 1e-5
"""The relative error of a gradient, where a kernel's exponents are rounded."""
SweepAt: TypeAlias = Callable[[Array, Array, bool], SweepResult]
"""The kernel's sweep at points Z, applied to V; the flag asks for the whole Laplacian."""


@dataclass(frozen=True)
class RowObjective:
    """Base of the objectives that are sums over rows of what a kernel finds for each."""

    X: Array
    """(n, d) the samples, sorted by class, centered; from the kernel's ``asarray``."""
    comparisons: Comparisons
    kernel: Kernel
    parametrization: Parametrization
    weights: Array
    """(n,) the weight of each sample as an anchor; from ``asarray``."""
    pull: FloatArray
    """(d, d) the regularizer λ Σ_i w_i Σ_{j∈S_i} d_ij: linear in M, so it is computed once."""
    loss: Loss

    @property
    def n_rows(self) -> int:
        return len(self.comparisons.anchors)

    def value_and_gradient(
        self, params: FloatArray, rows: IndexArray | None = None
    ) -> tuple[float, FloatArray]:
        """J and ∂J/∂params; with ``rows``, unbiased estimates from these of the anchors."""
        raise NotImplementedError

    def project(self, params: FloatArray) -> FloatArray:
        """The nearest feasible parameters."""
        return self.parametrization.project(params)

    def at_rows(self, sample: IndexArray, comparisons: Comparisons, kernel: Kernel) -> Self:
        """The same objective of a sample of the rows, with the comparisons and kernel of these."""
        return replace(
            self,
            X=self.X[sample],
            comparisons=comparisons,
            kernel=kernel,
            weights=self.weights[sample],
        )

    def _anchors(self, rows: IndexArray | None) -> tuple[IndexArray | None, float]:
        """The anchors at these places (None for all), and what makes their sum an estimate of J."""
        if rows is None:
            return None, 1.0
        return self.comparisons.anchors[rows], self.n_rows / len(rows)

    def _total(
        self, params: FloatArray, sweep_at: SweepAt, refine: bool
    ) -> tuple[float, FloatArray, float]:
        """The sum of the responses' values, its gradient, the sum of the second ones; with pull.

        ``refine`` asks for digits that a kernel with rounded exponents has not computed at first.
        """
        kernel = self.kernel
        pull, pull_gradient = self.parametrization.linear(params, self.pull)
        Z = kernel.embed(self.X, self.parametrization.factor(params))  # (n, m)
        V, symmetric = self.parametrization.operand(
            self.X, Z, half_is_cheaper=kernel.half_is_cheaper
        )
        sweep = sweep_at(Z, V, symmetric)
        value, gradient = self._sums(params, sweep, symmetric)
        if refine and sweep.rounding > 0:
            # An error ε of the exponents is one of about εJ/‖θ‖ of the gradient.
            size = float(np.linalg.norm(gradient + pull_gradient) * np.linalg.norm(params))
            finer = sweep.refined(PROMISED * size / abs(value) if value else np.inf)
            if finer is not sweep:
                sweep, (value, gradient) = finer, self._sums(params, finer, symmetric)
        return value + pull, gradient + pull_gradient, float(sweep.total(sweep.second)) + pull

    def _sums(
        self, params: FloatArray, sweep: SweepResult, symmetric: bool
    ) -> tuple[float, FloatArray]:
        """The sum over the rows, and its gradient."""
        LapV = sweep.laplacian
        gradient = self.parametrization.pull_back(params, self.X, LapV, symmetric=symmetric)
        return float(sweep.total(sweep.value)), sweep.total(gradient)


@dataclass(frozen=True)
class NeighborObjective(RowObjective):
    """J = Σ_i w_i ℓ(z_i) + λ Σ_i w_i Σ_{j∈S_i} d_ij, with z_i = (s_i − t_i)/γ.

    s_i = b(α; {d_ij : j ∈ S_i}) and t_i = b(1; {d_il : l ∈ D_i}) are soft averages (plain ones
    where ``shift`` says so) of squared distances d_ij = ‖L(x_i − x_j)‖². Its gradient is that of
    Σ_ij W_ij d_ij, where W_ij = w_i ℓ′(z_i)/γ · (r^s_ij − r^d_ij) + λ w_i 1[j ∈ S_i].
    """

    alpha: float
    gamma: float
    shift: Array
    """(n,) what is added to s_i − t_i: zeros, or :func:`plain_shift`; from ``asarray``."""

    def value_and_gradient(
        self, params: FloatArray, rows: IndexArray | None = None
    ) -> tuple[float, FloatArray]:
        """J and ∂J/∂params; with ``rows``, unbiased estimates from these of the anchors."""
        anchors, scale = self._anchors(rows)
        respond = partial(self._respond, scale)
        value, gradient, _ = self._evaluate(params, respond, self.alpha, anchors)
        return value, gradient

    def smoothed(self, params: FloatArray, width: float) -> tuple[float, FloatArray, float]:
        """J with its kinks smoothed over this width, its gradient, and J itself.

        The kink of the loss is smoothed over the width in z. That of a maximum (α = −∞) or of a
        minimum (α = ∞) is by a finite exponent at which a soft average of n values is off by
        γ·width at most, for |b(α) − b(±∞)| ≤ ln(n)/|α|. An exponent that is finite but larger is
        reduced to this one as well, since it bends J as sharply.
        """
        most = max(2, int(self.comparisons.n_similar.max()))
        sharpest = float(np.log(most)) / (self.gamma * width)
        alpha = min(max(self.alpha, -sharpest), sharpest)
        respond = partial(self._respond_smoothed, width)
        value, gradient, exact = self._evaluate(params, respond, alpha)
        if alpha != self.alpha:
            exact, _ = self.value_and_gradient(params)
        return value, gradient, exact

    def _evaluate(
        self,
        params: FloatArray,
        respond: Respond,
        alpha: float,
        anchors: IndexArray | None = None,
    ) -> tuple[float, FloatArray, float]:
        """See ``_total``; a mini-batch is an estimate, whose noise is larger than any rounding."""

        def sweep_at(Z: Array, V: Array, symmetric: bool) -> SweepResult:
            return self.kernel.sweep(Z, V, respond, alpha=alpha, symmetric=symmetric, rows=anchors)

        return self._total(params, sweep_at, refine=anchors is None)

    def at_rows(self, sample: IndexArray, comparisons: Comparisons, kernel: Kernel) -> Self:
        """See :meth:`RowObjective.at_rows`; the shift is that of the whole sets."""
        return replace(super().at_rows(sample, comparisons, kernel), shift=self.shift[sample])

    def _respond(self, scale: float, rows: Array, s: Array, t: Array) -> Response:
        """scale · w_i ℓ(z_i) of a block of rows, and its derivatives in s_i and t_i."""
        z = (s - t + self.shift[rows]) / self.gamma
        w = scale * self.weights[rows]
        value, slope = self.loss.value_and_slope(z)
        slope = w * slope / self.gamma
        return Response(w * value, slope, -slope)

    def _respond_smoothed(self, width: float, rows: Array, s: Array, t: Array) -> Response:
        """w_i ℓ(z_i), smoothed, its derivatives in s_i and t_i, and w_i ℓ(z_i) itself."""
        z = (s - t + self.shift[rows]) / self.gamma
        w = self.weights[rows]
        exact, slope = self.loss.value_and_slope(z)
        value = exact
        if self.loss.smoothing is not None:
            value, slope = self.loss.smoothing(z, width)
        slope = w * slope / self.gamma
        return Response(w * value, slope, -slope, w * exact)

    @property
    def has_kinks(self) -> bool:
        """Whether J is not differentiable everywhere."""
        return self.loss.smoothing is not None or np.isinf(self.alpha)

    @property
    def is_convex(self) -> bool:
        """Whether J is convex in M (Lemma 4 of the paper)."""
        return self.loss.convex and self.alpha <= 0

    @property
    def height(self) -> float:
        """The sum of the weights of the anchors, a natural size of J."""
        return float(self.weights[self.comparisons.anchors].sum())

    @property
    def bound(self) -> float:
        """A number that J is never below."""
        return 0.0 if self.loss.nonnegative else -np.inf

    @property
    def coordinates(self) -> Coordinates:
        """The coordinates in which the features are about uncorrelated and of one size."""
        return self.parametrization.coordinates(self.X)

    @property
    def measure(self) -> Coordinates:
        """The coordinates in which the certificate is measured: the same."""
        return self.coordinates


def plain_shift(comparisons: Comparisons, alpha: float) -> FloatArray:
    """(n,) s̃ − t̃ less s − t: plain soft averages are b̃(γ) = b(γ) − ln(n)/γ, a constant per row."""
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = np.log(comparisons.n_dissimilar) - np.log(comparisons.n_similar) / alpha
    return np.asarray(np.where(np.isfinite(shift), shift, 0.0))


def check_exponents(alpha: float, gamma: float) -> None:
    """α any real number or ±inf, γ positive and finite; a ValueError says what is wrong."""
    for name, value in (("alpha", alpha), ("gamma", gamma)):
        try:
            known = isinstance(value, Real) and not math.isnan(value)
        except OverflowError:  # an int that no float can hold
            raise ValueError(f"{name} is too large; it must be a real number") from None
        if not known:
            raise ValueError(f"{name}={value!r} must be a real number")
    if not 0 < gamma < np.inf:
        raise ValueError(f"gamma={gamma!r} must be positive and finite: it divides the margin")
