"""The losses of :mod:`vicinal.objective.losses` for tensors: value and slope, elementwise in z."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import softplus


def _sigmoid_slope(z: Tensor) -> Tensor:
    decay = torch.exp(-z.abs())
    return decay / (1 + decay) ** 2


LOSSES: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "hinge": (lambda z: (1 + z).clamp(min=0), lambda z: (z > -1).to(z.dtype)),
    "squared_hinge": (lambda z: (1 + z).clamp(min=0) ** 2, lambda z: 2 * (1 + z).clamp(min=0)),
    "logistic": (lambda z: softplus(z, threshold=50.0), torch.sigmoid),
    "linear": (lambda z: z, torch.ones_like),
    "sigmoid": (torch.sigmoid, _sigmoid_slope),
}
