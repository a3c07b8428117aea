"""SCML's objective: the mean hinge loss of triplets with its kink rounded off, and a penalty."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from vicinal._typing import FloatArray, IndexArray
from vicinal.learners.rank_one_metrics import Composed
from vicinal.learners.triplet_margins import TripletSums, compose
from vicinal.solvers import Progress

REMEMBERED = 4
"""Evaluated points whose hinge loss is kept: those of one accelerated step."""


class SmoothedHinge:
    """The problem min_{w ≥ 0} 1 + h(ρ(M)) + β Σ w with M = Σ_k w_k b_k b_kᵀ.

    h is the mean of [1 − ρ_r]₊, within ``width`` above the kink a parabola (Huber). The 1 is there
    because solvers stop by relative decrease, and J, 1 at w = 0, may near 0 without it.

    ∂/∂w_k = β − b_kᵀ A b_k with A = Σ_r u_r (x_il x_ilᵀ − x_ij x_ijᵀ), u = −∂h/∂ρ.
    """

    def __init__(self, sums: TripletSums, bases: FloatArray, beta: float, width: float) -> None:
        self.sums, self.bases, self.beta, self.width = sums, bases, beta, width
        self.n_rows = len(sums.X)
        self._seen: deque[tuple[FloatArray, float]] = deque(maxlen=REMEMBERED)
        k, d = bases.shape
        # With few bases and many features, the space of the weights is the smaller one.
        self._projected = sums.X @ bases.T if 27 * k < 26 * d + d * d / 8 else None

    def value_and_gradient(
        self, params: FloatArray, rows: IndexArray | None = None
    ) -> tuple[float, FloatArray]:
        """The objective at the weights (k,), and its gradient (k,); always over all triplets."""
        if rows is not None:
            raise ValueError("SCML's objective is evaluated on all rows")
        shortfall = 1.0 - self._margins(params)  # (t,)
        slope = np.clip(shortfall / self.width, 0.0, 1.0)
        loss = float((slope * (shortfall - 0.5 * self.width * slope)).mean())
        self._seen.append((params, _mean_hinge(shortfall)))
        gradient = self.beta - self._quadratic(slope / self.sums.n_triplets)
        return 1.0 + loss + self.beta * float(params.sum()), gradient

    def project(self, params: FloatArray) -> FloatArray:
        """The nearest weights w ≥ 0."""
        return np.maximum(params, 0.0)

    def hinge(self, weights: FloatArray) -> float:
        """J with the hinge loss as it is; not computed again at the points evaluated last."""
        known = (loss for seen, loss in self._seen if np.array_equal(seen, weights))
        loss = next(known, None)
        if loss is None:
            loss = _mean_hinge(1.0 - self._margins(weights))
        return loss + self.beta * float(weights.sum())

    def _margins(self, params: FloatArray) -> FloatArray:
        """(t,) ρ."""
        return self.sums.margins(compose(params, self.bases))

    def _quadratic(self, u: FloatArray) -> FloatArray:
        """(k,) b_kᵀ A b_k of the triplets' weights u (t,)."""
        if self._projected is not None:
            V = self._projected
            return np.asarray(np.einsum("nk,nk->k", V, self.sums.laplacian(u, V)))
        return np.asarray(np.einsum("kd,kd->k", self.bases @ self.sums.scatter(u), self.bases))


class BestByHinge:
    """The lowest of the iterates shown to it, by the hinge loss as it is."""

    def __init__(
        self, problem: SmoothedHinge, report: Callable[[Progress], bool | None] | None
    ) -> None:
        self.problem, self._report = problem, report
        self.weights: FloatArray = np.zeros(len(problem.bases))
        self.history = [1.0]  # every triplet of w = 0 has loss 1
        self.n_iter = 0

    def offer(self, progress: Progress) -> bool:
        """Keep the iterate if it is the lowest so far; true where the callback stops."""
        self.n_iter = progress.n_iter
        value = self.problem.hinge(progress.params)
        if value < self.history[-1]:
            self.weights = progress.params
            self.history.append(value)
        if self._report is None:
            return False
        return bool(self._report(Progress(progress.n_iter, value, progress.params, progress.step)))

    def composed(self, reason: str) -> Composed:
        """What has been found, and why the search for it ended."""
        history = np.array(self.history)
        return Composed(self.weights, self.problem.bases, self.n_iter, reason, history)


def _mean_hinge(shortfall: FloatArray) -> float:
    return float(np.maximum(shortfall, 0.0).mean())
