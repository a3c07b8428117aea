"""Records as CSV, which a repository keeps better than a database, and back."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

from experiments.records import Measurement, Record, Result

_NUMBERS = {"int": int, "float": float}


def write_records(path: Path, kind: type[Record], records: Iterable[Record]) -> None:
    """One line a record, empty where there is no value.

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
    """What `write_records` has written; columns that a later version has added stay empty.

    Parameters
    ----------
    path : results.csv or measurements.csv
    """
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        present = set(reader.fieldnames or ())
        kind = next((k for k in (Result, Measurement) if _key(k) <= present), None)
        if kind is None:
            raise ValueError(f"{path} is no results.csv or measurements.csv of vicinal reproduce")
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
