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
OLD_INTERPRETER = "only 0-dimensional arrays can be converted to Python scalars"
"""The interpreter of Triton 3.6 takes int() of arrays of one element, which NumPy 2.5 refuses."""


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
    if device == "cpu" and OLD_INTERPRETER in done.stderr:
        pytest.skip("this Triton's interpreter does not run with this NumPy")
    assert done.returncode == 0, done.stderr[-2000:]
    cases = [json.loads(line) for line in done.stdout.splitlines()]
    return {case.pop("case"): case for case in cases}


def test_equals_float64(errors):
    assert len(errors) == 15
    for case, figures in errors.items():
        if case not in ("fast", "large exponents", "two parts", "trained"):
            assert max(figures["s"], figures["t"]) < 1e-7, (case, figures)
            assert max(figures.values()) < 5e-6, (case, figures)


def test_large_exponents_do_not_overflow(errors):
    figures = errors["large exponents"]
    assert max(figures["s"], figures["t"]) < 1e-7
    assert max(figures.values()) < 2e-4  # exponents of up to 10⁷ have that much rounding


def test_two_parts_are_enough_far_from_an_optimum(errors):
    assert max(errors["two parts"].values()) < 1e-5


def test_a_gradient_that_nearly_vanishes_is_refined(errors):
    trained = errors["trained"]
    assert trained["0"] > 1e-3
    assert trained["1"] < 0.2 * trained["0"]
    assert trained["chosen"] == trained["2"] < 1e-8


def test_fast_is_coarser_but_not_wrong(errors):
    assert 1e-5 < errors["fast"]["Lap Z"] < 1e-2
