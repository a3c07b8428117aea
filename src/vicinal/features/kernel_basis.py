"""Kernel functions: how near a row is to landmarks, so that a metric can bend.

A linear metric sees differences alike everywhere. Radial functions of the distances to a few
landmarks vary smoothly over the data; a metric that is learned from them (from Nyström's
coordinates of the kernel) is one of a curved space, as that of a support vector machine is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.spatial.distance import cdist, pdist

from vicinal._typing import FloatArray

LANDMARKS = 150
WIDTH = 0.5
"""γ times the median squared distance of the standardized landmarks."""
SMALLEST = 1e-6
"""Share of the largest eigenvalue of the kernel below which coordinates are left out."""
NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(8)
MAX_PIECES = 32


@dataclass(frozen=True)
class KernelBasis:
    r"""The functions :math:`k_j(x) = e^{-\sum_f s_f^2 (x_f - l_{jf})^2}` of landmarks l."""

    landmarks: FloatArray
    """(m, d)"""
    scales: FloatArray
    """(d,) s; 0 for a feature that is constant."""

    @classmethod
    def of(cls, X: FloatArray) -> KernelBasis | None:
        """Landmarks drawn from the rows X (n, d); None if all of these coincide."""
        spread = X.std(axis=0)
        flat = spread <= 1e-10 * np.abs(X).max(axis=0, initial=0.0)  # rounding of a constant
        scales = np.where(flat, 0.0, 1.0 / np.where(flat, 1.0, spread))
        landmarks = X[np.sort(np.random.default_rng(0).permutation(len(X))[:LANDMARKS])]
        apart = pdist(landmarks * scales, "sqeuclidean")
        apart = apart[apart > 0]
        if not len(apart):
            return None
        return cls(landmarks, scales * np.sqrt(WIDTH / np.median(apart)))

    @property
    def size(self) -> int:
        """The number of landmarks m."""
        return len(self.landmarks)

    def values(self, X: FloatArray) -> FloatArray:
        """(n, m) the functions at the rows X (n, d)."""
        scaled = self.landmarks * self.scales
        return np.asarray(np.exp(-cdist(X * self.scales, scaled, "sqeuclidean")))

    @cached_property
    def coordinates(self) -> FloatArray:
        """A (r, m): the scalar products of A k(x) are the kernel (Nyström)."""
        values, vectors = np.linalg.eigh(self.values(self.landmarks))
        kept = values > SMALLEST * values[-1]
        return np.asarray((vectors[:, kept] / np.sqrt(values[kept])).T)

    def contributions(self, x: FloatArray, row: FloatArray, M: FloatArray) -> FloatArray:
        r"""(d,) what each feature adds to the squared distance from x (d,) to a row (d,).

        The squared distance is that of M (m, m) between the kernel functions. It is integrated
        along the segment from x to the row, feature by feature:

        .. math:: (r_f - x_f) \int_0^1 \frac{\partial}{\partial u_f}
                  \|k(u) - k(x)\|_M^2 \Big|_{u = x + t(r - x)} \, dt

        (integrated gradients). What the quadrature has missed is divided in proportion to
        :math:`s_f^2 (r_f - x_f)^2`, so that they sum to the squared distance.
        """
        step = row - x
        lengths = (self.scales * step) ** 2
        total = lengths.sum()
        if total == 0:
            return np.zeros(len(x))
        pieces = int(np.clip(np.ceil(np.sqrt(total)), 1, MAX_PIECES))
        t = ((np.arange(pieces)[:, None] + (NODES + 1.0) / 2.0) / pieces).ravel()
        weights = np.tile(NODE_WEIGHTS / 2.0 / pieces, pieces)
        U = x + t[:, None] * step  # (t, d)
        K, start = self.values(U), self.values(x[None])
        pulls = weights[:, None] * ((K - start) @ M) * K  # (t, m)
        # ∂k_j/∂u_f = −2 s_f² (u_f − l_jf) k_j
        slopes = pulls.sum(axis=1) @ U - pulls.sum(axis=0) @ self.landmarks
        parts = -4.0 * self.scales**2 * step * slopes
        apart = self.values(row[None]) - start
        missed = float(((apart @ M) * apart).sum()) - parts.sum()
        return np.asarray(parts + missed * lengths / total)

    def slopes(self, X: FloatArray) -> FloatArray:
        """(m, d) slopes of the functions, by least squares on the rows X (n, d)."""
        K = self.values(X)
        deviations = (X - X.mean(axis=0)) * self.scales
        found = np.linalg.lstsq(deviations, K - K.mean(axis=0), rcond=1e-10)[0]
        return np.asarray(found.T * self.scales)
