"""One evaluation in plain PyTorch: any exponent, any width, any device.

Complete sides are computed by blocks of all pairs, sides that are given by lists from their pairs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from vicinal.kernels.contract import IndexLists
from vicinal.kernels.gpu.panel import FAR, Labels

BLOCK_ELEMENTS = 2**25
"""Pairs of a block: 256 MiB per array of float64."""
PAIRS_AT_ONCE = 2**21


class TorchSweep:
    """:class:`~vicinal.kernels.gpu.triton_sweep.TritonSweep` by matrix products of PyTorch.

    Parameters
    ----------
    Z : (n, m) tensor, centered; it is computed in its precision
    labels : the class and the group of every row
    complete : which of the sides, similar and dissimilar, are computed here
    gammas : exponents of the two sides; any real, 0, ±inf
    """

    def __init__(
        self,
        Z: Tensor,
        labels: Labels,
        complete: tuple[bool, bool],
        gammas: tuple[float, float],
    ) -> None:
        self.n = len(Z)
        self._Z = Z
        self._ids = labels.ids[:, : self.n]
        self._sides = [side for side in (0, 1) if complete[side]]
        self._gammas = gammas
        # Equal distances count as ties: d_ij and d_ji must then be the same number.
        self._direct = any(math.isinf(gamma) for gamma in gammas)
        self.state = torch.full((4, self.n), FAR, dtype=Z.dtype, device=Z.device)
        """(4, n) the extreme distance and the sum of either side, FAR where pass 1 has not been."""

    def soft_averages(self, rows: Tensor | None, counts: Tensor) -> Tensor:
        """(2, b) float64: s and t of these rows; ``counts`` (2, n) are the sizes of the sets."""
        rows = torch.arange(self.n, device=self._Z.device) if rows is None else rows
        averages = torch.zeros((2, len(rows)), dtype=torch.float64, device=self._Z.device)
        for block, start in self._blocks(rows, self.n):
            D = self._distances(block, None)  # (b, n)
            for side in self._sides:
                mask = self._mask(side, block, None)
                extreme, total, average = _row_average(
                    D, mask, self._gammas[side], counts[side, block].to(D.dtype)
                )
                self.state[2 * side, block], self.state[2 * side + 1, block] = extreme, total
                averages[side, start : start + len(block)] = average.double()
        return averages

    def laplacian(
        self,
        V: Tensor | None,
        slopes: tuple[Tensor, Tensor],
        rows: Tensor | None = None,
        cols: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Σ_j U_ij (v_i − v_j) (b, c) and Σ_j U_ij (b,), with U_ij = W_ij + W_ji.

        ``slopes``, each (2, n), weigh the W_ij of a row, and the W_ji of a column. None for V
        means Z, None for the b rows, or for the columns, all of them.
        """
        V = self._Z if V is None else V.to(self._Z.dtype)
        rows = torch.arange(self.n, device=V.device) if rows is None else rows
        flow = torch.zeros((len(rows), V.shape[1]), dtype=V.dtype, device=V.device)
        degrees = torch.zeros(len(rows), dtype=V.dtype, device=V.device)
        others = V if cols is None else V[cols]
        for block, start in self._blocks(rows, len(others)):
            U = self._weights(block, cols, slopes)  # (b, n)
            here = slice(start, start + len(block))
            degrees[here] = U.sum(1)
            flow[here] = degrees[here, None] * V[block] - U @ others
        return flow.double(), degrees.double()

    def _weights(self, block: Tensor, cols: Tensor | None, slopes: tuple[Tensor, Tensor]) -> Tensor:
        D = self._distances(block, cols)
        own, other = (slope.to(D.dtype) for slope in slopes)
        state = self.state if cols is None else self.state[:, cols]
        other = other if cols is None else other[:, cols]
        U = torch.zeros_like(D)
        for side in self._sides:
            mask, planes = self._mask(side, block, cols), slice(2 * side, 2 * side + 2)
            mine = self.state[planes, block][:, :, None], own[side, block][:, None]
            theirs = state[planes][:, None, :], other[side][None, :]
            for (extreme, total), slope in (mine, theirs):
                r = _row_weights(D, self._gammas[side], extreme, total)
                U += torch.where(mask & (slope != 0), slope * r, 0.0)
        return U

    def _blocks(self, rows: Tensor, width: int) -> Iterator[tuple[Tensor, int]]:
        height = max(1, BLOCK_ELEMENTS // max(width, 1))
        for start in range(0, len(rows), height):
            yield rows[start : start + height], start

    def _distances(self, block: Tensor, cols: Tensor | None) -> Tensor:
        A, B = self._Z[block], self._Z if cols is None else self._Z[cols]
        if self._direct:
            return torch.cdist(A, B, compute_mode="donot_use_mm_for_euclid_dist").square()
        norms = A.square().sum(1)[:, None] + B.square().sum(1)[None, :]
        return torch.addmm(norms, A, B.T, alpha=-2).clamp_(min=0)

    def _mask(self, side: int, block: Tensor, cols: Tensor | None) -> Tensor:
        """(b, n) which columns are in the set of which row."""
        mine, theirs = self._ids[:, block], self._ids if cols is None else self._ids[:, cols]
        same = mine[0][:, None] == theirs[0][None, :]
        apart = mine[1][:, None] != theirs[1][None, :]
        return apart & (same if side == 0 else ~same)


def _row_average(
    D: Tensor, mask: Tensor, gamma: float, count: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Extreme distance, sum, and soft average of the members of each row, as in the reference."""
    if gamma == 0:
        average = torch.where(mask, D, 0.0).sum(1) / count
        return torch.zeros_like(average), count, average
    if gamma > 0:
        extreme = torch.where(mask, D, math.inf).amin(1)
    else:
        extreme = torch.where(mask, D, -math.inf).amax(1)
    gap = torch.where(mask, D - extreme[:, None], 0.0)
    if math.isinf(gamma):
        return extreme, (mask & (gap == 0)).sum(1).to(D.dtype), extreme
    mean_growth = (torch.expm1(-gamma * gap) * mask).sum(1) / count  # in (−1, 0]
    return extreme, count * (1 + mean_growth), extreme - torch.log1p(mean_growth) / gamma


def _row_weights(D: Tensor, gamma: float, extreme: Tensor, total: Tensor) -> Tensor:
    """r = ∂b/∂d, from what pass 1 found; rows where it has not been are for the caller to mask."""
    if gamma == 0:
        return 1 / total
    if math.isinf(gamma):
        return (extreme == D) / total
    return torch.exp(-gamma * (D - extreme)) / total


class ListedSide:
    """Bound to one list of members per row, and to its transpose, the rows that list each row."""

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
        # An owner's slope weighs its listing, and what it adds to the rows that it lists.
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
