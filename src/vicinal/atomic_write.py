"""Files that are there completely or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary name to write to; it becomes `path` at the end, or is removed on any error.

    The new file is in the same folder, so that renaming it is one step: at no moment is there a
    half-written `path`, and an older one survives a failure, Ctrl-C or a loss of power.
    """
    path = Path(path)
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        yield unfinished
        with unfinished.open("rb") as written:
            os.fsync(written.fileno())
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
