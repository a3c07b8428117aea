"""SCML's objective for several penalties at once: they share samples, triplets and bases."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from vicinal._typing import FloatArray, IndexArray
from vicinal.learners.rank_one_learner import Composed
from vicinal.learners.triplet_margins import TripletSums, compose
from vicinal.solvers import Progress

REMEMBERED = 4
"""Points a problem whose hinge loss is kept: those of one accelerated step."""
AT_ONCE = 2**21
"""Numbers in the largest arrays of a batch: beyond it there is nothing to gain."""


class HingeCompositions:
    """The problems min_{w ≥ 0} 1 + h(ρ(M)) + β Σ w with M = Σ_k w_k b_k b_kᵀ, one for each β.

    h is the mean of [1 − ρ_r]₊, within ``width`` above the kink a parabola (Huber). The 1 is there
    because solvers stop by relative decrease, and J, 1 at w = 0, may near 0 without it.

    ∂/∂w_k = β − b_kᵀ A b_k with A = Σ_r u_r (x_il x_ilᵀ − x_ij x_ijᵀ), u = −∂h/∂ρ.
    """

    def __init__(
        self, sums: TripletSums, bases: FloatArray, betas: Sequence[float], width: float
    ) -> None:
        self.sums, self.bases, self.width = sums, bases, width
        self.betas = np.array(betas, dtype=np.float64)
        self.n_rows = len(sums.X)
        self._seen: list[deque[tuple[FloatArray, float]]] = [
            deque(maxlen=REMEMBERED) for _ in betas
        ]
        k, d = bases.shape
        # Few bases of many features: the weights' own space is the smaller one to work in.
        self._projected = sums.X @ bases.T if 27 * k < 26 * d + d * d / 8 else None

    @staticmethod
    def worth_solving_at_once(sums: TripletSums, bases: FloatArray) -> int:
        """How many of the problems, which for large data is one."""
        return max(1, AT_ONCE // (sums.n_triplets + sums.X.size + bases.size))

    def values_and_gradients(
        self, members: IndexArray, params: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """(b,) the objectives of these problems at (b, k) weights, and (b, k) their gradients."""
        shortfall = 1.0 - self._margins(params)  # (b, t)
        slope = np.clip(shortfall / self.width, 0.0, 1.0)
        losses = (slope * (shortfall - 0.5 * self.width * slope)).mean(axis=-1)
        self._remember(members, params, shortfall)
        betas = self.betas[members]
        gradients = betas[:, None] - self._quadratics(slope / self.sums.n_triplets)
        return 1.0 + losses + betas * params.sum(axis=-1), gradients

    def project(self, params: FloatArray) -> FloatArray:
        return np.maximum(params, 0.0)

    def hinge(self, member: int, weights: FloatArray) -> float:
        """J of one problem with the hinge loss as it is."""
        known = (loss for seen, loss in self._seen[member] if np.array_equal(seen, weights))
        loss = next(known, None)
        if loss is None:
            (loss,) = _mean_hinge(1.0 - self._margins(weights[None]))
        return float(loss + self.betas[member] * weights.sum())

    def _remember(self, members: IndexArray, params: FloatArray, shortfall: FloatArray) -> None:
        losses = _mean_hinge(shortfall)
        for member, weights, loss in zip(members, params, losses, strict=True):
            self._seen[member].append((weights, float(loss)))

    def _margins(self, params: FloatArray) -> FloatArray:
        """(b, t) ρ of every weighting."""
        return np.stack([self.sums.margins(compose(weights, self.bases)) for weights in params])

    def _quadratics(self, u: FloatArray) -> FloatArray:
        """(b, k) b_kᵀ A b_k of the triplets' weights u (b, t)."""
        if self._projected is not None:
            V = self._projected
            return np.einsum("nk,bnk->bk", V, self.sums.laplacians(u, V))
        return np.einsum("bkd,kd->bk", self.bases @ self.sums.scatters(u), self.bases)


class BestByHinge:
    """The lowest of the iterates shown to it, by the hinge loss as it is."""

    def __init__(
        self,
        problems: HingeCompositions,
        number: int,
        report: Callable[[Progress], bool | None] | None,
    ) -> None:
        self.problems, self._number, self._report = problems, number, report
        self.weights: FloatArray = np.zeros(len(problems.bases))
        self.history = [1.0]  # every triplet of w = 0 has loss 1
        self.n_iter = 0

    def offer(self, progress: Progress) -> bool:
        """Keep the iterate if it is the lowest so far; whether the callback wants no more."""
        self.n_iter = progress.n_iter
        value = self.problems.hinge(self._number, progress.params)
        if value < self.history[-1]:
            self.weights = progress.params
            self.history.append(value)
        if self._report is None:
            return False
        return bool(self._report(Progress(progress.n_iter, value, progress.params, progress.step)))

    def composed(self, reason: str) -> Composed:
        """What has been found, and why the search for it ended."""
        history = np.array(self.history)
        return Composed(self.weights, self.problems.bases, self.n_iter, reason, history)


def _mean_hinge(shortfall: FloatArray) -> FloatArray:
    return np.maximum(shortfall, 0.0).mean(axis=-1)
