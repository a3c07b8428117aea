"""Training rows as vectors that a vector store can search, and what makes vectors of queries.

Two forms have the neighbors of the learned distance ‖L(q − x)‖:

.. code-block:: text

    z form    rows z = L(x − μ)                        queries L(q − μ)        Euclidean distance
    raw form  rows [x, −½ (x − μ)ᵀM(x − μ)]            queries [M(q − μ), 1]   inner product

In the raw form the inner product is −½ ‖L(q − x)‖² plus what depends on q alone, so that the
largest ones are the nearest rows. μ is the mean of the rows: it changes no distance and saves the
digits of float32, which the stores compute in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator

from vicinal._typing import FloatArray
from vicinal.export.affine import AffineMap, affine_map, transform_steps
from vicinal.export.committee_map import CommitteeMap, committee_map
from vicinal.fitted_model import MeanMetric, Transformer, anatomy

CHECKED_QUERIES, CHECKED_NEIGHBORS = 64, 10
WRONG_AT_MOST = 0.01
NEARLY_TIED = 1e-4
"""Relative difference of squared distances below which float32 may exchange two rows."""


@dataclass(frozen=True)
class VectorTable:
    """The vectors of the training rows, their names, and the map of queries."""

    vectors: NDArray[np.float32]
    """(n, m)"""
    metric: str
    """"l2": the nearest have the smallest distance; "ip": the largest inner product."""
    queries: AffineMap
    """From the features of a query to its vector (m,)."""
    shift: AffineMap | None
    """Of the raw form: with t = shift(q), d² = ‖t‖² + 2 · queries(q)[:-1] · center − 2 · score."""
    ids: NDArray[np.generic]
    """(n,) integers or texts."""
    labels: NDArray[np.generic] | None
    """(n,) classes or numbers."""
    before: tuple[str, ...]
    """Steps of the model that come before the features."""
    replaced: CommitteeMap | None = None
    """What a committee was replaced by."""

    @property
    def raw(self) -> bool:
        """Whether the vectors hold the features as they are."""
        return self.shift is not None


def vector_table(
    model: BaseEstimator,
    X: ArrayLike,
    *,
    ids: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    keep_raw: bool = False,
    metric: str | None = None,
) -> VectorTable:
    """The table of the rows X; a ValueError says why a form would give other neighbors.

    Parameters
    ----------
    model : fitted estimator that has learned a distance
    X : the reference rows, as the model takes them
    ids : (n,) integers or texts; None counts from 0
    labels : (n,) or None
    keep_raw : the raw form rather than the z form
    metric : of the store; None takes the one that fits
    """
    check_metric(metric, keep_raw)
    steps, replaced = _steps(model)
    before, rest = _split(steps)
    for step in before:
        X = step.transform(X)
    features = np.asarray(X, dtype=np.float64)
    if keep_raw and not rest:
        raise ValueError(
            "the learned map is not a matrix of the features (a kernel), so that there is no M for "
            "the raw vectors: export without keep_raw"
        )
    identity = AffineMap.linear(np.eye(features.shape[1]))
    whole = reduce(AffineMap.then, rest, identity)
    n = len(features)
    table = VectorTable(
        **_form(whole.A, features, keep_raw),
        ids=np.arange(n) if ids is None else _column(ids, n, "ids"),
        labels=None if labels is None else _column(labels, n, "labels"),
        before=tuple(type(step).__name__ for step in before),
        replaced=replaced,
    )
    _check_digits(table, features, whole.A)
    return table


def check_metric(metric: str | None, keep_raw: bool) -> None:
    """Refuse a metric of the store under which the neighbors would not be the learned ones."""
    if metric in (None, "ip" if keep_raw else "l2"):
        return
    if metric not in ("l2", "ip", "cosine"):
        raise ValueError(f"metric={metric!r} is unknown; use 'l2', 'ip' or 'cosine'")
    if metric == "cosine":
        reason = (
            "the cosine forgets how long the vectors are, and with it part of the learned distance"
        )
    elif keep_raw:
        reason = (
            "between a raw vector and M q a Euclidean distance means nothing; only the inner "
            "product of [x, −½xᵀMx] and [M q, 1] orders the rows by the learned distance"
        )
    else:
        reason = (
            "the inner product of z and the z of a query (just as that of raw x and M q) lacks the "
            "term −½‖z‖² = −½xᵀMx: long vectors would come first, not near ones. Use 'l2', or "
            "keep_raw=True, which stores that term beside the raw vector"
        )
    raise ValueError(f"metric={metric!r} would find other neighbors: {reason}")


def _steps(model: BaseEstimator) -> tuple[tuple[Transformer | AffineMap, ...], CommitteeMap | None]:
    """The steps of a model; of a committee, its one map takes the place of its metrics."""
    fitted = anatomy(model)
    if not isinstance(fitted.metric, MeanMetric):
        return transform_steps(model), None
    found = committee_map(fitted.metric.committee)
    return (*fitted.preparation, AffineMap.linear(found.L)), found


def _split(
    steps: Sequence[Transformer | AffineMap],
) -> tuple[list[Transformer], list[AffineMap]]:
    """The first steps, up to the last one that is not affine, and the affine maps after it."""
    maps: list[AffineMap] = []
    for i in reversed(range(len(steps))):
        step = steps[i]
        try:
            maps.insert(0, step if isinstance(step, AffineMap) else affine_map(step))
        except (TypeError, ValueError):
            return [s for s in steps[: i + 1] if not isinstance(s, AffineMap)], maps
    return [], maps


def _form(A: FloatArray, X: FloatArray, keep_raw: bool) -> dict[str, Any]:
    """Vectors, metric and maps of queries, of rows X (n, d) whose distance is ‖A δ‖."""
    center = X.mean(axis=0)
    Z = (X - center) @ A.T
    m, d = A.shape
    to_z = AffineMap(A, center, np.zeros(m))
    if keep_raw:
        to_product = AffineMap(np.r_[A.T @ A, np.zeros((1, d))], center, np.r_[np.zeros(d), 1.0])
        form: dict[str, Any] = {"metric": "ip", "queries": to_product, "shift": to_z}
        vectors = np.c_[X, -0.5 * np.einsum("nm,nm->n", Z, Z)]
    else:
        form = {"metric": "l2", "queries": to_z, "shift": None}
        vectors = Z
    single = np.ascontiguousarray(vectors, dtype=np.float32)
    if not np.isfinite(single).all():
        raise ValueError("the vectors exceed float32, in which vector stores work: rescale X")
    return {**form, "vectors": single}


def _check_digits(table: VectorTable, X: FloatArray, A: FloatArray) -> None:
    """Refuse vectors whose differences are lost in float32."""
    n = len(X)
    k = min(CHECKED_NEIGHBORS, n)
    chosen = np.unique(np.linspace(0, n - 1, CHECKED_QUERIES).astype(int))
    center = X.mean(axis=0)
    exact = cdist((X[chosen] - center) @ A.T, (X - center) @ A.T, "sqeuclidean")  # (q, n)
    Q = query_vectors(table.queries, X[chosen])
    V = table.vectors
    order = np.array([_order(q, V, table.metric)[:k] for q in Q])
    found = np.take_along_axis(exact, order, axis=1)
    farthest = np.partition(exact, k - 1, axis=1)[:, k - 1 : k]
    wrong = float(np.mean(found > farthest * (1 + NEARLY_TIED)))
    if wrong > WRONG_AT_MOST:
        raise ValueError(
            f"in float32, in which vector stores compute, {100 * wrong:.0f} % of the nearest rows "
            "would be others: " + ("export without keep_raw, or " if table.raw else "")
            + "center and rescale the features"
        )  # fmt: skip


def _order(query: FloatArray, V: NDArray[np.float32], metric: str) -> NDArray[np.intp]:
    """Rows of V by their distance to a query, as a store computes it."""
    if metric == "l2":
        return np.argsort(np.square(V - query).sum(axis=1), kind="stable")
    return np.argsort(-(V @ query), kind="stable")


def query_vectors(queries: AffineMap, X: FloatArray) -> NDArray[np.float32]:
    """(q, m) vectors of features X (q, d), as the stores take them."""
    return ((X - queries.center) @ queries.A.T + queries.offset).astype(np.float32)


def _column(values: ArrayLike, n: int, name: str) -> NDArray[np.generic]:
    """(n,) integers, finite numbers or texts."""
    column = np.asarray(values)
    if column.shape != (n,):
        raise ValueError(f"{name} must be {n} values, one per row of X; got shape {column.shape}")
    if column.dtype.kind in "iu":
        return column.astype(np.int64)
    return column.astype(np.float64) if column.dtype.kind == "f" else column.astype(str)
