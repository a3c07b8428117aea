"""The losses of the deep comparison, each with its grid, and the network that all of them train."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from vicinal.deep import ANNLoss

COMPONENTS = 64
LEARNING_RATES = (1e-3, 3e-3)
PROXY_RATE = 10.0
"""Proxies learn faster than the network, as Proxy-Anchor's authors have it (0.01 there)."""

Objective = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Contestant:
    """A loss, and the five values that its own scale (temperature, margin) may take."""

    parameter: str
    scales: tuple[float, ...]
    make: Callable[[float, int], nn.Module]
    """``make(scale, n_classes)``"""
    miner: Callable[[float], Any] | None = None


class OnSphere(nn.Module):
    """A loss of unnormalized distances, of embeddings of this length: its only scale."""

    def __init__(self, loss: nn.Module, radius: float) -> None:
        super().__init__()
        self.loss, self.radius = loss, radius

    def forward(self, Z: Tensor, y: Tensor) -> Tensor:
        return self.loss(self.radius * nn.functional.normalize(Z, dim=1), y)


def _lifted(radius: float, _: int) -> nn.Module:
    from pytorch_metric_learning.distances import LpDistance

    distance = LpDistance(normalize_embeddings=False)
    return OnSphere(_pml("GeneralizedLiftedStructureLoss", distance=distance), radius)


def _pml(name: str, **arguments: Any) -> nn.Module:
    from pytorch_metric_learning import losses

    return getattr(losses, name)(**arguments)


def _semihard(margin: float) -> Any:
    from pytorch_metric_learning.miners import TripletMarginMiner

    return TripletMarginMiner(margin=margin, type_of_triplets="semihard")


TEMPERATURES = (0.1, 0.3, 1.0, 3.0, 10.0)
CONTESTANTS = {
    "ANN+": Contestant(
        "temperature", TEMPERATURES, lambda T, _: ANNLoss(1.0, temperature=T, normalize=True)
    ),
    "ANN-": Contestant(
        "temperature",
        TEMPERATURES,
        lambda T, _: ANNLoss(-1.0, temperature=T, normalize=True, similar=10),
    ),
    "PNCA": Contestant(
        "temperature",
        TEMPERATURES,
        lambda T, _: ANNLoss(2.0, loss="sigmoid", plain=True, temperature=T, normalize=True),
    ),
    "TripletMargin": Contestant(
        "margin",
        (0.025, 0.05, 0.1, 0.2, 0.4),
        lambda m, _: _pml("TripletMarginLoss", margin=m),
        _semihard,
    ),
    # The margins of LiftedStructure only shift it.
    "LiftedStructure": Contestant("radius", (1.0, 4.0, 16.0, 32.0, 64.0), _lifted),
    "NCALoss": Contestant(
        "softmax_scale",
        (0.3, 1.0, 10.0, 30.0, 100.0),
        lambda s, _: _pml("NCALoss", softmax_scale=s),
    ),
    "SupCon": Contestant(
        "temperature", (0.025, 0.05, 0.1, 0.2, 0.4), lambda T, _: _pml("SupConLoss", temperature=T)
    ),
    "ProxyAnchor": Contestant(
        "alpha",
        (4.0, 8.0, 16.0, 32.0, 64.0),
        lambda a, c: _pml(
            "ProxyAnchorLoss", num_classes=c, embedding_size=COMPONENTS, margin=0.1, alpha=a
        ),
    ),
}
"""All compare normalized embeddings; what is not in the grid is the package's default."""


def convolutional_network() -> nn.Sequential:
    """The four-block network of few-shot learning: 28 × 28 pixels → 64 components."""
    layers: list[nn.Module] = []
    for channels in (1, 64, 64, 64):
        layers += [
            nn.Conv2d(channels, 64, 3, padding=1, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(64, COMPONENTS))


def make_objective(
    name: str, scale: float, n_classes: int, device: torch.device
) -> tuple[Objective, list[nn.Parameter]]:
    """What turns (embeddings, labels) into the loss, and its own parameters."""
    contestant = CONTESTANTS[name]
    loss = contestant.make(scale, n_classes).to(device)
    if contestant.miner is None:
        return loss, list(loss.parameters())
    miner = contestant.miner(scale)
    return lambda Z, y: loss(Z, y, miner(Z, y)), list(loss.parameters())
