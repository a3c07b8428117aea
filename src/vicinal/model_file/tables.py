"""The entry of the command line's model: columns of a table, and an estimator."""

from __future__ import annotations

from typing import Any

from vicinal.model_file.entry import Entry, Values
from vicinal.model_file.schema import (
    MAX_VALUE,
    MIN_DIVISOR,
    Anything,
    Array,
    Field,
    Fitted,
    Labels,
    ListOf,
    Sizes,
    Text,
)

ESTIMATORS = ("ANNClassifier", "ANNSearchCV", "ClassMeanKNN", "Pipeline")


class Estimator:
    """One of the estimators that a table model knows how to question."""

    def check(self, value: Any, sizes: Sizes) -> None:
        Fitted(ESTIMATORS).check(value, sizes)
        if hasattr(value, "steps"):
            classes = [type(step).__name__ for _, step in value.steps]
            if len(classes) != 2 or classes[1] != "ClassMeanKNN":
                raise ValueError("must be a pipeline of a learner and a ClassMeanKNN")


def _check_columns(model: Any) -> None:
    for plan in model.columns:
        if plan.scale < MIN_DIVISOR or max(abs(plan.mean), abs(plan.fill)) > MAX_VALUE:
            raise ValueError(f"the scale of column {plan.name!r} is out of range")


def _to_state(model: Any, names: tuple[str, ...]) -> Values:
    return model.to_state()


def _from_state(cls: Any, parameters: Values, state: Values) -> Any:
    return cls.from_state(state)


TABLES = {
    "TableModel": Entry(
        "vicinal.tables.table_model:TableModel",
        state=(
            Field("columns", ListOf("dict")),
            Field("estimator", Estimator()),
            Field("target", Text()),
            Field("ids", Labels("n", distinct=False)),
            Field("rows", Array(("n", "d")), nullable=True),
            Field("id_column", Text(), nullable=True),
            Field("group_column", Text(), nullable=True),
            Field("provenance", Anything()),
        ),
        only=True,
        check=_check_columns,
        take_apart=_to_state,
        put_together=_from_state,
    )
}
