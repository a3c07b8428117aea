"""The default network, and helpers to run any network: device, seed, batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

import torch
from torch import Tensor, nn

BATCH = 8192
"""Number of rows that are embedded at a time."""


def multilayer_perceptron(
    n_features: int, hidden: Sequence[int], n_components: int
) -> nn.Sequential:
    """Linear maps n_features → hidden … → n_components with ReLU between them."""
    layers: list[nn.Module] = []
    for wide, narrow in pairwise((n_features, *hidden)):
        layers += [nn.Linear(wide, narrow), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear((n_features, *hidden)[-1], n_components))


@torch.no_grad()
def embed(module: nn.Module, X: Tensor) -> Tensor:
    """(n, m) embeddings of X (n, ...) in evaluation mode, where module and X are."""
    was_training = module.training
    module.eval()
    Z = torch.cat([module(part) for part in torch.split(X, BATCH)])
    module.train(was_training)
    if Z.ndim != 2:
        raise ValueError(f"module must return (batch, components), it returned {tuple(Z.shape)}")
    return Z


def choose_device(device: str | torch.device) -> torch.device:
    """The device of that name; "auto" is the GPU where there is one."""
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(device)


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Seed the weights and dropout; PyTorch's own generators are restored afterwards."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield
