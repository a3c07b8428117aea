"""Anchors that a hinge loss leaves silent although their nearest neighbor is of another class.

    python benchmarks/deep_silence.py

Trains a small network on Omniglot with several hinge losses and prints, for training batches, the
share of anchors whose loss is 0 (silent), the share whose nearest neighbor in the batch is of
another class (wrong), and the share of silent anchors among the wrong ones. See docs/deep.md.
"""

from __future__ import annotations

import torch
from deep_evidence import _batches, load
from torch import Tensor, nn

from vicinal.deep import ANNLoss

STEPS = (20, 50, 100, 200)
LOSSES = {
    "ANN+, T = 0.1": {"alpha": 1.0, "temperature": 0.1},
    "ANN+, T = 1": {"alpha": 1.0, "temperature": 1.0},
    "ANN+, T = 3": {"alpha": 1.0, "temperature": 3.0},
    "ANN-, T = 1": {"alpha": -1.0, "temperature": 1.0},
    "ANN+, T = 0.1, plain": {"alpha": 1.0, "temperature": 0.1, "plain": True},
    "lifted structure, T = 1/32": {
        "alpha": -1.0,
        "temperature": 1 / 32,
        "plain": True,
        "distance": "euclidean",
    },
}


def small_network(width: int = 16) -> nn.Sequential:
    """The network of the comparison with fewer channels."""
    layers: list[nn.Module] = []
    for channels in (1, width, width, width):
        layers += [
            nn.Conv2d(channels, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(width, 64))


def wrong_neighbors(Z: Tensor, y: Tensor) -> Tensor:
    """(b,) whether the nearest neighbor in the batch is of another class."""
    unit = nn.functional.normalize(Z, dim=1)
    return y[(unit @ unit.T).fill_diagonal_(-2).argmax(dim=1)] != y


def main() -> None:
    train, _ = load("omniglot28", "tuning", torch.device("cpu"), None)
    print("loss | step | silent | wrong | silent among wrong")
    for name, configuration in LOSSES.items():
        torch.manual_seed(0)
        network = small_network()
        options = {"loss": "hinge", "plain": False, **configuration}
        loss = ANNLoss(reduction="none", **options)
        optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3)
        batches = _batches(train, seed=0)
        for step in range(1, STEPS[-1] + 1):
            rows = next(batches)
            Z, y = network(train.pixels(rows)), train.y[rows]
            values = loss(Z, y)
            optimizer.zero_grad()
            values.mean().backward()
            optimizer.step()
            if step in STEPS:
                silent, wrong = values.detach() == 0, wrong_neighbors(Z.detach(), y)
                shares = (silent, wrong, silent[wrong])
                texts = (f"{100 * part.float().mean():.0f} %" for part in shares)
                print(name, step, *texts, sep=" | ", flush=True)


if __name__ == "__main__":
    main()
