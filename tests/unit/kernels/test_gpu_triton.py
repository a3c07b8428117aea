"""The Triton kernels: in Triton's interpreter on the CPU, and for real where there is a GPU."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

SCRIPT = Path(__file__).with_name("gpu_triton_cases.py")
GPU = pytest.param("cuda", marks=pytest.mark.gpu)


@pytest.fixture(scope="module", params=["cpu", GPU])
def errors(request):
    device = request.param
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    environment |= {"TRITON_INTERPRET": "1"} if device == "cpu" else {}
    done = subprocess.run(
        [sys.executable, SCRIPT, device],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    cases = [json.loads(line) for line in done.stdout.splitlines()]
    return {case.pop("case"): case for case in cases}


COARSE = {"far apart": 2e-4, "an outlier": 5e-4}
"""‖z‖² of some hundreds costs digits in the exponent; a weight that is lost would cost all."""


def test_equals_float64(errors):
    assert len(errors) == 11
    for case, figures in errors.items():
        if case != "fast":
            assert max(figures.values()) < COARSE.get(case, 1e-5), (case, figures)


def test_fast_is_coarser_but_not_wrong(errors):
    assert 1e-5 < errors["fast"]["Lap Z"] < 1e-2
