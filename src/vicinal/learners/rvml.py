"""RVML: ridge regression of the samples onto virtual points."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import logsumexp
from sklearn.metrics import euclidean_distances
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.validation import check_is_fitted

from vicinal._typing import FloatArray, IndexArray
from vicinal.learners.base import MetricLearner
from vicinal.learners.fit_input import FitInput, in_units_of_data, store_fit
from vicinal.learners.labeled_data import encode_labels, refuse_extreme, safe_unit
from vicinal.learners.parameters import POSITIVE, OneOf, ParameterConstraints

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


class RVML(MetricLearner):
    r"""Regressive Virtual Metric Learning: closed form, no pairs.

    Every sample is given a virtual point v_i where it ought to be, and the metric is the ridge
    regression onto them, of the centered samples:

    .. code-block:: text

        min_L  (1/n) Σ_i ‖L x_i − v_i‖² + λ ‖L‖²      ⇒      Lᵀ = (XᵀX + λ n I)⁻¹ Xᵀ V.

    In its kernel form the samples are regressed in the space of the kernel:

    .. code-block:: text

        z(x) = Vᵀ (K + λ n I)⁻¹ k(x),      K_ij = k(x_i, x_j),   k(x)_i = k(x, x_i).

    Parameters
    ----------
    regularization : float, default=0.01
        λ. The authors try 10⁻⁵ … 1 on samples that are standardized and divided by 3.
    virtual_points : {"classes", "transport"}, default="classes"
        "classes": the corner of its class, a unit vector with one entry per class; L has rank c − 1
        for c classes. "transport": landmarks are chosen among the samples, optimal transport moves
        the samples to them so that each landmark serves few classes, and v_i is the mean of the
        landmarks that sample i goes to. Its distances are taken in the space of X: standardize.
    kernel : {"linear", "rbf"}, default="linear"
        "rbf" is k(x, x′) = exp(−g ‖x − x′‖²). It stores the training samples and costs O(n³), and
        has neither a Mahalanobis matrix nor ``components_`` in the space of X.
    gamma : float, default=None
        g of the "rbf" kernel; None is 1/(2 a²) with the mean distance a of the samples.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        L; n_components is the number of classes, or of features for "transport". In the kernel
        form of shape (n_components, n_samples): the same, applied to k(x) instead of x.
    virtual_points_ : ndarray of shape (n_samples, n_components)
        V, the target of every training sample.
    X_fit_, gamma_
        The training samples and g in the kernel form, None in the linear one.
    objective_ : float
        What was minimized, at ``components_``.
    converged_, stop_reason_
        True, "closed form".
    classes_ : ndarray
        The class labels.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Perrot, Habrard: Regressive Virtual Metric Learning. NIPS 2015.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> import vicinal as vc
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), vc.RVML(kernel="rbf"), KNeighborsClassifier())
    >>> model.fit(X, y).score(X, y) > 0.95
    True
    """

    _constraints: ClassVar[ParameterConstraints] = {
        "regularization": POSITIVE,
        "virtual_points": OneOf(("classes", "transport")),
        "kernel": OneOf(("linear", "rbf")),
        "gamma": OneOf((None,), POSITIVE),
    }

    X_fit_: FloatArray | None
    gamma_: float | None

    def __init__(
        self,
        regularization: float = 0.01,
        *,
        virtual_points: str = "classes",
        kernel: str = "linear",
        gamma: float | None = None,
    ) -> None:
        self.regularization = regularization
        self.virtual_points = virtual_points
        self.kernel = kernel
        self.gamma = gamma

    def _learn_labeled(self, given: FitInput) -> None:
        classes, codes = encode_labels(given.y)
        rows, dtype = given.X.astype(np.float64), given.X.dtype
        linear, by_class = self.kernel == "linear", self.virtual_points == "classes"
        if not (linear and by_class):
            refuse_extreme(rows, f"RVML with kernel={self.kernel!r}, {self.virtual_points!r}")
        unit = max(1.0, safe_unit(rows)) if linear else 1.0
        centered = rows / unit
        centered -= centered.mean(axis=0)
        V = class_corners(codes) if by_class else transported_points(centered * unit, codes)
        gamma = None if linear else self._kernel_coefficient(centered)
        L, objective = self._regress(centered, V, gamma, unit)
        outcome = {
            "classes_": classes,
            "X_fit_": None if gamma is None else given.X.copy(),
            "gamma_": gamma,
            "components_": in_units_of_data(L, unit, dtype),
            "virtual_points_": V.astype(dtype),
            "objective_": objective,
            "converged_": True,
            "stop_reason_": "closed form",
        }
        store_fit(self, {**given.attributes, **outcome})

    def _kernel_coefficient(self, X: FloatArray) -> float:
        if self.gamma is not None:
            return float(self.gamma)
        a = mean_distance(X)
        return 0.5 / a**2 if a > 0 else 1.0

    def _regress(
        self, X: FloatArray, V: FloatArray, gamma: float | None, unit: float
    ) -> tuple[FloatArray, float]:
        """``components_`` for samples that were divided by ``unit``, and the minimized sum."""
        n, d = X.shape
        regularization = self.regularization / unit / unit  # ‖L‖² is in units of X⁻²
        penalty = regularization * n
        if not np.isfinite(penalty):
            raise ValueError(
                f"regularization={self.regularization!r} times {n} samples exceeds float64; use a "
                "smaller one"
            )
        if gamma is None:
            L = solve_primal(X, V, penalty) if d <= n else solve_dual(X, V, penalty)
            Z, norm = X @ L.T, float((L**2).sum())
        else:
            K = rbf_kernel(X, gamma=gamma)
            L = solve_ridge(K, V, penalty).T
            Z = K @ L.T
            norm = float((Z * L.T).sum())  # of the regression, in the space of the kernel
        return L, float(((Z - V) ** 2).sum() / n) + regularization * norm

    def _embed(self, X: FloatArray) -> FloatArray:
        """``components_`` applied to X itself, or to k(x) for every row x."""
        if self.X_fit_ is None:
            return super()._embed(X)
        rows, stored = X.astype(np.float64), self.X_fit_.astype(np.float64)
        Z = rbf_kernel(rows, stored, gamma=self.gamma_) @ self.components_.T
        return np.asarray(Z.astype(X.dtype))

    def _difference(self, A: FloatArray, B: FloatArray) -> FloatArray:
        """z(a) − z(b): in the kernel form it is not a function of a − b."""
        if self.X_fit_ is None:
            return super()._difference(A, B)
        return np.asarray(self._embed(A) - self._embed(B))

    def get_mahalanobis_matrix(self) -> FloatArray:
        """M = LᵀL of shape (n_features, n_features); an error in the kernel form."""
        check_is_fitted(self)
        if self.X_fit_ is not None:
            raise ValueError(
                f"kernel={self.kernel!r} learns no Mahalanobis matrix: its distance is not a "
                "quadratic form of x - x'. Use transform, pair_distance or get_metric, or "
                "kernel='linear'."
            )
        return super().get_mahalanobis_matrix()


def solve_primal(X: FloatArray, V: FloatArray, penalty: float) -> FloatArray:
    """Lᵀ = (XᵀX + λn I)⁻¹ Xᵀ V, for d ≤ n."""
    return solve_ridge(X.T @ X, X.T @ V, penalty).T


def solve_dual(X: FloatArray, V: FloatArray, penalty: float) -> FloatArray:
    """The same as Lᵀ = Xᵀ (X Xᵀ + λn I)⁻¹ V, for d > n."""
    return solve_ridge(X @ X.T, V, penalty).T @ X


def solve_ridge(G: FloatArray, B: FloatArray, penalty: float) -> FloatArray:
    """(G + penalty · I)⁻¹ B for G ⪰ 0.

    A penalty that is lost in the rounding of G counts as the rounding: what X does not determine
    then stays near 0.
    """
    floor = 10 * np.finfo(np.float64).eps * float(np.trace(G))
    A = G + max(penalty, floor) * np.eye(len(G))
    return np.asarray(cho_solve(cho_factor(A), B))
