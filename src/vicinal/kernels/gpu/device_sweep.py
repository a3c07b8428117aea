"""One evaluation on a device: averages per row first, then the Laplacian of their derivatives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from vicinal.kernels.gpu.panel import FAR
from vicinal.kernels.gpu.torch_sweep import ListedSweep, TorchSweep

if TYPE_CHECKING:
    from vicinal.kernels.gpu.gpu_kernel import GpuKernel
    from vicinal.kernels.gpu.triton_sweep import TritonSweep

DENSE = 0.8
"""The share of active anchors from which all pairs are computed rather than the needed ones."""


class DeviceSweep:
    """One evaluation: soft averages first, then what their derivatives make of the Laplacian."""

    def __init__(
        self,
        kernel: GpuKernel,
        Z: Tensor,
        dense: TritonSweep | TorchSweep | None,
        listed: dict[int, ListedSweep],
    ) -> None:
        self._kernel, self._Z, self._dense, self._listed = kernel, Z, dense, listed

    def soft_averages(self, rows: Tensor) -> Tensor:
        """(2, b) float64: s and t of these rows, ascending."""
        kernel = self._kernel
        averages = torch.zeros((2, len(rows)), dtype=torch.float64, device=kernel.device)
        if self._dense is not None:
            if len(rows) >= DENSE * kernel.n:  # all of them: those that are not asked for are few
                averages = self._dense.soft_averages(None, kernel.counts)[:, rows]
            else:
                averages = self._dense.soft_averages(rows, kernel.counts)
        for side, lists in self._listed.items():
            averages[side] = lists.average[rows]
        return averages

    def share_state(self, rows: Tensor, everybody: Tensor) -> None:
        """Give all ranks what pass 1 has found for these rows, which no other rank has visited.

        ``everybody`` are the rows of all ranks; the others stay where pass 1 has not been.
        """
        if self._dense is not None and self._kernel.ranks.size > 1:
            mine = torch.zeros_like(self._dense.state)
            mine[:, rows] = self._dense.state[:, rows]
            summed = self._kernel.ranks.sum(mine)
            state = torch.full_like(summed, FAR)
            state[:, everybody] = summed[:, everybody]
            self._dense.state = state

    def laplacian(
        self, V: Tensor | None, slopes: Tensor, rows: tuple[int, int] | None = None
    ) -> Tensor:
        """Lap V (n, c), float64, or those of its rows that are in a range; None for V means Z.

        Where few rows have a slope (an inactive hinge, a mini-batch) only pairs with one of them
        are computed: these rows against all, and all others against these.
        """
        first, last = rows or (0, self._kernel.n)
        active = (slopes != 0).any(0)  # (n,)
        n_active = int(active.sum())
        if n_active >= DENSE * self._kernel.n:
            wanted = None
            if rows is not None:
                wanted = torch.arange(first, last, device=slopes.device)
            return self._flow_of(V, slopes, wanted, None)
        width = self._Z.shape[1] if V is None else V.shape[1]
        out = torch.zeros((last - first, width), dtype=torch.float64, device=slopes.device)
        inside = torch.zeros_like(active)
        inside[first:last] = True
        everybody = active.nonzero()[:, 0]
        mine, rest = ((inside & chosen).nonzero()[:, 0] for chosen in (active, ~active))
        if len(mine):
            out[mine - first] = self._flow_of(V, slopes, mine, None)
        if len(rest) and n_active:
            out[rest - first] = self._flow_of(V, slopes, rest, everybody)
        return out

    def _flow_of(
        self, V: Tensor | None, slopes: Tensor, rows: Tensor | None, cols: Tensor | None
    ) -> Tensor:
        return self.flow(V, (slopes, slopes), rows, cols)[0]

    def flow(
        self,
        V: Tensor | None,
        slopes: tuple[Tensor, Tensor],
        rows: Tensor | None = None,
        cols: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Σ_j U_ij (v_i − v_j) and Σ_j U_ij of some rows, over all columns or those with slopes.

        U_ij = own_i · r_ij + other_j · r_ji, with ``slopes`` = (own, other), each (2, n).
        """
        parts = []
        if self._dense is not None:
            parts.append(self._dense.laplacian(V, slopes, rows, cols))
        values = self._Z if V is None else V
        for side, lists in self._listed.items():
            flow, degrees = lists.laplacian(values, slopes[0][side], slopes[1][side])
            parts.append((flow, degrees) if rows is None else (flow[rows], degrees[rows]))
        return torch.stack([f for f, _ in parts]).sum(0), torch.stack([d for _, d in parts]).sum(0)

    # -- averages of targets -----------------------------------------------------------------
    #
    # p_ij are the weights of the similar side. Row i of W is p_ij Σ_k u_ik t_jk with t_j = (1, y_j)
    # and u_i = (g_i·ŷ_i, −g_i), a sum of few products: what `flow` makes of t_k V and of u_k V is
    # all that is needed, and no pass over the pairs has to know of targets.

    def residuals(self, Y: Tensor, rows: Tensor) -> Tensor:
        """(b, q) y_i − ŷ_i = Σ_j p_ij (y_i − y_j) of these rows."""
        return self.flow(Y, self._ones(rows), rows)[0]

    def target_factors(self, Y: Tensor, rows: Tensor, residuals: Tensor, slopes: Tensor) -> Tensor:
        """(n, 1 + 2q) u_i and residuals of these rows; 0 for the others."""
        slopes = slopes.double()
        constants = (slopes * (Y[rows] - residuals)).sum(1, keepdim=True)
        factors = Y.new_zeros((len(Y), 1 + 2 * Y.shape[1]))
        factors[rows] = torch.cat([constants, -slopes, residuals], dim=1)
        return factors

    def target_laplacian(
        self,
        V: Tensor | None,
        Y: Tensor,
        factors: Tensor,
        anchors: Tensor,
        rows: tuple[int, int] | None = None,
    ) -> Tensor:
        """Lap V (n, c), or those of its rows that are in a range, from the factors of all anchors.

        With Σ_j p_ij t_jk (v_i − v_j) = [flow of t_k V]_i − (t_i − Σ_j p_ij t_j)_k v_i, and
        Σ_j p_ji u_jk (v_i − v_j) = [flow of u_k V]_i − [flow of u_k]_i v_i.
        """
        V = self._Z if V is None else V
        q, c = Y.shape[1], V.shape[1]
        first, last = rows or (0, self._kernel.n)
        u, gaps = factors[:, : 1 + q], torch.nn.functional.pad(factors[:, 1 + q :], (1, 0))
        mine = anchors[(anchors >= first) & (anchors < last)]
        here = torch.arange(first, last, device=V.device)
        few = anchors if len(anchors) < DENSE * self._kernel.n else None
        t = torch.nn.functional.pad(Y, (1, 0), value=1.0)  # (n, 1 + q)
        own, other = self._ones(anchors)
        sums, _ = self.flow(torch.cat([u, _products(u, V)], dim=1), (other, own), here, few)
        back = sums[:, 1 + q :].unflatten(1, (1 + q, c)) - sums[:, : 1 + q, None] * V[here, None]
        out = (t[here, :, None] * back).sum(1)
        if len(mine):
            sums, _ = self.flow(_products(t, V), (own, other), mine)
            forth = sums.unflatten(1, (1 + q, c)) - gaps[mine, :, None] * V[mine, None]
            out[mine - first] += (u[mine, :, None] * forth).sum(1)
        return out

    def _ones(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """(2, n) each: slopes of 1 on the similar side of these rows, and none."""
        own = torch.zeros((2, self._kernel.n), dtype=torch.float64, device=self._kernel.device)
        own[0, rows] = 1.0
        return own, torch.zeros_like(own)


def _products(factors: Tensor, V: Tensor) -> Tensor:
    """(n, k·c) every column of the factors (n, k) times V (n, c)."""
    return (factors[:, :, None] * V[:, None, :]).flatten(1)
