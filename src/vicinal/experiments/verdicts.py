"""What was measured, and what that says about a claim."""

from __future__ import annotations

from dataclasses import dataclass

SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Verdict:
    """A line of the page of claims."""

    measured: str
    verdict: str


NOT_MEASURED = Verdict("no complete results", "not measured yet")
FAILS = "**does not hold**"


def by_duel(measured: str, wins: int, losses: int, p: float) -> Verdict:
    """More wins than losses, and hardly by chance.

    Parameters
    ----------
    measured : in words
    wins, losses, p : of the duel
    """
    if wins <= losses:
        return Verdict(measured, FAILS)
    return Verdict(measured, "holds" if p < SIGNIFICANT else "in tendency; it may be chance")
