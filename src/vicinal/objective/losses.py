"""Losses: what a sample costs, given its margin z = (s − t)/γ.

z < 0 means that the sample is nearer to its own class than to the others. Every loss increases
in z. See the table of section 2 of the paper's framework.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from vicinal._typing import FloatArray

Elementwise: TypeAlias = Callable[[FloatArray], FloatArray]


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


def _sigmoid(z: FloatArray) -> FloatArray:
    """σ(z) = 1/(1 + e^{−z}), without overflow and exact in both tails."""
    decay = np.exp(-np.abs(z))
    return np.where(z >= 0, 1.0, decay) / (1.0 + decay)


def _sigmoid_slope(z: FloatArray) -> FloatArray:
    """σ(z)·(1 − σ(z)), symmetric in z, so that neither tail cancels."""
    decay = np.exp(-np.abs(z))
    return decay / (1.0 + decay) ** 2


HINGE = Loss(
    "hinge",
    lambda z: np.maximum(0.0, 1.0 + z),
    lambda z: (z > -1.0).astype(z.dtype),
    convex=True,
)
SQUARED_HINGE = Loss(
    "squared_hinge",
    lambda z: np.maximum(0.0, 1.0 + z) ** 2,
    lambda z: 2.0 * np.maximum(0.0, 1.0 + z),
    convex=True,
)
LOGISTIC = Loss("logistic", lambda z: np.logaddexp(0.0, z), _sigmoid, convex=True)
LINEAR = Loss("linear", lambda z: z, np.ones_like, convex=True)
SIGMOID = Loss("sigmoid", _sigmoid, _sigmoid_slope)

LOSSES = {loss.name: loss for loss in (HINGE, SQUARED_HINGE, LOGISTIC, LINEAR, SIGMOID)}


def get_loss(loss: Any) -> Loss:
    """The loss of that name, or the user's own: a :class:`Loss` or a pair (value, slope).

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
        if loss not in LOSSES:
            raise ValueError(f"loss={loss!r} is unknown; use one of {', '.join(LOSSES)}, or a pair")
        return LOSSES[loss]
    if isinstance(loss, tuple) and len(loss) == 2 and all(map(callable, loss)):
        return Loss("custom", loss[0], loss[1])
    raise ValueError(
        f"loss={loss!r} is not a loss: give a name ({', '.join(LOSSES)}), a Loss, or a pair "
        "(value, slope) of elementwise functions of z"
    )
