"""The objective on a GPU: PyTorch around, Triton inside; nothing n×n is ever in memory.

::

    Z (n, m) float64 ──▶ 2 parts float16, padded ──▶ pass 1: log₂ Σ of every row, two sides
                                                        │
                      loss on the device (n numbers) ◀──┘
                         │ slopes
                         ▼
    pass 2: weights computed anew, (W + Wᵀ)·V, every row written once ──▶ Lap·V (n, c)

Of three parts on demand, where the gradient nearly vanishes. ``triton_passes`` has the two passes,
``triton_tiles`` the parts that they share, ``tiling`` the sizes of their tiles; ``triton_sweep``
launches them, ``torch_sweep`` does the same by matrix products where they cannot, and gathers the
pairs of lists; ``gpu_kernel`` puts them together. ``samples`` prepares tensors for a fit,
``gpu_neighbors`` finds neighbors, ``ranks`` shares the rows among processes.
Importing this package imports PyTorch, and nothing imports it before it is used.
"""

from __future__ import annotations

try:
    import torch
except ImportError as error:
    raise ImportError(
        "The GPU kernels need PyTorch and Triton: pip install 'vicinal[gpu]'"
    ) from error

from vicinal._typing import Array
from vicinal.kernels.contract import Comparisons
from vicinal.kernels.gpu.gpu_kernel import GpuKernel
from vicinal.kernels.gpu.gpu_neighbors import (
    device_all_neighbors,
    device_class_neighbors,
    nearest_of_class,
)
from vicinal.kernels.gpu.ranks import join_ranks
from vicinal.kernels.gpu.samples import (
    center_and_scale_samples,
    check_samples,
    covariances,
    second_moments,
)


def make_gpu_kernel(comparisons: Comparisons, backend: str = "cuda") -> GpuKernel:
    """The kernel of "cuda" (precise) or "cuda:fast" (11 bits) on PyTorch's current GPU."""
    check_device(backend)
    precision = "fast" if backend == "cuda:fast" else "high"
    return GpuKernel(comparisons, "cuda", precision)


def check_device(backend: str) -> None:
    """Raise an error that says what to do where PyTorch sees no GPU."""
    if not torch.cuda.is_available():
        raise RuntimeError(
            f"backend={backend!r} needs an NVIDIA GPU that PyTorch can use, and "
            "torch.cuda.is_available() is False here; use backend='auto' for the CPU"
        )


def copy_to_device(values: Array, device: str = "cuda") -> torch.Tensor:
    """A tensor on the device; a copy, since arrays may be read-only and tensors never are."""
    return torch.tensor(values, device=device)


__all__ = [
    "GpuKernel",
    "center_and_scale_samples",
    "check_device",
    "check_samples",
    "copy_to_device",
    "covariances",
    "device_all_neighbors",
    "device_class_neighbors",
    "join_ranks",
    "make_gpu_kernel",
    "nearest_of_class",
    "second_moments",
]
