"""The stochastic solvers of SCML, compiled; imported when one is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from vicinal._typing import FloatArray, IndexArray
from vicinal.kernels.cpu.jit import compiled_sum as _compiled_sum
from vicinal.learners.supervision import Triplets

Function = TypeVar("Function", bound=Callable[..., Any])
compiled_sum: Callable[[Function], Function] = _compiled_sum

MAX_ELEMENTS = 2**24
"""Projections of samples onto bases that are held at once."""


@dataclass(frozen=True)
class DualAveraging:
    """Regularized dual averaging: weights from the gradient's mean ḡ over all draws so far.

    .. code-block:: text

    original:  w_k = √t/γ · [−ḡ_k − β]₊
    adaptive:  w_k = t/(γ (δ + s_k)) · [−ḡ_k − β]₊,   s_k = √(Σ_τ g²_{τk}),  δ = 0.001
    """

    X: FloatArray
    bases: FloatArray
    triplets: Triplets
    beta: float
    gamma: float
    adaptive: bool
    batch_size: int

    def run(
        self,
        max_iter: int,
        evaluate_every: int,
        rng: np.random.RandomState,
        offer: Callable[[int, FloatArray], bool],
    ) -> str:
        """Draw batches of triplets; ``offer(n_iter, w)`` every so often, true stops the run."""
        k = len(self.bases)
        state = np.zeros((3, k))  # w, Σ g, Σ g²
        P = self.X @ self.bases.T if len(self.X) * k <= MAX_ELEMENTS else None  # (n, k)
        part = max(1, MAX_ELEMENTS // (3 * self.batch_size * k))
        for start in range(0, max_iter, evaluate_every):
            size = (min(evaluate_every, max_iter - start), self.batch_size)
            draws = rng.randint(len(self.triplets), size=size)
            for first in range(0, len(draws), part):
                onto, rows = self._project(draws[first : first + part], P)
                take_steps(onto, rows, state, start + first, self.gamma, self.beta, self.adaptive)
            if offer(start + len(draws), state[0].copy()):
                return "callback"
        return "max_iter"

    def _project(self, draws: IndexArray, P: FloatArray | None) -> tuple[FloatArray, IndexArray]:
        """Projections of the samples that are drawn, and their rows in it (3, steps, batch)."""
        t = self.triplets
        rows = np.stack([t.i[draws], t.j[draws], t.l[draws]])
        if P is not None:
            return P, rows
        drawn, local = np.unique(rows, return_inverse=True)
        return self.X[drawn] @ self.bases.T, local.reshape(rows.shape)


@compiled_sum
def take_steps(
    P: FloatArray,
    rows: IndexArray,
    state: FloatArray,
    t: int,
    gamma: float,
    beta: float,
    adaptive: bool,
) -> None:
    """One step for each of the drawn batches (3, steps, batch) of rows of P (n, k).

    ``state`` (3, k), updated in place, holds w, Σ g and Σ g².
    """
    k = P.shape[1]
    h, g = np.empty(k), np.empty(k)
    w, g_sum, squares = state[0], state[1], state[2]
    batch = rows.shape[2]
    for step in range(rows.shape[1]):
        g[:] = 0.0
        for b in range(batch):
            x, y, z = P[rows[0, step, b]], P[rows[1, step, b]], P[rows[2, step, b]]
            slack = 1.0
            for q in range(k):
                near, far = x[q] - y[q], x[q] - z[q]
                h[q] = near * near - far * far
                slack += h[q] * w[q]
            if slack > 0.0:
                for q in range(k):
                    g[q] += h[q]
        t += 1
        for q in range(k):
            mean = g[q] / batch
            g_sum[q] += mean
            squares[q] += mean * mean
            rate = t / (0.001 + np.sqrt(squares[q])) if adaptive else np.sqrt(t)
            w[q] = rate / gamma * max(0.0, -g_sum[q] / t - beta)
