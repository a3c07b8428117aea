"""The GPU kernel: bound to the comparisons of n points, it evaluates on the device."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from vicinal._typing import FloatArray, IndexArray
from vicinal.kernels.contract import (
    Comparisons,
    Respond,
    RespondToTargets,
    Response,
    SweepResult,
)
from vicinal.kernels.gpu.device_sweep import DeviceSweep
from vicinal.kernels.gpu.panel import WIDEST, Labels, feature_blocks
from vicinal.kernels.gpu.ranks import Ranks
from vicinal.kernels.gpu.tiling import memory_for_tiles, tiles_fit
from vicinal.kernels.gpu.torch_sweep import ListedSide, TorchSweep

if TYPE_CHECKING:
    from vicinal.kernels.gpu.triton_sweep import TritonSweep

GENTLE = 0.05
"""Exponents nearer to 0 lose digits in a log sum of float32; they are left to PyTorch."""
EXACT = 2
"""The level of precision that is float64."""
EXACT_PAIRS = 1e9
"""Pairs up to which it is used: about a tenth of a second."""
PRECISIONS = ("high", "fast")
ENGINES = ("auto", "triton", "torch")


class GpuKernel:
    """See :class:`vicinal.kernels.contract.Kernel`; computes with tensors on one device.

    Parameters
    ----------
    comparisons : the sets of similar and dissimilar rows; moved to the device once
    device : "cuda", "cuda:1", "cpu"
    precision : "high" or "fast"
        Numbers of 22 bits, and of more where that would not keep gradients within 1e-5 of
        float64; or numbers of 11 bits (tf32's).
    engine : "auto", "triton" or "torch"
        What computes complete sides. "auto" is Triton on a GPU where it is installed. Triton takes
        at most 256 components (fewer where shared memory is small) and exponents that are finite
        and not next to 0; what it does not take is PyTorch's, in the precision of the points,
        float64, whatever ``precision`` says.
    """

    half_is_cheaper = False

    def __init__(
        self,
        comparisons: Comparisons,
        device: str | torch.device = "cuda",
        precision: str = "high",
        engine: str = "auto",
    ) -> None:
        if precision not in PRECISIONS:
            raise ValueError(f"precision={precision!r} is unknown; use 'high' or 'fast'")
        self.device = torch.device(device)
        self.ranks = Ranks()
        self.precision = precision
        self.n = int(comparisons.offsets[-1])
        self.anchors = self.tensor(np.sort(comparisons.anchors))
        self._engine = choose_engine(engine, self.device)
        self._memory = memory_for_tiles(self.device)
        groups = None if comparisons.groups is None else self.tensor(comparisons.groups)
        self._labels = Labels.of(self.tensor(comparisons.class_of_row), groups)
        counts = np.stack([comparisons.n_similar, comparisons.n_dissimilar])
        self.counts = self.tensor(counts).double()  # (2, n)
        lists = (comparisons.similar, comparisons.dissimilar)
        two_sided = len(comparisons.offsets) > 2
        self._complete = (lists[0] is None, lists[1] is None and two_sided)
        self._listed = {
            side: ListedSide(members, self.device)
            for side, members in enumerate(lists)
            if members is not None
        }

    def tensor(self, values: FloatArray | IndexArray | Tensor) -> Tensor:
        """A host array on the device; a tensor as it is, if it is there."""
        if isinstance(values, Tensor):
            return values.to(self.device)
        return torch.as_tensor(np.ascontiguousarray(values), device=self.device)

    def evaluate(
        self, Z: Tensor, alpha: float, beta: float = 1.0, *, level: int = 0
    ) -> DeviceSweep:
        """Begin an evaluation at the points Z (n, m) on the device.

        A ``level`` above 0 is for gradients that nearly vanish, see :meth:`exponent_errors`.
        """
        gammas = (float(alpha), float(beta))
        dense: TritonSweep | TorchSweep | None = None
        if any(self._complete):
            parts = self._parts(level)
            if level < EXACT and self._uses_triton(Z.shape[1], gammas, parts):
                from vicinal.kernels.gpu.triton_sweep import TritonSweep

                dense = TritonSweep(Z, self._labels, self._complete, gammas, parts, self._memory)
            else:
                dense = TorchSweep(Z, self._labels, self._complete, gammas)
        listed = {side: lists.bind(Z, gammas[side]) for side, lists in self._listed.items()}
        return DeviceSweep(self, Z, dense, listed)

    def exponent_errors(self, Z: Tensor, alpha: float, beta: float = 1.0) -> list[float]:
        """About how far rounding moves exponents γd at every level of precision that there is.

        Level 0 has 22 bits of ‖a‖² + ‖b‖² − 2ab, level 1 float32's 24 of the weights themselves
        (and of what the first 11 bits leave of the points, which counts where exponents are in
        the thousands), level 2 is float64, where so many pairs are affordable; it is level 1
        where the tiles of that do not fit the GPU. A single 0 where nothing can, or needs to, be
        improved.
        """
        gammas = (float(alpha), float(beta))
        coarse, fine = (self._uses_triton(Z.shape[1], gammas, self._parts(k)) for k in (0, 1))
        if self.precision != "high" or not any(self._complete) or not coarse:
            return [0.0]
        largest = max(abs(g) for g, side in zip(gammas, self._complete, strict=True) if side)
        rounded = largest * float(Z.double().square().sum(1).mean()) * 2.0**-21
        split = max(2.0**-22, rounded * 2.0**-13)
        return [rounded] + [split] * fine + [0.0] * (float(self.n) ** 2 <= EXACT_PAIRS)

    def _parts(self, level: int) -> int:
        return 2 + level if self.precision == "high" else 1

    def _uses_triton(self, width: int, gammas: tuple[float, float], parts: int) -> bool:
        if self._engine != "triton" or width > WIDEST:
            return False
        blocks, block = feature_blocks(width)
        complete = [gamma for gamma, side in zip(gammas, self._complete, strict=True) if side]
        gentle = all(GENTLE <= abs(g) < math.inf for g in complete)
        return gentle and tiles_fit(blocks * block, parts, self._memory)

    def asarray(self, values: FloatArray | Tensor) -> Tensor:
        """See :meth:`vicinal.kernels.contract.Kernel.asarray`; the tensor is float64."""
        return self.tensor(values).double()

    def embed(self, X: Tensor, L: FloatArray) -> Tensor:
        """See :meth:`vicinal.kernels.contract.Kernel.embed`; all ranks must give the same L."""
        factor = self.asarray(L)
        self.ranks.check_agreement(factor)
        return X @ factor.T

    def sweep(
        self,
        Z: Tensor,
        V: Tensor,
        respond: Respond,
        *,
        alpha: float,
        beta: float = 1.0,
        symmetric: bool = False,
        rows: IndexArray | None = None,
    ) -> GpuSweepResult:
        """See :meth:`vicinal.kernels.contract.Kernel.sweep`; nothing of size n leaves the device.

        Where a process group has been joined, each rank sums over a range of the rows.
        """
        anchors = self.anchors if rows is None else self.tensor(np.sort(rows))
        values = None if V is Z else V
        request = _Request(Z, values, respond, float(alpha), float(beta), symmetric, anchors)
        return self.sums(request, level=0)

    def sweep_targets(
        self,
        Z: Tensor,
        V: Tensor,
        Y: Tensor,
        respond: RespondToTargets,
        *,
        symmetric: bool = False,
        rows: IndexArray | None = None,
    ) -> GpuSweepResult:
        """See :meth:`vicinal.kernels.contract.Kernel.sweep_targets`."""
        anchors = self.anchors if rows is None else self.tensor(np.sort(rows))
        values = None if V is Z else V
        request = _Request(Z, values, respond, 1.0, 1.0, symmetric, anchors, Y)
        return self.sums(request, level=0)

    def sums(self, request: _Request, level: int) -> GpuSweepResult:
        """The sums of a sweep at a level of precision, see :meth:`exponent_errors`."""
        share, anchors = self.ranks.share(self.n), request.anchors
        if share is not None:
            anchors = anchors[(anchors >= share[0]) & (anchors < share[1])]
        sweep = self.evaluate(request.Z, request.alpha, request.beta, level=level)
        averages = sweep.soft_averages(anchors)
        sweep.share_state(anchors, request.anchors)
        second = None
        if request.Y is None:
            value, ds, dt, second = Response(*request.respond(anchors, *averages))
            slopes = self.ranks.sum(self.slopes(anchors, ds, dt))
            laplacian = sweep.laplacian(request.V, slopes, share)
        else:
            residuals = sweep.residuals(request.Y, anchors)
            value, answers = request.respond(anchors, request.Y[anchors] - residuals)
            spread = self.ranks.sum(sweep.target_factors(request.Y, anchors, residuals, answers))
            laplacian = sweep.target_laplacian(request.V, request.Y, spread, request.anchors, share)
        if share is not None:  # the other rows are those of other ranks
            laplacian = pad(laplacian, (0, 0, share[0], self.n - share[1]))
        laplacian = laplacian if request.symmetric else 0.5 * laplacian
        seconds = torch.zeros_like(value) if second is None else second
        return GpuSweepResult(value.sum(), laplacian, self, request, second=seconds.sum())

    def slopes(self, anchors: Tensor, ds: Tensor, dt: Tensor) -> Tensor:
        """(2, n) float64: ∂J/∂s and ∂J/∂t of every row, 0 for those that are not anchors."""
        slopes = torch.zeros((2, self.n), dtype=torch.float64, device=self.device)
        slopes[0, anchors], slopes[1, anchors] = ds.double(), dt.double()
        return slopes


class _Request(NamedTuple):
    """The arguments of a sweep."""

    Z: Tensor
    V: Tensor | None
    respond: Callable[..., Any]
    alpha: float
    beta: float
    symmetric: bool
    anchors: Tensor
    Y: Tensor | None = None
    """The targets, where their averages are asked for."""


@dataclass(frozen=True)
class GpuSweepResult(SweepResult):
    """The sums of this rank, which can be computed again with more digits."""

    kernel: GpuKernel
    request: _Request

    @cached_property
    def _errors(self) -> list[float]:
        return self.kernel.exponent_errors(self.request.Z, self.request.alpha, self.request.beta)

    @property
    def rounding(self) -> float:
        """See :attr:`vicinal.kernels.contract.SweepResult.rounding`."""
        return self._errors[0]

    def refined(self, tolerance: float) -> SweepResult:
        """The sums at the lowest level of precision that is within the tolerance."""
        errors = self._errors
        level = next((k for k, error in enumerate(errors) if error <= tolerance), len(errors) - 1)
        return self.kernel.sums(self.request, level) if level > 0 else self

    def total(self, part: Tensor) -> FloatArray:
        """See :meth:`vicinal.kernels.contract.SweepResult.total`."""
        mine = part.clone(memory_format=torch.contiguous_format)
        return np.asarray(self.kernel.ranks.sum(mine).cpu().numpy())


def choose_engine(engine: str, device: torch.device) -> str:
    """The engine of "auto": "triton" on a GPU where it is installed, or "torch"."""
    if engine not in ENGINES:
        raise ValueError(f"engine={engine!r} is unknown; use 'auto', 'triton' or 'torch'")
    if engine != "auto":
        return engine
    return "triton" if device.type == "cuda" and find_spec("triton") is not None else "torch"
