"""Limit BLAS to one thread while a fit runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController


class _Limit:
    """One limit for the whole process, set by the first to enter and lifted by the last to leave.

    The number of threads belongs to the process: if every fit set and restored it by itself, one
    that begins while another runs would restore the other's limit, and BLAS would stay at one.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside: set[object] = set()
        self._controller = ThreadpoolController()
        self._limiter: Any = None

    def enter(self, visitor: object) -> None:
        with self._lock:
            self._inside.add(visitor)
            if self._limiter is None:
                self._let_any_thread_set()
                self._limiter = self._controller.limit(limits=1, user_api="blas")

    def leave(self, visitor: object) -> None:
        """Lift the limit where this was the last use; also one that an interrupt left in place."""
        with self._lock:
            self._inside.discard(visitor)
            if not self._inside and self._limiter is not None:
                self._let_any_thread_set()
                self._limiter.restore_original_limits()
                self._limiter = None
                self._let_any_thread_set()

    def _let_any_thread_set(self) -> None:
        """Since threadpoolctl 3.8 only the thread that set a limit may change it, or lift it."""
        for library in self._controller.lib_controllers:
            release = getattr(library, "clear_controlling_thread", None)
            if release is not None:
                release(force=True)


@cache
def _limit() -> _Limit:
    return _Limit()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """BLAS on one thread within this context, however often and in whichever threads it is entered.

    The kernel threads by itself, and the products beside it are small. But after each of them the
    threads of OpenBLAS spin for some 20 ms, on the cores that the kernel needs next.
    """
    limit, visitor = _limit(), object()
    try:
        limit.enter(visitor)
        yield
    finally:
        limit.leave(visitor)
