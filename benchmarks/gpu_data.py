"""What the sections of bench_gpu.py share."""

from __future__ import annotations

import numpy as np
import torch


def say(text: str) -> None:
    print(text, flush=True)


def blobs(n: int, d: int, classes: int = 10) -> tuple[torch.Tensor, np.ndarray]:
    """Overlapping normal classes on the device, sorted, and their offsets."""
    generator = torch.Generator(device="cuda").manual_seed(0)
    offsets = np.linspace(0, n, classes + 1).astype(int)
    sizes = torch.as_tensor(np.diff(offsets), device="cuda")
    means = torch.randn((classes, d), generator=generator, device="cuda")
    X = torch.randn((n, d), generator=generator, device="cuda")
    X = X + 0.5 * means.repeat_interleave(sizes, dim=0)
    return X - X.mean(0), offsets
