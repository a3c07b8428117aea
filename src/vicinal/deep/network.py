"""Helpers to run a network: batches, device, seed, threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from vicinal._typing import FloatArray
from vicinal.learners.parameters import InvalidParameter

BATCH = 8192
"""Number of rows that are embedded at a time."""


def embed(module: nn.Module, X: Tensor | ArrayLike, *, normalize: bool = True) -> FloatArray:
    """Embed samples, for an index of them and for the queries to it.

    The module computes in evaluation mode and without gradients, on the device that it is on.

    Parameters
    ----------
    module : torch.nn.Module
        From (batch, ...) to (batch, components).
    X : tensor or array of shape (n, ...)
        Samples, on any device. Numbers with a decimal point get the precision of the module.
    normalize : bool, default=True
        Scale every embedding to length 1, as :class:`ANNLoss` does by default.

    Returns
    -------
    Z : array of shape (n, components)

    Examples
    --------
    An index of four samples, and the classes of two others:

    >>> import torch
    >>> import vicinal as vc
    >>> from vicinal.deep import embed
    >>> network = torch.nn.Linear(2, 2, bias=False)
    >>> X = torch.tensor([[0.0, 1.0], [0.0, 2.0], [1.0, 0.0], [2.0, 0.0]])
    >>> index = vc.ClassMeanKNN(1, rule="vote").fit(embed(network, X), ["a", "a", "b", "b"])
    >>> index.predict(embed(network, 5 * X[1:3]))
    array(['a', 'b'], dtype='<U1')
    """
    Z = embed_tensor(module, torch.as_tensor(X))
    Z = Z.float() if Z.element_size() < 4 else Z
    return np.asarray((nn.functional.normalize(Z, dim=1) if normalize else Z).cpu().numpy())


@torch.no_grad()
def embed_tensor(module: nn.Module, X: Tensor) -> Tensor:
    """(n, m) embeddings of X (n, ...) in evaluation mode, on the device of the module."""
    weight = next(module.parameters(), X)
    dtype = weight.dtype if X.is_floating_point() else X.dtype
    was_training = module.training
    module.eval()
    Z = torch.cat([module(part.to(weight.device, dtype)) for part in torch.split(X, BATCH)])
    module.train(was_training)
    if Z.ndim != 2:
        raise ValueError(f"module must return (batch, components), it returned {tuple(Z.shape)}")
    return Z


def choose_device(device: str | torch.device) -> torch.device:
    """The device of that name; "auto" is the GPU where there is one."""
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        chosen = torch.device(device)
        torch.zeros(1, device=chosen).cpu()
    except (AssertionError, RuntimeError, TypeError, ValueError) as error:  # all are PyTorch's
        reason = str(error).partition("\n")[0]
        raise InvalidParameter(f"device={device!r} is not possible here: {reason}") from None
    return chosen


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Seed the weights and dropout; PyTorch's own generators are restored afterwards."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


@contextmanager
def keep_threads() -> Iterator[None]:
    """Restore PyTorch's number of threads, which Numba changes where it starts its own."""
    n_threads = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)
