"""What was done to a table, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from vicinal.tables.plan import MISSING, ColumnPlan
from vicinal.tables.table_model import TableModel

SHOWN = 20


def column_lines(columns: Sequence[ColumnPlan]) -> Iterator[str]:
    """Every column that was not simply standardized, and how many were."""
    plain = [plan for plan in columns if plan.kind == "number" and not plan.n_missing]
    if plain:
        yield f"columns   {len(plain)} of numbers: standardized"
    others = [plan for plan in columns if plan not in plain]
    for plan in others[:SHOWN]:
        missing = ""
        if plan.n_missing and plan.kind == "category":
            missing = f"; {plan.n_missing} missing are a category of their own"
        yield f"column    {plan.name}: {plan}{missing}"
    if len(others) > SHOWN:
        yield f"          and {len(others) - SHOWN} more; vicinal info lists them all"


def dropped_rows(number: int, target: str) -> str:
    """Rows without a class."""
    return f"rows      {number} without {target}: left out"


def remarks(model: TableModel, frame: pd.DataFrame) -> Iterator[str]:
    """What predict does to new rows beyond the ordinary."""
    used = {plan.name for plan in model.columns if plan.kind != "dropped"}
    for plan in model.columns:
        if plan.name not in used:
            continue
        missing = int(frame[plan.name].isna().sum())
        if missing and plan.kind == "number":
            yield f"note: column {plan.name!r}: {missing} missing, filled with {plan.fill:.6g}"
        elif missing and MISSING not in plan.categories:
            yield f"note: column {plan.name!r}: {missing} missing, taken as none of the known"
    roles = {plan.name for plan in model.columns} | {model.target, model.id_column}
    extra = [repr(name) for name in frame.columns if name not in roles | {model.group_column}]
    if extra:
        yield f"note: not in the model, ignored: {', '.join(extra[:10])}"
