"""ITML: the metric nearest to a prior, in LogDet divergence, that obeys bounds on pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import pdist
from sklearn.utils import check_random_state

from vicinal._typing import FloatArray, IndexArray, Seed
from vicinal.learners.descent import FitCallback, fit_callback, store_solution
from vicinal.learners.fit_input import FitInput, in_units_of_data
from vicinal.learners.initialization import PRIORS, prior_matrix
from vicinal.learners.labeled_data import refuse_extreme
from vicinal.learners.parameters import (
    CALLBACK,
    COUNT,
    NOT_NEGATIVE,
    ArrayGiven,
    Number,
    OneOf,
    ParameterConstraints,
)
from vicinal.learners.weakly_supervised import PairLearner
from vicinal.objective.parametrization import Metric
from vicinal.solvers import Callback, Progress
from vicinal.supervision import Pairs, sample_pairs

BOUNDS = ("percentile", "histogram")
MOST_ROWS = 1414
"""Percentiles are taken over all pairs of the rows, or of so many drawn ones: a million pairs."""

DUPLICATE = 1e-18
"""Squared distance, relative to the largest, at which a pair joins one point with itself."""

ROUNDING = 1e-12
"""Relative change of a squared distance that is none: equal bounds would else never settle."""


class ITML(PairLearner):
    r"""Information-Theoretic Metric Learning.

    Stays as near to a prior metric A₀ as the bounds u on the squared distances of similar pairs
    and l on those of dissimilar pairs allow, p_c = (x_i − x_j)ᵀ M (x_i − x_j) for c = (i, j):

    .. code-block:: text

        min_{M ≻ 0, ξ}  D(M, A₀) + γ D(diag ξ, diag ξ⁰)
        subject to      p_c ≤ ξ_c (c similar),   p_c ≥ ξ_c (c dissimilar)

        D(M, A₀) = tr(M A₀⁻¹) − log det(M A₀⁻¹) − d,      ξ⁰_c = u (similar) or l (dissimilar)

    by cyclic Bregman projections: one pair after the other is moved to its bound as far as its
    multiplier λ_c ≥ 0 allows, M⁻¹ = A₀⁻¹ + Σ_c ±λ_c v_c v_cᵀ throughout, in O(d²) each.

    Parameters
    ----------
    gamma : float, default=1.0
        γ, what leaving the bounds costs. Infinite: they are hard, and perhaps not to be met.
    prior : {"identity", "covariance"} or array (n_features, n_features), default="identity"
        A₀, positive definite. "covariance" is the inverse covariance of X.
    bounds : {"percentile", "histogram"} or (float, float), default="percentile"
        u and l, themselves *squared* distances, or the rule for them. "percentile": 5 % and 95 %
        of the squared distances under A₀ between rows of X (at most 1,414 of them) lie below.
        "histogram": the centers of the 5th and the 95th of 100 equal bins over the squared
        distances of 100 random pairs, as the authors' program has it.
    n_pairs : int, default=None
        How many pairs to draw from labels, half of them similar; None is 40 c² for c classes.
    max_iter : int, default=10000
        Passes over all pairs.
    tol : float, default=1e-3
        Stop where a pass changes the multipliers by less: ‖λ − λ′‖₁ < tol (‖λ‖₂ + ‖λ′‖₂).
    callback : callable, default=None
        Called after every pass with ``n_iter``, ``objective``, ``step`` and ``components`` of the
        run; a true return value stops it.
    verbose : int, default=0
        1 logs every tenth pass, 2 every one, on the logger "vicinal".
    random_state : int, RandomState or None, default=None
        For the pairs that are drawn from labels, and for the bounds where pairs are drawn.

    Attributes
    ----------
    components_ : ndarray of shape (n_features, n_features)
        L with M = LᵀL.
    bounds_ : ndarray of shape (2,)
        u and l. ``set_threshold(np.sqrt(bounds_.mean()))`` makes a verifier of pairs.
    n_pairs_ : int
        Pairs that were used: those that join equal points are left out.
    objective_ : float
        The minimized sum of divergences at the M and ξ that were reached.
    history_ : ndarray
        The dual objective at the start and after every pass: it rises to the minimum of the
        problem from below.
    n_iter_, converged_, stop_reason_
        Passes, and how they ended: "multipliers" (converged), "max_iter" or "callback".
    classes_ : ndarray
        The class labels; not after ``fit_pairs``.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Davis, Kulis, Jain, Sra, Dhillon: Information-Theoretic Metric Learning. ICML 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> import vicinal as vc
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), vc.ITML(random_state=0), KNeighborsClassifier())
    >>> model.fit(X, y).score(X, y) > 0.95
    True
    """

    _constraints: ClassVar[ParameterConstraints] = {
        "gamma": Number(0, above_low=True, infinite=True),
        "prior": OneOf(PRIORS, ArrayGiven()),
        "bounds": OneOf(BOUNDS, ArrayGiven()),
        "n_pairs": OneOf((None,), Number(2, whole=True)),
        "max_iter": COUNT,
        "tol": NOT_NEGATIVE,
        "callback": CALLBACK,
    }

    def __init__(
        self,
        gamma: float = 1.0,
        *,
        prior: str | ArrayLike = "identity",
        bounds: str | ArrayLike = "percentile",
        n_pairs: int | None = None,
        max_iter: int = 10000,
        tol: float = 1e-3,
        callback: FitCallback | None = None,
        verbose: int = 0,
        random_state: Seed = None,
    ) -> None:
        self.gamma = gamma
        self.prior = prior
        self.bounds = bounds
        self.n_pairs = n_pairs
        self.max_iter = max_iter
        self.tol = tol
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state

    def _pairs_from_labels(self, codes: IndexArray, rng: np.random.RandomState) -> Pairs:
        n_classes = int(codes.max()) + 1
        return sample_pairs(codes, 40 * n_classes**2 if self.n_pairs is None else self.n_pairs, rng)

    def _learn_pairs(self, given: FitInput, pairs: Pairs) -> None:
        rows = given.X.astype(np.float64)
        refuse_extreme(rows, "ITML")
        A0 = prior_matrix(self.prior, rows)
        gaps = rows[pairs.i] - rows[pairs.j]  # (p, d)
        squared = _squared_lengths(gaps, A0)
        kept = squared > DUPLICATE * squared.max(initial=0.0)
        if not kept.any():
            raise ValueError("every pair joins two equal samples; there is nothing to learn")
        bounds = find_bounds(self.bounds, rows, A0, check_random_state(self.random_state))
        u, l = bounds  # noqa: E741  (the paper's letter)
        similar = pairs.similar[kept]
        sign, bound = np.where(similar, 1.0, -1.0), np.where(similar, u, l)
        problem = Constraints(A0, gaps[kept], sign, bound, float(self.gamma))
        to_components = Metric().factor
        report = fit_callback("ITML", self.callback, self.verbose, 0, to_components)
        found = project(problem.rescaled(), int(self.max_iter), float(self.tol), report)
        store_solution(
            self,
            given,
            found,
            tol=self.tol,
            advice=f"raise either, or lower gamma={self.gamma} so that bounds which contradict "
            "each other cost less",
            components_=in_units_of_data(to_components(found.A), 1.0, given.X.dtype),
            bounds_=bounds,
            n_pairs_=int(kept.sum()),
        )


@dataclass(frozen=True)
class Constraints:
    """The problem in numbers: A₀, and for each pair v, δ = ±1 (similar or not) and ξ⁰."""

    A0: FloatArray
    V: FloatArray
    sign: FloatArray
    bound: FloatArray
    gamma: float

    def rescaled(self) -> Constraints:
        """The same problem with bounds near 1; a power of two, so that no digit changes."""
        unit = 2.0 ** np.round(0.5 * np.log2(self.bound.max()))
        return Constraints(self.A0, self.V / unit, self.sign, self.bound / unit**2, self.gamma)

    def dual(self, growth: float, multiplier: FloatArray) -> float:
        """log det(A₀ M⁻¹) + γ Σ_c log(1 − δ_c λ_c ξ⁰_c/γ), given its first term."""
        used = self.sign * multiplier * self.bound
        if np.isinf(self.gamma):
            return growth - float(used.sum())
        return growth + self.gamma * float(np.log1p(-used / self.gamma).sum())

    def primal(self, A: FloatArray, growth: float, multiplier: FloatArray) -> float:
        """D(M, A₀) + γ D(diag ξ, diag ξ⁰), given log det(A₀ M⁻¹)."""
        divergence = float(np.trace(np.linalg.solve(self.A0, A))) + growth - len(A)
        if np.isinf(self.gamma):
            return divergence
        inverse = 1.0 - self.sign * multiplier * self.bound / self.gamma  # ξ⁰/ξ
        return divergence + self.gamma * float((1.0 / inverse + np.log(inverse) - 1.0).sum())


@dataclass(frozen=True)
class Projected:
    """The end of the projections."""

    A: FloatArray
    multiplier: FloatArray
    value: float
    history: FloatArray
    stop_reason: str

    @property
    def n_iter(self) -> int:
        return len(self.history) - 1

    @property
    def converged(self) -> bool:
        return self.stop_reason == "multipliers"


def project(
    problem: Constraints, max_iter: int, tol: float, report: Callback | None = None
) -> Projected:
    """Cyclic Bregman projections until the multipliers settle."""
    # Imported late: Numba takes longer to import than all the rest.
    from vicinal.learners.compiled_loops import project_in_turn

    A = problem.A0.copy()
    multiplier, growth = np.zeros(len(problem.V)), 0.0
    history = [0.0]
    stop_reason = "max_iter"
    V = np.ascontiguousarray(problem.V)
    for n_iter in range(1, max_iter + 1):
        before = multiplier.copy()
        growth += project_in_turn(A, V, problem.sign, problem.bound, multiplier, problem.gamma)
        history.append(problem.dual(growth, multiplier))
        size = np.linalg.norm(multiplier) + np.linalg.norm(before)
        step = np.abs(multiplier - before)
        change = float(step.sum())
        stopped = report is not None and report(Progress(n_iter, history[-1], A.copy(), change))
        if change <= tol * size or (step * problem.bound).max() <= ROUNDING:
            stop_reason = "multipliers"
            break
        if stopped:
            stop_reason = "callback"
            break
    objective = problem.primal(A, growth, multiplier)
    return Projected(A, multiplier, objective, np.array(history), stop_reason)


def find_bounds(
    rule: str | ArrayLike, X: FloatArray, A0: FloatArray, rng: np.random.RandomState
) -> NDArray[np.float64]:
    """u and l by a rule of ``BOUNDS``, or as given."""
    if not isinstance(rule, str):
        given = np.asarray(rule, dtype=np.float64)
        if given.shape != (2,) or not 0 < given[0] <= given[1] < np.inf:
            raise ValueError(
                f"bounds={rule!r} must be squared distances (u, l) with 0 < u <= l, or a rule: "
                f"{', '.join(map(repr, BOUNDS))}"
            )
        return given
    n = len(X)
    if rule == "percentile":
        rows = X if n <= MOST_ROWS else X[rng.choice(n, MOST_ROWS, replace=False)]
        embedded = (rows - rows.mean(axis=0)) @ Metric().factor(A0).T
        squared = pdist(embedded, "sqeuclidean")
        u, l = np.percentile(squared, (5, 95))  # noqa: E741
    else:
        i, j = rng.randint(n, size=(2, min(100, n * (n - 1) // 2)))
        squared = _squared_lengths(X[i] - X[j], A0)
        width = (squared.max() - squared.min()) / 100
        u, l = squared.min() + 4.5 * width, squared.min() + 94.5 * width  # noqa: E741
    # A bound of 0 asks for the impossible: equal samples pull the percentile there.
    largest = squared.max() if squared.max() > 0 else 1.0
    return np.maximum([u, l], 1e-9 * largest)


def _squared_lengths(V: FloatArray, A: FloatArray) -> FloatArray:
    """Vᵀ A V row by row; the zero row gives exactly 0."""
    return np.asarray(np.einsum("pd,pd->p", V @ A, V))
