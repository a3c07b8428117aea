"""The training table: which column is what, which rows count, and what becomes of the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vicinal.tables.columns import as_texts, encode, plan_column
from vicinal.tables.errors import TableError
from vicinal.tables.plan import ColumnPlan
from vicinal.tables.target import class_labels
from vicinal.validation.out_of_fold import Rows


@dataclass(frozen=True)
class TrainingTable:
    """A training table, ready to be learned from."""

    columns: tuple[ColumnPlan, ...]
    rows: Rows
    ids: NDArray[Any]


def prepare_training(
    frame: pd.DataFrame,
    target: str,
    id_column: str | None,
    group_column: str | None,
    keep: Sequence[str] = (),
) -> TrainingTable:
    """Decide on every column; rows without a class are left out."""
    roles = [name for name in (target, id_column, group_column) if name is not None]
    check_columns(frame, [*roles, *keep])
    frame = frame[frame[target].notna()]
    features = [name for name in frame.columns if name not in roles]
    if len(frame) == 0 or not features:
        raise TableError("nothing to learn from: no row has a class, or there is no other column")
    y = class_labels(frame[target])
    columns = tuple(plan_column(frame[name], keep=name in keep) for name in features)
    blocks = [encode(frame[plan.name], plan) for plan in columns if plan.kind != "dropped"]
    if not blocks:
        reasons = "; ".join(f"{plan.name}: {plan}" for plan in columns[:5])
        raise TableError(f"no column is left to learn from ({reasons})")
    groups = None if group_column is None else as_texts(frame[group_column]).astype(str)
    return TrainingTable(columns, Rows(np.hstack(blocks), y, groups), row_ids(frame, id_column))


def row_ids(frame: pd.DataFrame, id_column: str | None) -> NDArray[Any]:
    """(n,) values of the id column as texts, or the numbers of the rows."""
    if id_column is None or id_column not in frame.columns:
        return frame.index.to_numpy(dtype=np.int64)
    return as_texts(frame[id_column]).astype(str)


def check_columns(frame: pd.DataFrame, names: Sequence[str]) -> None:
    """Refuse names that are no columns; says which are there."""
    for name in names:
        if name not in frame.columns:
            there = ", ".join(map(str, frame.columns[:20]))
            more = ", …" if len(frame.columns) > 20 else ""
            raise TableError(f"there is no column {name!r}; the columns are {there}{more}")
