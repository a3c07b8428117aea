"""Starting points and priors of a fit.

A start is directions, and a scale at which the objective is not flat. Far too large a scale, and
every sample sees one neighbor only; far too small, and it sees all alike: in both cases the
gradient vanishes. So the scale is chosen from the data. A prior is the metric that a
learner stays near to.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist, pdist
from sklearn.utils.validation import check_array

from vicinal._typing import Array, FloatArray
from vicinal.learners.labeled_data import LabeledData
from vicinal.learners.parameters import ArrayGiven, OneOf
from vicinal.objective.losses import array_namespace

SCALED_INITS = ("auto", "pca", "lda", "random")
"""Directions only: the learner finds the scale. "identity", "paper" and arrays stay as they are."""
MEDIAN_ROWS = 512
SHRINKAGE = 1e-3
MAX_ROWS = 256
MAX_ELEMENTS = 2**21


def starting_factor(
    init: str | ArrayLike,
    data: LabeledData,
    n_components: int,
    perplexity: float,
    rng: np.random.RandomState,
) -> FloatArray:
    """L (m, d) to start from, in the units of ``data.X``.

    "identity" and "paper" (M = I/√n) and arrays are taken as they are; the others are directions
    whose scale is set by :func:`scale_for_perplexity`.
    """
    d = data.X.shape[1]
    if not isinstance(init, str):
        return _given(init, n_components, d) * data.scale
    if init == "identity":
        return np.eye(n_components, d) * data.scale
    if init == "paper":
        return np.eye(n_components, d) * len(data.X) ** -0.25 * data.scale
    L = _directions(init, data, n_components, rng)
    return L * np.sqrt(scale_for_perplexity(embed(data.X, L), perplexity))


def median_start(
    init: str | ArrayLike,
    data: LabeledData,
    n_components: int | None,
    rng: np.random.RandomState,
) -> FloatArray:
    """L to start from, in the units of ``data.X``: directions at a median squared distance of 1."""
    L = starting_factor(init, data, n_components or data.X.shape[1], 20.0, rng)
    if isinstance(init, str) and init in SCALED_INITS:
        median = median_distance(data.X @ L.T)
        L = L / np.sqrt(median) if median > 0 else L
    return L


def median_distance(Z: FloatArray) -> float:
    """The median squared distance of distinct rows; of 512 evenly chosen ones where n is larger.

    Where more than half of the pairs coincide, the mean instead.
    """
    rows = np.unique(np.linspace(0, len(Z) - 1, min(len(Z), MEDIAN_ROWS)).astype(int))
    distances = pdist(Z[rows], "sqeuclidean")
    return float(np.median(distances)) or float(distances.mean())


def embed(X: Array, L: FloatArray) -> Array:
    """X Lᵀ, an array or a tensor, as X is."""
    if isinstance(X, np.ndarray):
        return X @ L.T
    X = X.double()
    return X @ X.new_tensor(np.ascontiguousarray(L.T))


def _given(init: ArrayLike, n_components: int, d: int) -> FloatArray:
    L = np.array(init, dtype=np.float64)
    if L.shape != (n_components, d):
        raise ValueError(
            f"init has shape {L.shape}; it must be (n_components, n_features) = "
            f"({n_components}, {d})"
        )
    if not np.isfinite(L).all():
        raise ValueError("init contains NaN or infinity")
    return L


def _directions(init: str, data: LabeledData, m: int, rng: np.random.RandomState) -> FloatArray:
    """(m, d) directions of about unit length; "auto" as in scikit-learn's NCA."""
    d = data.X.shape[1]
    if init == "auto":
        if m == d:
            return np.eye(d)
        init = "lda" if m <= min(d, len(data.classes) - 1) else "pca"
    if init == "random":
        return np.asarray(rng.standard_normal((m, d))) / np.sqrt(d)
    if init == "pca":
        return _pca(data.X, m)
    return _lda(data, m)


def _pca(X: Array, m: int) -> FloatArray:
    """The m directions of the largest variance."""
    if isinstance(X, np.ndarray):
        moments: FloatArray = X.T.astype(np.float64) @ X
    else:
        from vicinal.kernels.gpu import second_moments  # imports torch

        moments = second_moments(X)
    _, vectors = np.linalg.eigh(moments)
    return np.asarray(vectors.T[::-1][:m])


def _lda(data: LabeledData, m: int) -> FloatArray:
    """Fisher's discriminant directions, completed by principal ones where there are fewer.

    Where no class varies at all, or every sample is a class, there are only principal ones.
    """
    if len(data.X) <= len(data.classes):
        return _pca(data.X, m)
    try:
        scalings = _scalings(data) if isinstance(data.X, np.ndarray) else _device_scalings(data)
    except np.linalg.LinAlgError:
        return _pca(data.X, m)
    L = scalings.T[: min(m, len(data.classes) - 1)]
    if not np.isfinite(L).all():
        return _pca(data.X, m)
    lengths = np.linalg.norm(L, axis=1, keepdims=True)
    L = L / np.where(lengths > 0, lengths, 1.0)
    return np.vstack([L, _pca(data.X, m - len(L))]) if len(L) < m else np.asarray(L)


