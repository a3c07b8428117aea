"""Neighbor searches on the CPU or on a GPU.

A search is bound to references, which go to the device once, and is then asked for one block of
queries after the other. :mod:`vicinal.kernels.cpu.class_neighbors` defines what it finds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from vicinal._typing import Array, FloatArray, IndexArray
from vicinal.kernels import choose_backend
from vicinal.kernels.cpu.class_neighbors import NeighborIndex, Neighbors, as_points
from vicinal.learners.parameters import check_choice

SEARCH_BACKENDS = ("auto", "numba", "cuda")
DEVICE = "cuda"


class Search(Protocol):
    """The k nearest references (b, k) of queries (b, d), except for the ids `exclude` (b,)."""

    def __call__(
        self, queries: FloatArray, *, k: int, exclude: IndexArray | None = None
    ) -> Neighbors: ...


class ClassSearch(Protocol):
    """The k nearest references of every class (b, c, k), of queries (b, d)."""

    def __call__(self, queries: FloatArray, *, k: int) -> Neighbors: ...


def class_search(index: NeighborIndex, offsets: IndexArray, backend: str) -> ClassSearch:
    """The search for the k nearest of every class.

    Parameters
    ----------
    index : n references, sorted by class
    offsets : (c + 1,) ints; class c is ``index.references[offsets[c]:offsets[c + 1]]``
    backend : {"auto", "numba", "cuda"}; "auto" as for n training rows of a learner

    Examples
    --------
    >>> index = NeighborIndex(np.array([[0.0], [1.0], [5.0]]))
    >>> find = class_search(index, np.array([0, 2, 3]), "auto")
    >>> find(np.array([[2.0]]), k=1).ids.tolist()
    [[[1], [2]]]
    """
    if not _uses_device(backend, len(index.references)):
        return lambda queries, *, k: index.search(queries, offsets, k)
    find = _DeviceSearch(index.references, offsets.tolist())

    def find_by_class(queries: FloatArray, *, k: int) -> Neighbors:
        distances, rows = find(queries, k=k)
        return Neighbors(distances, np.where(rows >= 0, index.ids[rows], -1))

    return find_by_class


def all_search(index: NeighborIndex, backend: str) -> Search:
    """The search for the k nearest of all; of equally distant references the smaller id is first.

    Parameters
    ----------
    index : n references; on a GPU their ids must be a permutation of 0 … n-1
    backend : {"auto", "numba", "cuda"}; "auto" as for n training rows of a learner
    """
    if not _uses_device(backend, len(index.references)):
        return index.nearest
    # A device prefers the smaller row: its rows are the ids.
    find = _DeviceSearch(index.references[np.argsort(index.ids)], [0, len(index.references)])

    def find_all(queries: FloatArray, *, k: int, exclude: IndexArray | None = None) -> Neighbors:
        distances, rows = find(queries, k=k, exclude=exclude)  # (b, 1, k)
        return Neighbors(distances[:, 0], rows[:, 0])

    return find_all


def check_backend(backend: str) -> None:
    """Raise an error that says what to do, unless searches can use this backend here."""
    check_choice("backend", backend, SEARCH_BACKENDS)
    if backend == "cuda":
        from vicinal.kernels.gpu import check_device  # imports torch

        check_device(backend)


def search_backend(backend: str) -> str:
    """The search's backend for a learner's: searches have one precision and one CPU version."""
    return {"numpy": "numba", "cuda:fast": "cuda"}.get(backend, backend)


def _uses_device(backend: str, n: int) -> bool:
    check_backend(backend)
    return choose_backend(backend, n) == "cuda"


class _DeviceSearch:
    """References on the device; queries go there, neighbors come back."""

    def __init__(self, references: FloatArray, offsets: Sequence[int]) -> None:
        self._references = _on_device(as_points(references, "references"))
        self._offsets = list(offsets)

    def __call__(
        self, queries: FloatArray, *, k: int, exclude: IndexArray | None = None
    ) -> Neighbors:
        from vicinal.kernels.gpu import device_class_neighbors  # imports torch

        distances, rows = device_class_neighbors(
            _on_device(as_points(queries, "queries")),
            self._references,
            self._offsets,
            k,
            exclude=None if exclude is None else _on_device(exclude),
        )
        return Neighbors(distances.cpu().numpy(), rows.cpu().numpy())


def _on_device(values: Array) -> Array:
    from vicinal.kernels.gpu import copy_to_device  # imports torch

    return copy_to_device(values, DEVICE)
