"""Losses of the deep comparison, each with its grid, and the network that all of them train."""

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


@dataclass(frozen=True)
class Member:
    """A configuration of ANNLoss that may become its default."""

    loss: str
    alpha: float
    distance: str
    contrast: str = "dissimilar"

    @property
    def name(self) -> str:
        against = "" if self.contrast == "dissimilar" else ", against all"
        return f"{self.loss}, α = {self.alpha:g}, {self.distance}{against}"

    def make(self, temperature: float, _: int) -> nn.Module:
        return ANNLoss(
            self.alpha,
            loss=self.loss,
            plain=True if self.alpha else "dissimilar",
            distance=self.distance,
            contrast=self.contrast,
            temperature=temperature,
            normalize=True,
        )


MEMBERS = [
    Member("hinge", -1.0, "euclidean"),
    Member("hinge", 0.0, "euclidean"),
    Member("squared_hinge", -1.0, "euclidean"),
    Member("logistic", -1.0, "euclidean"),
    Member("logistic", 0.0, "euclidean"),
    Member("logistic", 1.0, "euclidean"),
    Member("logistic", -1.0, "squared"),
    Member("logistic", 0.0, "squared"),
    Member("sigmoid", 0.0, "euclidean"),
    Member("linear", 0.0, "euclidean", "all"),
    Member("linear", -1.0, "euclidean", "all"),
    Member("linear", 0.0, "squared", "all"),
]
"""All with plain soft averages; the default is the best of them on average by validation."""
MEMBER_TEMPERATURES = {
    "euclidean": (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2),
    "squared": (0.03, 0.1, 0.2, 0.5, 1.0),
}
TEMPERATURES = (0.1, 0.3, 1.0, 3.0, 10.0)
EARLIER = {
    "ANN+": Contestant(
        "temperature",
        TEMPERATURES,
        lambda T, _: ANNLoss(1.0, loss="hinge", plain=False, temperature=T),
    ),
    "ANN-": Contestant(
        "temperature",
        TEMPERATURES,
        lambda T, _: ANNLoss(-1.0, loss="hinge", plain=False, temperature=T, similar=10),
    ),
    "PNCA": Contestant(
        "temperature",
        TEMPERATURES,
        lambda T, _: ANNLoss(2.0, loss="sigmoid", plain=True, temperature=T),
    ),
}
"""The methods of the linear learner, as they are: squared distances, mostly means, margin 1."""
RIVALS = {
    "TripletMargin": Contestant(
        "margin",
        (0.00625, 0.0125, 0.025, 0.05, 0.1),
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
        (1.0, 2.0, 4.0, 8.0, 16.0),
        lambda a, c: _pml(
            "ProxyAnchorLoss", num_classes=c, embedding_size=COMPONENTS, margin=0.1, alpha=a
        ),
    ),
}
"""Losses of pytorch-metric-learning; what is not in the grid is the package's default."""
CONTESTANTS = {
    **{
        member.name: Contestant("temperature", MEMBER_TEMPERATURES[member.distance], member.make)
        for member in MEMBERS
    },
    **EARLIER,
    **RIVALS,
}
"""All compare normalized embeddings."""


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
    """A function of (embeddings, labels) that returns the loss, and its own parameters."""
    contestant = CONTESTANTS[name]
    loss = contestant.make(scale, n_classes).to(device)
    if contestant.miner is None:
        return loss, list(loss.parameters())
    miner = contestant.miner(scale)
    return lambda Z, y: loss(Z, y, miner(Z, y)), list(loss.parameters())
