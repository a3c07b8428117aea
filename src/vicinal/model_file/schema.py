"""Checks of the fields of a model: kinds of values, with sizes that agree across fields.

Sizes have names: n samples, d features, m components, c classes, q metrics. The first field that
shows a size binds it, every other must agree. A check raises ValueError; the reader of a file turns
it into a ModelFileError, and :func:`vicinal.save` runs the same checks before it writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Sizes: TypeAlias = dict[str, int]

MAX_VALUE = 1e36
"""Largest number that a prediction may use: squares of products of several are still finite."""

MIN_DIVISOR = 1e-36

MAX_COUNT = 2**53


Kind: TypeAlias = Callable[[object, Sizes], None]
"""What a field must be: raises ValueError where a value is not of this kind, binds sizes."""


@dataclass(frozen=True)
class Field:
    """An attribute: its name, its kind, whether it may be missing or None."""

    name: str
    kind: Kind
    optional: bool = False
    nullable: bool = False


@dataclass(frozen=True)
class StoredArray:
    """Array of shape ("n", "d"), sizes by name or number; "c+1" is one more, None any length."""

    shape: tuple[str | int | None, ...]
    kinds: str = "f"
    low: float = -MAX_VALUE
    high: float = MAX_VALUE
    below: str | None = None
    """Size that integers stay below: they are indices."""

    def __call__(self, value: object, sizes: Sizes) -> None:
        if not isinstance(value, np.ndarray) or value.dtype.kind not in self.kinds:
            raise ValueError(f"must be an array of kind {self.kinds!r}")
        if value.dtype.kind == "i" and value.dtype != np.intp:
            raise ValueError(f"must be an array of {np.dtype(np.intp)}")
        _check_shape(value, self.shape, sizes)
        if value.dtype.kind in "fi" and value.size:
            low = 0 if self.below else self.low
            high = sizes[self.below] - 1 if self.below else self.high
            _check_range(value, low, high)


@dataclass(frozen=True)
class StoredTargets:
    """Numbers of one target (n,) or of several (n, t); their number is the size "targets"."""

    size: str
    low: float = -MAX_VALUE

    def __call__(self, value: object, sizes: Sizes) -> None:
        shape: tuple[str, ...] = (self.size,)
        if isinstance(value, np.ndarray) and value.ndim == 2:
            shape = (self.size, "targets")
        else:
            _check_size(1, "targets", sizes)
        StoredArray(shape, low=self.low)(value, sizes)


@dataclass(frozen=True)
class Evidence:
    """Numbers that tell how a model came about: nan and inf are allowed; shape as above."""

    shape: tuple[str | int | None, ...] = (None,)

    def __call__(self, value: object, sizes: Sizes) -> None:
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiu":
            raise ValueError("must be an array of numbers")
        _check_shape(value, self.shape, sizes)


@dataclass(frozen=True)
class StoredLabels:
    """Class labels (c,): distinct integers, booleans, floats or strings."""

    size: str = "c"
    distinct: bool = True

    def __call__(self, value: object, sizes: Sizes) -> None:
        if not isinstance(value, np.ndarray) or value.ndim != 1:
            raise ValueError("must be an array of labels")
        _check_size(len(value), self.size, sizes)
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            raise ValueError("must be finite")
        if self.distinct and len(set(value.tolist())) < len(value):
            raise ValueError("must be distinct")


@dataclass(frozen=True)
class Names:
    """Names (size,) as an array of str objects, as scikit-learn keeps those of features."""

    size: str

    def __call__(self, value: object, sizes: Sizes) -> None:
        if not isinstance(value, np.ndarray) or value.dtype != object or value.ndim != 1:
            raise ValueError("must be an array of names")
        _check_size(len(value), self.size, sizes)


@dataclass(frozen=True)
class Integer:
    """Integer in [low, high]; it may be a size that arrays must agree with."""

    low: int = 0
    high: int = MAX_COUNT
    size: str | None = None

    def __call__(self, value: object, sizes: Sizes) -> None:
        if type(value) is not int or not self.low <= value <= self.high:
            raise ValueError(f"must be an integer from {self.low} to {self.high}")
        if self.size:
            _check_size(value, self.size, sizes)


@dataclass(frozen=True)
class StoredNumber:
    """Real number in [low, high]; unlimited ones tell how a model came about."""

    low: float = -MAX_VALUE
    high: float = MAX_VALUE
    unlimited: bool = False

    def __call__(self, value: object, sizes: Sizes) -> None:
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise ValueError("must be a number")
        if not self.unlimited and not self.low <= value <= self.high:
            raise ValueError(f"must be from {self.low:g} to {self.high:g}")


@dataclass(frozen=True)
class Text:
    """String, one of the choices where there are any."""

    choices: tuple[str, ...] = ()

    def __call__(self, value: object, sizes: Sizes) -> None:
        if not isinstance(value, str) or (self.choices and value not in self.choices):
            raise ValueError(f"must be one of {self.choices}" if self.choices else "must be text")


def flag(value: object, sizes: Sizes) -> None:
    """True or False."""
    if not isinstance(value, bool):
        raise ValueError("must be true or false")


def output_container(value: object, sizes: Sizes) -> None:
    """What ``set_output`` has set."""
    if not isinstance(value, dict) or set(value) != {"transform"}:
        raise ValueError("must name the container of the output")
    Text(("default", "pandas", "polars"))(value["transform"], sizes)


def nothing(value: object, sizes: Sizes) -> None:
    """None, the only value that is supported."""
    if value is not None:
        raise ValueError("must be None: nothing else can be stored")


@dataclass(frozen=True)
class FittedEstimator:
    """Estimator of one of these classes, fitted."""

    classes: tuple[str, ...]

    def __call__(self, value: object, sizes: Sizes) -> None:
        if type(value).__name__ not in self.classes or not hasattr(value, "n_features_in_"):
            raise ValueError(f"must be a fitted {' or '.join(self.classes)}")


@dataclass(frozen=True)
class ListOf:
    """List, not empty, of objects of this class."""

    of: str

    def __call__(self, value: object, sizes: Sizes) -> None:
        if not isinstance(value, list) or not value:
            raise ValueError(f"must be a list of {self.of}")
        if any(type(item).__name__ != self.of for item in value):
            raise ValueError(f"must consist of {self.of}")


def indices(value: object, sizes: Sizes) -> None:
    """Tuple of non-negative integers, not empty."""
    if not isinstance(value, tuple) or not value:
        raise ValueError("must be a tuple of integers")
    for item in value:
        Integer()(item, sizes)


@dataclass(frozen=True)
class Texts:
    """Tuple of distinct strings, of the choices where there are any."""

    low: int = 0
    choices: tuple[str, ...] = ()

    def __call__(self, value: object, sizes: Sizes) -> None:
        if not isinstance(value, tuple) or len(value) < self.low or len(set(value)) < len(value):
            raise ValueError("must be a tuple of distinct texts")
        for item in value:
            Text(self.choices)(item, sizes)


def anything(value: object, sizes: Sizes) -> None:
    """Whatever the encoding can hold: nothing depends on it."""


@dataclass(frozen=True)
class Columns:
    """Dict of named columns, 1-D arrays or lists; equally long ones make a table."""

    kinds: Mapping[str, str] = field(default_factory=dict)
    """Columns that must be there, each with the kinds of dtype that it may have."""
    others: str = ""
    """Kinds of dtype of all other columns; empty: any."""
    equal: bool = True

    def __call__(self, value: object, sizes: Sizes) -> None:
        if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
            raise ValueError("must be named columns")
        missing = self.kinds.keys() - value.keys()
        if missing:
            raise ValueError(f"must have a column {min(missing)}")
        for name, column in value.items():
            if not isinstance(column, list) and np.ndim(column) != 1:
                raise ValueError("must consist of columns")
            kinds = self.kinds.get(name, self.others)
            if kinds and (isinstance(column, list) or column.dtype.kind not in kinds):
                raise ValueError(f"has a column {name} of another kind than {kinds!r}")
        if self.equal and len({len(column) for column in value.values()}) > 1:
            raise ValueError("must consist of equally long columns")


def check_fields(expected: Iterable[Field], values: Mapping[str, object], sizes: Sizes) -> None:
    """Check that the values are exactly these fields; sizes are bound in their order."""
    expected = tuple(expected)
    unknown = set(values) - {field.name for field in expected}
    if unknown:
        raise ValueError(f"{min(unknown)!r} is unknown")
    for item in expected:
        if item.name not in values:
            if item.optional:
                continue
            raise ValueError(f"{item.name} is missing")
        value = values[item.name]
        if value is None and item.nullable:
            continue
        try:
            item.kind(value, sizes)
        except ValueError as error:
            raise ValueError(f"{item.name} {error}") from None


def _check_shape(
    value: NDArray[np.generic], shape: tuple[str | int | None, ...], sizes: Sizes
) -> None:
    if value.ndim != len(shape):
        raise ValueError(f"must have {len(shape)} axes, not {value.ndim}")
    for size, expected in zip(value.shape, shape, strict=True):
        _check_size(size, expected, sizes)


def _check_size(size: int, expected: str | int | None, sizes: Sizes) -> None:
    if expected is None:
        return
    if isinstance(expected, str):
        name, _, more = expected.partition("+")
        extra = int(more or 0)
        if size - extra < 1:
            raise ValueError("must not be empty")
        expected = sizes.setdefault(name, size - extra) + extra
    if size != expected:
        raise ValueError(f"has a size of {size} where others have {expected}")


def _check_range(values: NDArray[np.generic], low: float, high: float) -> None:
    smallest, largest = values.min(), values.max()  # nan if there is one
    if not (smallest >= low and largest <= high):
        raise ValueError(f"must be finite, from {low:g} to {high:g}")
