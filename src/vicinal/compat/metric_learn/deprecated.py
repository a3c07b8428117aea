"""Arguments that metric-learn renamed and still takes by their old names."""

from __future__ import annotations

from typing import TypeVar

from vicinal.exceptions import warn_user

Value = TypeVar("Value")

DEPRECATED = "deprecated"
"""The default of an old name: not given."""


def renamed(old_name: str, given: Value | str, name: str, value: Value) -> Value | str:
    """The value of an argument, by its old name with a warning if it was given by that."""
    if isinstance(given, str) and given == DEPRECATED:
        return value
    warn_user(
        f'"{old_name}" parameter has been renamed to "{name}". It has been deprecated in version '
        "0.6.3 and will be removed in 0.7.0",
        FutureWarning,
    )
    return given
