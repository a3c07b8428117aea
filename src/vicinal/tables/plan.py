"""What is done to one column: plain values, so that a model file can hold them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from math import isfinite
from typing import Any, Literal

Kind = Literal["number", "category", "dropped"]

MISSING = "(missing)"
"""The category of the rows that have none."""


@dataclass(frozen=True)
class ColumnPlan:
    """How a column becomes features.

    .. code-block:: text

        number    x → (x − mean) / scale, a missing x being ``fill``      one feature
        category  x → 1 where x is the category, else 0                   one feature a category
        dropped   –                                                       no feature

    Attributes
    ----------
    name : str
        Of the column.
    kind : {"number", "category", "dropped"}
    n_rows, n_missing : int
        Rows of the training table, and how many of them had no value.
    fill : float
        What a missing number becomes: the median of the others.
    mean, scale : float
        Of the numbers, after filling.
    categories : tuple of str
        In the order of the features; ``MISSING`` is one of them if the training table had such
        rows.
    reason : str
        Why the column was dropped.
    """

    name: str
    kind: Kind
    n_rows: int
    n_missing: int
    fill: float = 0.0
    mean: float = 0.0
    scale: float = 1.0
    categories: tuple[str, ...] = ()
    reason: str = ""

    def __post_init__(self) -> None:
        """Refuse what no table leads to; a plan may come from somebody else's file."""
        texts: tuple[object, ...] = (self.name, self.reason, *self.categories)
        numbers: tuple[object, ...] = (self.fill, self.mean, self.scale)
        sound = (
            all(isinstance(text, str) for text in texts)
            and all(isinstance(number, float) and isfinite(number) for number in numbers)
            and all(type(count) is int and count >= 0 for count in (self.n_rows, self.n_missing))
            and self.kind in ("number", "category", "dropped")
            and self.scale > 0
            and len(set(self.categories)) == len(self.categories)
            and (self.kind == "category") == bool(self.categories)
        )
        if not sound:
            raise ValueError(f"the plan of column {self.name!r} is not a valid one")

    @property
    def feature_names(self) -> tuple[str, ...]:
        """``name`` of a number, ``name=value`` for every category."""
        if self.kind == "number":
            return (self.name,)
        return tuple(f"{self.name}={category}" for category in self.categories)

    def __str__(self) -> str:
        if self.kind == "dropped":
            return f"dropped: {self.reason}"
        if self.kind == "category":
            shown = ", ".join(self.categories[:6]) + (", …" if len(self.categories) > 6 else "")
            return f"one-hot, {len(self.categories)} categories: {shown}"
        filled = f", {self.n_missing} missing filled with {self.fill:.6g}" if self.n_missing else ""
        return f"standardized, mean {self.mean:.6g}, deviation {self.scale:.6g}{filled}"

    def to_state(self) -> dict[str, Any]:
        """The plan as JSON-able values."""
        return {**asdict(self), "categories": list(self.categories)}

    @classmethod
    def from_state(cls, state: Any) -> ColumnPlan:
        """The plan of a ``state``; ValueError if that is none."""
        names = {field.name for field in fields(cls)}
        if not isinstance(state, dict) or set(state) != names:
            raise ValueError(f"a column plan has the entries {', '.join(sorted(names))}")
        if not isinstance(state["categories"], list):
            raise ValueError("the categories of a column plan are a list")
        return cls(**{**state, "categories": tuple(state["categories"])})
