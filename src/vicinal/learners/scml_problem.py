"""The problem that SCML solves: bases to choose from, the smoothed objective, stochastic steps."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import svd
from sklearn.exceptions import ConvergenceWarning

from vicinal._typing import FloatArray, IndexArray
from vicinal.learners.rank_one_metrics import Composed, TripletSums, compose
from vicinal.objective.parametrization import Coordinates
from vicinal.solvers import Progress
from vicinal.solvers.smoothing import NARROWEST
from vicinal.supervision import Triplets

RANK_TOLERANCE = 1e-10
"""Singular values of a pool below this fraction of the largest are rounding."""
SEPARATION_TOLERANCE = 1e-3
"""Directions whose share (0 … 1) of √(between / total scatter) is less separate nothing."""


def local_lda(
    X: FloatArray, codes: IndexArray, n_bases: int, rng: np.random.RandomState
) -> FloatArray:
    """(k, d) unit directions of Fisher's discriminant in regions of the data, k ≤ n_bases.

    Regions are the surroundings of k-means centers, at two scales: of every class, the s points
    nearest to the center, with s = 10 and 20 (20 and 50 for more than 50 features). Each gives
    min(c − 1, d) directions, fewer where its points separate less.
    """
    d = X.shape[1]
    per_region = min(int(codes.max()), d)
    centers = _centers(X, -(-n_bases // (2 * per_region)), rng)
    members = [np.flatnonzero(codes == code) for code in range(codes.max() + 1)]
    scales = (20, 50) if d > 50 else (10, 20)
    nearest = [_nearest_of_each(X, center, members, max(scales)) for center in centers]
    found = []
    for scale in scales:
        for region in nearest:
            pool = np.concatenate([rows[:scale] for rows in region])
            found.append(lda_directions(X[pool], codes[pool], per_region))
    return np.concatenate(found)[:n_bases]


def triplet_directions(
    X: FloatArray, triplets: Triplets, n_bases: int, rng: np.random.RandomState
) -> FloatArray:
    """(k, d) unit directions that triplets want long, where there are no labels.

    As local LDA, with pairs (i, l) for the scatter between and pairs (i, j) for the scatter within
    the classes; regions hold the 10 and the 20 anchors nearest to a center (20 and 50 for more
    than 50 features). Each gives up to d directions.
    """
    d = X.shape[1]
    order = np.argsort(triplets.i, kind="stable")
    anchors, starts = np.unique(triplets.i[order], return_index=True)
    groups = np.split(order, starts[1:])  # triplets of each anchor
    centers = _centers(X[anchors], -(-n_bases // (2 * d)), rng)
    found = []
    for scale in (20, 50) if d > 50 else (10, 20):
        for center in centers:
            near = _nearest_of_each(X, center, [anchors], scale)[0]
            r = np.concatenate([groups[g] for g in np.searchsorted(anchors, near)])
            far = X[triplets.i[r]] - X[triplets.l[r]]
            close = X[triplets.i[r]] - X[triplets.j[r]]
            found.append(_separating(np.concatenate([far, close]), far, d))
    return np.concatenate(found)[:n_bases]


def lda_directions(X: FloatArray, codes: IndexArray, n_directions: int) -> FloatArray:
    """(e, d) unit directions a of S_b a = λ S_t a, largest λ first, e ≤ n_directions.

    S_t = Σ_i x_i x_iᵀ over the centered points, S_b = Σ_c n_c m_c m_cᵀ over the classes' means. A
    singular S_t is restricted to its range.
    """
    X = X - X.mean(axis=0)
    present, codes = np.unique(codes, return_inverse=True)
    sizes = np.bincount(codes)
    sums = np.zeros((len(present), X.shape[1]))
    np.add.at(sums, codes, X)
    return _separating(X, sums / np.sqrt(sizes)[:, None], n_directions)


def _separating(total: FloatArray, between: FloatArray, n_directions: int) -> FloatArray:
    """Generalized eigenvectors of (betweenᵀbetween, totalᵀtotal), as unit rows."""
    _, s, Vt = svd(total, full_matrices=False)
    kept = s > RANK_TOLERANCE * max(s[0], np.finfo(float).tiny)
    whiten = Vt[kept].T / s[kept]  # (d, r)
    if not kept.any():
        return np.empty((0, total.shape[1]))
    _, share, directions = svd(between @ whiten, full_matrices=False)
    directions = directions[share > SEPARATION_TOLERANCE][:n_directions] @ whiten.T
    return directions / np.linalg.norm(directions, axis=1, keepdims=True)


def _centers(X: FloatArray, n_centers: int, rng: np.random.RandomState) -> FloatArray:
    from sklearn.cluster import KMeans

    k_means = KMeans(min(n_centers, len(X)), n_init=1, tol=1e-3, random_state=rng)
    with warnings.catch_warnings():
        # Fewer distinct points than centers: some centers coincide, which does no harm.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.asarray(k_means.fit(X).cluster_centers_)


def _nearest_of_each(
    X: FloatArray, center: FloatArray, members: list[IndexArray], n_nearest: int
) -> list[IndexArray]:
    """The n_nearest rows to the center among each list of rows, nearest first."""
    distances = np.sum((X - center) ** 2, axis=1)
    return [rows[np.argsort(distances[rows], kind="stable")[:n_nearest]] for rows in members]


class ScmlProblem:
    """The problem min_{w ≥ 0} h(ρ(M)) + β Σ w with M = Σ_k w_k b_k b_kᵀ.

    h is the mean of [1 − ρ_r]₊. Its kink is smoothed by a parabola (Huber).

    ∂/∂w_k = β − b_kᵀ A b_k with A = Σ_r u_r (x_il x_ilᵀ − x_ij x_ijᵀ), u = −∂h/∂ρ.

    BFGS descends in v with w = v²: every v is feasible. The certificate is one in w, in which J is
    convex; weights that vanished at v = 0 cannot deceive it.
    """

    has_kinks = is_convex = True
    height = 1.0
    bound = 0.0
    coordinates = Coordinates(np.square, np.sqrt, lambda v, gradient: 2.0 * v * gradient)
    measure = Coordinates(lambda w: w, lambda w: w, lambda _, gradient: gradient)

    def __init__(self, sums: TripletSums, bases: FloatArray, beta: float) -> None:
        self.sums, self.bases, self.beta = sums, bases, beta
        self.n_rows = len(sums.X)
        k, d = bases.shape
        # With few bases and many features, the space of the weights is the smaller one.
        self._projected = sums.X @ bases.T if 27 * k < 26 * d + d * d / 8 else None

    def value_and_gradient(
        self, params: FloatArray, rows: IndexArray | None = None
    ) -> tuple[float, FloatArray]:
        """J at the weights (k,), and a subgradient (k,); always over all triplets."""
        if rows is not None:
            raise ValueError("SCML's objective is evaluated on all rows")
        _, gradient, value = self.smoothed(params, NARROWEST)
        return value, gradient

    def smoothed(self, params: FloatArray, width: float) -> tuple[float, FloatArray, float]:
        """J with its kinks smoothed over this width, its gradient, and J itself."""
        shortfall = 1.0 - self._margins(params)  # (t,)
        slope = np.clip(shortfall / width, 0.0, 1.0)
        penalty = self.beta * float(params.sum())
        loss = float((slope * (shortfall - 0.5 * width * slope)).mean())
        gradient = self.beta - self._quadratic(slope / self.sums.n_triplets)
        return loss + penalty, gradient, _mean_hinge(shortfall) + penalty

    def project(self, params: FloatArray) -> FloatArray:
        """The nearest weights w ≥ 0."""
        return np.maximum(params, 0.0)

    def value(self, weights: FloatArray) -> float:
        """The objective J."""
        return _mean_hinge(1.0 - self._margins(weights)) + self.beta * float(weights.sum())

    def start(self) -> FloatArray:
        """Equal weights with margins of at most 1; none where no weight decreases J at w = 0."""
        k = len(self.bases)
        _, gradient, _ = self.smoothed(np.zeros(k), 1.0)
        if (gradient >= 0).all():
            return np.zeros(k)
        return np.full(k, 1.0 / float(np.abs(self.beta - gradient).sum()))

    def sparse(self, weights: FloatArray) -> tuple[FloatArray, float]:
        """The weights less as many of the small ones as do not raise J, and J."""
        value = self.value(weights)
        for threshold in 10.0 ** -np.arange(1, 12):
            large = np.where(weights > threshold * weights.max(), weights, 0.0)
            lowered = self.value(large)
            if lowered <= value:
                return large, lowered
        return weights, value

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
        self, problem: ScmlProblem, report: Callable[[Progress], bool | None] | None
    ) -> None:
        self.problem, self._report = problem, report
        self.weights: FloatArray = np.zeros(len(problem.bases))
        self.history = [1.0]  # every triplet of w = 0 has loss 1
        self.n_iter = 0

    def offer(self, progress: Progress) -> bool:
        """Keep the iterate if it is the lowest so far; true where the callback stops."""
        self.n_iter = progress.n_iter
        known = progress.value
        value = self.problem.value(progress.params) if np.isnan(known) else known
        if value < self.history[-1]:
            self.weights = progress.params
            self.history.append(value)
        if self._report is None:
            return False
        return bool(self._report(Progress(progress.n_iter, value, progress.params, progress.step)))

    def drop_small_weights(self) -> None:
        """Set weights to zero that are only nearly so, where that does not raise J."""
        self.weights, value = self.problem.sparse(self.weights)
        if value < self.history[-1]:
            self.history.append(value)

    def composed(self, reason: str) -> Composed:
        """The best weights found, and why the search ended."""
        history = np.array(self.history)
        return Composed(self.weights, self.problem.bases, self.n_iter, reason, history)


def _mean_hinge(shortfall: FloatArray) -> float:
    return float(np.maximum(shortfall, 0.0).mean())


MAX_PROJECTIONS = 2**24
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
        from vicinal.learners.compiled_loops import take_steps  # imports Numba

        k = len(self.bases)
        state = np.zeros((3, k))  # w, Σ g, Σ g²
        P = self.X @ self.bases.T if len(self.X) * k <= MAX_PROJECTIONS else None  # (n, k)
        part = max(1, MAX_PROJECTIONS // (3 * self.batch_size * k))
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
