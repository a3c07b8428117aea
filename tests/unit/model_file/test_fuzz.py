"""The short version of benchmarks/bench_fuzz.py."""

from __future__ import annotations

import importlib
import warnings
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"


def test_mutated_files_are_refused_or_predict(tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    pytest.importorskip("resource")  # not on Windows
    monkeypatch.syspath_prepend(BENCHMARKS)
    bench = importlib.import_module("bench_fuzz")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        files = bench.specimens(tmp_path)
        tally = bench.fuzz(2000, 20, tmp_path, files)
    assert tally.failures == []
    outcomes = {outcome for _, outcome in tally.outcomes}
    assert outcomes == {"refused", "loads and predicts"}
    assert {kind for kind, _ in tally.outcomes} == set(bench.MUTATIONS)
