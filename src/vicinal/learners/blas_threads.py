"""Limit BLAS to one thread while a fit runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock

from threadpoolctl import ThreadpoolController


class _Limit:
    """One limit for the whole process, set by the first to enter and lifted by the last to leave.

    The number of threads belongs to the process: if every fit set and restored it by itself, one
    that begins while another runs would restore the other's limit, and BLAS would stay at one.
    """

    def __init__(self) -> None:
        self._lock, self._inside = Lock(), 0
        self._controller = ThreadpoolController()

    def enter(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._limiter = self._controller.limit(limits=1, user_api="blas")
            self._inside += 1

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limiter.restore_original_limits()


@cache
def _limit() -> _Limit:
    return _Limit()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """BLAS on one thread within this context, however often and in whichever threads it is entered.

    The kernel threads by itself, and the products beside it are small. But after each of them the
    threads of OpenBLAS spin for some 20 ms, on the cores that the kernel needs next.
    """
    limit = _limit()
    limit.enter()
    try:
        yield
    finally:
        limit.leave()
