"""The configuration of the neighbor objective: which member of the framework a learner is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vicinal.learners.parameters import NOT_NEGATIVE, OPTIONAL_COUNT, Choice, CountOrArray
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
    Choice(("auto",), NOT_NEGATIVE).check("regularization", regularization)
    if isinstance(similar, str) and similar == "auto":
        similar = 10 if alpha < 0 else "all"
    for name, value in (("similar", similar), ("dissimilar", dissimilar)):
        Choice(("all",), CountOrArray()).check(name, value)
    OPTIONAL_COUNT.check("refresh_every", refresh_every)
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
