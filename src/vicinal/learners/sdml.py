"""SDML: a sparse metric from pairs, by the graphical lasso."""

from __future__ import annotations

import warnings
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.covariance import graphical_lasso

from vicinal._typing import FloatArray, IndexArray, Seed
from vicinal.exceptions import ConvergenceWarning, warn_user
from vicinal.learners.fit_input import FitInput, in_units_of_data, store_fit
from vicinal.learners.gmml import class_scatters, pair_scatter
from vicinal.learners.initialization import PRIORS, prior_matrix
from vicinal.learners.labeled_data import encode_labels, refuse_extreme
from vicinal.learners.parameters import (
    COUNT,
    NOT_NEGATIVE,
    ArrayGiven,
    Number,
    OneOf,
    ParameterConstraints,
)
from vicinal.learners.weakly_supervised import PairLearner
from vicinal.objective.parametrization import Metric
from vicinal.supervision import Pairs, sample_pairs

INEXACT = 1e-2
"""How far M⁻¹ may be beyond the bounds of the dual problem, relative to K; with more there is
no solution."""


class SDML(PairLearner):
    r"""Sparse Distance Metric Learning: most pairs of features do not interact in M.

    Stays near to a prior metric A₀, makes similar pairs near and dissimilar ones far, x_ij =
    x_i − x_j, and sets off-diagonal entries of M to zero:

    .. code-block:: text

        min_{M ≻ 0}  tr(M K) − ln det M + λ Σ_{k≠l} |M_kl|

        K = A₀⁻¹ + η P,      P = Σ_{similar} x_ij x_ijᵀ − Σ_{dissimilar} x_ij x_ijᵀ

    which scikit-learn's graphical lasso solves. For too large an η, K is not positive definite and
    the problem may have no solution; so η and λ are given relative to the largest that make sense.

    Parameters
    ----------
    balance : float, default=0.5
        What the pairs count against the prior: η = balance / ‖A₀^{1/2} P A₀^{1/2}‖. Below 1 there
        is always a solution; beyond, it may be an error. Neither the number of pairs nor the
        units of X matter with prior="covariance".
    sparsity : float, default=0.1
        λ = sparsity · max ``|K_kl|`` over k ≠ l. At 0 nothing is set to zero, from 1 on M is
        diagonal.
    prior : {"identity", "covariance"} or array (n_features, n_features), default="identity"
        A₀, positive definite. "covariance" is the inverse covariance of X.
    n_pairs : int, default=None
        Draw so many pairs from the labels, half of them similar. None takes all of them, at half of
        the weight for either kind.
    max_iter : int, default=100
        Iterations of the graphical lasso.
    tol : float, default=1e-4
        Stop when the duality gap is below this, in units in which the mean of K_kk is 1.
    random_state : int, RandomState or None, default=None
        For ``n_pairs``.

    Attributes
    ----------
    components_ : ndarray of shape (n_features, n_features)
        L with M = LᵀL. M itself, with its zeros, is ``get_mahalanobis_matrix()``, where they are
        zeros up to rounding.
    sparse_matrix_ : ndarray of shape (n_features, n_features)
        M with its exact zeros.
    objective_ : float
        The minimized sum.
    n_iter_, converged_, stop_reason_
        How the run ended: "dual gap" (converged) or "max_iter".
    classes_ : ndarray
        The class labels; not after ``fit_pairs``.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Qi, Tang, Zha, Chua, Zhang: An Efficient Sparse Metric Learning in High-Dimensional Space via
    L1-Penalized Log-Determinant Regularization. ICML 2009.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> import vicinal as vc
    >>> X, y = load_wine(return_X_y=True)
    >>> sdml = vc.SDML(sparsity=0.5).fit(scale(X), y)
    >>> int((sdml.sparse_matrix_ == 0).sum()) > 50
    True
    """

    _constraints: ClassVar[ParameterConstraints] = {
        "balance": NOT_NEGATIVE,
        "sparsity": NOT_NEGATIVE,
        "prior": OneOf(PRIORS, ArrayGiven()),
        "n_pairs": OneOf((None,), Number(2, whole=True)),
        "max_iter": COUNT,
        "tol": NOT_NEGATIVE,
    }

    def __init__(
        self,
        balance: float = 0.5,
        *,
        sparsity: float = 0.1,
        prior: str | ArrayLike = "identity",
        n_pairs: int | None = None,
        max_iter: int = 100,
        tol: float = 1e-4,
        random_state: Seed = None,
    ) -> None:
        self.balance = balance
        self.sparsity = sparsity
        self.prior = prior
        self.n_pairs = n_pairs
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _learn_labeled(self, given: FitInput) -> None:
        if self.n_pairs is not None:
            super()._learn_labeled(given)
            return
        classes, codes = encode_labels(given.y)
        refuse_extreme(given.X, "SDML")
        S, D = class_scatters(given.X.astype(np.float64), codes)
        sizes = np.bincount(codes)
        similar = int((sizes * (sizes - 1) // 2).sum())
        dissimilar = len(codes) * (len(codes) - 1) // 2 - similar
        self._learn(given.adding(classes_=classes), S / max(similar, 1) - D / dissimilar)

    def _pairs_from_labels(self, codes: IndexArray, rng: np.random.RandomState) -> Pairs:
        assert self.n_pairs is not None
        return sample_pairs(codes, int(self.n_pairs), rng)

    def _learn_pairs(self, given: FitInput, pairs: Pairs) -> None:
        refuse_extreme(given.X, "SDML")
        similar, dissimilar = pairs.where(pairs.similar), pairs.where(~pairs.similar)
        self._learn(given, pair_scatter(given.X, similar) - pair_scatter(given.X, dissimilar))

    def _learn(self, given: FitInput, P: FloatArray) -> None:
        """Learn from the scatter of the similar pairs less that of the dissimilar ones."""
        A0 = prior_matrix(self.prior, given.X.astype(np.float64))
        K = np.linalg.inv(A0) + self._eta(P, A0) * P
        penalty = float(self.sparsity) * largest_off_diagonal(K)
        M, n_iter, converged = sparse_inverse(K, penalty, int(self.max_iter), float(self.tol))
        off_diagonal = np.abs(M).sum() - np.abs(np.diag(M)).sum()
        outcome = {
            "components_": in_units_of_data(Metric().factor(M), 1.0, given.X.dtype),
            "sparse_matrix_": in_units_of_data(M, 1.0, given.X.dtype),
            "objective_": float((M * K).sum() - np.linalg.slogdet(M)[1] + penalty * off_diagonal),
            "n_iter_": n_iter,
            "converged_": converged,
            "stop_reason_": "dual gap" if converged else "max_iter",
        }
        store_fit(self, {**given.attributes, **outcome})
        if not converged:
            warn_user(
                f"SDML stopped after max_iter={self.max_iter} iterations of the graphical lasso "
                f"before it converged to tol={self.tol}; raise either, or sparsity.",
                ConvergenceWarning,
            )

    def _eta(self, P: FloatArray, A0: FloatArray) -> float:
        """η for ``balance``."""
        return float(self.balance) / (relative_size(P, A0) or 1.0)


def relative_size(P: FloatArray, A0: FloatArray) -> float:
    """‖A₀^{1/2} P A₀^{1/2}‖, the largest absolute eigenvalue: η below its inverse is safe."""
    root = Metric().factor(A0)
    return float(np.abs(np.linalg.eigvalsh(root @ P @ root.T)).max())


def largest_off_diagonal(K: FloatArray) -> float:
    """The largest absolute entry off the diagonal."""
    return float(np.abs(K - np.diag(np.diag(K))).max())


def sparse_inverse(
    K: FloatArray, penalty: float, max_iter: int, tol: float
) -> tuple[FloatArray, int, bool]:
    """M ≻ 0 that minimizes tr(M K) − ln det M + penalty · Σ_{k≠l} |M_kl|, with its iterations.

    M solves the problem if and only if M⁻¹ has the diagonal of K and differs from K by at most the
    penalty elsewhere. For K ≻ 0 there is a solution; for others, what does not solve it is refused
    with a ValueError.
    """
    diagonal, smallest = np.diag(K), float(np.linalg.eigvalsh(K).min())
    if diagonal.min() <= 0 or (penalty == 0 and smallest <= 0):
        raise ValueError(_no_solution(smallest))
    if penalty == 0:
        inverse = np.linalg.inv(K)
        return 0.5 * (inverse + inverse.T), 0, True
    if penalty >= largest_off_diagonal(K):
        return np.diag(1.0 / diagonal), 0, True
    size = float(diagonal.mean())
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            _, M, costs, n_iter = graphical_lasso(
                K / size,
                penalty / size,
                max_iter=max_iter,
                tol=tol,
                enet_tol=min(tol, 1e-4),
                return_costs=True,
                return_n_iter=True,
            )
        M = 0.5 * (M + M.T) / size
        excess = np.abs(np.linalg.inv(M) - K) - penalty * (1.0 - np.eye(len(K)))
        solved = smallest > 0 or excess.max() < INEXACT * size
        solved = solved and bool(np.linalg.eigvalsh(M).min() > 0)
    except (ArithmeticError, np.linalg.LinAlgError):
        solved = False
    if not solved:
        raise ValueError(_no_solution(smallest))
    return M, int(n_iter), bool(abs(costs[-1][1]) < tol)


def _no_solution(smallest: float) -> str:
    return (
        "The graphical lasso of SDML has no solution, or none that it finds: the smallest "
        f"eigenvalue of K, the prior's inverse plus the pairs, is {smallest:.3g} and should be "
        "positive. Lower balance (below 1 there is always a solution), or raise sparsity."
    )
