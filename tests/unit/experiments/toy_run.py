"""A run of toy tasks, as a process of its own: python toy_run.py FILE LOG N SECONDS JOBS."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from vicinal.experiments.records import Measurement
from vicinal.experiments.runner import run
from vicinal.experiments.store import Store


@dataclass(frozen=True)
class Toy:
    number: int
    log: str
    seconds: float
    kind: str = "toy"
    dataset_name: str = "toys"

    @property
    def key(self) -> str:
        return f"toy/{self.number}"

    def compute(self) -> Measurement:
        with open(self.log, "a") as log:
            log.write(f"{self.number} {os.getppid()}\n")
        time.sleep(self.seconds)
        return Measurement(self.key, "toy", "toys", "m", value=str(self.number**2))

    def failure(self, error: str) -> Measurement:
        return Measurement(self.key, "toy", "toys", "m", error=error)


if __name__ == "__main__":
    file, log, n, seconds, jobs = sys.argv[1:]
    toys = [Toy(i, log, float(seconds)) for i in range(int(n))]
    with Store(Path(file)) as store:
        run(toys, store, n_jobs=int(jobs))
