"""A sample of the rows of a file that is too large for the memory, in which classes keep shares."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from vicinal._typing import IndexArray
from vicinal.exceptions import TableError
from vicinal.tables.reading import STANDARD_INPUT, read_chunks
from vicinal.tables.text_files import ReadOptions
from vicinal.tables.training_table import as_texts, check_columns
from vicinal.validation.folds import stratified_sample

IN_MEMORY = {".parquet": 8, ".gz": 20, ".zst": 20}
"""Bytes in memory per byte of a file, by its ending; of text not compressed, 4."""
DEFAULT_ROWS = 500_000
"""Rows that are kept of a file that does not fit, if no number is given."""
MOST_SHARE = 0.5
"""Of the free memory, that a table may take."""
MOST_CLASSES = 1_000
AT_LEAST = 10
"""Rows of each class that are kept, if it has so many."""


@dataclass(frozen=True)
class SampledTable:
    """Rows of a file, numbered as in it, and how many it has with a target."""

    frame: pd.DataFrame
    n_rows: int


def rows_to_keep(path: Path, max_rows: int | None) -> int | None:
    """The number of rows to keep: as many as asked for, or all (None) where they fit in memory."""
    if max_rows is not None or path == STANDARD_INPUT or not path.is_file():
        return max_rows
    needed = path.stat().st_size * IN_MEMORY.get(path.suffix.lower(), 4)
    return DEFAULT_ROWS if needed > MOST_SHARE * _free_memory() else None


def _free_memory() -> float:
    try:
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (ValueError, OSError, AttributeError):  # not everywhere
        return np.inf


def read_sample(
    path: Path,
    arrays: Collection[str],
    options: ReadOptions,
    target: str,
    max_rows: int,
    seed: int,
) -> SampledTable:
    """Read a file part by part, twice: to count the classes, and to take rows of each.

    Parameters
    ----------
    path, arrays, options : as of :func:`~vicinal.tables.reading.read_chunks`
    target : str
        The column of the classes; rows without one are left out.
    max_rows : int
    seed : int
    """
    codes: list[IndexArray] = []
    index: dict[str, int] = {}
    numbers: set[str] | None = None
    with read_chunks(path, arrays, options) as chunks:
        check_columns(pd.DataFrame(columns=chunks.names), [target])
        for frame in chunks.frames:
            numeric = {n for n in frame if pd.api.types.is_numeric_dtype(frame[n])}
            numbers = numeric if numbers is None else numbers & numeric
            known = frame[target].notna().to_numpy()
            texts = as_texts(frame[target])
            for text in set(texts[known].tolist()) - set(index):
                index[text] = len(index)
            found = [
                index[text] if is_known else -1 for text, is_known in zip(texts, known, strict=True)
            ]
            codes.append(np.array(found, dtype=np.int32))
    of_rows = np.concatenate(codes)
    if len(index) > MOST_CLASSES:  # numbers or names: every row is like the others
        of_rows = np.minimum(of_rows, 0)
    with_target = np.flatnonzero(of_rows >= 0)
    if len(with_target) == 0:
        raise TableError("nothing to learn from: no row has a class")
    rng = np.random.RandomState(seed)
    taken = stratified_sample(
        of_rows[with_target].astype(np.intp), max_rows, at_least=AT_LEAST, random_state=rng
    )
    kept = np.zeros(len(of_rows), dtype=bool)
    kept[with_target[taken]] = True
    with read_chunks(path, arrays, replace(options, numbers=numbers)) as chunks:
        parts = [frame[kept[frame.index.to_numpy()]] for frame in chunks.frames]
    return SampledTable(pd.concat(parts), len(with_target))
