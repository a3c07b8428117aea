"""The training table: the roles of its columns, its classes, and the rows to learn from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vicinal._typing import FloatArray, IndexArray, LabelArray
from vicinal.exceptions import TableError, TableWarning, warn_user
from vicinal.features.column_codes import DroppedCode
from vicinal.features.column_encoding import ColumnKind, ColumnPlanner
from vicinal.features.table_encoder import EncodedSamples, TableEncoder
from vicinal.features.table_values import MISSING, cell_text, read_columns, shortest_number
from vicinal.validation.out_of_fold import Rows

Task: TypeAlias = Literal["classification", "regression"]

FEW_VALUES = 20
MANY_VALUES = 100
N_INTERVALS = 10
"""Between quantiles of a target of numbers."""


@dataclass(frozen=True)
class ColumnRoles:
    """Roles of the columns that are not features like any other.

    Attributes
    ----------
    target : str
        The column of the classes. Rows without one are left out.
    id_column : str or None
        The column that names the rows.
    group_column : str or None
        Rows of one group are never on both sides of a split.
    keep : tuple of str
        Features although they look like identifiers.
    kinds : dict
        Kinds of features that are not to be found out.
    """

    target: str
    id_column: str | None = None
    group_column: str | None = None
    keep: tuple[str, ...] = ()
    kinds: Mapping[str, ColumnKind] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are not features."""
        names = (self.target, self.id_column, self.group_column)
        return tuple(name for name in names if name is not None)

    def features(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The columns that are features."""
        return frame[[name for name in frame.columns if name not in self.names]]

    def groups(self, frame: pd.DataFrame) -> NDArray[np.str_] | None:
        """(n,) the groups of the rows, if they have any."""
        if self.group_column is None:
            return None
        return as_texts(frame[self.group_column]).astype(str)

    def ids(self, frame: pd.DataFrame) -> NDArray[np.generic]:
        """(n,) values of the id column as texts, or the numbers of the rows."""
        if self.id_column is None or self.id_column not in frame.columns:
            return frame.index.to_numpy(dtype=np.int64)
        return as_texts(frame[self.id_column]).astype(str)


def as_texts(column: pd.Series) -> NDArray[np.generic]:
    """(n,) values as texts, "1" for 1, 1.0 and "1" alike."""
    cells = column.astype(object)
    texts = np.array([cell_text(cell) for cell in cells], dtype=object)
    return np.where(column.isna(), MISSING, texts)


def class_labels(column: pd.Series) -> NDArray[np.generic]:
    """Labels (n,) of a complete column: integers stay integers, all else becomes text.

    Raises
    ------
    TableError
        Where there are no classes to learn: one value only, a measured quantity, a name per row.
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
    written = as_texts(column)
    texts = np.array([_one_space(text) for text in written], dtype=str)
    merged = len(set(written)) - len(set(texts.tolist()))
    if merged:
        warn_user(
            f"target {name!r}: {merged} label(s) differ from others only in white space, and are "
            "taken as the same",
            TableWarning,
        )
    values = len(np.unique(texts))
    if values < 2 or values > max(FEW_VALUES, len(texts) / 2):
        raise TableError(_no_classes(name, values, len(texts)))
    return texts


def labels_like(column: pd.Series, classes: NDArray[np.generic]) -> NDArray[np.generic]:
    """The labels (n,) of another table as those of `classes`, None where they are none of these."""
    known = {str(label): label for label in classes.tolist()}
    texts = [_one_space(text) for text in as_texts(column)]
    found = [known.get(text, known.get(shortest_number(text) or text)) for text in texts]
    return np.array(found, dtype=object)


def _one_space(text: str) -> str:
    return " ".join(text.split())


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


def find_task(column: pd.Series) -> Task:
    """Numbers where the column holds measured ones, classes elsewhere."""
    is_number = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    if not is_number:
        return "classification"
    try:
        class_labels(column)
    except TableError:
        numbers = column.to_numpy(dtype=np.float64)
        return "regression" if len(np.unique(numbers)) > 2 else "classification"
    return "classification"


def target_numbers(column: pd.Series) -> FloatArray:
    """Numbers (n,) of a complete column; TableError where it has other values."""
    name = str(column.name)
    try:
        numbers = column.to_numpy(dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TableError(
            f"target {name!r} holds values that are not numbers; use --task classification"
        ) from error
    if not np.isfinite(numbers).all():
        raise TableError(f"target {name!r} holds infinite values; leave such rows out")
    if len(np.unique(numbers)) < 2:
        raise TableError(f"target {name!r} is the same in every row: there is nothing to learn")
    return numbers


def target_values(column: pd.Series, task: Task) -> LabelArray:
    """(n,) classes or numbers."""
    return class_labels(column) if task == "classification" else target_numbers(column)


def target_strata(y: LabelArray, task: Task) -> LabelArray:
    """(n,) what folds and samples spread evenly: classes, or intervals between quantiles."""
    if task == "classification":
        return y
    return np.searchsorted(np.quantile(y, np.linspace(0, 1, N_INTERVALS + 1)[1:-1]), y)


@dataclass(frozen=True)
class TrainingTable:
    """A training table, ready to be learned from."""

    rows: Rows
    samples: EncodedSamples
    """The same rows, with what made them."""
    encoder: TableEncoder
    frame: pd.DataFrame
    """The columns that are features, of the rows that have a class."""
    ids: NDArray[np.generic]
    task: Task = "classification"

    @cached_property
    def classes(self) -> NDArray[np.generic]:
        """(c,) the classes, in order."""
        return np.unique(self.rows.y)

    @cached_property
    def codes(self) -> IndexArray:
        """(n,) the classes of the rows, as numbers."""
        return np.searchsorted(self.classes, self.rows.y)


def prepare_training(
    frame: pd.DataFrame, roles: ColumnRoles, task: Task = "classification"
) -> TrainingTable:
    """Decide on every column; rows without a class are left out.

    Parameters
    ----------
    frame : DataFrame
    roles : ColumnRoles
    task : {"classification", "regression"}
    """
    check_columns(frame, [*roles.names, *roles.keep, *roles.kinds])
    frame = frame[frame[roles.target].notna()]
    features = roles.features(frame)
    if len(frame) == 0 or features.shape[1] == 0:
        raise TableError("nothing to learn from: no row has a class, or there is no other column")
    y = target_values(frame[roles.target], task)
    target_type: Literal["classes", "number"]
    target_type = "classes" if task == "classification" else "number"
    encoder = TableEncoder(_kinds(features, roles), target_type=target_type)
    samples = encoder.fit_samples(features, y)
    rows = Rows(samples.X, y, roles.groups(frame))
    return TrainingTable(rows, samples, encoder, features, roles.ids(frame), task)


def _kinds(features: pd.DataFrame, roles: ColumnRoles) -> dict[str, ColumnKind]:
    """The kinds that are given, and those by which columns are kept."""
    kept: dict[str, ColumnKind] = {}
    for column in read_columns(features[[n for n in roles.keep if n in features.columns]]):
        code = ColumnPlanner(None, MANY_VALUES).encoding(column, None).code
        if not isinstance(code, DroppedCode):
            raise TableError(f"--keep {column.name} does nothing: the column is used anyway")
        if len(set(column.texts().tolist())) < 2:
            raise TableError(f"--keep {column.name}: {code}, and says nothing")
    for name in roles.keep:
        if name in roles.kinds or name in roles.names:
            raise TableError(f"--keep {name}: the column has another role, or a kind by --type")
        is_number = pd.api.types.is_numeric_dtype(features[name])
        kept[name] = "number" if is_number else "text"
    return {**roles.kinds, **kept}


def check_columns(frame: pd.DataFrame, names: Sequence[str]) -> None:
    """Refuse names that are not columns; the error says which columns there are."""
    for name in names:
        if name not in frame.columns:
            there = ", ".join(map(str, frame.columns[:20]))
            more = ", …" if len(frame.columns) > 20 else ""
            raise TableError(f"there is no column {name!r}; the columns are {there}{more}")
