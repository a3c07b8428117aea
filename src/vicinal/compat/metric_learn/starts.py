"""Starting points and priors as metric-learn names them, as arrays for vicinal's learners."""

from __future__ import annotations

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import ArrayLike
from sklearn.datasets import make_spd_matrix
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.utils import check_array, check_random_state

from vicinal._typing import FloatArray, LabelArray, Seed
from vicinal.compat.metric_learn.exceptions import NonPSDError
from vicinal.exceptions import warn_user


def check_rank(n_components: int | None, n_features: int) -> int:
    """The number of rows of L."""
    if n_components is None:
        return n_features
    if not 0 < n_components <= n_features:
        raise ValueError(f"Invalid n_components, must be in [1, {n_features}]")
    return int(n_components)


def starting_components(
    init: str | ArrayLike, m: int, X: FloatArray, y: LabelArray | None, seed: Seed
) -> FloatArray:
    """L (m, d) to start from; without labels y, "lda" is not possible."""
    d = X.shape[1]
    if isinstance(init, np.ndarray):
        return _given_components(init, m, d)
    names = ["auto", "pca", "identity", "random", *([] if y is None else ["lda"])]
    if not isinstance(init, str) or init not in names:
        raise ValueError(
            f"`init` must be {', '.join(map(repr, names))} or a numpy array of shape "
            "(n_components, n_features)."
        )
    if init == "auto":
        n_classes = 0 if y is None else len(np.unique(y))
        init = "pca" if m < min(d, len(X)) else "identity"
        init = "lda" if m <= min(d, n_classes - 1) else init
    if init == "identity":
        return np.eye(m, d)
    rng = check_random_state(seed)
    if init == "random":
        return np.asarray(rng.randn(m, d))
    if init == "pca":
        return np.asarray(PCA(n_components=m, random_state=rng).fit(X).components_)
    scalings = LinearDiscriminantAnalysis(n_components=m).fit(X, y).scalings_
    L = np.zeros((m, d))  # with rows of zeros where there are not as many directions
    L[: min(m, scalings.shape[1])] = scalings.T[:m]
    return L


def _given_components(init: ArrayLike, m: int, d: int) -> FloatArray:
    L: FloatArray = check_array(init, copy=True)
    rows, columns = L.shape
    if columns != d:
        raise ValueError(
            f"The input dimensionality ({columns}) of the given linear transformation `init` must "
            f"match the dimensionality of the given inputs `X` ({d})."
        )
    if rows > columns:
        raise ValueError(
            f"The output dimensionality ({rows}) of the given linear transformation `init` cannot "
            f"be greater than its input dimensionality ({columns})."
        )
    if rows != m:
        raise ValueError(
            f"The preferred dimensionality of the projected space `n_components` ({m}) does not "
            f"match the output dimensionality of the given linear transformation `init` ({rows})!"
        )
    return L


def starting_metric(
    given: str | ArrayLike, X: FloatArray, seed: Seed, name: str, *, definite: bool
) -> FloatArray:
    """M (d, d) to start from, or the prior, of samples X (n, d).

    Parameters
    ----------
    given : {"identity", "covariance", "random"} or array of shape (d, d)
        "covariance" is the inverse covariance of X, in which equal samples count once.
    seed : for "random"
    name : of the parameter
    definite : whether a singular matrix is an error
    """
    d = X.shape[1]
    if isinstance(given, np.ndarray):
        M: FloatArray = check_array(given, copy=True)
        if M.shape != (d, d):
            raise ValueError(
                f"The input dimensionality {M.shape} of the given mahalanobis matrix `{name}` must "
                f"match the dimensionality of the given inputs ({d})."
            )
        if not np.allclose(M, M.T):
            raise ValueError(f"`{name}` is not symmetric.")
        if not is_definite(M) and definite:
            raise LinAlgError(
                f"You should provide a strictly positive definite matrix as `{name}`. This one is "
                f"not definite. Try another {name}, or an algorithm that does not require the "
                f"{name} to be strictly positive definite."
            )
        return M
    if given == "identity":
        return np.eye(d)
    if given == "random":
        return np.asarray(make_spd_matrix(d, random_state=check_random_state(seed)))
    if given == "covariance":
        return _inverse_covariance(X, name, definite=definite)
    raise ValueError(
        f"`{name}` must be 'identity', 'covariance', 'random' or a numpy array of shape "
        "(n_features, n_features)."
    )


def _inverse_covariance(X: FloatArray, name: str, *, definite: bool) -> FloatArray:
    covariance = np.atleast_2d(np.cov(np.unique(X, axis=0), rowvar=False))
    if not is_definite(covariance):
        if definite:
            raise LinAlgError(
                "Unable to get a true inverse of the covariance matrix since it is not definite. "
                f"Try another `{name}`, or an algorithm that does not require the `{name}` to be "
                "strictly positive definite."
            )
        warn_user(
            "The covariance matrix is not invertible: using the pseudo-inverse instead."
            "To make the covariance matrix invertible you can remove any linearly dependent "
            "features and/or reduce the dimensionality of your input, for instance using "
            "`sklearn.decomposition.PCA` as a preprocessing step.",
            UserWarning,
        )
    return np.asarray(np.linalg.pinv(covariance, hermitian=True))


def is_definite(M: FloatArray) -> bool:
    """Whether a symmetric matrix is positive definite; NonPSDError if it is indefinite."""
    eigenvalues = np.linalg.eigvalsh(M)
    rounding = np.abs(eigenvalues).max() * len(eigenvalues) * np.finfo(eigenvalues.dtype).eps
    if np.any(eigenvalues < -rounding):
        raise NonPSDError
    return bool(np.all(np.abs(eigenvalues) >= rounding))
