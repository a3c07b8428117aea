"""Times as people write them."""

from __future__ import annotations

import re

SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0}
PATTERN = re.compile(r"(?:([\d.]+)h)?(?:([\d.]+)m(?:in)?)?(?:([\d.]+)s?)?")


def parse_duration(text: str) -> float:
    """Seconds of "90", "90s", "5m" or "1h30m".

    Examples
    --------
    >>> parse_duration("1h30m"), parse_duration("45")
    (5400.0, 45.0)
    """
    match = PATTERN.fullmatch(text.replace(" ", "").lower())
    try:
        parts = [float(part) if part else 0.0 for part in match.groups()] if match else []
    except ValueError:  # 1.2.3
        parts = []
    seconds = sum(part * unit for part, unit in zip(parts, SECONDS.values(), strict=False))
    if seconds <= 0:
        raise ValueError(f"{text!r} is not a time; write 90s, 5m or 1h30m")
    return seconds


def show_duration(seconds: float) -> str:
    """Seconds as a short text."""
    if seconds < 0.1:
        return "< 0.1 s"
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.1f} min"
