"""Files that are written completely or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary name to write to; it becomes `path` at the end, or is removed on any error.

    The new file is in the same folder, so that renaming it is one step: at no moment is there a
    half-written `path`, and an older one survives a failure, Ctrl-C or a loss of power. A link is
    followed, the permissions of an existing file are kept, and what is not a regular file (a
    device, a pipe, a folder) is refused with an OSError.
    """
    target = _resolved(path)
    unfinished = _temporary(target)
    try:
        yield unfinished
        with unfinished.open("rb") as written:
            os.fsync(written.fileno())
        if target.exists():
            os.chmod(unfinished, stat.S_IMODE(target.stat().st_mode))
        os.replace(unfinished, target)
    finally:
        unfinished.unlink(missing_ok=True)


def check_place(path: str | os.PathLike[str]) -> None:
    """Raise OSError if :func:`whole_file` could not write there: better known before the work."""
    target = _resolved(path)
    unfinished = _temporary(target)
    try:
        unfinished.touch(exist_ok=False)
    finally:
        unfinished.unlink(missing_ok=True)


def _resolved(path: str | os.PathLike[str]) -> Path:
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "it is a folder", str(path))
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return target
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is not a regular file, and is not replaced", str(path))
    return target


def _temporary(target: Path) -> Path:
    """A short name beside the target, whatever the length of its own name."""
    return target.with_name(f".vicinal-{secrets.token_hex(8)}.tmp")
