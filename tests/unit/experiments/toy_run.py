"""A run of toy tasks, as a process of its own: python toy_run.py FILE LOG N SECONDS JOBS DEADLY."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from experiments.records import Measurement
from experiments.runner import run
from experiments.store import Store


@dataclass(frozen=True)
class Toy:
    number: int
    log: str
    seconds: float
    deadly: bool = False
    """It kills the process that computes it."""
    kind: str = "toy"
    dataset_name: str = "toys"

    @property
    def key(self) -> str:
        return f"toy/{self.number}"

    def compute(self) -> Measurement:
        with open(self.log, "a") as log:
            log.write(f"{self.number} {os.getppid()}\n")
        time.sleep(self.seconds)
        if self.deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        return Measurement(self.key, "toy", "toys", "m", value=str(self.number**2))

    def failure(self, error: str) -> Measurement:
        return Measurement(self.key, "toy", "toys", "m", error=error)


if __name__ == "__main__":
    file, log, n, seconds, jobs, deadly = sys.argv[1:]
    toys = [Toy(i, log, float(seconds), str(i) in deadly.split(",")) for i in range(int(n))]
    with Store(Path(file)) as store:
        run(toys, store, n_jobs=int(jobs))
