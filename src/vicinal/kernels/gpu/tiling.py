"""Sizes of the tiles of the Triton kernels, which must fit the shared memory of the GPU."""

from __future__ import annotations

from dataclasses import dataclass

import torch

SHARED_MEMORY = 227 * 2**10
"""Of a program on an H200, for which the tiles were chosen; for GPUs that do not say theirs."""
COMPILER_SHARE = 11 * 2**10
"""What the compiler takes for itself."""
VALUE_WIDTHS = (128, 64, 32, 16)
"""Features of V that one pass multiplies at once, the most that fit."""


@dataclass(frozen=True)
class Tiling:
    """Rows and columns of a tile, warps of a program, tiles that are loaded ahead."""

    height: int
    width: int
    warps: int
    stages: int

    @property
    def options(self) -> dict[str, int]:
        return {
            "BM": self.height,
            "BN": self.width,
            "num_warps": self.warps,
            "num_stages": self.stages,
        }

    def memory(self, features: int, values: int, parts: int) -> int:
        """Bytes: the float16 parts of every row, and of all columns loaded ahead."""
        ahead = self.stages * self.width
        return 2 * max(parts, 2) * (self.height * features + ahead * (features + values))


WIDE, NARROW, NARROWEST = Tiling(128, 64, 8, 2), Tiling(64, 64, 4, 2), Tiling(64, 32, 4, 2)


def memory_for_tiles(device: torch.device) -> int:
    """Bytes of shared memory that tiles may take on this device."""
    available = SHARED_MEMORY
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        available = getattr(properties, "shared_memory_per_block_optin", available)
    return available - COMPILER_SHARE


def tiles_fit(features: int, parts: int, memory: int) -> bool:
    """Whether there are tiles for points of so many padded features, in so many parts."""
    return NARROWEST.memory(features, VALUE_WIDTHS[-1], parts) <= memory


def value_width(features: int, parts: int, memory: int) -> int:
    """The number of features of V, where it is not Z, that fit beside those of the points."""
    fitting = (v for v in VALUE_WIDTHS if NARROWEST.memory(features, v, parts) <= memory)
    return next(fitting, VALUE_WIDTHS[-1])


def log_sum_tiling(features: int, parts: int, memory: int) -> Tiling:
    """The fastest of some on an H200 that fits."""
    fastest = WIDE
    if features <= 64:
        fastest = Tiling(64, 128 if features <= 32 and parts < 3 else 64, 4, 2)
    return _first_that_fits(fastest, features, 0, parts, memory)


def product_tiling(features: int, values: int, parts: int, memory: int) -> Tiling:
    """The same for pass 2; ``values`` is the padded width of V where it is not Z, else 0."""
    fastest, width = WIDE, features + values
    if width <= 64:
        fastest = Tiling(64, 128, 4, 3 if width <= 32 else 2)
        if parts == 3:
            fastest = Tiling(64, 128 if width <= 32 else 64, 4, 2)
    return _first_that_fits(fastest, features, values, parts, memory)


def _first_that_fits(
    fastest: Tiling, features: int, values: int, parts: int, memory: int
) -> Tiling:
    for tiling in (fastest, NARROW, NARROWEST):
        if tiling.memory(features, values, parts) <= memory:
            return tiling
    raise ValueError(
        f"No tile of {features} + {values} features in {parts} parts fits {memory} bytes of shared "
        "memory; use the engine 'torch'"
    )
