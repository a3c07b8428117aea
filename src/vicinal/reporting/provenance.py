"""Section 7: where the figures come from."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

from vicinal.automatic.tuned_model import TunedModel
from vicinal.fitted_model import FittedModel, NeighborVotes
from vicinal.reporting.findings import Fact

PACKAGES = ("vicinal", "numpy", "scipy", "scikit-learn", "numba")

Lines = Mapping[str, str | Sequence[str]]


def provenance(
    fitted: FittedModel, given: Lines | None, shapes: Mapping[str, tuple[int, int]], classes: Lines
) -> tuple[Fact, ...]:
    """The caller's entries, then the data, the settings, the versions and the date.

    Parameters
    ----------
    fitted : the model
    given : text by name, from the caller; a name that is also found here replaces it
    shapes : (rows, features) of each set of rows, by name
    classes : how many rows each class has, one line per set of rows
    """
    found: dict[str, str | Sequence[str]] = {
        "Data": [f"{name}: {n:,} rows × {d:,} features" for name, (n, d) in shapes.items()],
        **({"Classes": [f"{name}: {line}" for name, line in classes.items()]} if classes else {}),
        "Settings": _settings(fitted),
        "Versions": [f"Python {platform.python_version()}", *_versions()],
        "Machine": f"{platform.system()} {platform.machine()}",
        "Written": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }
    merged = {**(given or {}), **{k: v for k, v in found.items() if k not in (given or {})}}
    return tuple(
        Fact(str(name), (lines,) if isinstance(lines, str) else tuple(map(str, lines)))
        for name, lines in merged.items()
    )


def _settings(fitted: FittedModel) -> list[str]:
    """Every estimator, in order, with the parameters that were set."""
    steps = [*fitted.preparation, fitted.estimator]
    if isinstance(fitted.votes, NeighborVotes):
        steps.append(fitted.votes.knn)
    lines = [" ".join(repr(step).split()) for step in steps]
    if isinstance(fitted.estimator, TunedModel):
        lines.append(f"fitted in {_duration(fitted.estimator.fit_time_)}")
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


def check_provenance(given: object) -> None:
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
