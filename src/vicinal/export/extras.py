"""The message for a missing package."""

from __future__ import annotations


def missing_extra(package: str) -> ImportError:
    """What to say where an optional package is not installed."""
    return ImportError(
        f"this export needs the package {package}: pip install 'vicinal[export]'", name=package
    )
