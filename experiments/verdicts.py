"""What was measured, and what that says about a claim."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.statistics import Duel

SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Verdict:
    """A line of the page of claims."""

    measured: str
    verdict: str


NOT_MEASURED = Verdict("no complete results", "not measured yet")
FAILS = "**does not hold**"


def by_duel(measured: str, found: Duel) -> Verdict:
    """More wins than losses, and hardly by chance.

    Parameters
    ----------
    measured : in words
    found : the duel
    """
    if found.wins <= found.losses:
        return Verdict(measured, FAILS)
    return Verdict(measured, "holds" if found.p < SIGNIFICANT else "in tendency; it may be chance")
