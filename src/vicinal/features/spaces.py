"""Feature spaces that metrics are learned in: linear maps of the data, of moderate dimension.

A short descent does not get far from where it starts. The standardized space starts from the
Euclidean distance of features that count equally; the centered one from that of the data as they
are, whose scales may be the best that is known about them (pixels, principal components,
embeddings); the whitened one from the distance of linear discriminant analysis, which knows how the
features of one class vary together; the unfolded one from that of hat functions of the features
(:mod:`~vicinal.features.hat_basis`), where equal steps need not count equally. Two more are made of
kernel functions (:mod:`~vicinal.features.kernel_basis`): their principal components, and the same
whitened, where the metric starts from kernel discriminant analysis.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from vicinal._typing import FloatArray, IndexArray
from vicinal.features.expansion import Expansion

SpaceName: TypeAlias = Literal[
    "standardized", "centered", "whitened", "unfolded", "kernel", "whitened kernel"
]

MAX_FEATURES = 60
"""Beyond it the principal components are learned from: more cost time and overfit."""
MAX_WHITENED = 30
MAX_DISCRIMINANT = 150
"""Principal components among which discriminating directions are looked for."""


@dataclass(frozen=True)
class FeatureSpace:
    """x ↦ A (x − center); a factor L learned there is the factor L A of the data."""

    center: FloatArray
    axes: FloatArray
    """A (m, d)."""

    def transform(self, X: FloatArray) -> FloatArray:
        """(n, m) the samples X (n, d) in this space."""
        return np.asarray((X - self.center) @ self.axes.T)

    def leading(self, m: int) -> FeatureSpace:
        """The first m axes: of principal components, those that vary most."""
        return FeatureSpace(self.center, self.axes[:m])

    def within(self, before: int, after: int) -> FeatureSpace:
        """The same space for samples with more columns, which it ignores."""
        center = np.pad(self.center, (before, after))
        return FeatureSpace(center, np.pad(self.axes, ((0, 0), (before, after))))


def make_spaces(
    X: FloatArray, codes: IndexArray, expansion: Expansion
) -> dict[SpaceName, FeatureSpace]:
    """The spaces of samples of classes `codes`, expanded: X (n, p)."""
    d, s, p = expansion.n_features, expansion.n_straight, expansion.n_columns
    features = X[:, :d]
    equal = centered(features, MAX_DISCRIMINANT, equally=True)
    standardized = equal.leading(MAX_FEATURES) if d > MAX_DISCRIMINANT else None
    spaces: dict[SpaceName, FeatureSpace] = {
        "standardized": standardized or centered(features, MAX_FEATURES, equally=True),
        "centered": centered(features, MAX_FEATURES, equally=False),
        "whitened": whitened(equal, features, codes),
    }
    spaces = {name: space.within(0, p - d) for name, space in spaces.items()}
    if expansion.hats is not None:
        spaces["unfolded"] = unfolded(X[:, d:s], expansion.hats.owners[d:]).within(d, p - s)
    if expansion.kernel is not None:
        K = X[:, s:]
        curved = kernel_components(K, expansion.kernel.coordinates)
        spaces["kernel"] = curved.leading(MAX_FEATURES).within(s, 0)
        spaces["whitened kernel"] = whitened(curved, K, codes).within(s, 0)
    return spaces


def kernel_components(K: FloatArray, coordinates: FloatArray) -> FeatureSpace:
    """Principal components of the coordinates A k (r, m), for kernel functions K (n, m)."""
    center = K.mean(axis=0)
    return FeatureSpace(
        center, _leading((K - center) @ coordinates.T, min(len(coordinates), len(K))) @ coordinates
    )


def unfolded(H: FloatArray, owners: IndexArray) -> FeatureSpace:
    """Hats (n, h), those of one feature divided so that their variances sum to 1."""
    center = H.mean(axis=0)
    variances = np.bincount(owners, weights=np.var(H, axis=0))
    flat = variances <= 1e-20
    unit = np.where(flat, 0.0, 1.0 / np.sqrt(np.where(flat, 1.0, variances)))[owners]
    return _scaled(H, center, unit, MAX_FEATURES)


def centered(X: FloatArray, limit: int, *, equally: bool) -> FeatureSpace:
    """Features divided by their deviations if they are to count equally, else by the largest one.

    The principal components of that, if there are more than `limit` features.
    """
    center = X.mean(axis=0)
    spread = X.std(axis=0)
    flat = spread <= 1e-10 * np.abs(X).max(axis=0, initial=0.0)  # rounding of a constant
    unit = spread if equally else np.full(len(spread), spread.max(initial=0.0, where=~flat))
    inverse = np.where(flat, 0.0, 1.0 / np.where(flat, 1.0, unit))
    return _scaled(X, center, inverse, limit)


def _scaled(X: FloatArray, center: FloatArray, unit: FloatArray, limit: int) -> FeatureSpace:
    """Every column times its unit; beyond `limit` columns their principal components."""
    n, d = X.shape
    if d <= limit:
        return FeatureSpace(center, np.diag(unit))
    return FeatureSpace(center, _leading((X - center) * unit, min(limit, n)) * unit)


def _leading(X: FloatArray, m: int) -> FloatArray:
    """(m, d) the principal directions of centered X (n, d), by the smaller of its two products."""
    n, d = X.shape
    if d <= n:
        _, vectors = np.linalg.eigh(X.T @ X)
        return np.asarray(vectors[:, ::-1][:, :m].T)
    values, vectors = np.linalg.eigh(X @ X.T)  # X = U S Vᵀ: Vᵀ = S⁻¹ Uᵀ X
    roots = np.sqrt(np.maximum(values[::-1][:m], 0.0))
    found = roots > 1e-7 * max(roots[0], 1e-300)
    scale = np.where(found, 1.0 / np.where(found, roots, 1.0), 0.0)
    return np.asarray((vectors[:, ::-1][:, :m].T @ X) * scale[:, None])


def whitened(base: FeatureSpace, X: FloatArray, codes: IndexArray) -> FeatureSpace:
    """Unit covariance within the classes, axes by their variance between the classes.

    The covariance is shrunk after Ledoit and Wolf, so that it can be inverted.
    """
    from sklearn.covariance import ledoit_wolf

    Z = base.transform(X)  # (n, p)
    if len(Z) < 2:
        return base
    sums = np.zeros((int(codes.max()) + 1, Z.shape[1]))
    np.add.at(sums, codes, Z)
    means = (sums / np.bincount(codes).clip(min=1)[:, None])[codes]  # (n, p)
    covariance, _ = ledoit_wolf(Z - means, assume_centered=True)
    values, vectors = np.linalg.eigh(covariance)
    if values[-1] <= 0:  # every class is one point
        return base
    W = (vectors / np.sqrt(np.maximum(values, 1e-8 * values[-1]))).T  # (p, p)
    between = means @ W.T
    _, axes = np.linalg.eigh(between.T @ between)
    m = min(MAX_WHITENED, Z.shape[1])
    return FeatureSpace(base.center, axes[:, ::-1][:, :m].T @ W @ base.axes)
