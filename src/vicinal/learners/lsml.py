"""LSML: the metric nearest to a prior under which given pairs are nearer than others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vicinal._typing import FloatArray, IndexArray, Seed
from vicinal.learners.descent import FitCallback, FitOptions, descend, store_solution
from vicinal.learners.fit_input import FitInput, in_units_of_data
from vicinal.learners.initialization import PRIORS, prior_matrix
from vicinal.learners.labeled_data import refuse_extreme
from vicinal.learners.parameters import (
    CALLBACK,
    COUNT,
    NOT_NEGATIVE,
    OPTIONAL_COUNT,
    ArrayGiven,
    OneOf,
    ParameterConstraints,
)
from vicinal.learners.weakly_supervised import QuadrupletLearner
from vicinal.objective.parametrization import Metric


class LSML(QuadrupletLearner):
    r"""Least Squared-residual Metric Learning, from quadruplets.

    A quadruplet (a, b, c, d) says that a and b are nearer to each other than c and d. Of distances
    δ_ab = √((x_a − x_b)ᵀ M (x_a − x_b)), minimized is

    .. code-block:: text

        J = Σ_q w_q [δ_ab − δ_cd]₊²  +  tr(M A₀⁻¹) − ln det(M A₀⁻¹) − n_features,      Σ_q w_q = 1,

    the squared violations and the LogDet divergence from a prior metric A₀. J is convex in M; it is
    minimized over L, M = LᵀL, in which every stationary point is the minimum.

    Parameters
    ----------
    prior : {"identity", "covariance"} or array (n_features, n_features), default="identity"
        A₀, positive definite. "covariance" is the inverse covariance of X.
    n_quadruplets : int, default=None
        How many quadruplets to draw from labels: two samples of one class, two of different ones.
        None is 20 c² for c classes.
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
        For the quadruplets that are drawn from labels.

    Attributes
    ----------
    components_ : ndarray of shape (n_features, n_features)
        L with M = LᵀL; M has full rank.
    objective_ : float
        J at ``components_``.
    history_ : ndarray
        J of the start M = A₀ and of every accepted iterate.
    n_iter_, converged_, stop_reason_
        How the run ended: "gradient", "decrease" or "step" (converged), "max_iter", "callback".
    classes_ : ndarray
        The class labels; not after ``fit_quadruplets``.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    The two terms are weighed by the units of X: violations grow with them, the divergence does
    not. Standardize.

    References
    ----------
    Liu, Guo, Jin, Zhou, Wang: Metric Learning from Relative Comparisons by Minimizing Squared
    Residual. ICDM 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> import vicinal as vc
    >>> from vicinal.supervision import quadruplets_from_labels
    >>> X, y = load_wine(return_X_y=True)
    >>> X = scale(X)
    >>> quadruplets = quadruplets_from_labels(y, 400, random_state=0)
    >>> lsml = vc.LSML().fit_quadruplets(X, quadruplets[:200])
    >>> lsml.quadruplet_accuracy(X[quadruplets[200:]]) > 0.8
    True
    """

    _constraints: ClassVar[ParameterConstraints] = {
        "prior": OneOf(PRIORS, ArrayGiven()),
        "n_quadruplets": OPTIONAL_COUNT,
        "max_iter": COUNT,
        "tol": NOT_NEGATIVE,
        "callback": CALLBACK,
    }

    def __init__(
        self,
        prior: str | ArrayLike = "identity",
        *,
        n_quadruplets: int | None = None,
        max_iter: int = 500,
        tol: float = 1e-6,
        callback: FitCallback | None = None,
        verbose: int = 0,
        random_state: Seed = None,
    ) -> None:
        self.prior = prior
        self.n_quadruplets = n_quadruplets
        self.max_iter = max_iter
        self.tol = tol
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state

    def _learn_quadruplets(
        self, given: FitInput, quadruplets: IndexArray, weights: FloatArray | None
    ) -> None:
        rows = given.X.astype(np.float64)
        refuse_extreme(rows, "LSML")
        root = Metric().factor(prior_matrix(self.prior, rows))  # (d, d) rootᵀ root = A₀
        a, b, c, d = quadruplets.T
        shares = np.ones(len(a)) if weights is None else weights
        problem = Residuals(
            near=(rows[a] - rows[b]) @ root.T,
            far=(rows[c] - rows[d]) @ root.T,
            weights=shares / shares.sum(),
        )

        def to_components(L: FloatArray) -> FloatArray:
            return in_units_of_data(L @ root, 1.0, given.X.dtype)

        name, verbose = type(self).__name__, self.verbose
        options = FitOptions(name, "lbfgs", self.max_iter, self.tol, self.callback, verbose)
        found = descend(options, np.eye(len(root)), lambda _: problem, to_components)
        # Where the prior satisfies all quadruplets, to see that is the one iteration.
        found = replace(found, n_iter=max(found.n_iter, 1))
        components = to_components(found.params)
        store_solution(self, given, found, tol=self.tol, components_=components)


@dataclass(frozen=True)
class Residuals:
    """J in coordinates in which the prior is the identity: a function of L (d, d)."""

    near: FloatArray
    """(q, d) x_a − x_b."""
    far: FloatArray
    """(q, d) x_c − x_d."""
    weights: FloatArray

    @property
    def n_rows(self) -> int:
        return len(self.near)

    def value_and_gradient(
        self, params: FloatArray, rows: NDArray[np.intp] | None = None
    ) -> tuple[float, FloatArray]:
        """J and its gradient; only violated quadruplets contribute to the sum."""
        L = params
        A, C = self.near @ L.T, self.far @ L.T
        near, far = (np.sqrt(np.einsum("qm,qm->q", Z, Z)) for Z in (A, C))
        violated = np.flatnonzero(near > far)
        near, far, w = near[violated], far[violated], self.weights[violated]
        # Of [δ_ab − δ_cd]²: (1 − δ_cd/δ_ab) at x_a − x_b, (1 − δ_ab/δ_cd) at x_c − x_d, if that
        # is not zero.
        pull = w * (1.0 - far / near)
        push = w * (1.0 - np.divide(near, far, where=far > 0, out=np.ones_like(far)))
        LG = (A[violated].T * pull) @ self.near[violated]
        LG += (C[violated].T * push) @ self.far[violated]
        sign, log_det = np.linalg.slogdet(L)
        if sign == 0:
            return np.inf, np.zeros_like(L)
        divergence = float((L * L).sum() - 2.0 * log_det - len(L))
        value = float(w @ (near - far) ** 2) + divergence
        return value, 2.0 * (LG + L - np.linalg.inv(L).T)

    def project(self, params: FloatArray) -> FloatArray:
        """Every L is feasible; a singular one has an infinite divergence."""
        return params
