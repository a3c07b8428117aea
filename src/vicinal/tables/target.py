"""The column to predict: classes, and whether they are any."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vicinal.tables.columns import as_texts
from vicinal.tables.errors import TableError

FEW_VALUES = 20
MANY_VALUES = 100


def class_labels(column: pd.Series) -> NDArray[Any]:
    """Labels (n,) of a complete column: integers stay integers, all else becomes text.

    Raises
    ------
    TableError
        Where there are no classes to learn: one value only, a measured quantity, a name a row.
    """
    name = str(column.name)
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        numbers = column.to_numpy(dtype=np.float64)
        if not np.isfinite(numbers).all():
            raise TableError(f"target {name!r} holds infinite values; leave such rows out")
        _check_classes(name, numbers, integral=bool((numbers == np.rint(numbers)).all()))
        if (numbers == np.rint(numbers)).all():
            return numbers.astype(np.int64)
        return as_texts(column).astype(str)
    texts = as_texts(column).astype(str)
    values = len(np.unique(texts))
    if values < 2 or values > max(FEW_VALUES, len(texts) / 2):
        raise TableError(_no_classes(name, values, len(texts)))
    return texts


def labels_like(column: pd.Series, classes: NDArray[Any]) -> NDArray[Any]:
    """The labels (n,) of another table as those of `classes`, None where they are none of these."""
    known = {str(label): label for label in classes.tolist()}
    return np.array([known.get(text) for text in as_texts(column)], dtype=object)


def _check_classes(name: str, numbers: NDArray[np.float64], *, integral: bool) -> None:
    n, values = len(numbers), len(np.unique(numbers))
    measured = values > FEW_VALUES and not integral
    rare = values > max(FEW_VALUES, n / 2) or (values > MANY_VALUES and n < 5 * values)
    if measured or rare:
        raise TableError(
            f"target {name!r} looks like a measured number ({values} different values in {n} "
            "rows), and vicinal predicts classes; cut it into ranges first, or name another column"
        )
    if values < 2:
        raise TableError(_no_classes(name, values, n))


def _no_classes(name: str, values: int, n: int) -> str:
    if values < 2:
        return f"target {name!r} has {values} class; two are needed to tell them apart"
    return (
        f"target {name!r} has {values} different values in {n} rows: names rather than classes; "
        "name another column with --target"
    )
