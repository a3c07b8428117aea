"""Files and folders that are written completely or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX, SUFFIX = ".vicinal-", ".tmp"
"""How the names of temporary files begin and end."""
LEAST_SPACE = 100_000
"""Bytes that a disk has free before a file is begun."""


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary name to write to; it becomes `path` at the end, or is removed on any error.

    The new file is in the same folder, so that renaming it is one step: at no moment is there a
    half-written `path`, and an older one survives a failure, Ctrl-C or a loss of power. A link is
    followed, the permissions of an existing file are kept, and what is not a regular file (a
    device, a pipe, a folder) is refused with an OSError. What a killed process has left behind in
    the folder is removed: a process that lives holds a lock on its temporary file.
    """
    target = _resolved(path)
    _remove_abandoned(target.parent)
    unfinished, lock = _locked_temporary(target)
    try:
        mode = stat.S_IMODE((target if target.exists() else unfinished).stat().st_mode)
        os.chmod(unfinished, mode | stat.S_IRUSR | stat.S_IWUSR)  # nobody else reads it meanwhile
        yield unfinished
        with unfinished.open("rb") as written:
            os.fsync(written.fileno())
        os.chmod(unfinished, mode)
        os.replace(unfinished, target)
    finally:
        os.close(lock)
        unfinished.unlink(missing_ok=True)


@contextmanager
def whole_folder(path: str | os.PathLike[str], sign: str) -> Iterator[Path]:
    """A temporary folder to write to; it becomes `path` at the end, or is removed on any error.

    A folder that is there already is replaced if it is empty or holds a file named `sign`, which
    says that it was written like this before, and its permissions are kept; any other is refused
    with an OSError. What a killed process has left behind is removed, as by :func:`atomic_write`.
    """
    target = Path(os.path.realpath(path))
    check_folder(target, sign)
    _remove_abandoned(target.parent)
    unfinished, lock = _locked_temporary_folder(target)
    replaced = target.with_name(f"{PREFIX}{secrets.token_hex(8)}{SUFFIX}")
    try:
        mode = stat.S_IMODE((target if target.exists() else unfinished).stat().st_mode)
        os.chmod(unfinished, mode | stat.S_IRWXU)  # nobody else reads it meanwhile
        yield unfinished
        os.chmod(unfinished, mode)
        if target.exists():
            os.replace(target, replaced)
        try:
            os.replace(unfinished, target)
        except OSError:
            if replaced.exists():
                os.replace(replaced, target)
            raise
        shutil.rmtree(replaced, ignore_errors=True)
    finally:
        os.close(lock)
        shutil.rmtree(unfinished, ignore_errors=True)


def check_folder(path: str | os.PathLike[str], sign: str) -> None:
    """Raise OSError if :func:`whole_folder` would not replace what is there."""
    target = Path(os.path.realpath(path))
    if not target.exists():
        return
    if not target.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "it is a file; give a folder", str(path))
    if any(target.iterdir()) and not (target / sign).is_file():
        raise FileExistsError(
            errno.EEXIST, f"the folder holds other files (no {sign}), and is kept", str(path)
        )


def check_place(path: str | os.PathLike[str]) -> None:
    """Raise OSError if :func:`atomic_write` could not write there: better known before the work."""
    target = _resolved(path)
    unfinished, lock = _locked_temporary(target)
    os.close(lock)
    unfinished.unlink()
    if shutil.disk_usage(target.parent).free < LEAST_SPACE:
        raise OSError(errno.ENOSPC, "the disk is full", str(path))


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


def _locked_temporary(target: Path) -> tuple[Path, int]:
    """A new file beside the target, its name short whatever the target's is, and its open lock."""
    while True:
        path = target.with_name(f"{PREFIX}{secrets.token_hex(8)}{SUFFIX}")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        _lock(descriptor)
        if path.exists():  # else it was taken for an abandoned one before it was locked
            return path, descriptor
        os.close(descriptor)


def _locked_temporary_folder(target: Path) -> tuple[Path, int]:
    """A new folder beside the target, and its open lock."""
    while True:
        path = target.with_name(f"{PREFIX}{secrets.token_hex(8)}{SUFFIX}")
        path.mkdir()
        descriptor = os.open(path, os.O_RDONLY)
        _lock(descriptor)
        if path.exists():
            return path, descriptor
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Whether this process now has the only lock; False also where there are no locks."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


def _remove_abandoned(folder: Path) -> None:
    """Remove the temporary files and folders of processes that are gone."""
    for path in folder.glob(f"{PREFIX}*{SUFFIX}"):
        with suppress(OSError):
            is_folder = path.is_dir() and not path.is_symlink()
            mode = os.O_RDONLY if is_folder else os.O_RDWR
            descriptor = os.open(path, mode | getattr(os, "O_NOFOLLOW", 0))
            try:
                if _lock(descriptor):
                    shutil.rmtree(path) if is_folder else path.unlink()
            finally:
                os.close(descriptor)
