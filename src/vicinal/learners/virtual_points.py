"""Virtual points: where a regression is to send the samples, one target a sample."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp
from sklearn.metrics import euclidean_distances

from vicinal._typing import FloatArray, IndexArray

ENTROPY = 0.5
"""Weight of the plan's entropy, in units of distance."""
CLASS_WEIGHT = 10.0
"""η: how much a landmark that serves several classes costs."""
ROUNDS = 10
INNER = 200
MARGINAL_TOL = 1e-9
SAFE = 1e100
"""Scalings beyond this are moved into the logarithms before they can overflow."""


def class_corners(codes: IndexArray) -> FloatArray:
    """(n, c) the corner e_k of the simplex for every sample of class k."""
    return np.eye(int(codes.max()) + 1)[codes]


def transported_points(X: FloatArray, codes: IndexArray) -> FloatArray:
    """(n, d) every sample's mean landmark under the optimal transport of X to its landmarks."""
    landmarks = X[choose_landmarks(X, int(codes.max()) + 1)]  # (m, d)
    plan = class_transport(euclidean_distances(X, landmarks), codes)
    return np.asarray(plan @ landmarks / plan.sum(axis=1, keepdims=True))


def mean_distance(X: FloatArray) -> float:
    """The mean entry of the (n, n) matrix of Euclidean distances, its zero diagonal included."""
    n = len(X)
    block = max(1, 2**22 // n)
    total = sum(
        float(euclidean_distances(X[start : start + block], X).sum())
        for start in range(0, n, block)
    )
    return total / n**2


def choose_landmarks(X: FloatArray, n_classes: int) -> IndexArray:
    """Samples, far from each other, that leave no sample farther than the mean distance.

    The first is the farthest from the origin, each next one the farthest on average from those
    chosen; at least as many as there are classes.
    """
    limit = mean_distance(X)
    chosen = [int(np.argmax(np.einsum("nd,nd->n", X, X)))]
    free = np.ones(len(X), dtype=bool)
    total, nearest = np.zeros(len(X)), np.full(len(X), np.inf)
    while True:
        latest = chosen[-1]
        free[latest] = False
        distances = np.linalg.norm(X - X[latest], axis=1)
        total += distances
        np.minimum(nearest, distances, out=nearest)
        if not free.any() or (len(chosen) >= n_classes and nearest[free].max() <= limit):
            return np.array(chosen, dtype=np.intp)
        chosen.append(int(np.argmax(np.where(free, total, -1.0))))


def class_transport(cost: FloatArray, codes: IndexArray) -> FloatArray:
    """The plan G (n, m) that moves n samples to m landmarks, each landmark for few classes.

    .. code-block:: text

        min_G  ⟨G, C⟩ + ε Σ G log G + η Σ_j Σ_k (Σ_{i of class k} G_ij)^½
        with row sums 1/n and column sums 1/m

    by majorize–minimize: the concave last term is replaced by its tangent, ten times over.
    """
    members = np.eye(int(codes.max()) + 1)[codes]  # (n, c)
    tangent = np.zeros_like(cost)
    potential: FloatArray = np.zeros(cost.shape[1])
    for _ in range(ROUNDS):
        plan, potential = sinkhorn((cost + CLASS_WEIGHT * tangent) / ENTROPY, potential)
        tangent = (0.5 / np.sqrt(members.T @ plan + 1e-3))[codes]
    return plan


def sinkhorn(cost: FloatArray, g: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The plan e^{f + g − cost} with row sums 1/n (exact) and column sums 1/m, and its g (m,).

    Starts from the potential g. Works by scalings u, v of a plan, as fast as products are, and
    takes them into the potentials f, g by one step in logarithms where they grow too large.
    """
    n, m = cost.shape
    row, column = 1.0 / n, 1.0 / m
    f = np.log(row) - logsumexp(g - cost, axis=1)
    steps, error = 0, np.inf
    while steps < INNER and error > MARGINAL_TOL:
        g = np.log(column) - logsumexp(f[:, None] - cost, axis=0)
        f = np.log(row) - logsumexp(g - cost, axis=1)
        plan = np.exp(f[:, None] + g - cost)  # rows are exact
        steps += 1
        u, v = np.ones(n), np.ones(m)
        while steps < INNER:
            sums = plan.T @ u
            error = float(np.linalg.norm(v * sums - column))
            if error <= MARGINAL_TOL:
                break
            v_next = column / np.maximum(sums, np.finfo(float).tiny)
            u_next = row / np.maximum(plan @ v_next, np.finfo(float).tiny)
            if max(v_next.max(), u_next.max()) > SAFE:
                break
            u, v = u_next, v_next
            steps += 1
        f, g = f + np.log(u), g + np.log(v)
        plan *= u[:, None] * v
    return plan, g
