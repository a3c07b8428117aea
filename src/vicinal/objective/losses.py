"""Losses: the cost of a sample, given its margin z = (s − t)/γ, or its residuals y − ŷ.

z < 0 means that the sample is nearer to its own class than to the others. Every loss increases
in z. See the table of section 2 of the paper's framework. The functions below take NumPy arrays and
PyTorch tensors, and compute in the module that the array belongs to.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import TypeAlias

import numpy as np

from vicinal._typing import Array

Elementwise: TypeAlias = Callable[[Array], Array]


@dataclass(frozen=True)
class Loss:
    """A loss ℓ and its derivative ℓ′, both elementwise in z.

    Examples
    --------
    >>> import numpy as np
    >>> from vicinal.objective.losses import get_loss
    >>> hinge = get_loss("hinge")
    >>> hinge.value(np.array([-2.0, 0.0])), hinge.slope(np.array([-2.0, 0.0]))
    (array([0., 1.]), array([0., 1.]))
    """

    name: str
    value: Elementwise
    slope: Elementwise
    convex: bool = False
    nonnegative: bool = False
    smoothing: Callable[[Array, float], tuple[Array, Array]] | None = None
    """For a loss with a kink: ℓ_w(z) and ℓ_w′(z) for a width w, smooth, with 0 ≤ ℓ − ℓ_w ≤ w/2."""
    takes_tensors: bool = False
    """Whether both functions take tensors; otherwise they are given NumPy arrays only."""

    def value_and_slope(self, z: Array) -> tuple[Array, Array]:
        """ℓ(z) and ℓ′(z): arrays for an array, tensors on the device of z for a tensor."""
        if self.takes_tensors or isinstance(z, np.ndarray):
            return self.value(z), self.slope(z)
        host = z.cpu().numpy()
        return z.new_tensor(self.value(host)), z.new_tensor(self.slope(host))


def array_namespace(z: Array) -> ModuleType:
    """The module whose functions take z: NumPy, or PyTorch if z is a tensor."""
    return sys.modules["torch"] if hasattr(z, "new_tensor") else np


def _hinge_slope(z: Array) -> Array:
    """1 where z > −1, else 0."""
    return array_namespace(z).asarray(z > -1.0, dtype=z.dtype)


def _smoothed_hinge(z: Array, width: float) -> tuple[Array, Array]:
    """A parabola where 0 < 1 + z < width, and beyond it a line of slope 1 (Huber)."""
    slope = ((1.0 + z) / width).clip(0.0, 1.0)
    return slope * (1.0 + z - 0.5 * width * slope), slope


def _softplus(z: Array) -> Array:
    """ln(1 + eᶻ), without overflow."""
    xp = array_namespace(z)
    return xp.logaddexp(xp.zeros_like(z), z)


def _sigmoid(z: Array) -> Array:
    """σ(z) = 1/(1 + e^{−z}), without overflow and exact in both tails."""
    xp = array_namespace(z)
    decay = xp.exp(-abs(z))
    return xp.where(z >= 0, 1.0, decay) / (1.0 + decay)


def _sigmoid_slope(z: Array) -> Array:
    """σ(z)·(1 − σ(z)), symmetric in z, so that neither tail cancels."""
    decay = array_namespace(z).exp(-abs(z))
    return decay / (1.0 + decay) ** 2


def _ones(z: Array) -> Array:
    return array_namespace(z).ones_like(z)


_built_in = partial(Loss, takes_tensors=True)

HINGE = _built_in(
    "hinge",
    lambda z: (1.0 + z).clip(0.0),
    _hinge_slope,
    convex=True,
    nonnegative=True,
    smoothing=_smoothed_hinge,
)
SQUARED_HINGE = _built_in(
    "squared_hinge",
    lambda z: (1.0 + z).clip(0.0) ** 2,
    lambda z: 2.0 * (1.0 + z).clip(0.0),
    convex=True,
    nonnegative=True,
)
LOGISTIC = _built_in("logistic", _softplus, _sigmoid, convex=True, nonnegative=True)
LINEAR = _built_in("linear", lambda z: z, _ones, convex=True)
SIGMOID = _built_in("sigmoid", _sigmoid, _sigmoid_slope, nonnegative=True)

LOSSES = {loss.name: loss for loss in (HINGE, SQUARED_HINGE, LOGISTIC, LINEAR, SIGMOID)}


SMOOTHING = 0.1
"""Residuals below which the absolute loss is about a parabola."""


def _distance(z: Array) -> Array:
    """√(z² + δ²) with δ = ``SMOOTHING``, without overflow."""
    xp = array_namespace(z)
    return xp.hypot(z, xp.full_like(z, SMOOTHING))


def _huber(z: Array) -> Array:
    """z² where |z| ≤ 1, beyond it the tangent 2|z| − 1."""
    inner = abs(z).clip(0.0, 1.0)
    return inner * (2.0 * abs(z) - inner)


_of_residuals = partial(_built_in, convex=True, nonnegative=True)

SQUARED = _of_residuals("squared", lambda z: z**2, lambda z: 2.0 * z)
ABSOLUTE = _of_residuals("absolute", lambda z: _distance(z) - SMOOTHING, lambda z: z / _distance(z))
HUBER = _of_residuals("huber", _huber, lambda z: 2.0 * z.clip(-1.0, 1.0))

RESIDUAL_LOSSES = {loss.name: loss for loss in (SQUARED, ABSOLUTE, HUBER)}


def get_loss(loss: object, known: Mapping[str, Loss] = LOSSES) -> Loss:
    """The known loss of that name, or the user's: a :class:`Loss` or a pair (value, slope).

    Examples
    --------
    >>> import numpy as np
    >>> cubed = get_loss((lambda z: z**3, lambda z: 3 * z**2))
    >>> cubed.slope(np.array([2.0]))
    array([12.])
    """
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str):
        if loss not in known:
            raise ValueError(f"loss={loss!r} is unknown; use one of {', '.join(known)}, or a pair")
        return known[loss]
    if isinstance(loss, tuple) and len(loss) == 2 and all(map(callable, loss)):
        return Loss("custom", loss[0], loss[1])
    raise ValueError(
        f"loss={loss!r} is not a loss: give a name ({', '.join(known)}), a Loss, or a pair "
        "(value, slope) of elementwise functions of z"
    )
