"""What is written down: one row a result of Table 2, one row a measurement of a figure."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from experiments import provenance


@dataclass(frozen=True)
class Result:
    """What one method reached on one split; no accuracy where it failed."""

    table: ClassVar[str] = "results"

    task: str
    dataset: str
    method: str
    protocol: str
    split: int
    seed: int
    parameters: str = "{}"
    """JSON of everything that was chosen, K included."""
    accuracy: float | None = None
    tuned_accuracy: float | None = None
    """In the cross-validation that chose."""
    tune_seconds: float | None = None
    fit_seconds: float | None = None
    predict_seconds: float | None = None
    cpu_seconds: float | None = None
    """Of the process for all of it, whoever else was on the machine."""
    n_fits: int | None = None
    """In the cross-validation."""
    iterations: int | None = None
    """Of the final fit."""
    stop_reason: str | None = None
    n_train: int | None = None
    n_test: int | None = None
    tuning_rows: int | None = None
    """Rows of the training part that the cross-validation saw."""
    error: str | None = None
    data: str = ""
    versions: str = field(default_factory=provenance.versions)
    commit_id: str = field(default_factory=provenance.commit)
    machine: str = field(default_factory=provenance.machine)
    finished: float = field(default_factory=time.time)
    """Seconds since 1970."""

    @property
    def kind(self) -> str:
        """What it belongs to, as its task says."""
        return f"table2/{self.protocol}"

    @property
    def seconds(self) -> float | None:
        """What it took: tuning, fit and prediction; None for a failure."""
        if self.tune_seconds is None or self.fit_seconds is None or self.predict_seconds is None:
            return None
        return self.tune_seconds + self.fit_seconds + self.predict_seconds

    @property
    def sampled(self) -> bool:
        """Whether it was tuned on a sample of the training rows."""
        if self.tuning_rows is None or self.n_train is None:
            return False
        return self.tuning_rows < self.n_train

    @property
    def backend(self) -> str:
        """What computed it, where that was chosen; empty for what the learner chooses itself."""
        return str(json.loads(self.parameters).get("backend", ""))


@dataclass(frozen=True)
class Measurement:
    """One point of a figure."""

    table: ClassVar[str] = "measurements"

    task: str
    figure: str
    dataset: str
    method: str
    value: str = "{}"
    """JSON; what it holds is the figure's business."""
    seconds: float | None = None
    """What it took."""
    error: str | None = None
    versions: str = field(default_factory=provenance.versions)
    commit_id: str = field(default_factory=provenance.commit)
    machine: str = field(default_factory=provenance.machine)
    finished: float = field(default_factory=time.time)

    @property
    def kind(self) -> str:
        """What it belongs to, as its task says."""
        return self.figure


Record: TypeAlias = Result | Measurement
