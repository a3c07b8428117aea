"""Contributions of each feature to the distance between two embeddings."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from vicinal._typing import FloatArray
from vicinal.deep.feature_embedding import FeatureEmbedding

NODES = 32
"""Points on the straight line between two rows."""


def feature_contributions(module: nn.Module, x: Tensor, rows: Tensor) -> FloatArray:
    """(k, d) what each feature adds to the squared distances from x (d,) to rows (k, d).

    Integrated gradients. Where the network begins with a :class:`FeatureEmbedding`, the line is
    straight between embedded features, and the parts of a feature are added up: a line between the
    features themselves would pass all the waves between two values, whose gradients cancel.
    """
    if not isinstance(module, nn.Sequential) or not isinstance(module[0], FeatureEmbedding):
        return path_contributions(module, x, rows)
    embedding = module[0]
    with torch.no_grad():
        embedded = embedding(torch.cat([x[None], rows]))
    parts = path_contributions(module[1:], embedded[0], embedded[1:])
    total = np.zeros((len(parts), len(x)), parts.dtype)
    np.add.at(total.T, embedding.features.cpu().numpy(), parts.T)
    return total


def path_contributions(module: nn.Module, x: Tensor, rows: Tensor) -> FloatArray:
    r"""(k, d) what each feature adds to the squared distances from x (d,) to rows (k, d).

    Integrated gradients: with F(a) the squared distance between the embeddings of a and of the row
    r, feature f adds

    .. math:: (x_f - r_f) \int_0^1 \frac{\partial F}{\partial a_f}(r + t (x - r)) \, dt

    along the straight line from r to x, and the sum over the features is F(x). The integral is
    taken by Gauss–Legendre quadrature; what is missing from the sum by rounding is shared in
    proportion. The module must be in evaluation mode.
    """
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    t = torch.as_tensor((nodes + 1) / 2, dtype=x.dtype, device=x.device)[None, :, None]
    step = x - rows  # (k, d)
    points = (rows[:, None] + t * step[:, None]).requires_grad_(True)  # (k, s, d)
    with torch.no_grad():
        ends = module(rows)
        totals = (module(x[None]) - ends).square().sum(dim=1)
    Z = module(points.flatten(0, 1)).unflatten(0, points.shape[:2])
    (gradients,) = torch.autograd.grad((Z - ends[:, None]).square().sum(), points)
    shares = torch.as_tensor(weights / 2, dtype=x.dtype, device=x.device)
    parts = step * torch.einsum("ksd,s->kd", gradients, shares)
    sizes = parts.abs()
    rest = (totals - parts.sum(dim=1))[:, None]
    parts = parts + rest * sizes / sizes.sum(dim=1, keepdim=True).clamp(min=1e-300)
    return np.asarray(parts.cpu().numpy())
