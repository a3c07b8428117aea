"""Where neighbors are looked for: on the CPU, or on a GPU.

A search is made of its references, which go to the device once, and is asked for one block of
queries after the other. :mod:`vicinal.kernels.cpu.class_neighbors` defines what it finds.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from vicinal._typing import FloatArray, IndexArray
from vicinal.kernels import choose_backend
from vicinal.kernels.cpu.class_neighbors import Neighbors, all_neighbors, as_points, class_neighbors
from vicinal.learners.configuration import check_choice

SEARCH_BACKENDS = ("auto", "numba", "cuda")
DEVICE = "cuda"


class Search(Protocol):
    """The k nearest references of the queries (b, d); none has the reference `exclude` (b,)."""

    def __call__(
        self, queries: FloatArray, *, k: int, exclude: IndexArray | None = None
    ) -> Neighbors: ...


def class_search(references: FloatArray, offsets: IndexArray, backend: str) -> Search:
    """The search for the k nearest of every class, (b, c, k).

    Parameters
    ----------
    references : (n, d) array, sorted by class
    offsets : (c + 1,) ints; class c is ``references[offsets[c]:offsets[c + 1]]``
    backend : {"auto", "numba", "cuda"}; "auto" as for n training rows of a learner

    Examples
    --------
    >>> find = class_search(np.array([[0.0], [1.0], [5.0]]), np.array([0, 2, 3]), "auto")
    >>> find(np.array([[2.0]]), k=1).ids.tolist()
    [[[1], [2]]]
    """
    if _uses_device(backend, len(references)):
        return _DeviceSearch(references, offsets.tolist())
    return partial(class_neighbors, references=references, offsets=offsets)


def all_search(references: FloatArray, backend: str, ids: IndexArray | None = None) -> Search:
    """The search for the k nearest of all, (b, k).

    Parameters
    ----------
    references : (n, d) array
    backend : {"auto", "numba", "cuda"}; "auto" as for n training rows of a learner
    ids : (n,) permutation of 0 … n-1, default in this order
        What to call the references. Of equally distant ones the smaller id comes first.
    """
    if not _uses_device(backend, len(references)):
        return partial(all_neighbors, references=references, ids=ids)
    # A device prefers the smaller row: its rows are the ids.
    find = _DeviceSearch(
        references if ids is None else references[np.argsort(ids)], [0, len(references)]
    )

    def find_all(queries: FloatArray, *, k: int, exclude: IndexArray | None = None) -> Neighbors:
        distances, rows = find(queries, k=k, exclude=exclude)  # (b, 1, k)
        return Neighbors(distances[:, 0], rows[:, 0])

    return find_all


def check_backend(backend: str) -> None:
    """Raise an error that says what to do, unless searches can use that backend here."""
    check_choice("backend", backend, SEARCH_BACKENDS)
    if backend == "cuda":
        from vicinal.kernels.gpu import check_device  # imports torch

        check_device(backend)


def search_backend(backend: str) -> str:
    """What a learner's backend means for a search, which has one precision and no slow twin."""
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


def _on_device(values: NDArray[Any]) -> Any:
    from vicinal.kernels.gpu import copy_to_device  # imports torch

    return copy_to_device(values, DEVICE)
