"""Who may use the cores during a fit."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> Any:
    return ThreadpoolController()


def single_threaded_blas() -> AbstractContextManager[Any]:
    """BLAS on one thread within this context.

    The kernel threads by itself, and the products beside it are small. But after each of them the
    threads of OpenBLAS spin for some 20 ms, on the cores that the kernel needs next.
    """
    return _controller().limit(limits=1, user_api="blas")
