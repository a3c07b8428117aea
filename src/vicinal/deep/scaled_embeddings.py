"""Base of losses of embeddings: a distance, a temperature that divides it, normalization."""

from __future__ import annotations

import math
from numbers import Real

import torch
from torch import Tensor, nn

from vicinal.deep.soft_averages import DISTANCES
from vicinal.learners.parameters import check_choice


class ScaledEmbeddings(nn.Module):
    """Module whose embeddings are scaled so that their distances are divided by T.

    Parameters
    ----------
    distance : {"squared", "euclidean", "cosine"}
    temperature : float or None
        T. None is 1, and for embeddings of length 1 what the distance says.
    learn_temperature : bool
        Whether ln T is a parameter.
    normalize : bool
        Whether every embedding is scaled to length 1 first; the cosine distance always does that.
    """

    log_temperature: Tensor

    def __init__(
        self, distance: str, temperature: float | None, learn_temperature: bool, normalize: bool
    ) -> None:
        super().__init__()
        check_choice("distance", distance, tuple(DISTANCES))
        self.distance, self.normalize = distance, normalize
        self._distance = DISTANCES[distance]
        start = torch.tensor(0.0)
        if learn_temperature:
            self.log_temperature = nn.Parameter(start)
        else:
            self.register_buffer("log_temperature", start)
        self._directions = normalize or self._distance.directions
        default = self._distance.temperature if self._directions else 1.0
        self.temperature = default if temperature is None else temperature

    @property
    def temperature(self) -> float:
        """T, which divides the distances."""
        return float(self.log_temperature.detach().exp())

    @temperature.setter
    def temperature(self, value: float) -> None:
        if not isinstance(value, Real | Tensor) or not 0 < value < math.inf:
            raise ValueError(f"temperature={value!r} must be a number, positive and finite")
        with torch.no_grad():
            self.log_temperature.fill_(math.log(value))

    def _scaled(self, embeddings: Tensor) -> Tensor:
        """Embeddings whose distances are divided by T, in float32 at least."""
        with torch.autocast(embeddings.device.type, enabled=False):
            half = embeddings.dtype in (torch.float16, torch.bfloat16)
            Z = embeddings.float() if half else embeddings
            if self._directions:
                Z = nn.functional.normalize(Z, dim=1)
            return Z * self._distance.scale(self.log_temperature).to(Z.dtype)
