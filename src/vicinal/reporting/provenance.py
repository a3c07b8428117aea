"""Section 7: where the figures come from."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from vicinal.reporting.findings import Fact
from vicinal.reporting.subject import Subject

PACKAGES = ("vicinal", "numpy", "scipy", "scikit-learn", "numba")

Lines = Mapping[str, str | Sequence[str]]


def provenance(
    subject: Subject, given: Lines | None, shapes: Mapping[str, tuple[int, int]], classes: Lines
) -> tuple[Fact, ...]:
    """What the caller says, then the data, the settings, the versions and the date.

    Parameters
    ----------
    subject : the model
    given : text by name, from the caller; a name that is also found here replaces it
    shapes : (rows, features) of each set of rows, by name
    classes : how many rows each class has, one line a set of rows
    """
    found: dict[str, str | Sequence[str]] = {
        "Data": [f"{name}: {n:,} rows × {d:,} features" for name, (n, d) in shapes.items()],
        "Classes": [f"{name}: {line}" for name, line in classes.items()],
        "Settings": _settings(subject),
        "Versions": [f"Python {platform.python_version()}", *_versions()],
        "Machine": f"{platform.system()} {platform.machine()}",
        "Written": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }
    merged = {**(given or {}), **{k: v for k, v in found.items() if k not in (given or {})}}
    return tuple(
        Fact(str(name), (lines,) if isinstance(lines, str) else tuple(map(str, lines)))
        for name, lines in merged.items()
    )


def _settings(subject: Subject) -> list[str]:
    """Every estimator, in order, with the parameters that were set."""
    steps = [] if subject.leading is None else [step for _, step in subject.leading.steps]
    steps += [subject.estimator] + ([] if subject.voter is None else [subject.voter])
    lines = [" ".join(repr(step).split()) for step in steps]
    seconds = getattr(subject.estimator, "fit_time_", None)
    if isinstance(seconds, (int, float, np.number)):
        lines.append(f"fitted in {_duration(float(seconds))}")
    return lines


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.1f} min"


def _versions() -> list[str]:
    lines = []
    for package in PACKAGES:
        try:
            lines.append(f"{package} {version(package)}")
        except PackageNotFoundError:  # run from a source tree that is not installed
            lines.append(f"{package} (not installed)")
    return lines


def check_provenance(given: Any) -> None:
    """A mapping of text to text, or to lists of text."""
    if given is None:
        return
    fine = isinstance(given, Mapping) and all(
        isinstance(lines, str)
        or (isinstance(lines, Sequence) and all(isinstance(line, str) for line in lines))
        for lines in given.values()
    )
    if not fine:
        raise TypeError("provenance must map names to a text, or to a list of texts")
