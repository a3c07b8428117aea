"""Explanations of a prediction: the rows that voted, and what made them near."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vicinal._typing import FloatArray

SHOWN_FEATURES = 3


@dataclass(frozen=True)
class NeighborVote:
    """One training row that voted."""

    row: int
    label: object
    weight: float
    """Its share of the predicted probabilities."""
    distance: float
    contributions: FloatArray
    """(d,) what each feature adds to the squared distance: δ_f (M δ)_f, of sum ``distance``².

    Where there are hat functions, the sum over those of the feature. It can be negative: where the
    feature differs just as the other features suggest.
    """
    separations: FloatArray | None = None
    """(d,) share of the trees in which a threshold of each feature separates the row from the one
    that is explained; None without forests."""


@dataclass(frozen=True)
class Explanation:
    """A prediction and the neighbors that gave it; ``print`` it for a table."""

    prediction: object
    probabilities: dict[object, float]
    """Of the classes; empty where a number is predicted."""
    neighbors: tuple[NeighborVote, ...]
    other_weight: float
    """The share of all rows that are not listed, and of the prior."""
    effective_neighbors: float
    feature_names: tuple[str, ...]

    def __str__(self) -> str:
        ranked = sorted(self.probabilities.items(), key=lambda item: -item[1])
        shares = ", ".join(f"{label}: {p:.3f}" for label, p in ranked[:5])
        lines = [
            f"prediction {_shown(self.prediction)}" + (f" ({shares})" if shares else ""),
            f"like {self.effective_neighbors:.1f} equally near neighbors",
            f"{'row':>8}  {'label':<12} {'weight':>7} {'distance':>9}  largest contributions",
        ]
        lines += [
            f"{vote.row:>8}  {_shown(vote.label):<12} {vote.weight:>7.3f} {vote.distance:>9.3g}  "
            + self._largest(vote)
            for vote in self.neighbors
        ]
        lines.append(f"{'others':>8}  {'':<12} {self.other_weight:>7.3f}")
        return "\n".join(lines)

    def _largest(self, vote: NeighborVote) -> str:
        total = vote.distance**2
        if total == 0:
            return "(the same point)"
        order = np.argsort(-np.abs(vote.contributions), kind="stable")[:SHOWN_FEATURES]
        shown = ", ".join(
            f"{self.feature_names[f]} {100 * vote.contributions[f] / total:.0f}%" for f in order
        )
        return shown + self._thresholds(vote)

    def _thresholds(self, vote: NeighborVote) -> str:
        if vote.separations is None or not vote.separations.any():
            return ""
        order = np.argsort(-vote.separations, kind="stable")[:SHOWN_FEATURES]
        return "; thresholds " + ", ".join(
            f"{self.feature_names[f]} {100 * vote.separations[f]:.0f}%"
            for f in order
            if vote.separations[f] > 0
        )


def _shown(label: object) -> str:
    """A number with six digits, an array of them, or a class."""
    if isinstance(label, float | np.ndarray):
        return np.array2string(np.asarray(label), precision=6, floatmode="maxprec")
    return str(label)


def contributions(x: FloatArray, rows: FloatArray, M: FloatArray) -> FloatArray:
    """(k, d) what each feature adds to the squared distances from x (d,) to rows (k, d)."""
    differences = rows - x
    return np.asarray(differences * (differences @ M))