def _scalings(data: LabeledData) -> Any:
    """(d, ·) the directions as columns, the best first."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    lda = LinearDiscriminantAnalysis(solver="eigen", shrinkage=SHRINKAGE)
    with np.errstate(all="ignore"):
        return lda.fit(data.X.astype(np.float64), data.codes[data.order]).scalings_


def _device_scalings(data: LabeledData) -> FloatArray:
    """The same from covariances that were computed where the samples are."""
    from scipy.linalg import eigh

    from vicinal.kernels.gpu import covariances  # imports torch

    def shrunk(C: FloatArray) -> FloatArray:
        return (1 - SHRINKAGE) * C + SHRINKAGE * np.trace(C) / len(C) * np.eye(len(C))

    whole, of_class = covariances(data.X, data.offsets)
    shares = np.diff(data.offsets) / len(data.X)
    within = sum(share * shrunk(C) for share, C in zip(shares, of_class, strict=True))
    _, vectors = eigh(shrunk(whole) - within, within)
    return np.asarray(vectors[:, ::-1])


def scale_for_perplexity(Z: Array, perplexity: float, *, squared: bool = True) -> float:
    """The c at which the mean perplexity of the rows of softmax_j(−c d²_ij) is the one asked for.

    With ``squared=False`` that of softmax_j(−c d_ij), of distances that are not squared.

    The perplexity exp(H) of a row is the effective number of its neighbors; it falls from n − 1
    at c = 0 to the number of its nearest ones at c = ∞. At most 256 rows are looked at, each
    against all others. Where coinciding points keep every scale from reaching the value, the one at
    which the median gap is 1 is taken.
    """
    from scipy.optimize import brentq

    gaps, others = _gaps_to_nearest(Z, squared)
    positive = gaps[gaps > 0]
    if len(positive) == 0:
        return 1.0
    target = perplexity if perplexity < others else 0.5 * (1.0 + others)

    def excess(log_c: float) -> float:
        return _mean_log_perplexity(gaps, np.exp(log_c)) - float(np.log(target))

    middle = -float(np.log(float(array_namespace(gaps).median(positive))))
    steps = 2.0 * np.arange(40)
    low = next((middle - step for step in steps if excess(middle - step) > 0), None)
    high = next((middle + step for step in steps if excess(middle + step) < 0), None)
    if low is None or high is None:
        return float(np.exp(middle))
    return float(np.exp(brentq(excess, low, high, xtol=1e-3)))


def _gaps_to_nearest(Z: Array, squared: bool) -> tuple[Array, int]:
    """(rows, n − 1) distances from some rows to all others, less each row's smallest."""
    n = len(Z)
    size = min(n, MAX_ROWS, max(16, MAX_ELEMENTS // n))
    rows = np.unique(np.linspace(0, n - 1, size).astype(int))
    if isinstance(Z, np.ndarray):
        D = cdist(Z[rows], Z, "sqeuclidean")
    else:
        D = array_namespace(Z).stack(
            [(Z.double() - Z[row].double()).square().sum(1) for row in rows]
        )
    others = np.arange(n)[None, :] != rows[:, None]
    D = D[others].reshape(len(rows), n - 1)
    D = D if squared else D**0.5
    return D - array_namespace(D).amin(D, axis=1, keepdims=True), n - 1


def _mean_log_perplexity(gaps: Array, c: float) -> float:
    """ln of the mean over rows of exp(H), H = ln Σ_j e^{−c g_j} + c ⟨g⟩."""
    xp = array_namespace(gaps)
    weights = xp.exp(-c * gaps)
    totals = weights.sum(axis=1)
    entropies = xp.log(totals) + c * xp.einsum("ij,ij->i", weights, gaps) / totals
    return float(np.log(float(xp.exp(entropies).mean())))


PRIORS = ("identity", "covariance")

NEARLY_SINGULAR = 1e-9
"""Ratio of the extreme eigenvalues below which a matrix is not inverted as it is."""


def prior_matrix(prior: str | ArrayLike, X: FloatArray) -> FloatArray:
    """A₀ (d, d), positive definite, as a user names it.

    Parameters
    ----------
    prior : {"identity", "covariance"} or array of shape (d, d)
        "covariance" is the inverse covariance of X, whose distance is Mahalanobis' own.
    X : (n, d) in float64
    """
    OneOf(PRIORS, ArrayGiven()).check("prior", prior)
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
    inverse = np.linalg.inv(invertible(covariance / size)[0])
    return 0.5 * (inverse + inverse.T) / size


def invertible(S: FloatArray, ridge: float = 1e-6) -> tuple[FloatArray, bool]:
    """S ⪰ 0, plus ``ridge`` times its mean eigenvalue where it is nearly singular; and whether."""
    if smallest_ratio(S) >= NEARLY_SINGULAR:
        return S, False
    return S + ridge * (np.trace(S) / len(S)) * np.eye(len(S)), True
