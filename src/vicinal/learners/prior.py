"""The metric that a learner stays near to: its prior A₀."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from vicinal._typing import FloatArray
from vicinal.learners.parameters import Array, Choice

PRIORS = ("identity", "covariance")

NEARLY_SINGULAR = 1e-9
"""Ratio of the extreme eigenvalues below which a matrix is not inverted as it is."""


def prior_matrix(prior: Any, X: FloatArray) -> FloatArray:
    """A₀ (d, d), positive definite, as a user names it.

    Parameters
    ----------
    prior : {"identity", "covariance"} or array of shape (d, d)
        "covariance" is the inverse covariance of X, whose distance is Mahalanobis' own.
    X : (n, d) in float64
    """
    Choice(PRIORS, Array()).check("prior", prior)
    d = X.shape[1]
    if isinstance(prior, str):
        return np.eye(d) if prior == "identity" else _inverse_covariance(X)
    A0 = check_array(prior, dtype=np.float64, input_name="prior")
    if A0.shape != (d, d):
        raise ValueError(f"prior must have shape ({d}, {d}), got {A0.shape}")
    if not np.allclose(A0, A0.T, rtol=1e-7, atol=1e-10 * np.abs(A0).max()):
        raise ValueError("prior must be symmetric")
    A0 = 0.5 * (A0 + A0.T)
    if smallest_ratio(A0) <= 0:
        raise ValueError("prior must be positive definite: all its eigenvalues must be positive")
    return A0


def smallest_ratio(S: FloatArray) -> float:
    """The smallest eigenvalue of a symmetric matrix, relative to the largest absolute one."""
    eigenvalues = np.linalg.eigvalsh(S)
    largest = float(np.abs(eigenvalues).max())
    return float(eigenvalues[0]) / largest if largest > 0 else 0.0


def _inverse_covariance(X: FloatArray) -> FloatArray:
    gaps = X - X.mean(axis=0)
    covariance = gaps.T @ gaps / len(X)
    d = len(covariance)
    size = np.trace(covariance) / d
    if not size > 0:
        raise ValueError("prior='covariance' needs samples that differ; all rows of X are equal")
    covariance /= size
    if smallest_ratio(covariance) < NEARLY_SINGULAR:
        covariance += 1e-6 * np.eye(d)
    inverse = np.linalg.inv(covariance)
    return 0.5 * (inverse + inverse.T) / size
