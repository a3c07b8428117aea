"""Covariance: Mahalanobis' own distance, the inverse covariance of the data."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Tags

from vicinal._typing import FloatArray
from vicinal.learners.base import MetricLearner
from vicinal.learners.fit_input import check_unlabeled, in_units_of_data, store_fit
from vicinal.learners.labeled_data import safe_unit
from vicinal.learners.parameters import (
    OPTIONAL_COUNT,
    ParameterConstraints,
    check_n_components,
    check_parameters,
)


class Covariance(MetricLearner):
    """Mahalanobis' distance: M is the inverse covariance matrix of X. Labels are not used.

    .. code-block:: text

        M = Σ⁺,    Σ = (1/(n − 1)) Σ_i (x_i − μ)(x_i − μ)ᵀ

    The baseline that standardizes correlated features too. Where Σ is singular, Σ⁺ is its
    pseudo-inverse: directions in which X does not vary count nothing.

    Parameters
    ----------
    n_components : int, default=None
        Rows of L: the directions of the largest variance. None keeps all.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        L with M = LᵀL: principal directions over their standard deviations, zero where there is
        none.
    converged_, stop_reason_
        True and "closed form".
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Mahalanobis: On the Generalized Distance in Statistics. 1936.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> import vicinal as vc
    >>> X, _ = load_iris(return_X_y=True)
    >>> Z = vc.Covariance().fit_transform(X)
    >>> bool(np.allclose(np.cov(Z.T), np.eye(4)))
    True
    """

    _constraints: ClassVar[ParameterConstraints] = {"n_components": OPTIONAL_COUNT}

    def __init__(self, n_components: int | None = None) -> None:
        self.n_components = n_components

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Compute the metric.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        given = check_unlabeled(self, X)
        check_parameters(self)
        check_n_components(self.n_components, given.n_features)
        unit = safe_unit(given.X)
        L = whitening(given.X.astype(np.float64) / unit, int(self.n_components or given.n_features))
        outcome = {
            "components_": in_units_of_data(L, unit, given.X.dtype),
            "converged_": True,
            "stop_reason_": "closed form",
        }
        store_fit(self, {**given.attributes, **outcome})
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        return tags


def whitening(X: FloatArray, m: int) -> FloatArray:
    """(m, d) principal directions over their standard deviations; zero where X does not vary."""
    gaps = X - X.mean(axis=0)
    variances, vectors = np.linalg.eigh(gaps.T @ gaps / (len(X) - 1))
    variances, vectors = variances[::-1][:m], vectors.T[::-1][:m]
    # As in NumPy's matrix_rank: smaller ones are what rounding leaves of zero.
    varies = variances > max(variances[0], 0.0) * X.shape[1] * np.finfo(np.float64).eps
    scales = np.zeros(m)
    scales[varies] = 1.0 / np.sqrt(variances[varies])
    return scales[:, None] * vectors
