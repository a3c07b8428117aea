"""Boosting of a metric: the steepest matrix of rank one is added, weights are fitted."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, eigh, solve_triangular
from scipy.optimize import brentq, nnls

from vicinal._typing import FloatArray
from vicinal.learners.triplet_margins import (
    MarginLoss,
    TripletSums,
    compose,
    exponential,
    logistic,
)

SEPARATED = -1.0
"""ln Σ exp(−ρ) at which every triplet holds by a margin of 1: from here on M need only grow."""
AT_ONCE = 16
"""Bases that a corrective round may try at once."""
RIDGE = 1e-10
"""Added to the curvature, relative to its trace: bases may be all but equal."""
MAX_NEWTON = 50


class BoostingLoss(NamedTuple):
    """A smooth loss of margins, and its second derivative diag(c(u)) − [shares] u uᵀ."""

    value_and_weights: MarginLoss
    curvature: Callable[[FloatArray], FloatArray]
    shares: bool
    """Whether the weights u sum to one."""


LOSSES = {
    "exponential": BoostingLoss(exponential, lambda u: u, shares=True),
    "logistic": BoostingLoss(logistic, lambda u: u * (1.0 - u), shares=False),
}


class Boosting:
    """F(w) = loss(ρ(M)) + v Σ w, M = Σ_k w_k ξ_k ξ_kᵀ, and the state of its minimization."""

    def __init__(self, sums: TripletSums, loss: BoostingLoss, v: float) -> None:
        self._sums, self._loss, self._v = sums, loss, v
        d = sums.X.shape[1]
        self.bases: FloatArray = np.empty((0, d))
        self.weights: FloatArray = np.empty(0)
        self.margins: FloatArray = np.zeros(sums.n_triplets)
        self.value, self._u = self._evaluate(self.margins, self.weights)

    @property
    def separated(self) -> bool:
        return self._loss.shares and self.value - self._v * self.weights.sum() <= SEPARATED

    def leading(self) -> tuple[float, FloatArray]:
        """λ, the leading eigenvalue of A = Σ_r u_r (x_il x_ilᵀ − x_ij x_ijᵀ).

        With it the eigenvectors ξ (k, d) of the leading eigenvalues above v, leading one first.
        """
        d = self.bases.shape[1]
        values, vectors = eigh(
            self._sums.scatter(self._u), subset_by_index=[max(0, d - AT_ONCE), d - 1]
        )
        return float(values[-1]), vectors.T[values > self._v][::-1]

    def add(self, xi: FloatArray) -> None:
        """Add w ξξᵀ with the w that minimizes F along it."""
        h = self._sums.margins(xi[None])
        w = self._line_search(h)
        self._move(np.append(self.weights, w), np.vstack([self.bases, xi]), self.margins + w * h)

    def correct(self, candidates: FloatArray, tol: float) -> None:
        """Minimize F over all weights w ≥ 0, those of further candidates too, to within tol.

        Newton's method, its quadratic models minimized over w ≥ 0; bases of weight zero are
        dropped. The trace may at most double: where few bases separate all triplets by a hair's
        breadth, F falls for ever along them, and better bases are to come.
        """
        most = 2.0 * float(self.weights.sum())
        self.bases = np.vstack([self.bases, candidates])
        self.weights = np.append(self.weights, np.zeros(len(candidates)))
        for _ in range(MAX_NEWTON):
            try:
                step, slope = self._newton_step()
            except (np.linalg.LinAlgError, RuntimeError):  # a curvature beyond the arithmetic
                return
            if slope >= -tol or self.weights.sum() > 0.9 * most or self.separated:
                return
            if not self._descend(step, most):
                return

    def shrink_to_separated(self) -> None:
        """Scale M down to where the loss is just SEPARATED; F falls with its scale for ever."""

        def excess(scale: float) -> float:
            return self._evaluate(scale * self.margins, 0.0 * self.weights)[0] - SEPARATED

        scale = 1.0 if excess(1.0) >= 0 else float(brentq(excess, 0.0, 1.0))
        self._move(scale * self.weights, self.bases, scale * self.margins)

    def _evaluate(self, margins: FloatArray, weights: FloatArray) -> tuple[float, FloatArray]:
        loss, u = self._loss.value_and_weights(margins)
        return loss + self._v * float(weights.sum()), u

    def _move(self, weights: FloatArray, bases: FloatArray, margins: FloatArray) -> None:
        active = weights > 0
        self.weights, self.bases, self.margins = weights[active], bases[active], margins
        self.value, self._u = self._evaluate(margins, self.weights)

    def _line_search(self, h: FloatArray) -> float:
        """The root w of ∂F/∂w = v − Σ_r u_r(ρ + w h) h_r, which increases in w."""

        def slope(w: float) -> float:
            _, u = self._loss.value_and_weights(self.margins + w * h)
            return self._v - float(u @ h)

        largest = float(np.abs(h).max())
        if largest == 0 or slope(0.0) >= 0:
            return 0.0
        high = 1.0 / largest
        while slope(high) < 0:
            high *= 2.0
            if self._loss.shares and self._evaluate(self.margins + high * h, h[:0])[0] <= SEPARATED:
                return high
        return float(brentq(slope, 0.0, high, xtol=1e-12 * high, rtol=1e-12))

    def _newton_step(self) -> tuple[FloatArray, float]:
        """From w to the minimum of F's quadratic model over w ≥ 0, and the slope of F along it.

        With the curvature Q = RᵀR, the model is ½‖R w′ − (R w − R⁻ᵀ∇F)‖² up to a constant.
        """
        gain, Q = self._sums.moments(self.bases, self._u, self._loss.curvature(self._u))
        if self._loss.shares:
            Q -= np.outer(gain, gain)
        gradient = self._v - gain
        Q[np.diag_indices_from(Q)] += RIDGE * max(np.trace(Q), np.finfo(float).tiny)
        R = cholesky(Q)
        target = R @ self.weights - solve_triangular(R, gradient, trans="T")
        step = nnls(R, target, maxiter=100 * len(Q))[0] - self.weights
        return step, float(gradient @ step)

    def _descend(self, step: FloatArray, most: float) -> bool:
        """Move along the step, halved until F decreases; whether it ever did."""
        for _ in range(40):
            weights = np.maximum(self.weights + step, 0.0)  # against rounding
            if weights.sum() <= most:
                margins = self._sums.margins(compose(weights, self.bases))
                if self._evaluate(margins, weights)[0] < self.value:
                    self._move(weights, self.bases, margins)
                    return True
            step = 0.5 * step
        return False
