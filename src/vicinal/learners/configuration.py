"""Which member of the framework a learner is: a small frozen value, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_scalar

from vicinal.objective.losses import Loss, get_loss
from vicinal.objective.neighbor_objective import check_exponents


@dataclass(frozen=True)
class Configuration:
    """Which member of the framework is meant: the table "method = configuration", as a value."""

    alpha: float
    gamma: float
    loss: Loss
    plain: bool
    similar: Any
    dissimilar: Any
    regularization: float | str
    refresh_every: int | None = None


def check_configuration(
    *,
    alpha: float,
    gamma: float,
    loss: Any,
    plain: bool,
    similar: Any,
    dissimilar: Any,
    regularization: Any,
    refresh_every: Any = None,
) -> Configuration:
    """A configuration from a user's parameters, each checked, "auto" resolved."""
    check_exponents(alpha, gamma)
    if plain and alpha == 0:
        raise ValueError(
            "plain=True has no soft average at alpha=0; use another alpha, or the mean"
        )
    if not (isinstance(regularization, str) and regularization == "auto"):
        if isinstance(regularization, str) or not np.isfinite(regularization):
            raise ValueError(f"regularization={regularization!r} must be 'auto' or a number ≥ 0")
        check_scalar(regularization, "regularization", Real, min_val=0)
    if isinstance(similar, str) and similar == "auto":
        similar = 10 if alpha < 0 else "all"
    for name, value in (("similar", similar), ("dissimilar", dissimilar)):
        check_choice(name, value, ("all",), or_array=True)
        if isinstance(value, Integral):
            check_scalar(value, name, Integral, min_val=1)
    if refresh_every is not None:
        check_scalar(refresh_every, "refresh_every", Integral, min_val=1)
    return Configuration(
        alpha=float(alpha),
        gamma=float(gamma),
        loss=get_loss(loss),
        plain=bool(plain),
        similar=similar,
        dissimilar=dissimilar,
        regularization=regularization,
        refresh_every=refresh_every,
    )


def check_n_components(n_components: Any, d: int) -> None:
    """None, or a number of components that d features allow."""
    if n_components is None:
        return
    check_scalar(n_components, "n_components", Integral, min_val=1)
    if n_components > d:
        raise ValueError(
            f"n_components={n_components} exceeds the {d} features of X; use at most {d}, or None "
            "for all"
        )


def check_choice(name: str, value: Any, choices: tuple[str, ...], or_array: bool = False) -> None:
    """Raise a ValueError that lists the choices unless ``value`` is one of them."""
    if isinstance(value, str):
        if value in choices:
            return
    elif or_array and (isinstance(value, Integral) or hasattr(value, "__len__")):
        return
    allowed = ", ".join(repr(choice) for choice in choices)
    also = ", or an array" if or_array else ""
    raise ValueError(f"{name}={value!r} is not possible; use one of {allowed}{also}")
