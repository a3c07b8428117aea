"""The table that metric-learn prints of a run where ``verbose`` is true."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from vicinal.learners.descent import FitCallback, FitProgress

COLUMNS = ("Iteration", "Objective Value", "Time(s)")


@contextmanager
def printed_run(
    name: str, verbose: bool, loss: Callable[[float], float] = float
) -> Iterator[FitCallback | None]:
    """A callback that prints every iteration of a learner in a table; None if not verbose.

    Parameters
    ----------
    name : of the estimator
    verbose : whether to print
    loss : the number to print for an objective
    """
    if not verbose:
        yield None
        return
    header = "{:>10} {:>20} {:>10}".format(*COLUMNS)
    print(f"[{name}]\n[{name}] {header}\n[{name}] {'-' * len(header)}")
    begin = latest = time.perf_counter()

    def report(progress: FitProgress) -> None:
        nonlocal latest
        now = time.perf_counter()
        value = loss(progress.objective)
        print(f"[{name}] {progress.n_iter:>10} {value:>20.6e} {now - latest:>10.2f}", flush=True)
        latest = now

    yield report
    print(f"[{name}] Training took {time.perf_counter() - begin:8.2f}s.")
