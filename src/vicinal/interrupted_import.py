"""Ctrl-C while the command line is still being imported: one line instead of a traceback."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any


def is_command_line() -> bool:
    """Whether this process is the program ``vicinal``, or ``python -m vicinal``."""
    if Path(sys.argv[0] if sys.argv else "").stem == "vicinal":
        return True
    words = getattr(sys, "orig_argv", [])
    return "-m" in words and words[words.index("-m") + 1 :][:1] == ["vicinal"]


def quiet_while_importing() -> None:
    """End at once on Ctrl-C, until :func:`listen_again`."""
    if is_command_line() and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _end)


def listen_again() -> None:
    """Let Ctrl-C raise KeyboardInterrupt."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(number: int, frame: Any) -> None:
    os.write(2, b"interrupted; nothing was written\n")
    os._exit(130)  # a SystemExit in the middle of an import could be swallowed


quiet_while_importing()
