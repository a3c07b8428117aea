"""The package as a whole: what importing it costs, its dependency direction, its public names."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import vicinal

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = {
    "torch", "triton", "typer", "rich", "dask", "distributed", "matplotlib",
    "pandas", "pyarrow", "onnx", "faiss", "pytorch_metric_learning", "fastapi", "anyio",
}  # fmt: skip


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_importing_vicinal_loads_nothing_heavy():
    heavy = {"numba", "llvmlite", "torch", "triton", "matplotlib", "pandas", "polars"}
    loaded = []
    for package in ("vicinal", "sklearn.neighbors"):
        done = run_python(f"import sys, {package}; print(*sys.modules)")
        assert done.returncode == 0, done.stderr
        loaded.append(set(done.stdout.split()))
    assert not heavy & (loaded[0] - loaded[1])  # scikit-learn looks at pandas by itself


def test_every_module_can_be_imported():
    """Only an extra that is not installed excuses: doctests skip what they cannot import."""
    for module in pkgutil.walk_packages(vicinal.__path__, "vicinal.", onerror=lambda name: None):
        if module.name.endswith("__main__"):
            continue
        try:
            importlib.import_module(module.name)
        except ImportError as error:
            missing = error.__cause__ or error  # with a message that names the extra
            if (getattr(missing, "name", None) or "").partition(".")[0] not in EXTRAS:
                raise


def test_imports_go_one_way():
    pytest.importorskip("importlinter")
    code = "import sys, importlinter.cli as cli; sys.exit(cli.lint_imports(no_cache=True))"
    done = run_python(code)
    assert done.returncode == 0, done.stdout + done.stderr


def test_public_names_are_there_once_each():
    assert len(set(vicinal.__all__)) == len(vicinal.__all__)
    assert [name for name in vicinal.__all__ if not hasattr(vicinal, name)] == []


def test_dir_lists_the_public_names():
    assert set(vicinal.__all__) <= set(dir(vicinal))


def test_public_names_are_documented():
    objects = {name: getattr(vicinal, name) for name in vicinal.__all__}
    callables = {name: thing for name, thing in objects.items() if callable(thing)}
    # __doc__, not inspect.getdoc: a class does not inherit what it is from its parent.
    assert [name for name, thing in callables.items() if not (thing.__doc__ or "").strip()] == []
    missing = [
        f"{name}({parameter})"
        for name, thing in callables.items()
        for parameter in inspect.signature(thing).parameters
        if not re.search(rf"\b{parameter}\b", thing.__doc__)
    ]
    assert missing == [], "parameters that the docstring does not mention"
