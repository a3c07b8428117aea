"""The Numba kernel: fused, threaded over rows, nothing n×n in memory.

One evaluation lays the points out once (transposed, padded, in compact order where skipping
pays) and lets every thread take its share of the blocks. The anchors are cut into quads of one
class, the quads into blocks whose weights fit a cache: once for all evaluations, unless the order
changes.
"""

from __future__ import annotations

from functools import cached_property, partial

import numpy as np

from vicinal._typing import FloatArray, IndexArray
from vicinal.kernels.contract import (
    Comparisons,
    HostKernel,
    Respond,
    RespondToTargets,
    SweepResult,
)
from vicinal.kernels.cpu.cpu_sweep import CpuSweep, TargetSweep
from vicinal.kernels.cpu.inner_loops import QUAD
from vicinal.kernels.cpu.layout import Arrangement, Block, cut_into_blocks, run_in_shares

BLOCK_ELEMENTS = 2**19
"""Weights per block: 4 MiB in float64, within reach of the second and third caches."""
SERIAL_ELEMENTS = 2**18
"""Evaluations of fewer weights than this are not worth waking threads."""


class CpuKernel(HostKernel):
    """See :class:`vicinal.kernels.contract.Kernel`."""

    def __init__(self, comparisons: Comparisons) -> None:
        self._comparisons = comparisons
        self._unmoved = Arrangement.of(comparisons)

    @cached_property
    def _all_blocks(self) -> list[Block]:
        """Of all anchors, where points keep the order of the rows."""
        return _blocks(self._unmoved, self._comparisons.anchors)

    def sweep(
        self,
        Z: FloatArray,
        V: FloatArray,
        respond: Respond,
        *,
        alpha: float,
        beta: float = 1.0,
        symmetric: bool = False,
        rows: IndexArray | None = None,
    ) -> SweepResult:
        """See :meth:`vicinal.kernels.contract.Kernel.sweep`."""
        exponents = float(alpha), float(beta)
        sweep = CpuSweep(self._comparisons, self._unmoved, Z, V, exponents, symmetric)
        return self._visit(sweep, respond, rows)

    def sweep_targets(
        self,
        Z: FloatArray,
        V: FloatArray,
        Y: FloatArray,
        respond: RespondToTargets,
        *,
        symmetric: bool = False,
        rows: IndexArray | None = None,
    ) -> SweepResult:
        """See :meth:`vicinal.kernels.contract.Kernel.sweep_targets`."""
        sweep = TargetSweep(self._comparisons, self._unmoved, Z, V, Y, symmetric)
        return self._visit(sweep, respond, rows)

    def _visit(
        self, sweep: CpuSweep, respond: Respond | RespondToTargets, rows: IndexArray | None
    ) -> SweepResult:
        """The work on all blocks, shared among threads."""
        if rows is None and not sweep.reordered:
            blocks = self._all_blocks
        else:
            blocks = _blocks(sweep.placed, self._comparisons.anchors if rows is None else rows)
        elements = QUAD * sum(len(block.quads) for block in blocks) * len(self._unmoved.order)
        run = partial(sweep.run, respond)
        return sweep.assemble(run_in_shares(run, blocks, threaded=elements >= SERIAL_ELEMENTS))


def _blocks(placed: Arrangement, rows: IndexArray) -> list[Block]:
    """The rows in blocks whose weights fit a cache."""
    return cut_into_blocks(np.sort(placed.position[rows]), placed.offsets, BLOCK_ELEMENTS)
