"""What the benchmarks share: the machine in words, the data, fair timing."""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))  # experiments/, which is not installed
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")


def print_header(title: str) -> None:
    """Machine and versions: a number without them is worth nothing."""
    model = "unknown CPU"
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text().splitlines()
        model = next((x.split(":")[1].strip() for x in lines if "model name" in x), model)
        flags = next((x for x in lines if x.startswith("flags")), "")
        model += ", AVX-512" if "avx512f" in flags else ", AVX2" if "avx2" in flags else ""
    cores = len(os.sched_getaffinity(0))
    print(f"# {title}")
    print(f"{model}, {cores} cores, Python {platform.python_version()}, ", end="")
    print(", ".join(f"{name} {version(name)}" for name in PACKAGES))


def letter(n: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The first n rows of the letter data set, standardized."""
    folder = Path(os.environ.get("VICINAL_DATA", ROOT.parent / "shared" / "data"))
    path = folder / "letter.npz"
    if not path.is_file():
        raise SystemExit("letter.npz is not there: set VICINAL_DATA to the folder that holds it")
    with np.load(path, allow_pickle=False) as arrays:
        X, y = arrays["X"][:n].astype(np.float64), arrays["y"][:n]
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def time_alternately(functions: dict[str, Callable[[], object]], repeats: int) -> dict[str, dict]:
    """Seconds of each function, best and median, measured in turns so that noise hits all alike."""
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for function in functions.values():
        function()  # compiles, and fills the caches
    for _ in range(repeats):
        for name, function in functions.items():
            time.sleep(0.2)  # the BLAS threads of the one before spin for a while: let them sleep
            start = time.perf_counter()
            function()
            seconds[name].append(time.perf_counter() - start)
    return {
        name: {"best": min(taken), "median": statistics.median(taken)}
        for name, taken in seconds.items()
    }


def verdict(what: str, value: float, unit: str, target: str, reached: bool) -> None:
    """One line a figure, printed whether it is good or bad."""
    print(f"{what}: {value:.3g}{unit} (to reach: {target}) {'ok' if reached else 'NOT REACHED'}")


def fill_section(path: Path, name: str, text: str) -> None:
    """Put the text between ``<!-- results:name -->`` and ``<!-- /results:name -->`` of a page."""
    start, end = f"<!-- results:{name} -->", f"<!-- /results:{name} -->"
    page = path.read_text(encoding="utf-8")
    before, rest = page.split(start)
    after = rest.split(end)[1]
    path.write_text(f"{before}{start}\n\n{text}\n\n{end}{after}", encoding="utf-8")
