"""Outputs are complete or not there, and replace nothing but regular files."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys

import pytest

from vicinal.atomic_write import atomic_write, check_place, whole_folder


def write(path, text="new"):
    with atomic_write(path) as unfinished:
        unfinished.write_text(text)


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "out"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write(path, "half \udc80")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out"]


def test_permissions_are_kept(tmp_path):
    path = tmp_path / "out"
    path.write_text("old")
    for mode in (0o600, 0o400):
        path.chmod(mode)
        with atomic_write(path) as unfinished:
            assert stat.S_IMODE(unfinished.stat().st_mode) == 0o600  # also while it is written
            unfinished.write_text("new")
        assert path.read_text() == "new"
        assert stat.S_IMODE(path.stat().st_mode) == mode


def test_links_are_followed(tmp_path):
    (tmp_path / "there").mkdir()
    path = tmp_path / "link"
    path.symlink_to(tmp_path / "there" / "file")
    write(path)
    assert path.is_symlink()
    assert (tmp_path / "there" / "file").read_text() == "new"
    assert os.listdir(tmp_path / "there") == ["file"]


@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_what_is_not_a_regular_file_is_refused(tmp_path, kind):
    path = tmp_path / "out"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path = type(path)("/dev/null")
    for use in (write, check_place):
        with pytest.raises(OSError, match="regular file|folder"):
            use(path)
    assert path.exists()


@pytest.mark.parametrize("length", [247, 255])
def test_long_names_can_be_written(tmp_path, length):
    path = tmp_path / ("n" * length)
    check_place(path)
    write(path)
    assert path.read_text() == "new"


def test_names_that_are_too_long_are_known_before(tmp_path):
    with pytest.raises(OSError, match="too long"):
        check_place(tmp_path / ("n" * 256))


def test_a_folder_that_cannot_be_written_to_is_known_before(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        check_place(tmp_path / "nowhere" / "out")
    assert os.listdir(tmp_path) == []


KILLED = """
import sys, time
from vicinal.atomic_write import atomic_write
with atomic_write(sys.argv[1]) as unfinished:
    unfinished.write_text("half")
    print("written", flush=True)
    time.sleep(60)
"""


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_writes_is_not(tmp_path):
    path = tmp_path / "out"
    command = [sys.executable, "-c", KILLED, str(path)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    try:
        for process in processes:
            assert process.stdout.readline() == b"written\n"
        killed, _living = processes
        assert len(os.listdir(tmp_path)) == 2
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        write(path)
        assert len(os.listdir(tmp_path)) == 2  # the output, and the file of the living process
    finally:
        for process in processes:
            process.kill()
            process.wait()
            process.stdout.close()
    write(path)
    assert os.listdir(tmp_path) == ["out"]


def test_a_folder_keeps_its_permissions(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir(mode=0o700)
    for text in ("old", "new"):
        with whole_folder(folder, "card") as unfinished:
            assert stat.S_IMODE(unfinished.stat().st_mode) == 0o700  # also while it is written
            (unfinished / "card").write_text(text)
        assert (folder / "card").read_text() == text
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
