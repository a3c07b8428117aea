"""LFDA: Fisher's discriminant analysis that keeps only near samples of a class together."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.linalg import eigh
from scipy.spatial.distance import cdist

from vicinal._typing import FloatArray, IndexArray
from vicinal.learners.base import MetricLearner
from vicinal.learners.fit_input import FitInput, in_units_of_data, store_fit
from vicinal.learners.initialization import invertible
from vicinal.learners.labeled_data import encode_labels, safe_unit
from vicinal.learners.parameters import (
    COUNT,
    NOT_NEGATIVE,
    OPTIONAL_COUNT,
    OneOf,
    ParameterConstraints,
    check_n_components,
)

EMBEDDINGS = ("weighted", "orthonormalized", "plain")
MAX_ELEMENTS = 2**22
"""Affinities that are held at once."""


class LFDA(MetricLearner):
    r"""Local Fisher Discriminant Analysis: closed form, for classes of several clusters.

    Scatter matrices S = ½ Σ_ij W_ij (x_i − x_j)(x_i − x_j)ᵀ, with n_k samples of class k,

    .. code-block:: text

                     i and j of class k      of different classes
        within  W =     A_ij / n_k                   0
        between W =  A_ij (1/n − 1/n_k)             1/n

        A_ij = exp(−‖x_i − x_j‖² / (σ_i σ_j)),    σ_i the distance to the k-th nearest of the class

    so that samples of a class which are far apart need not come together. Rows of L are the
    generalized eigenvectors φ of S_between φ = λ S_within φ with the largest λ.

    Parameters
    ----------
    n_components : int, default=None
        Rows of L; None keeps all features.
    n_neighbors : int, default=7
        The k of σ_i; for smaller classes their size − 1.
    embedding : {"weighted", "orthonormalized", "plain"}, default="weighted"
        "weighted": rows √λ φ, so that discriminating directions count more. "orthonormalized":
        rows of the same span with LLᵀ = I. "plain": φ itself, with φᵀ S_within φ = 1.
    ridge : float, default=1e-6
        Where S_within is nearly singular (fewer samples than features, features that depend on
        each other), this times its mean eigenvalue is added to its diagonal.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        L.
    eigenvalues_ : ndarray of shape (n_components,)
        λ, falling. A negative one belongs to a direction that separates nothing; "weighted" gives
        it no weight.
    regularized_ : bool
        Whether ``ridge`` was needed.
    converged_, stop_reason_
        True and "closed form".
    classes_ : ndarray
        The class labels.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Sugiyama: Dimensionality Reduction of Multimodal Labeled Data by Local Fisher Discriminant
    Analysis. JMLR 8, 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> import vicinal as vc
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(vc.LFDA(n_components=2), KNeighborsClassifier())
    >>> model.fit(X, y).score(X, y) > 0.95
    True
    """

    _constraints: ClassVar[ParameterConstraints] = {
        "n_components": OPTIONAL_COUNT,
        "n_neighbors": COUNT,
        "embedding": OneOf(EMBEDDINGS),
        "ridge": NOT_NEGATIVE,
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_neighbors: int = 7,
        embedding: str = "weighted",
        ridge: float = 1e-6,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.embedding = embedding
        self.ridge = ridge

    def _learn_labeled(self, given: FitInput) -> None:
        classes, codes = encode_labels(given.y)
        check_n_components(self.n_components, given.n_features)
        unit = safe_unit(given.X)
        rows = given.X.astype(np.float64) / unit
        within, between = local_scatters(rows, codes, int(self.n_neighbors))
        if not np.trace(within) > 0:
            raise ValueError(
                "LFDA needs two samples of a class that are near each other and differ; there are "
                "none. Check the labels, or leave equal rows out."
            )
        within, regularized = invertible(within, float(self.ridge))
        L, eigenvalues = self._solve(within, between)
        scale = 1.0 if self.embedding == "orthonormalized" else unit
        outcome = {
            "classes_": classes,
            "components_": in_units_of_data(L, scale, given.X.dtype),
            "eigenvalues_": eigenvalues,
            "regularized_": regularized,
            "converged_": True,
            "stop_reason_": "closed form",
        }
        store_fit(self, {**given.attributes, **outcome})

    def _solve(self, within: FloatArray, between: FloatArray) -> tuple[FloatArray, FloatArray]:
        """L (m, d) and the eigenvalues (m,)."""
        try:
            values, vectors = eigh(between, within)
        except np.linalg.LinAlgError as error:
            raise ValueError(
                f"the scatter within classes is singular, and ridge={self.ridge} does not help: "
                "raise ridge, or reduce the features first"
            ) from error
        m = self.n_components or len(within)
        values, vectors = values[::-1][:m], vectors.T[::-1][:m]
        if self.embedding == "weighted":
            return np.sqrt(np.maximum(values, 0.0))[:, None] * vectors, values
        if self.embedding == "orthonormalized":
            return np.linalg.qr(vectors.T)[0].T, values
        return vectors, values


def local_scatters(
    X: FloatArray, codes: IndexArray, n_neighbors: int
) -> tuple[FloatArray, FloatArray]:
    """S_within and S_between (d, d); no array of all pairs is ever made."""
    n, d = X.shape
    mean = X.mean(axis=0)
    within, between = np.zeros((d, d)), np.zeros((d, d))
    for k in range(int(codes.max()) + 1):
        members = X[codes == k] - mean
        size, total = len(members), members.sum(axis=0)
        local = _affine_scatter(members, min(n_neighbors, size - 1))
        within += local / size
        between += local * (1.0 / n - 1.0 / size)
        # Pairs of a class with all others: (1 − n_k/n) Σ x xᵀ + s sᵀ/n; the sums s add up to 0.
        between += (1.0 - size / n) * members.T @ members + np.outer(total, total) / n
    return within, between


def _affine_scatter(X: FloatArray, n_neighbors: int) -> FloatArray:
    """½ Σ_ij A_ij (x_i − x_j)(x_i − x_j)ᵀ over the samples of one class."""
    n = len(X)
    blocks = np.array_split(np.arange(n), 1 + n * n // MAX_ELEMENTS)
    sigmas = np.empty(n)
    for rows in blocks:
        D = cdist(X[rows], X)
        sigmas[rows] = np.partition(D, n_neighbors, axis=1)[:, n_neighbors]  # itself is first
    G = np.zeros((X.shape[1], X.shape[1]))
    for rows in blocks:
        scales = sigmas[rows, None] * sigmas
        exponents = cdist(X[rows], X, "sqeuclidean") / np.where(scales > 0, scales, 1.0)
        A = np.where(scales > 0, np.exp(-exponents), 0.0)
        G += X[rows].T @ (A.sum(axis=1)[:, None] * X[rows] - A @ X)
    return 0.5 * (G + G.T)
