"""Checks of parameters: every estimator declares what it takes, one function compares.

An estimator has a class attribute ``_constraints``, a mapping from parameter names to constraints;
``fit`` calls :func:`check_parameters` before any work is done. The error names the parameter, its
value and what is possible. Parameters that mean the same wherever they occur are in ``COMMON``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Protocol, TypeAlias

import numpy as np


class InvalidParameter(ValueError, TypeError):
    """A parameter of an estimator has a value, or a type, that is not possible."""


class Constraint(Protocol):
    """A condition on one parameter."""

    @property
    def words(self) -> str:
        """The possible values, as the end of the sentence "use …"."""
        ...

    def check(self, name: str, value: object) -> None:
        """Raise an error that names the parameter unless its value is possible."""
        ...


@dataclass(frozen=True)
class Number:
    """A number between two bounds: never NaN, and infinite only where that is said."""

    low: float = -math.inf
    high: float = math.inf
    whole: bool = False
    above_low: bool = False
    """Whether ``low`` itself is excluded."""
    infinite: bool = False

    @property
    def words(self) -> str:
        kind = "a number" if self.infinite else "a finite number"
        kind = "a whole number" if self.whole else kind
        low = "" if self.low == -math.inf else f" {'>' if self.above_low else '>='} {self.low:g}"
        high = "" if self.high == math.inf else f" and <= {self.high:g}"
        return kind + low + high

    def check(self, name: str, value: object) -> None:
        """The type first, then the bounds."""
        if not isinstance(value, Integral if self.whole else Real):
            kind, found = "int" if self.whole else "float", type(value).__name__
            raise InvalidParameter(f"{name} must be an instance of {kind}, not {found}")
        try:
            number = float(value)
        except OverflowError:  # an int that no float can hold
            raise InvalidParameter(f"{name} is too large; it must be {self.words}") from None
        above = number > self.low if self.above_low else number >= self.low
        finite = math.isfinite(number) or (self.infinite and not math.isnan(number))
        if not (above and number <= self.high and finite):
            raise InvalidParameter(f"{name} == {value!r}, must be {self.words}")


@dataclass(frozen=True)
class JobCount:
    """A number of threads or processes, as joblib counts them: -1 is one per core."""

    words = "a whole number other than 0"

    def check(self, name: str, value: object) -> None:
        Number(whole=True).check(name, value)
        if value == 0:
            raise InvalidParameter(f"{name} == 0, must be {self.words}")


@dataclass(frozen=True)
class Flag:
    """True or False, or 1 or 0."""

    words = "True or False"

    def check(self, name: str, value: object) -> None:
        known = isinstance(value, np.bool_) or (isinstance(value, Integral) and value in (0, 1))
        if not known:
            raise InvalidParameter(f"{name}={value!r} is not possible; use {self.words}")


@dataclass(frozen=True)
class RandomSeed:
    """What scikit-learn's ``check_random_state`` takes."""

    words = "a whole number >= 0 and < 2**32, a numpy.random.RandomState, or None"

    def check(self, name: str, value: object) -> None:
        if isinstance(value, Integral):
            known = 0 <= int(value) < 2**32
        else:
            known = value is None or value is np.random or isinstance(value, np.random.RandomState)
        if not known:
            raise InvalidParameter(f"{name}={value!r} is not possible; use {self.words}")


@dataclass(frozen=True)
class ArrayGiven:
    """Anything array-like; its shape is checked where it is used."""

    words = "an array"

    def check(self, name: str, value: object) -> None:
        if not hasattr(value, "__len__") or isinstance(value, Mapping | Set):
            raise InvalidParameter(f"{name}={value!r} is not possible; use {self.words}")


@dataclass(frozen=True)
class FoldsGiven:
    """What scikit-learn's ``check_cv`` takes; what an iterable yields is seen where it is used."""

    words = "a whole number >= 2, a splitter of scikit-learn, or (train, test) pairs of rows"

    def check(self, name: str, value: object) -> None:
        if isinstance(value, Integral) and not isinstance(value, bool):
            Number(2, whole=True).check(name, value)
            return
        is_text = isinstance(value, str | bytes | bytearray)  # which can be split, too
        known = not is_text and (hasattr(value, "split") or isinstance(value, Iterable))
        if not known and value is not None:
            raise InvalidParameter(f"{name}={value!r} is not possible; use {self.words}")


@dataclass(frozen=True)
class ClassWeights:
    """What scikit-learn's ``compute_sample_weight`` takes for one target."""

    words = "None, 'balanced', or a dict from classes to finite numbers >= 0"

    def check(self, name: str, value: object) -> None:
        known = value is None or (isinstance(value, str) and value == "balanced")
        if not known and not isinstance(value, Mapping):
            raise InvalidParameter(f"{name}={value!r} is not possible; use {self.words}")
        for label, weight in value.items() if isinstance(value, Mapping) else ():
            NOT_NEGATIVE.check(f"{name}[{label!r}]", weight)


