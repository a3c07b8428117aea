"""Learned embeddings of single features, which a network for tables begins with.

A network of plain numbers has to build steps and bumps of one feature out of ramps. Here every
feature with more than two values is first mapped to several numbers of its own, by sines and
cosines of learned frequencies or by its place among its quantiles, and then by a learned linear
map. Features with two values (parts of a category, indicators of gaps) stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

FREQUENCIES = 16
"""Sines and cosines per feature."""
FREQUENCY_SCALE = 0.15
"""Standard deviation of the first frequencies, in periods per standard deviation."""
INTERVALS = 16
"""Intervals between quantiles, at most."""
EMBEDDING_SIZE = 16
"""Numbers that a feature becomes."""

EmbeddingName = Literal["periodic", "piecewise"]


class PeriodicCode(nn.Module):
    """x ↦ sin and cos of 2π f x for learned frequencies f of each feature: (b, d) → (b, d, 2k)."""

    def __init__(self, n_features: int, n_frequencies: int = FREQUENCIES) -> None:
        super().__init__()
        start = FREQUENCY_SCALE * torch.randn(n_features, n_frequencies)
        self.frequencies = nn.Parameter(start)
        self.width = 2 * n_frequencies

    def forward(self, X: Tensor) -> Tensor:
        phases = 2 * math.pi * X[:, :, None] * self.frequencies
        return torch.cat([torch.sin(phases), torch.cos(phases)], dim=2)


class PiecewiseLinearCode(nn.Module):
    """x ↦ the share of each interval between quantiles that lies below x: (b, d) → (b, d, k).

    Outside of the quantiles the first and the last share continue as straight lines. Features with
    fewer intervals than others have shares of 0 in the places that are left over.
    """

    starts: Tensor
    inverse_lengths: Tensor
    is_first: Tensor
    is_last: Tensor

    def __init__(self, X: Tensor, n_intervals: int = INTERVALS) -> None:
        super().__init__()
        edges = [_distinct_quantiles(column, n_intervals) for column in X.T]
        self.width = max(len(each) - 1 for each in edges)
        shape = len(edges), self.width
        starts, inverse, first, last = (X.new_zeros(shape) for _ in range(4))
        for row, each in enumerate(edges):
            k = len(each) - 1
            starts[row, :k], inverse[row, :k] = each[:-1], 1.0 / (each[1:] - each[:-1])
            first[row, 0] = last[row, k - 1] = 1.0
        self.register_buffer("starts", starts)
        self.register_buffer("inverse_lengths", inverse)
        self.register_buffer("is_first", first.bool())
        self.register_buffer("is_last", last.bool())

    def forward(self, X: Tensor) -> Tensor:
        shares = (X[:, :, None] - self.starts) * self.inverse_lengths
        shares = torch.where(self.is_first, shares, shares.clamp(min=0.0))
        return torch.where(self.is_last, shares, shares.clamp(max=1.0))


class FeatureEmbedding(nn.Module):
    """(b, d) features → (b, p): embedded ones and, after them, those that stay as they are.

    Parameters
    ----------
    X : (n, d) tensor
        Training rows, which say which features have more than two values, and their quantiles.
    kind : {"periodic", "piecewise"}
    size : int, default=16
        Numbers per embedded feature.
    """

    many: Tensor
    few: Tensor

    def __init__(self, X: Tensor, kind: EmbeddingName, size: int = EMBEDDING_SIZE) -> None:
        super().__init__()
        n_values = torch.tensor([len(torch.unique(column)) for column in X.T])
        self.register_buffer("many", torch.nonzero(n_values > 2).ravel())
        self.register_buffer("few", torch.nonzero(n_values <= 2).ravel())
        d = len(self.many)
        self.n_outputs = d * size + len(self.few)
        if d == 0:
            return
        embedded = X[:, self.many.to(X.device)]
        self.code = PeriodicCode(d) if kind == "periodic" else PiecewiseLinearCode(embedded)
        bound = self.code.width**-0.5
        self.weight = nn.Parameter(torch.empty(d, self.code.width, size).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(d, size).uniform_(-bound, bound))

    @property
    def features(self) -> Tensor:
        """(p,) the feature that every output belongs to."""
        size = self.weight.shape[2] if len(self.many) else 1
        return torch.cat([self.many.repeat_interleave(size), self.few])

    def forward(self, X: Tensor) -> Tensor:
        if len(self.many) == 0:
            return X
        codes = self.code(X[:, self.many])  # (b, d, k)
        embedded = torch.einsum("bdk,dke->bde", codes, self.weight) + self.bias
        return torch.cat([torch.relu(embedded).flatten(1), X[:, self.few]], dim=1)


def table_network(
    X: Tensor,
    kind: EmbeddingName | None,
    hidden: Sequence[int],
    n_components: int,
    dropout: float,
) -> nn.Sequential:
    """Network for rows of a table: feature embeddings, then hidden layers, then a linear map.

    Every hidden layer is a linear map, batch normalization, ReLU and dropout. Without a kind of
    embedding the features enter the first layer as they are.
    """
    layers: list[nn.Module] = []
    width = X.shape[1]
    if kind is not None:
        embedding = FeatureEmbedding(X, kind)
        layers, width = [embedding], embedding.n_outputs
    for wide in map(int, hidden):
        layers += [nn.Linear(width, wide), nn.BatchNorm1d(wide), nn.ReLU(), nn.Dropout(dropout)]
        width = wide
    return nn.Sequential(*layers, nn.Linear(width, int(n_components)))


def _distinct_quantiles(x: Tensor, n_intervals: int) -> Tensor:
    """Quantiles of x (n,), ascending, each once; two of them at least."""
    levels = torch.linspace(0.0, 1.0, n_intervals + 1, dtype=x.dtype, device=x.device)
    # torch.quantile refuses more than 16 million values: take order statistics instead.
    places = (levels * (len(x) - 1)).round().long()
    return torch.unique(torch.sort(x).values[places])
