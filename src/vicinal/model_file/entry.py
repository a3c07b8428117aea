"""Entries: how the objects of a class are stored in a model file, and what they must hold."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias

from vicinal.model_file.schema import Field

Values: TypeAlias = dict[str, Any]

LEFT_OUT = frozenset({"callback", "memory", "n_jobs"})
"""Parameters that belong to a run or a machine, not to a model: they return to their defaults."""


def attributes(model: object, names: tuple[str, ...]) -> Values:
    """Those of the attributes that the model has."""
    return {name: vars(model)[name] for name in names if name in vars(model)}


def with_attributes(cls: type, parameters: Values, state: Values) -> Any:
    """An estimator as ``fit`` would have left it."""
    model = cls(**parameters)
    for name, value in state.items():
        setattr(model, name, value)
    return model


def no_check(model: object) -> None:
    """Nothing more to check."""


@dataclass(frozen=True)
class Entry:
    """Rule by which objects of a class are stored.

    Parameters
    ----------
    path : "module:class"; imported on use
    state : the fitted attributes; none where parameters are all there is
    parameters : those constructor parameters that predictions depend on
    only : store no other parameters, as they vary with scikit-learn's version or with the machine
    check : raises ValueError where fields that are right by themselves contradict each other
    to_state : ``(model, names of the state) -> state``
    from_state : ``(class, parameters, state) -> model``; may raise ValueError or TypeError
    """

    path: str
    state: tuple[Field, ...] = ()
    parameters: tuple[Field, ...] = ()
    only: bool = False
    check: Callable[[Any], None] = no_check
    to_state: Callable[[object, tuple[str, ...]], Values] = attributes
    from_state: Callable[[type, Values, Values], Any] = with_attributes

    def load_class(self) -> type:
        """The class itself."""
        module, _, name = self.path.partition(":")
        return getattr(import_module(module), name)

    def parameter_names(self) -> set[str]:
        """Parameters that are stored."""
        if self.only:
            return {field.name for field in self.parameters}
        return set(inspect.signature(self.load_class()).parameters) - LEFT_OUT

    def parameters_of(self, model: object) -> Values:
        """Parameters of an object and their values."""
        return {name: getattr(model, name) for name in sorted(self.parameter_names())}

    @property
    def stateless(self) -> bool:
        """Whether the parameters are all there is: frozen dataclasses, pipelines."""
        return not self.state

    def state_of(self, model: object) -> Values | None:
        """Fitted attributes; None where there are none, before ``fit``."""
        return self.to_state(model, tuple(field.name for field in self.state)) or None