@dataclass(frozen=True)
class CountOrArray:
    """A whole number of at least 1, or anything array-like."""

    words = "a whole number >= 1, or an array"

    def check(self, name: str, value: object) -> None:
        if isinstance(value, Integral):
            Number(1, whole=True).check(name, value)
        elif not hasattr(value, "__len__"):
            raise InvalidParameter(f"{name}={value!r} is not possible; use {self.words}")


@dataclass(frozen=True)
class Function:
    """Anything that can be called."""

    words = "a function"

    def check(self, name: str, value: object) -> None:
        if not callable(value):
            raise InvalidParameter(f"{name} must be a function, or None; got {value!r}")


@dataclass(frozen=True)
class Instance:
    """An object of a class."""

    kind: type
    words: str
    """The class with its article, as users know it."""

    def check(self, name: str, value: object) -> None:
        if not isinstance(value, self.kind):
            raise InvalidParameter(f"{name} must be {self.words}, got {value!r}")


@dataclass(frozen=True)
class OneOf:
    """One of some names (None may be one), or what another constraint allows."""

    names: tuple[str | None, ...]
    otherwise: Constraint | None = None

    @property
    def words(self) -> str:
        named = ", ".join(repr(name) for name in self.names)
        also = "" if self.otherwise is None else f", or {self.otherwise.words}"
        return f"{'one of ' if len(self.names) > 1 else ''}{named}{also}"

    def check(self, name: str, value: object) -> None:
        is_name = value is None or isinstance(value, str)
        if is_name and value in self.names:
            return
        if is_name or self.otherwise is None:
            raise InvalidParameter(f"{name}={value!r} is not possible; use {self.words}")
        self.otherwise.check(name, value)


@dataclass(frozen=True)
class Several:
    """A sequence of some of these names, not empty."""

    names: tuple[str, ...]

    @property
    def words(self) -> str:
        return f"a sequence of some of {', '.join(map(repr, self.names))}"

    def check(self, name: str, value: object) -> None:
        if not isinstance(value, Sequence) or not value or set(value) - set(self.names):
            raise InvalidParameter(f"{name}={value!r} is not possible; use {self.words}")


@dataclass(frozen=True)
class Counts:
    """A sequence of whole numbers of at least 1, which may be empty."""

    words = "a sequence of whole numbers >= 1"

    def check(self, name: str, value: object) -> None:
        counts = value.tolist() if isinstance(value, np.ndarray) else value
        if isinstance(counts, str | bytes | bytearray) or not isinstance(counts, Sequence):
            raise InvalidParameter(f"{name}={value!r} is not possible; use {self.words}")
        for i, count in enumerate(counts):
            COUNT.check(f"{name}[{i}]", count)


ParameterConstraints: TypeAlias = Mapping[str, Constraint]
"""Names of parameters, and what each may be."""

COUNT = Number(1, whole=True)
OPTIONAL_COUNT = OneOf((None,), COUNT)
POSITIVE = Number(0, above_low=True)
NOT_NEGATIVE = Number(0)
CALLBACK = OneOf((None,), Function())
N_JOBS = OneOf((None,), JobCount())
FLAGS = ("diagonal", "plain", "refit", "rescale", "standardize", "warm_start")
COMMON: ParameterConstraints = {
    "class_weight": ClassWeights(),
    "random_state": RandomSeed(),
    "verbose": Number(0, whole=True),
    **dict.fromkeys(FLAGS, Flag()),
}
"""Parameters that are checked wherever they occur, whether an estimator declares them or not."""


class Constrained(Protocol):
    """An estimator that declares what its parameters may be."""

    @property
    def _constraints(self) -> ParameterConstraints: ...


def check_parameters(estimator: Constrained) -> None:
    """Compare every parameter with its constraint.

    Parameters
    ----------
    estimator : its class declares ``_constraints``
    """
    common = {name: COMMON[name] for name in COMMON if name in vars(estimator)}
    for name, constraint in {**common, **estimator._constraints}.items():
        constraint.check(name, getattr(estimator, name))


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Raise an error that lists the choices unless ``value`` is one of them."""
    OneOf(choices).check(name, value)


def check_n_components(n_components: int | None, d: int) -> None:
    """Raise an error where there are fewer features than components."""
    OPTIONAL_COUNT.check("n_components", n_components)
    if n_components is not None and n_components > d:
        raise InvalidParameter(
            f"n_components={n_components} exceeds the {d} features of X; use at most {d}, or None "
            "for all"
        )
