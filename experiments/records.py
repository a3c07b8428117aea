"""Records of results and measurements, and their CSV files.

A result is one row of Table 2 (one method on one split); a measurement is one point of a figure.
"""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Iterable
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from experiments import provenance


@dataclass(frozen=True)
class Result:
    """Result of one method on one split; without accuracy where the method failed."""

    table: ClassVar[str] = "results"

    task: str
    dataset: str
    method: str
    protocol: str
    split: int
    seed: int
    parameters: str = "{}"
    """JSON of all chosen parameters, K included."""
    accuracy: float | None = None
    tuned_accuracy: float | None = None
    """Accuracy in the cross-validation that chose the parameters."""
    tune_seconds: float | None = None
    fit_seconds: float | None = None
    predict_seconds: float | None = None
    cpu_seconds: float | None = None
    """CPU time of the process for tuning, fit and prediction."""
    n_fits: int | None = None
    """Number of fits in the cross-validation."""
    iterations: int | None = None
    """Iterations of the final fit."""
    stop_reason: str | None = None
    n_train: int | None = None
    n_test: int | None = None
    tuning_rows: int | None = None
    """Rows of the training part that the cross-validation saw."""
    error: str | None = None
    data: str = ""
    versions: str = field(default_factory=provenance.versions)
    commit_id: str = field(default_factory=provenance.commit)
    machine: str = field(default_factory=provenance.machine)
    finished: float = field(default_factory=time.time)
    """Seconds since 1970."""

    @property
    def kind(self) -> str:
        """Table or figure that the record belongs to, as in its task."""
        return f"table2/{self.protocol}"

    @property
    def seconds(self) -> float | None:
        """Seconds for tuning, fit and prediction; None for a failure."""
        if self.tune_seconds is None or self.fit_seconds is None or self.predict_seconds is None:
            return None
        return self.tune_seconds + self.fit_seconds + self.predict_seconds

    @property
    def sampled(self) -> bool:
        """Whether it was tuned on a sample of the training rows."""
        if self.tuning_rows is None or self.n_train is None:
            return False
        return self.tuning_rows < self.n_train

    @property
    def backend(self) -> str:
        """Backend that computed it, where one was asked for; else empty."""
        return str(json.loads(self.parameters).get("backend", ""))


@dataclass(frozen=True)
class Measurement:
    """One point of a figure."""

    table: ClassVar[str] = "measurements"

    task: str
    figure: str
    dataset: str
    method: str
    value: str = "{}"
    """JSON; its content depends on the figure."""
    seconds: float | None = None
    """Time it took."""
    error: str | None = None
    versions: str = field(default_factory=provenance.versions)
    commit_id: str = field(default_factory=provenance.commit)
    machine: str = field(default_factory=provenance.machine)
    finished: float = field(default_factory=time.time)

    @property
    def kind(self) -> str:
        """Table or figure that the record belongs to, as in its task."""
        return self.figure


Record: TypeAlias = Result | Measurement

_NUMBERS = {"int": int, "float": float}


def write_records(path: Path, kind: type[Record], records: Iterable[Record]) -> None:
    """Write one line per record, empty where there is no value.

    Parameters
    ----------
    path : the file, which is replaced
    kind : Result or Measurement
    records : of that kind
    """
    names = [field.name for field in fields(kind)]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([getattr(record, name) for name in names] for record in records)


def read_records(path: Path) -> list[Record]:
    """Read what `write_records` has written; columns of later versions stay empty.

    Parameters
    ----------
    path : results.csv or measurements.csv
    """
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        present = set(reader.fieldnames or ())
        kind = next((k for k in (Result, Measurement) if _key(k) <= present), None)
        if kind is None:
            raise ValueError(f"{path} is not a results.csv or measurements.csv of the experiments")
        columns = [field for field in fields(kind) if field.name in present]
        return [kind(**{c.name: _value(c, row[c.name]) for c in columns}) for row in reader]


def _key(kind: type[Record]) -> set[str]:
    """The columns that tell the kinds apart."""
    return {"task", "protocol", "split"} if kind is Result else {"task", "figure", "value"}


def _value(column: Field[Any], text: str) -> Any:
    words = str(column.type).split(" | ")
    if text == "" and "None" in words:
        return None
    return _NUMBERS.get(words[0], str)(text)
