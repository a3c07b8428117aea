"""RCA: whiten what varies within chunks of samples that belong together."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.linalg import eigh

from vicinal._typing import FloatArray, IndexArray
from vicinal.learners.fit_input import FitInput, in_units_of_data, store_fit
from vicinal.learners.initialization import invertible
from vicinal.learners.labeled_data import safe_unit
from vicinal.learners.parameters import (
    NOT_NEGATIVE,
    OPTIONAL_COUNT,
    ParameterConstraints,
    check_n_components,
)
from vicinal.learners.weakly_supervised import ChunkLearner


class RCA(ChunkLearner):
    r"""Relevant Components Analysis: closed form, from chunks of samples that belong together.

    With the covariance C of the samples about the mean m of their own chunk,

    .. code-block:: text

        C = (1/N) Σ_chunks Σ_{x in chunk} (x − m)(x − m)ᵀ,      M = C⁻¹,

    what varies within chunks, and is hence irrelevant, counts little. M is the maximum likelihood
    estimate for chunks of one normal distribution each. With fewer components than features, L
    spans the directions in which all samples together vary most, relative to C.

    Parameters
    ----------
    n_components : int, default=None
        Rows of L; None keeps all features.
    ridge : float, default=1e-6
        Where C is nearly singular (fewer samples than features, features that depend on each
        other), this times its mean eigenvalue is added to its diagonal.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        L with L C Lᵀ = I, by falling variance of the samples along its rows.
    regularized_ : bool
        Whether ``ridge`` was needed.
    converged_, stop_reason_
        True and "closed form".
    classes_ : ndarray
        The class labels; not after ``fit_chunks``.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    With labels, ``fit(X, y)``, every class is a chunk. Random chunks, as for experiments on how few
    of them suffice, come from :func:`vicinal.supervision.chunks_from_labels`.

    References
    ----------
    Shental, Hertz, Weinshall, Pavel: Adjustment Learning and Relevant Component Analysis. ECCV
    2002.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import vicinal as vc
    >>> from vicinal.supervision import chunks_from_labels
    >>> X, y = load_iris(return_X_y=True)
    >>> chunks = chunks_from_labels(y, n_chunks=30, random_state=0)
    >>> vc.RCA(n_components=2).fit_chunks(X, chunks).transform(X).shape
    (150, 2)
    """

    _constraints: ClassVar[ParameterConstraints] = {
        "n_components": OPTIONAL_COUNT,
        "ridge": NOT_NEGATIVE,
    }

    def __init__(self, n_components: int | None = None, *, ridge: float = 1e-6) -> None:
        self.n_components = n_components
        self.ridge = ridge

    def _learn_chunks(self, given: FitInput, chunks: IndexArray) -> None:
        check_n_components(self.n_components, given.n_features)
        unit = safe_unit(given.X)
        within, whole = chunk_covariances(given.X.astype(np.float64) / unit, chunks)
        L, regularized = relevant_components(within, whole, float(self.ridge))
        outcome = {
            "components_": in_units_of_data(L[: self.n_components], unit, given.X.dtype),
            "regularized_": regularized,
            "converged_": True,
            "stop_reason_": "closed form",
        }
        store_fit(self, {**given.attributes, **outcome})


def chunk_covariances(X: FloatArray, chunks: IndexArray) -> tuple[FloatArray, FloatArray]:
    """(d, d) the covariance within chunks, and that of all samples that are in chunks."""
    rows, codes = X[chunks >= 0], chunks[chunks >= 0]
    rows = rows - rows.mean(axis=0)
    sizes = np.bincount(codes)
    means = np.zeros((len(sizes), X.shape[1]))
    np.add.at(means, codes, rows)
    gaps = rows - (means / sizes[:, None])[codes]
    return gaps.T @ gaps / len(rows), rows.T @ rows / len(rows)


def relevant_components(
    within: FloatArray, whole: FloatArray, ridge: float
) -> tuple[FloatArray, bool]:
    """L (d, d) with L·within·Lᵀ = I, rows by falling variance; and whether a ridge was needed."""
    if not np.trace(within) > len(whole) * np.finfo(np.float64).eps ** 2 * np.trace(whole):
        raise ValueError("RCA needs chunks of samples that differ; in every chunk all are equal")
    within, regularized = invertible(within, ridge)
    try:
        _, vectors = eigh(whole, within)
    except np.linalg.LinAlgError as error:
        raise ValueError(
            f"the covariance within the chunks is singular, and ridge={ridge} does not help: raise "
            "ridge, or reduce the features first"
        ) from error
    return np.asarray(vectors.T[::-1]), regularized
