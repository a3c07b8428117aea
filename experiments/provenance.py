"""Provenance of a number: commit, machine, versions."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "joblib", "vicinal")


@cache
def versions() -> str:
    """JSON of the Python and package versions."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return json.dumps(found)


@cache
def commit() -> str:
    """The commit of the checkout this package is in, with ``+`` for changes on top of it.

    The environment variable VICINAL_COMMIT says it of an exported tree, which may lie within a
    checkout of something else.
    """
    if told := os.environ.get("VICINAL_COMMIT"):
        return told
    here = Path(__file__).resolve().parent
    try:
        head = _git(here, "rev-parse", "--short=12", "HEAD")
        changed = _git(here, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head + ("+" if changed else "")


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@cache
def machine() -> str:
    """Processor and number of cores; no name of the machine."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        lines = cpuinfo.read_text().splitlines()
        models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        model = models[0] if models else model
    return f"{model}, {os.cpu_count()} cores"


@cache
def gpu() -> str:
    """The name of the GPU, which must exist."""
    import torch

    return str(torch.cuda.get_device_name())
