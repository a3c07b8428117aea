"""Schemas of requests and answers."""

from __future__ import annotations

from typing import Annotated, Literal

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from vicinal._typing import Document
from vicinal.exceptions import TableError

Cell = StrictBool | StrictInt | StrictFloat | StrictStr | None
Row = dict[str, Cell]
NEIGHBORS, MOST_NEIGHBORS = 5, 1000
LARGEST_WHOLE = 2**63 - 1


class SentRows(BaseModel):
    """Rows of a request, by column name."""

    model_config = ConfigDict(extra="forbid")
    rows: Annotated[list[Row], Field(min_length=1)]

    def frame(self, max_rows: int) -> pd.DataFrame:
        """The rows as a table; a TableError where they are too many or of different columns."""
        if len(self.rows) > max_rows:
            raise TableError(f"{len(self.rows)} rows are more than {max_rows}: send fewer at once")
        names = list(dict.fromkeys(name for row in self.rows for name in row))
        for i, row in enumerate(self.rows):
            absent = [name for name in names if name not in row]
            if absent:
                raise TableError(
                    f"row {i} has no {absent[0]!r}, which other rows have: send null for an "
                    "unknown value"
                )
        columns = {name: _column(name, [row[name] for row in self.rows]) for name in names}
        return pd.DataFrame(columns, index=range(len(self.rows)))


class Question(SentRows):
    """Rows to predict."""

    unseen: Literal["error", "ignore"] = "error"
    """A category that training did not have: an error, or taken as none of the known."""

    @property
    def ignore_unseen(self) -> bool:
        return self.unseen == "ignore"


class NeighborQuestion(Question):
    """Rows to find the neighbors of."""

    neighbors: Annotated[StrictInt, Field(ge=1, le=MOST_NEIGHBORS)] = NEIGHBORS


class RowNames(BaseModel):
    """Training rows by their names."""

    model_config = ConfigDict(extra="forbid")
    ids: Annotated[list[StrictStr | StrictInt], Field(min_length=1)]


class ErrorMessage(BaseModel):
    """The reason why a request was refused."""

    error: str


class Reply(BaseModel):
    """One entry per row, in the order of the rows."""

    rows: list[Document]
    remarks: list[str]
    """What was done to values that were not as in training."""
    version: int
    """Of the model: counts replaced files and changes of rows."""


class Health(BaseModel):
    """Whether the server answers, and with which model."""

    status: Literal["ok"]
    version: int
    last_error: str | None


class Changed(BaseModel):
    """The model after a change of its rows."""

    rows: int
    version: int


def _column(name: str, cells: list[Cell]) -> pd.Series:
    """Numbers as such where all cells are numbers or missing, else the cells as they are."""
    for i, cell in enumerate(cells):
        if isinstance(cell, int) and abs(cell) > LARGEST_WHOLE:
            raise TableError(f"column {name!r}: row {i} has an integer of too many digits")
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds == {int} and None not in cells:
        return pd.Series(cells, dtype="int64")
    return pd.Series(cells, dtype="float64" if kinds and kinds <= {int, float} else object)
