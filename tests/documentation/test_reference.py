"""Every public name is in the API reference, and everything in the reference exists."""

from __future__ import annotations

import importlib
import re

import pytest

from tests.documentation.code_blocks import ROOT

REFERENCE = (ROOT / "docs" / "api" / "index.rst").read_text(encoding="utf-8")
MODULES = ["vicinal", "vicinal.exceptions", "vicinal.plot", "vicinal.supervision", "vicinal.export",
           "vicinal.serve", "vicinal.dask", "vicinal.gpu", "vicinal.deep",
           "vicinal.compat.metric_learn"]  # fmt: skip
ELSEWHERE = {"__version__", "STORES", "ConvergenceWarning", "missing_extra", "warn_user"}


def listed() -> set[str]:
    """``module.name`` of everything in the summaries of the reference."""
    found, module = set(), ""
    for line in REFERENCE.splitlines():
        if match := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = match[1]
        elif match := re.match(r"   ([A-Za-z_][\w.]*)$", line):
            found.add(f"{module}.{match[1]}")
    return found


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_in_the_reference(module):
    try:
        public = importlib.import_module(module)
    except ModuleNotFoundError as error:
        pytest.skip(f"{error.name} is not installed")
    names = {
        f"{module}.{name}"
        for name in public.__all__
        if name not in ELSEWHERE and not hasattr(getattr(public, name), "__path__")
    }
    names = {name for name in names if name not in MODULES}
    assert names - listed() == set()


def test_everything_in_the_reference_exists():
    for name in listed():
        module, _, attribute = name.rpartition(".")
        try:
            assert hasattr(importlib.import_module(module), attribute), name
        except ModuleNotFoundError as error:
            assert error.name in {"torch", "pytorch_metric_learning", "anyio", "fastapi"}, name
