"""How the objective is computed: one narrow contract, several kernels.

::

                Z (n, m)  V (n, c)  alpha                       respond(rows, s, t) → ds, dt
                    │                                               ▲           │
        ┌───────────▼───────────────────────────────────────────────┴───────────▼──────────┐
        │ sweep:  blocks of anchor rows → distances → soft averages s, t → weights W → W·V │
        └───────────────────────────────────────────────────────────────────────┬──────────┘
                                                                                ▼
                                                    half Laplacian H, or Lap·V  (n, c)

A kernel knows squared distances and soft averages, no losses; the objective answers every block
of soft averages with one coefficient a row. :mod:`~vicinal.kernels.reference` says what is
computed, :mod:`~vicinal.kernels.cpu` computes it fast.
"""

from __future__ import annotations

from vicinal.kernels.contract import Comparisons, IndexLists, Kernel
from vicinal.kernels.reference import ReferenceKernel

BACKENDS = ("auto", "numba", "numpy")


def make_kernel(comparisons: Comparisons, backend: str = "auto") -> Kernel:
    """The kernel of that backend, bound to the comparisons; "auto" is "numba"."""
    if backend == "numpy":
        return ReferenceKernel(comparisons)
    if backend in ("auto", "numba"):
        # Imported late: Numba takes longer to import than all the rest.
        from vicinal.kernels.cpu import CpuKernel

        return CpuKernel(comparisons)
    raise ValueError(f"backend={backend!r} is unknown; use one of {', '.join(BACKENDS)}")


__all__ = ["BACKENDS", "Comparisons", "IndexLists", "Kernel", "ReferenceKernel", "make_kernel"]
