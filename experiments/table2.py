"""Table 2: every method on every data set and split, by any protocol."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments import provenance
from experiments.datasets import Dataset
from experiments.methods import Automatic, Method
from experiments.records import Result
from experiments.splits import Parts, folds, prepare, with_wrong_labels
from experiments.tuning import Training, tune
from vicinal.kernels import DEVICE_BACKENDS
from vicinal.validation.out_of_fold import Rows, correct_votes

PROTOCOLS = ("honest", "paper", "noisy")
"""The last is the first, with a fifth of the training labels wrong."""


@dataclass(frozen=True)
class ResultTask:
    """One method on one split."""

    data: Dataset
    method: Method | Automatic
    protocol: str
    split: int
    tuning_limit: int | None = None
    """Tune on at most so many rows of the training part, stratified; None is all."""

    @property
    def key(self) -> str:
        return f"{self.protocol}/{self.data.name}/{self.method.name}/{self.split}"

    @property
    def kind(self) -> str:
        return f"table2/{self.protocol}"

    @property
    def dataset_name(self) -> str:
        return self.data.name

    def compute(self) -> Result:
        """Tune inside the training part, fit on all of it, ask the test part."""
        start = time.process_time()
        parts = prepare(self.data, self.split)
        if self.protocol == "noisy":
            parts = with_wrong_labels(parts, self.split)
        if isinstance(self.method, Automatic):
            found = _classify(self.method, parts, self.split)
        else:
            found = self._tune_and_vote(self.method, parts)
        return self._row(
            n_train=len(parts.y_train),
            n_test=len(parts.y_test),
            cpu_seconds=time.process_time() - start,
            **found,
        )

    def failure(self, error: str) -> Result:
        """The row of a method that raised."""
        return self._row(error=error)

    def _tune_and_vote(self, method: Method, parts: Parts) -> dict[str, Any]:
        start = time.perf_counter()
        inner = folds(parts.X_train, parts.y_train, self.split, self.tuning_limit)
        training = Training(parts.X_train, parts.y_train, inner, self.protocol, self.split)
        choice = tune(method, training)
        tuned = time.perf_counter()
        learner = method.make(choice.parameters, self.protocol, self.split, choice.factor)
        learner.fit(parts.X_train, parts.y_train)
        fitted = time.perf_counter()
        ks = [choice.n_neighbors]
        if self.protocol == "paper":  # as its text suggests: the best K, on the test part
            ks = [k for k in method.neighbors("paper") if k <= len(parts.y_train)]
        voters, asked = Rows(parts.X_train, parts.y_train), Rows(parts.X_test, parts.y_test)
        hits = correct_votes(learner.transform, voters, asked, np.array(ks))
        return {
            "parameters": json.dumps(
                {**choice.parameters, "K": ks[int(hits.argmax())], **method.computed_by}
            ),
            "accuracy": float(hits.max()) / len(parts.y_test),
            "tuned_accuracy": choice.accuracy,
            "tune_seconds": tuned - start,
            "fit_seconds": fitted - tuned,
            "predict_seconds": time.perf_counter() - fitted,
            "n_fits": choice.n_fits,
            "iterations": getattr(learner, "n_iter_", None),
            "stop_reason": getattr(learner, "stop_reason_", None),
            "tuning_rows": sum(len(fold.test) for fold in inner),
            "machine": _machine(method),
        }

    def _row(self, **columns: Any) -> Result:
        return Result(
            self.key,
            self.data.name,
            self.method.name,
            self.protocol,
            self.split,
            self.split,
            data=self.data.source,
            **columns,
        )


def _machine(method: Method) -> str:
    """With the GPU, where it has computed."""
    here = provenance.machine()
    return f"{here}, {provenance.gpu()}" if method.backend in DEVICE_BACKENDS else here


def _classify(method: Automatic, parts: Parts, seed: int) -> dict[str, Any]:
    """Fit and ask the automatic classifier; all its time is fit time."""
    start = time.perf_counter()
    classifier = method.make(seed).fit(parts.X_train, parts.y_train)
    fitted = time.perf_counter()
    accuracy = float(np.mean(classifier.predict(parts.X_test) == parts.y_test))
    chosen = [str(choice) for choice in getattr(classifier, "chosen_", ())]
    return {
        "parameters": json.dumps({"chosen": chosen}),
        "accuracy": accuracy,
        "tuned_accuracy": getattr(classifier, "best_score_", None),
        "tune_seconds": 0.0,
        "fit_seconds": fitted - start,
        "predict_seconds": time.perf_counter() - fitted,
        "stop_reason": "max_time" if getattr(classifier, "timed_out_", False) else None,
        "tuning_rows": len(classifier.oof_rows_),
    }


def tasks(
    data: Iterable[Dataset],
    methods: Iterable[Method | Automatic],
    protocol: str,
    n_splits: int,
    tuning_limit: int | None = None,
) -> list[ResultTask]:
    """All results that a table needs; data sets first, then splits.

    Parameters
    ----------
    data, methods : what to compare, on what
    protocol : of `PROTOCOLS`
    n_splits : 70/30 splits 0 … n_splits − 1
    tuning_limit : rows to tune on, at most; None is all
    """
    if protocol not in PROTOCOLS:
        raise ValueError(f"protocol={protocol!r} is unknown; use one of {', '.join(PROTOCOLS)}")
    chosen = compared(methods, protocol)
    return [
        ResultTask(one, method, protocol, split, tuning_limit)
        for one in data
        for split in range(n_splits)
        for method in chosen
    ]


def compared(methods: Iterable[Method | Automatic], protocol: str) -> list[Method | Automatic]:
    """Those of the methods that have results by a protocol.

    The automatic classifier tunes itself, K included: the paper's protocol leaves it
    out, and its tables show its honest result.

    Parameters
    ----------
    methods : what is asked for
    protocol : of `PROTOCOLS`
    """
    return [m for m in methods if protocol != "paper" or not isinstance(m, Automatic)]
