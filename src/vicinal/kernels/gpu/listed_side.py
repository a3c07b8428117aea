"""A side given by lists: pairs are gathered, nothing is looked for."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from vicinal.kernels.contract import IndexLists

PAIRS_AT_ONCE = 2**21


class ListedSide:
    """Bound to one list of members a row, and to its transpose: who is listed by whom."""

    def __init__(self, lists: IndexLists, device: torch.device) -> None:
        owners = np.repeat(np.arange(len(lists.counts)), lists.counts)
        by_member = np.argsort(lists.indices, kind="stable")
        listed = np.bincount(lists.indices, minlength=len(lists.counts))
        starts = np.concatenate([[0], np.cumsum(listed)])
        self._listing = _Segments(lists.indptr, lists.indices, device)
        self._listed = _Segments(starts, owners[by_member], device)
        self._by_member = torch.as_tensor(by_member, device=device)

    def bind(self, Z: Tensor, gamma: float) -> ListedSweep:
        """Soft averages and weights at these points."""
        return ListedSweep(self._listing, self._listed, self._by_member, Z, gamma)


class ListedSweep:
    """Distances of the listed pairs, by differences, and their soft averages."""

    def __init__(
        self, listing: _Segments, listed: _Segments, by_member: Tensor, Z: Tensor, gamma: float
    ) -> None:
        self._listing, self._listed, self._by_member = listing, listed, by_member
        distances = torch.empty(len(listing.others), dtype=torch.float64, device=Z.device)
        for pairs, owners, others in listing.blocks():
            distances[pairs] = (Z[owners] - Z[others]).double().square().sum(1)
        self.average, self._weights = _soft_average(distances, listing, gamma)  # (n,), (p,)

    def laplacian(self, V: Tensor, own: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
        """Σ_j U_ij (v_i − v_j) (n, c) and Σ_j U_ij (n,); the slopes are (n,) each."""
        listing, listed = self._listing, self._listed
        flow = torch.zeros(V.shape, dtype=torch.float64, device=V.device)
        degrees = torch.zeros(len(V), dtype=torch.float64, device=V.device)
        # An owner's slope weighs its listing, and what it adds to those whom it lists.
        w = own.repeat_interleave(listing.counts) * self._weights
        listing.add(V, w, flow, degrees)
        w = other.repeat_interleave(listing.counts) * self._weights
        listed.add(V, w[self._by_member], flow, degrees)
        return flow, degrees


class _Segments:
    """Pairs (owner, other), owners ascending."""

    def __init__(self, indptr: np.ndarray, others: np.ndarray, device: torch.device) -> None:
        self._indptr = np.asarray(indptr)
        self.counts = torch.as_tensor(np.diff(self._indptr), device=device)
        self.others = torch.as_tensor(np.asarray(others, dtype=np.int64), device=device)
        self.owners = torch.arange(len(self.counts), device=device).repeat_interleave(self.counts)
        self.offsets = torch.as_tensor(self._indptr.astype(np.int64), device=device)
        cuts = np.arange(0, len(others), PAIRS_AT_ONCE)
        rows = np.unique(np.append(np.searchsorted(self._indptr, cuts), len(self.counts)))
        self._rows = rows if rows[0] == 0 else np.append(0, rows)

    def row_blocks(self) -> Iterator[tuple[slice, slice]]:
        """Slices of rows and their slices of pairs, so that pairs fit the memory."""
        for start, stop in zip(self._rows[:-1], self._rows[1:], strict=True):
            pairs = slice(int(self._indptr[start]), int(self._indptr[stop]))
            yield slice(int(start), int(stop)), pairs

    def blocks(self) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """Slices of pairs, with their owners and others."""
        for _, pairs in self.row_blocks():
            yield pairs, self.owners[pairs], self.others[pairs]

    def reduce(self, values: Tensor, how: str, rows: slice | None = None) -> Tensor:
        """Sum, min or max over the pairs of each row; 0 for rows without pairs."""
        offsets = self.offsets if rows is None else self.offsets[rows.start : rows.stop + 1]
        return torch.segment_reduce(values, how, offsets=offsets - offsets[0], initial=_START[how])

    def add(self, V: Tensor, w: Tensor, flow: Tensor, degrees: Tensor) -> None:
        """Add Σ w (v_owner − v_other) and Σ w of every row."""
        for rows, pairs in self.row_blocks():
            gaps = V[self.owners[pairs]].double() - V[self.others[pairs]]
            flow[rows] += self.reduce(gaps * w[pairs, None], "sum", rows)
        degrees += self.reduce(w, "sum")


_START = {"sum": 0.0, "min": math.inf, "max": -math.inf}


def _soft_average(distances: Tensor, pairs: _Segments, gamma: float) -> tuple[Tensor, Tensor]:
    """Soft average of each row (NaN or ±inf for none), and the weights r of the pairs."""
    counts = pairs.counts.double()
    if gamma == 0:
        each = (1 / counts).repeat_interleave(pairs.counts)
        return pairs.reduce(distances, "sum") / counts, each
    extreme = pairs.reduce(distances, "min" if gamma > 0 else "max")
    gaps = distances - extreme.repeat_interleave(pairs.counts)
    if math.isinf(gamma):
        ties = (gaps == 0).double()
        return extreme, ties / pairs.reduce(ties, "sum").repeat_interleave(pairs.counts)
    growth = torch.expm1(-gamma * gaps)
    mean_growth = pairs.reduce(growth, "sum") / counts
    total = (counts * (1 + mean_growth)).repeat_interleave(pairs.counts)
    return extreme - torch.log1p(mean_growth) / gamma, (1 + growth) / total
