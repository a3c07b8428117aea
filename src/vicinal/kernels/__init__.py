"""Computation of the objective: one narrow contract, several kernels.

::

                Z (n, m)  V (n, c)  alpha                    respond(rows, s, t) → value, ds, dt
                    │                                               ▲           │
        ┌───────────▼───────────────────────────────────────────────┴───────────▼──────────┐
        │ sweep:  blocks of anchor rows → distances → soft averages s, t → weights W → W·V │
        └───────────────────────────────────────────────────────────────────────┬──────────┘
                                                                                ▼
                                         sum of the values; Lap·V, or a half of it (n, c)

A kernel knows squared distances and soft averages, but no losses; the objective answers every block
of soft averages with a value and its derivatives, per row. :mod:`~vicinal.kernels.reference`
defines what is computed, :mod:`~vicinal.kernels.cpu` computes it fast, :mod:`~vicinal.kernels.gpu`
on a GPU.
"""

from __future__ import annotations

import sys

from vicinal._typing import IndexArray
from vicinal.kernels.contract import Comparisons, IndexLists, Kernel, PairKernel, PushKernel
from vicinal.kernels.reference import ReferenceKernel

BACKENDS = ("auto", "numba", "numpy")
DEVICE_BACKENDS = ("cuda", "cuda:fast")
WORTH_A_DEVICE = 20_000
"""Rows below which a GPU that happens to be there is not used."""


def choose_backend(backend: str, n: int) -> str:
    """The backend of "auto" for n rows: "cuda" where the user already works with a GPU, or "numba".

    PyTorch is never imported to find out: without it, "cuda" must be asked for by name.
    """
    if backend != "auto":
        return backend
    torch = sys.modules.get("torch")
    if n >= WORTH_A_DEVICE and torch is not None and torch.cuda.is_available():
        return "cuda"
    return "numba"


def make_kernel(comparisons: Comparisons, backend: str = "auto") -> Kernel:
    """The kernel of that backend, bound to the comparisons; "auto" is "numba"."""
    if backend in DEVICE_BACKENDS:
        from vicinal.kernels.gpu import make_gpu_kernel

        return make_gpu_kernel(comparisons, backend)
    if backend == "numpy":
        return ReferenceKernel(comparisons)
    if backend in ("auto", "numba"):
        # Imported late: Numba takes longer to import than all the rest.
        from vicinal.kernels.cpu.cpu_kernel import CpuKernel

        return CpuKernel(comparisons)
    known = ", ".join((*BACKENDS, *DEVICE_BACKENDS))
    raise ValueError(f"backend={backend!r} is unknown; use one of {known}")


def make_push_kernel(targets: Comparisons, backend: str = "auto") -> PushKernel:
    """LMNN's kernel of that backend ("auto" is "numba") for the targets ``targets.similar``."""
    from vicinal.kernels.cpu.impostors import Impostors, ReferenceImpostors

    return ReferenceImpostors(targets) if backend == "numpy" else Impostors(targets)


def make_pair_kernel(
    offsets: IndexArray, weights: tuple[float, float], backend: str = "auto"
) -> PairKernel:
    """LDML's kernel of that backend ("auto" is "numba"), for the weights (ω_s, ω_d) of pairs."""
    from vicinal.kernels.cpu.logistic_pairs import LogisticPairs, ReferenceLogisticPairs

    kernel = ReferenceLogisticPairs if backend == "numpy" else LogisticPairs
    return kernel(offsets, weights)


__all__ = [
    "BACKENDS",
    "DEVICE_BACKENDS",
    "Comparisons",
    "IndexLists",
    "Kernel",
    "PairKernel",
    "PushKernel",
    "ReferenceKernel",
    "choose_backend",
    "make_kernel",
    "make_pair_kernel",
    "make_push_kernel",
]
