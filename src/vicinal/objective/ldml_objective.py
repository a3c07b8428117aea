"""LDML's objective: the logistic loss of pairs, in the metric and the bias together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from vicinal._typing import FloatArray, IndexArray
from vicinal.kernels.contract import LogisticSweep, PairKernel
from vicinal.objective.pair_sums import pair_distances, pair_laplacian
from vicinal.objective.parametrization import Parametrization


@dataclass(frozen=True)
class LDMLObjective:
    """J = −Σ ω [t ln p + (1 − t) ln(1 − p)] + λ ‖M‖_F², p = σ(b − d_ij); convex in (M, b).

    The solver's parameters are one vector: those of the metric, then b.
    """

    X: FloatArray
    """(n, d) the samples, in the order that the pair kernel knows, centered."""
    pairs: PairKernel
    parametrization: Parametrization
    shape: tuple[int, int]
    """Of the metric's parameters."""
    regularization: float
    """λ."""

    @property
    def n_rows(self) -> int:
        return len(self.X)

    def value_and_gradient(
        self, params: FloatArray, rows: IndexArray | None = None
    ) -> tuple[float, FloatArray]:
        """J and ∂J/∂params; there are no estimates from ``rows``."""
        if rows is not None:
            raise NotImplementedError("LDML has no mini-batches of rows")
        theta, bias = self.split(params)
        L = self.parametrization.factor(theta)
        Z = self.X @ L.T  # (n, m)
        V, symmetric = self.parametrization.operand(self.X, Z)
        sweep = self.pairs.sweep(Z, V, bias, symmetric=symmetric)
        value = sweep.value
        gradient = self.parametrization.pull_back(
            theta, self.X, sweep.laplacian, symmetric=symmetric
        )
        if self.regularization > 0:
            # ‖M‖² = ⟨M, M⟩ has twice the gradient of ⟨C, M⟩ at C = M.
            square, slope = self.parametrization.linear(theta, L.T @ L)
            value += self.regularization * square
            gradient = gradient + 2.0 * self.regularization * slope
        return value, self.join(gradient, sweep.bias_slope)

    def project(self, params: FloatArray) -> FloatArray:
        """The nearest feasible parameters; every b is feasible."""
        theta, bias = self.split(params)
        return self.join(self.parametrization.project(theta), bias)

    def split(self, params: FloatArray) -> tuple[FloatArray, float]:
        """The metric's parameters, and b."""
        return params[:-1].reshape(self.shape), float(params[-1])

    @staticmethod
    def join(theta: FloatArray, bias: float) -> FloatArray:
        """The solver's vector."""
        return np.append(theta.ravel(), bias)


class ListedPairs:
    """The loss of given pairs instead of all; see :mod:`vicinal.kernels.cpu.logistic_pairs`."""

    def __init__(
        self,
        i: IndexArray,
        j: IndexArray,
        similar: NDArray[np.bool_],
        weights: tuple[float, float],
    ) -> None:
        self._i, self._j = i, j
        self._sign = np.where(similar, -1.0, 1.0)
        self._omega = np.where(similar, *weights)

    def sweep(self, Z: FloatArray, V: FloatArray, bias: float, *, symmetric: bool) -> LogisticSweep:
        """See :meth:`vicinal.kernels.contract.PairKernel.sweep`."""
        u = self._sign * (bias - pair_distances(Z, self._i, self._j))
        w = -self._sign * self._omega * expit(u)
        value = float(self._omega @ np.logaddexp(0.0, u))
        laplacian = pair_laplacian(self._i, self._j, w, V, symmetric)
        return LogisticSweep(value, laplacian, -float(w.sum()))
