"""MMC: dissimilar pairs as far apart as possible while similar ones stay near."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from vicinal._typing import FloatArray, IndexArray, Seed
from vicinal.learners.descent import FitCallback, FitOptions, descend, store_solution
from vicinal.learners.fit_input import FitInput, in_units_of_data
from vicinal.learners.gmml import pair_scatter
from vicinal.learners.initialization import invertible
from vicinal.learners.labeled_data import safe_unit
from vicinal.learners.parameters import (
    CALLBACK,
    COUNT,
    NOT_NEGATIVE,
    OPTIONAL_COUNT,
    Number,
    OneOf,
    ParameterConstraints,
    check_n_components,
)
from vicinal.learners.weakly_supervised import PairLearner
from vicinal.supervision import Pairs, sample_pairs

MOST_PAIRS = 20_000


class MMC(PairLearner):
    r"""Mahalanobis Metric for Clustering, after Xing, Ng, Jordan and Russell.

    Maximizes the distances of dissimilar pairs while the squared distances of similar ones add up
    to one, x_ij = x_i − x_j:

    .. code-block:: text

        max_{M ⪰ 0}  Σ_{dissimilar} √(x_ijᵀ M x_ij)     subject to     Σ_{similar} x_ijᵀ M x_ij ≤ 1

    This is convex in M. It is solved over L, M = LᵀL, in coordinates in which the similar pairs
    are white (M = S^{−1/2} LᵀL S^{−1/2} with S = Σ_{similar} x_ij x_ijᵀ), where it has no
    constraint left:

    .. code-block:: text

        J(L) = ln ‖L‖ − ln Σ_{dissimilar} ‖L S^{−1/2} x_ij‖

    The maximum is often of low rank: all dissimilar pairs are then told apart in few directions.

    Parameters
    ----------
    n_components : int, default=None
        Rows of L. None allows as many as there are features, and has one minimum; fewer may end
        in another. With diagonal=True, the features of the largest weights are kept.
    diagonal : bool, default=False
        Learn a diagonal M: one weight per feature.
    ridge : float, default=1e-6
        Where S is nearly singular (fewer similar pairs than features), this times its mean
        eigenvalue is added to its diagonal: what no similar pair tells anything about would else be
        weighted without limit.
    n_pairs : int, default=None
        How many pairs to draw from labels, half of them similar; None is 20,000, or all where there
        are fewer.
    max_iter : int, default=500
        Iterations of L-BFGS.
    tol : float, default=1e-6
        Stop when the objective's mean relative decrease per iteration, over 5 of them, or the
        relative size of the gradient is below this.
    callback : callable, default=None
        Called after every iteration with ``n_iter``, ``objective``, ``step`` and ``components`` of
        the run; a true return value stops it.
    verbose : int, default=0
        1 logs every tenth iteration, 2 every one, on the logger "vicinal".
    random_state : int, RandomState or None, default=None
        For the pairs that are drawn from labels.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        L with M = LᵀL, such that the squared distances of the similar pairs add up to 1.
    objective_ : float
        J: minus the logarithm of the sum of the distances of the dissimilar pairs.
    history_ : ndarray
        J of the start and of every accepted iterate.
    n_iter_, converged_, stop_reason_
        How the run ended: "gradient", "decrease" or "step" (converged), "max_iter", "callback".
    regularized_ : bool
        Whether ``ridge`` was needed.
    classes_ : ndarray
        The class labels; not after ``fit_pairs``.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Xing, Ng, Jordan, Russell: Distance Metric Learning, with Application to Clustering with
    Side-Information. NIPS 2002.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> import vicinal as vc
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(vc.MMC(random_state=0), KNeighborsClassifier())
    >>> model.fit(X, y).score(X, y) > 0.95
    True
    """

    _constraints: ClassVar[ParameterConstraints] = {
        "n_components": OPTIONAL_COUNT,
        "ridge": NOT_NEGATIVE,
        "n_pairs": OneOf((None,), Number(2, whole=True)),
        "max_iter": COUNT,
        "tol": NOT_NEGATIVE,
        "callback": CALLBACK,
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        diagonal: bool = False,
        ridge: float = 1e-6,
        n_pairs: int | None = None,
        max_iter: int = 500,
        tol: float = 1e-6,
        callback: FitCallback | None = None,
        verbose: int = 0,
        random_state: Seed = None,
    ) -> None:
        self.n_components = n_components
        self.diagonal = diagonal
        self.ridge = ridge
        self.n_pairs = n_pairs
        self.max_iter = max_iter
        self.tol = tol
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state

    def _pairs_from_labels(self, codes: IndexArray, rng: np.random.RandomState) -> Pairs:
        return sample_pairs(codes, self.n_pairs or MOST_PAIRS, rng)

    def _learn_pairs(self, given: FitInput, pairs: Pairs) -> None:
        d = given.n_features
        check_n_components(self.n_components, d)
        unit = safe_unit(given.X)
        rows = given.X.astype(np.float64) / unit
        far = pairs.where(~pairs.similar)
        gaps = rows[far.i] - rows[far.j]  # (p, d)
        S = pair_scatter(rows, pairs.where(pairs.similar))
        if not (np.trace(S) > 0 and gaps.any()):
            kind = "dissimilar" if np.trace(S) > 0 else "similar"
            raise ValueError(f"MMC needs {kind} pairs of samples that differ; there is none")
        S, regularized = invertible(np.diag(np.diag(S)) if self.diagonal else S, float(self.ridge))
        values, vectors = (np.diag(S), np.eye(d)) if self.diagonal else np.linalg.eigh(S)
        if values.min() <= 0:
            raise ValueError(
                f"the scatter of the similar pairs is singular, and ridge={self.ridge} does not "
                "help: M is unlimited. Raise ridge, or reduce the features first."
            )
        white = vectors / np.sqrt(values)  # (d, d) Wᵀ S W = I
        problem = Separation(gaps @ white, self.diagonal)

        def to_components(L: FloatArray) -> FloatArray:
            normed = L / np.linalg.norm(L)
            factor = (np.diag(normed) if self.diagonal else normed) @ white.T
            if self.diagonal and self.n_components is not None:
                largest = np.argsort(-np.abs(np.diag(factor)), kind="stable")[: self.n_components]
                factor = factor[np.sort(largest)]
            return in_units_of_data(factor, unit, given.X.dtype)

        name, verbose = type(self).__name__, self.verbose
        options = FitOptions(name, "lbfgs", self.max_iter, self.tol, self.callback, verbose)
        start = problem.start(self.n_components or d)
        found = descend(options, start, lambda _: problem, to_components)
        store_solution(
            self,
            given,
            found,
            tol=self.tol,
            components_=to_components(found.params),
            regularized_=regularized,
        )


@dataclass(frozen=True)
class Separation:
    """J(L) = ln ‖L‖ − ln Σ_p ‖L u_p‖ for L (m, d), or for a diagonal of it (d,)."""

    U: FloatArray
    """(p, d) differences of dissimilar pairs, in coordinates in which similar ones are white."""
    diagonal: bool

    @property
    def n_rows(self) -> int:
        return len(self.U)

    def start(self, m: int) -> FloatArray:
        """The identity, or the m directions in which the pairs differ most."""
        d = self.U.shape[1]
        if self.diagonal:
            return np.ones(d)
        return np.eye(d) if m == d else np.linalg.eigh(self.U.T @ self.U)[1].T[::-1][:m].copy()

    def value_and_gradient(
        self, params: FloatArray, rows: NDArray[np.intp] | None = None
    ) -> tuple[float, FloatArray]:
        """J and its gradient; a pair at distance zero has none of its own."""
        Z = self.U * params if self.diagonal else self.U @ params.T
        distances = np.sqrt(np.einsum("pm,pm->p", Z, Z))
        total, length = float(distances.sum()), float(np.linalg.norm(params))
        shares = np.divide(1.0, distances, where=distances > 0, out=np.zeros_like(distances))
        shares /= total
        if self.diagonal:
            pulled = params * (shares @ self.U**2)
        else:
            pulled = (Z * shares[:, None]).T @ self.U
        return float(np.log(length) - np.log(total)), params / length**2 - pulled

    def project(self, params: FloatArray) -> FloatArray:
        """Every L is feasible."""
        return params
