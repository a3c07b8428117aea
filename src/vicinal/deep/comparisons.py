"""SortedPairs that are compared in a batch: by their labels, or as a miner has chosen them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


class BatchComparisons(Protocol):
    """The sets S_i and D_i of every anchor, as masks over the columns."""

    def masks(self, start: int, stop: int) -> tuple[Tensor, Tensor]:
        """(b, n) similar and (b, n) dissimilar columns of the anchors start … stop − 1."""
        ...


@dataclass(frozen=True)
class LabelComparisons:
    """S_i: the columns of the anchor's class; D_i: all other columns."""

    labels: Tensor
    """(b,) of the anchors."""
    column_labels: Tensor
    """(n,) of the columns."""
    exclude_self: bool
    """Whether columns are the anchors themselves, of which none is its own neighbor."""

    def masks(self, start: int, stop: int) -> tuple[Tensor, Tensor]:
        similar = self.labels[start:stop, None] == self.column_labels[None, :]
        dissimilar = ~similar
        if self.exclude_self:
            similar.diagonal(start).fill_(False)
        return similar, dissimilar


@dataclass(frozen=True)
class SortedPairs:
    """SortedPairs (anchor, column), sorted by anchor, so that a block of anchors is a slice."""

    anchors: Tensor
    columns: Tensor
    offsets: list[int]
    """The pairs of anchor i are the slice ``offsets[i]:offsets[i + 1]``."""

    @classmethod
    def of(cls, anchors: Tensor, columns: Tensor, n_anchors: int, n_columns: int) -> SortedPairs:
        _check_pairs(anchors, columns, n_anchors, n_columns)
        order = torch.argsort(anchors, stable=True)
        anchors, columns = anchors[order].contiguous(), columns[order]
        edges = torch.arange(n_anchors + 1, device=anchors.device, dtype=anchors.dtype)
        return cls(anchors, columns, torch.searchsorted(anchors, edges).tolist())

    def mask(self, start: int, stop: int, n_columns: int) -> Tensor:
        """(b, n) True at the pairs; a pair that is listed twice counts once."""
        own = slice(self.offsets[start], self.offsets[stop])
        mask = torch.zeros(stop - start, n_columns, dtype=torch.bool, device=self.columns.device)
        mask[self.anchors[own] - start, self.columns[own]] = True
        return mask


@dataclass(frozen=True)
class MinedComparisons:
    """S_i and D_i: the positives and the negatives that a miner has paired with anchor i."""

    similar: SortedPairs
    dissimilar: SortedPairs
    n_columns: int

    @classmethod
    def of(
        cls, indices_tuple: Sequence[Tensor], n_anchors: int, n_columns: int
    ) -> MinedComparisons:
        """From pairs (a, p, a′, n) or triplets (a, p, n), as miners return them."""
        if len(indices_tuple) == 3:
            anchors, positives, negatives = indices_tuple
            indices_tuple = anchors, positives, anchors, negatives
        if len(indices_tuple) != 4:
            raise ValueError(
                f"indices_tuple has {len(indices_tuple)} parts: give triplets (anchors, positives, "
                "negatives) or pairs (anchors, positives, anchors, negatives)"
            )
        a1, positives, a2, negatives = indices_tuple
        return cls(
            SortedPairs.of(a1, positives, n_anchors, n_columns),
            SortedPairs.of(a2, negatives, n_anchors, n_columns),
            n_columns,
        )

    def masks(self, start: int, stop: int) -> tuple[Tensor, Tensor]:
        return (
            self.similar.mask(start, stop, self.n_columns),
            self.dissimilar.mask(start, stop, self.n_columns),
        )


def _check_pairs(anchors: Tensor, columns: Tensor, n_anchors: int, n_columns: int) -> None:
    sides: tuple[tuple[str, object, int], ...] = (
        ("anchors", anchors, n_anchors),
        ("positives or negatives", columns, n_columns),
    )
    for name, indices, length in sides:
        if not isinstance(indices, Tensor) or indices.is_floating_point() or indices.ndim != 1:
            raise ValueError(f"{name} in indices_tuple must be 1-D tensors of integers")
        low, high = torch.stack(indices.aminmax()).tolist() if len(indices) else (0, -1)
        if low < 0 or high >= length:
            raise ValueError(
                f"{name} in indices_tuple reach from {low} to {high}, but there are {length} rows: "
                "mine in the batch (and the ref_emb) of this call"
            )
    if len(anchors) != len(columns):
        raise ValueError(
            f"indices_tuple pairs {len(anchors)} anchors with {len(columns)} positives or "
            "negatives: every pair needs both"
        )


def compare_by_labels(
    labels: Tensor | None, ref_labels: Tensor | None, lengths: tuple[int, int], itself: bool
) -> LabelComparisons:
    """The comparisons of checked labels; ``itself``: columns are the anchors."""
    if labels is None or ref_labels is None:
        raise ValueError(
            "labels are needed (and ref_labels with ref_emb), or the indices_tuple of a miner"
        )
    for name, given, length in zip(
        ("labels", "ref_labels"), (labels, ref_labels), lengths, strict=True
    ):
        if not isinstance(given, Tensor):
            kind = type(given).__name__
            raise ValueError(f"{name} must be a tensor, got {kind}; use torch.as_tensor({name})")
        if given.shape != (length,):
            raise ValueError(f"{name} must have shape ({length},), got {tuple(given.shape)}")
    return LabelComparisons(labels, ref_labels, exclude_self=itself)


def check_embeddings(name: str, given: object, components: int | str = "components") -> None:
    """Raise a ValueError unless this is a matrix of floats with so many components."""
    if not isinstance(given, Tensor) or not given.is_floating_point():
        kind = given.dtype if isinstance(given, Tensor) else type(given).__name__
        raise ValueError(f"{name} must be a tensor of floats, got {kind}")
    if given.ndim != 2 or components not in ("components", given.shape[1]):
        raise ValueError(f"{name} must have shape (rows, {components}), got {tuple(given.shape)}")
