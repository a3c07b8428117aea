"""Detection of identifier columns, which name rows instead of describing them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from vicinal._typing import FloatArray
from vicinal.exceptions import IdentifierColumnWarning

MIN_ROWS = 30
"""With fewer rows, the values of a genuine count are often all distinct."""


def identifier_columns(X: FloatArray) -> list[int]:
    """Indices of the columns whose values are distinct whole numbers."""
    if len(X) < MIN_ROWS:
        return []
    found = []
    for column in range(X.shape[1]):
        values = X[:, column]
        if np.array_equal(values, np.rint(values)) and len(np.unique(values)) == len(values):
            found.append(column)
    return found


def warn_of_identifiers(X: FloatArray, names: Sequence[object] | None, stacklevel: int) -> None:
    """Warn about identifier columns of X (n, d), by name where there are names."""
    columns = identifier_columns(X)
    if columns:
        named = ", ".join(str(c if names is None else names[c]) for c in columns[:10])
        warnings.warn(
            f"Column {named}: all values are distinct whole numbers, as in an identifier or a row "
            "number. If so, drop it: it says nothing about new rows.",
            IdentifierColumnWarning,
            stacklevel=stacklevel + 1,
        )
