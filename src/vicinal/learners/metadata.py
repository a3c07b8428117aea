"""What ``fit`` takes beside X and y, through scikit-learn's metadata routing."""

from __future__ import annotations

from typing import Any


def take_fit_metadata(estimator: object, metadata: dict[str, Any]) -> tuple[Any, Any]:
    """``sample_weight`` and ``groups`` out of the keywords of ``fit``; others are a TypeError."""
    unknown = set(metadata) - {"sample_weight", "groups"}
    if unknown:
        raise TypeError(
            f"{type(estimator).__name__}.fit() got unexpected keyword arguments "
            f"{sorted(unknown)}; it takes sample_weight and groups"
        )
    return metadata.get("sample_weight"), metadata.get("groups")
