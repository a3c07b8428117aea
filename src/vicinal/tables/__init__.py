"""Tables on disk, and models of them."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from vicinal.exceptions import missing_extra

if TYPE_CHECKING:
    import pandas as pd


def read_table(
    path: str | os.PathLike[str],
    *,
    separator: str | None = None,
    encoding: str | None = None,
    missing: Collection[str] = (),
    as_text: Collection[str] = (),
) -> pd.DataFrame:
    """Read a table from a file, with care for what readers usually lose.

    Numbers are numbers unless one of their column begins with a zero, as in 007: codes keep their
    zeros. A header that is one field shorter than the rows is taken as that of a table with names
    of rows, as R writes them. Encodings other than UTF-8 are tried; a
    :class:`~vicinal.exceptions.TableWarning` says so.

    Parameters
    ----------
    path : str or path
        The ending decides the format: .csv, .tsv, .jsonl (also with .gz or .zst), .xlsx, .parquet,
        .arrow, .feather or .npz.
    separator, encoding : str or None
        Of text files; None: found out.
    missing : collection of str
        Further texts that stand for no value. Empty fields, NA, NaN, null and ? always do.
    as_text : collection of str
        Columns that stay as they are written.

    Returns
    -------
    table : DataFrame
    """
    try:
        from vicinal.tables.reading import read_table as read
        from vicinal.tables.text_files import ReadOptions
    except ModuleNotFoundError as error:
        raise missing_extra("read_table", str(error.name), "cli") from error
    options = ReadOptions(separator, encoding, tuple(missing), as_text)
    return read(Path(path), options=options)
