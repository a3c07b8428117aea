"""Reference vectors as a FAISS index."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from vicinal.atomic_write import atomic_write
from vicinal.exceptions import missing_extra
from vicinal.export.affine import transform_steps


def to_faiss(
    model: BaseEstimator,
    X: ArrayLike,
    path: str | os.PathLike[str],
    ids: ArrayLike | None = None,
) -> None:
    """Write the transformed rows of X as a FAISS index of exact Euclidean search.

    Queries have to be transformed in the same way, by ``model.transform`` or the graph of
    :func:`to_onnx`: the nearest in the index are then the nearest under the learned metric. FAISS
    computes in float32 and returns squared distances.

    Parameters
    ----------
    model : estimator
        As in :func:`to_onnx`; a kernel ``RVML`` too.
    X : array-like of shape (n_samples, n_features)
        The reference vectors, as they are, not transformed.
    path : str or path
        The file, by convention ``*.faiss``.
    ids : array-like of int of shape (n_samples,), optional
        What a search returns for each row; None counts them from 0.
    """
    steps = transform_steps(model)
    try:
        import faiss
    except ImportError as error:
        raise missing_extra("this export", "faiss", "export") from error
    for step in steps:
        X = step.transform(X)
    Z = np.ascontiguousarray(X, dtype=np.float32)
    if not np.isfinite(Z).all():
        raise ValueError("the transformed rows exceed float32, in which FAISS works: rescale X")
    index: Any = faiss.IndexFlatL2(Z.shape[1])
    if ids is None:
        index.add(Z)
    else:
        index = faiss.IndexIDMap(index)
        index.add_with_ids(Z, _as_ids(ids, len(Z)))
    with atomic_write(path) as temporary:
        temporary.write_bytes(faiss.serialize_index(index).tobytes())  # FAISS hides a full disk


def _as_ids(ids: ArrayLike, n: int) -> NDArray[np.int64]:
    numbers = np.asarray(ids)
    if numbers.shape != (n,) or numbers.dtype.kind not in "iu":
        raise ValueError(
            f"ids must be {n} integers, one per row of X; got {numbers.dtype} {numbers.shape}"
        )
    return np.ascontiguousarray(numbers, dtype=np.int64)
