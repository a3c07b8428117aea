"""GMML: the metric as a point on the geodesic between two scatter matrices, in closed form."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cholesky, eigh, solve_triangular

from vicinal._typing import FloatArray, IndexArray, Seed
from vicinal.learners.fit_input import FitInput, in_units_of_data, store_fit
from vicinal.learners.initialization import NEARLY_SINGULAR, PRIORS, prior_matrix, smallest_ratio
from vicinal.learners.labeled_data import encode_labels, safe_unit
from vicinal.learners.parameters import (
    NOT_NEGATIVE,
    ArrayGiven,
    Number,
    OneOf,
    ParameterConstraints,
)
from vicinal.learners.weakly_supervised import PairLearner
from vicinal.supervision import Pairs, sample_pairs

PAIRS_AT_ONCE = 2**16


class GMML(PairLearner):
    r"""Geometric Mean Metric Learning: closed form, no iterations.

    With the scatter matrices of the pairs, x_ij = x_i − x_j,

    .. code-block:: text

        S = Σ_{similar} x_ij x_ijᵀ,      D = Σ_{dissimilar} x_ij x_ijᵀ,

    the metric M makes similar pairs near, and dissimilar ones near under its inverse:

    .. code-block:: text

        min_{M ≻ 0}  tr(M S) + tr(M⁻¹ D)      ⇔      M S M = D      ⇔      M = S⁻¹ # D,

    the midpoint of the geodesic from S⁻¹ to D among the positive definite matrices. Any other
    point of it, which weighs the two ends by 1 − t and t, is

    .. code-block:: text

        M_t = S⁻¹ #_t D = S^{−1/2} (S^{1/2} D S^{1/2})^t S^{−1/2}.

    Scaling X scales M_t; scaling a single feature changes it in earnest: standardize.

    Parameters
    ----------
    t : float in [0, 1], default=0.5
        Where on the geodesic: 0 is S⁻¹ (whiten the similar pairs), 1 is D. Worth tuning.
    prior : None, {"identity", "covariance"} or array (n_features, n_features), default=None
        A₀, which M is drawn to by ``ridge``; positive definite. "covariance" is the inverse
        covariance of X. None takes the identity, and only where S or D is nearly singular.
    ridge : float, default=1e-6
        ρ, the weight of the prior against the data: S + ρ s A₀⁻¹ and D + ρ r A₀ take the places
        of S and D, where s = tr S / tr A₀⁻¹ and r = tr D / tr A₀. That is the paper's
        regularizer ρ (tr(M A₀⁻¹) + tr(M⁻¹ A₀)) once S and D are brought to the size of the
        prior, so that neither the number of pairs nor the units of X matter.
    n_pairs : int, default=None
        Draw so many pairs from the labels, half of them similar; the paper takes 40 c (c − 1) for
        c classes. None takes all of them, which costs no more than one covariance matrix.
    random_state : int, RandomState or None, default=None
        For ``n_pairs``.

    Attributes
    ----------
    components_ : ndarray of shape (n_features, n_features)
        L with M_t = LᵀL.
    regularized_ : bool
        Whether the prior was added.
    converged_, stop_reason_
        True, "closed form".
    classes_ : ndarray
        The class labels; not after ``fit_pairs``.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Zadeh, Hosseini, Sra: Geometric Mean Metric Learning. ICML 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> import vicinal as vc
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), vc.GMML(t=0.3), KNeighborsClassifier())
    >>> model.fit(X, y).score(X, y) > 0.95
    True
    """

    _constraints: ClassVar[ParameterConstraints] = {
        "t": Number(0, 1),
        "prior": OneOf((None, *PRIORS), ArrayGiven()),
        "ridge": NOT_NEGATIVE,
        "n_pairs": OneOf((None,), Number(2, whole=True)),
    }

    def __init__(
        self,
        t: float = 0.5,
        *,
        prior: str | ArrayLike | None = None,
        ridge: float = 1e-6,
        n_pairs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.t = t
        self.prior = prior
        self.ridge = ridge
        self.n_pairs = n_pairs
        self.random_state = random_state

    def _learn_labeled(self, given: FitInput) -> None:
        if self.n_pairs is not None:
            super()._learn_labeled(given)
            return
        classes, codes = encode_labels(given.y)
        unit = safe_unit(given.X)
        S, D = class_scatters(given.X.astype(np.float64) / unit, codes)
        self._learn(given.adding(classes_=classes), S, D, unit)

    def _pairs_from_labels(self, codes: IndexArray, rng: np.random.RandomState) -> Pairs:
        assert self.n_pairs is not None
        return sample_pairs(codes, int(self.n_pairs), rng)

    def _learn_pairs(self, given: FitInput, pairs: Pairs) -> None:
        unit = safe_unit(given.X)
        X = given.X if unit == 1 else given.X.astype(np.float64) / unit
        similar, dissimilar = pairs.where(pairs.similar), pairs.where(~pairs.similar)
        self._learn(given, pair_scatter(X, similar), pair_scatter(X, dissimilar), unit)

    def _learn(self, given: FitInput, S: FloatArray, D: FloatArray, unit: float) -> None:
        """Learn from the scatter matrices of samples that were divided by ``unit``."""
        if self.prior is not None and self.ridge == 0:
            raise ValueError("a prior counts by its ridge; give ridge > 0, or prior=None")
        L, regularized = self._solve(given.X.astype(np.float64) / unit, S, D)
        with np.errstate(over="ignore"):
            L = L * unit ** (2 * self.t - 1)  # M_t grows with the units to the power 4t − 2
            reach = np.abs(L) @ np.abs(given.X.astype(np.float64)).max(axis=0)
        if not np.isfinite(reach).all():
            raise ValueError(
                f"The largest value of X is {np.abs(given.X).max():.3g}, and float64 cannot hold "
                "GMML's transform of it; divide X by a large number"
            )
        outcome = {
            "components_": in_units_of_data(L, 1.0, given.X.dtype),
            "regularized_": regularized,
            "converged_": True,
            "stop_reason_": "closed form",
        }
        store_fit(self, {**given.attributes, **outcome})

    def _solve(self, X: FloatArray, S: FloatArray, D: FloatArray) -> tuple[FloatArray, bool]:
        """L of M_t, and whether the prior was needed."""
        for kind, scatter in (("similar", S), ("dissimilar", D)):
            if not np.trace(scatter) > 0:
                raise ValueError(
                    f"GMML needs {kind} pairs of samples that differ; there is none. Classes of "
                    "a single sample give no similar pair; fit_pairs takes pairs of your own."
                )
        d = len(S)
        A0 = np.eye(d) if self.prior is None else prior_matrix(self.prior, X)
        inverse = np.linalg.inv(A0)
        # In units where S and D have the size of the prior's; undone by one factor at the end.
        log_s = np.log(np.trace(S)) - np.log(np.trace(inverse))
        log_r = np.log(np.trace(D)) - np.log(np.trace(A0))
        S = S / np.trace(S) * np.trace(inverse)
        D = D / np.trace(D) * np.trace(A0)
        singular = min(smallest_ratio(S), smallest_ratio(D)) < NEARLY_SINGULAR
        regularized = bool(self.ridge > 0 and (self.prior is not None or singular))
        if regularized:
            S, D = S + self.ridge * inverse, D + self.ridge * A0
        if smallest_ratio(S) < d * np.finfo(np.float64).eps:
            raise ValueError(
                f"the scatter of the similar pairs is singular, and ridge={self.ridge} does not "
                "help: there are fewer pairs than features, or features that depend on each "
                "other. Raise ridge, or reduce the features first."
            )
        L = geodesic_factor(S, D, self.t)
        return L * np.exp(0.5 * (self.t * log_r - (1 - self.t) * log_s)), regularized


def geodesic_factor(S: FloatArray, D: FloatArray, t: float) -> FloatArray:
    """L (d, d) with LᵀL = S⁻¹ #_t D, for S ≻ 0 and D ⪰ 0.

    Every G with G Gᵀ = S⁻¹ gives S⁻¹ #_t D = G (G⁻¹ D G⁻ᵀ)^t Gᵀ. With the Cholesky factor
    S = R Rᵀ, take G = R⁻ᵀ: S is never inverted.
    """
    R = cholesky(S, lower=True)
    eigenvalues, U = eigh(R.T @ D @ R)
    powers = np.maximum(eigenvalues, 0.0) ** (0.5 * t)
    return powers[:, None] * solve_triangular(R, U, trans="T", lower=True).T


def class_scatters(X: FloatArray, codes: IndexArray) -> tuple[FloatArray, FloatArray]:
    """S and D over all unordered pairs, in O(n d²).

    With the scatter W_k of class k about its mean μ_k: S = Σ_k n_k W_k, and
    D = Σ_k (n − n_k) W_k + n Σ_k n_k (μ_k − μ)(μ_k − μ)ᵀ, which subtracts nothing.
    """
    n, d = X.shape
    mean = X.mean(axis=0)
    S, D = np.zeros((d, d)), np.zeros((d, d))
    for k in range(codes.max() + 1):
        members = X[codes == k] - mean
        size, center = len(members), members.mean(axis=0)
        members -= center
        W = members.T @ members
        S += size * W
        D += (n - size) * W + n * size * np.outer(center, center)
    return S, D


def pair_scatter(X: FloatArray, pairs: Pairs) -> FloatArray:
    """Σ x_ij x_ijᵀ over the pairs, in float64."""
    total = np.zeros((X.shape[1], X.shape[1]))
    for start in range(0, len(pairs), PAIRS_AT_ONCE):
        block = slice(start, start + PAIRS_AT_ONCE)
        gaps = X[pairs.i[block]].astype(np.float64) - X[pairs.j[block]]  # (p, d)
        total += gaps.T @ gaps
    return total
