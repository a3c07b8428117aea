"""Several processes, one evaluation: each takes a range of rows (``torch.distributed``)."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


def join_ranks(timeout: float = 120.0, backend: str | None = None) -> None:
    """Join the processes that ``torchrun`` has started; fits then share their rows.

    A process group that the program has made already is taken as it is.

    Parameters
    ----------
    timeout : float
        Seconds after which a rank that does not answer makes the others fail.
    backend : str, optional
        "nccl" or "gloo"; by default "nccl" where there is a GPU. Each process takes the GPU of
        its ``LOCAL_RANK``.
    """
    if backend is None:
        backend = "nccl" if torch.cuda.is_available() else "gloo"
    if backend == "nccl":
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    if not dist.is_initialized():
        dist.init_process_group(backend, timeout=timedelta(seconds=timeout))
    _program.joined = True


@dataclass
class _Program:
    """State of this process: whether it has joined the other ranks."""

    joined: bool = False


_program = _Program()


class Ranks:
    """One process among the others; alone unless :func:`join_ranks` has been called.

    A process group of the program's own, for what else it does, shares no rows.
    """

    def __init__(self) -> None:
        joined = _program.joined and dist.is_initialized()
        self.rank = dist.get_rank() if joined else 0
        self.size = dist.get_world_size() if joined else 1

    def share(self, n: int) -> tuple[int, int] | None:
        """The range of n rows that is this rank's; None where it has all of them."""
        if self.size == 1:
            return None
        return n * self.rank // self.size, n * (self.rank + 1) // self.size

    def sum(self, values: Tensor) -> Tensor:
        """The sum over all ranks, the same on each of them."""
        if self.size > 1:
            self._together(dist.all_reduce, values)
        return values

    def check_agreement(self, values: Tensor) -> None:
        """Fail unless all ranks are about to evaluate the same parameters."""
        if self.size == 1:
            return
        digest = torch.stack([values.double().sum(), -values.double().sum()])
        self._together(dist.all_reduce, digest, op=dist.ReduceOp.MAX)
        if float(digest.sum()) != 0.0:
            raise RuntimeError(
                "The ranks evaluate different parameters: give each of them the same data and "
                "the same random_state"
            )

    def _together(self, operation: Callable[..., Any], values: Tensor, **options: Any) -> None:
        try:
            operation(values, **options)
        except RuntimeError as error:
            raise RuntimeError(
                f"Rank {self.rank} of {self.size} waited for the others in vain: one of them has "
                "died or is slower than the timeout of the process group. Start all of them anew."
            ) from error
