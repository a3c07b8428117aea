"""Sets of similar and dissimilar rows: the whole class, the k nearest, or lists of the user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from numbers import Integral
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from vicinal._typing import FloatArray, IndexArray
from vicinal.kernels.contract import Comparisons, IndexLists
from vicinal.kernels.cpu.class_neighbors import NeighborIndex

Selection: TypeAlias = Literal["all", "none"] | int | IndexLists
"""A complete side, no dissimilar side, the k nearest (Euclidean), or lists of sorted rows."""

NO_COMPARISON = (
    "No sample has both a similar and a dissimilar one: every class has one sample, or "
    "the groups leave no pair. Give at least one class two samples of different groups."
)
NO_NEIGHBOR = (
    "No sample has a neighbor: all are in one group, or every list is empty. Give at least two "
    "groups, or lists that name rows of other groups."
)


def build_comparisons(
    X: FloatArray,
    offsets: IndexArray,
    *,
    similar: Selection = "all",
    dissimilar: Selection = "all",
    groups: IndexArray | None = None,
    may_be_empty: bool = False,
) -> Comparisons:
    """The comparisons of samples X (n, d), sorted by class with boundaries ``offsets``.

    Nearest neighbors are Euclidean in the space of X, exact, ties to the smaller row. Rows whose
    similar or dissimilar set is empty are not anchors. ``dissimilar="none"`` asks for similar rows
    only, as a regression does.

    Raises
    ------
    ValueError
        If there is no anchor, unless ``may_be_empty``.
    """
    one_sided = isinstance(dissimilar, str) and dissimilar == "none"
    similar_lists = _as_lists(similar, X, offsets, groups, same_class=True)
    dissimilar_lists = _as_lists(dissimilar, X, offsets, groups, same_class=False)
    n_all = _complete_sizes(offsets, groups)
    n_similar = n_all[0] if similar_lists is None else similar_lists.counts
    n_dissimilar = n_all[1] if dissimilar_lists is None else dissimilar_lists.counts
    comparisons = Comparisons(
        offsets=offsets,
        anchors=np.empty(0, dtype=np.intp),
        n_similar=n_similar,
        n_dissimilar=n_dissimilar,
        similar=similar_lists,
        dissimilar=dissimilar_lists,
        groups=groups,
        one_sided=one_sided,
    )
    anchors = np.flatnonzero(comparisons.usable)
    if len(anchors) == 0 and not may_be_empty:
        raise ValueError(NO_NEIGHBOR if one_sided else NO_COMPARISON)
    return replace(comparisons, anchors=anchors)


def lists_from_user(
    given: ArrayLike | Sequence[ArrayLike],
    order: IndexArray,
    codes: IndexArray,
    *,
    same_class: bool,
) -> IndexLists:
    """Lists in terms of sorted rows from the user's, in terms of the rows of X as given.

    Parameters
    ----------
    given : (n, k) integers, or n sequences of integers
        Row i names the samples that row i is compared with; negative entries are padding.
    order : (n,)
        ``order[r]`` is the row of X that is sorted row r.
    codes : (n,)
        The class of every row of X as given.
    """
    name = "similar" if same_class else "dissimilar"
    given = given.to_numpy() if hasattr(given, "to_numpy") else given  # a frame's rows
    n = len(order)
    if len(given) != n:  # type: ignore[arg-type]
        raise ValueError(f"{name} lists neighbors for {len(given)} samples, X has {n}")  # type: ignore[arg-type]
    position = np.empty(n, dtype=np.intp)
    position[order] = np.arange(n)
    lists = []
    for row in order:
        members = _valid_members(given[row], row, codes, same_class, name)  # type: ignore[index]
        lists.append(np.sort(position[members]))
    return _concatenate(lists)


def _valid_members(
    members: ArrayLike, row: int, codes: IndexArray, same_class: bool, name: str
) -> IndexArray:
    members = np.asarray(members)
    if members.size and not np.issubdtype(members.dtype, np.integer):
        raise ValueError(f"{name} must hold row indices (integers), got {members.dtype}")
    members = np.unique(members[members >= 0]).astype(np.intp)
    if members.size and members[-1] >= len(codes):
        raise ValueError(f"{name} of row {row} names row {members[-1]}; X has {len(codes)} rows")
    if row in members:
        raise ValueError(f"{name} of row {row} names the row itself")
    if np.any((codes[members] == codes[row]) != same_class):
        wrong = "another" if same_class else "the same"
        raise ValueError(f"{name} of row {row} names a row of {wrong} class")
    return members


def _as_lists(
    selection: Selection,
    X: FloatArray,
    offsets: IndexArray,
    groups: IndexArray | None,
    same_class: bool,
) -> IndexLists | None:
    if isinstance(selection, IndexLists):
        return selection if groups is None else _without_own_group(selection, groups)
    if isinstance(selection, Integral):
        return _nearest(X, offsets, groups, int(selection), same_class)
    return None


def _nearest(
    X: FloatArray, offsets: IndexArray, groups: IndexArray | None, k: int, same_class: bool
) -> IndexLists:
    """The k nearest rows of the class (of the other classes), fewer where there are no more."""
    n = len(X)
    lists: list[IndexArray] = []
    for start, stop in pairwise(offsets):
        rows = np.arange(start, stop)
        others = rows if same_class else np.r_[:start, stop:n]
        if len(rows) == 0 or len(others) == 0:
            lists += [np.empty(0, dtype=np.intp)] * len(rows)
            continue
        _, found = NeighborIndex(X[others]).nearest(
            X[rows],
            min(k, len(others)),
            exclude=np.arange(len(rows)) if same_class else None,
            query_groups=None if groups is None else groups[rows],
            reference_groups=None if groups is None else groups[others],
        )
        lists += [others[row[row >= 0]] for row in found]
    return _concatenate(lists)


def _without_own_group(lists: IndexLists, groups: IndexArray) -> IndexLists:
    anchors = np.repeat(np.arange(len(groups)), lists.counts)
    kept = groups[lists.indices] != groups[anchors]
    counts = np.bincount(anchors[kept], minlength=len(groups))
    return IndexLists(np.concatenate([[0], np.cumsum(counts)]), lists.indices[kept])


def _concatenate(lists: list[IndexArray]) -> IndexLists:
    indptr = np.concatenate([[0], np.cumsum([len(members) for members in lists])])
    return IndexLists(indptr.astype(np.intp), np.concatenate(lists).astype(np.intp))


def _complete_sizes(
    offsets: IndexArray, groups: IndexArray | None
) -> tuple[IndexArray, IndexArray]:
    """Sizes of the complete sets: all of the class, all of the others, own group left out."""
    n = int(offsets[-1])
    sizes = np.diff(offsets)
    of_class = np.repeat(sizes, sizes)  # (n,)
    if groups is None:
        return of_class - 1, n - of_class
    classes = np.repeat(np.arange(len(sizes)), sizes)
    cells = np.unique(np.stack([classes, groups]), axis=1, return_inverse=True)[1].ravel()
    in_cell = np.bincount(cells)[cells]  # rows of the same class and group
    in_group = np.bincount(groups)[groups]
    return of_class - in_cell, (n - of_class) - (in_group - in_cell)
