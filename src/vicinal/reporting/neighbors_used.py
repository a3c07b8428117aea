"""Section 6: how many neighbors count, after Lemma 3."""

from __future__ import annotations

from vicinal._typing import FloatArray
from vicinal.reporting.choices import number
from vicinal.reporting.errors import histogram
from vicinal.reporting.findings import NeighborsUsed
from vicinal.reporting.soft_margins import RowSides, Sides


def committee_neighbors(effective: FloatArray) -> NeighborsUsed:
    """The effective K of every row, (q,), mean over the members."""
    note = (
        f"{len(effective):,} rows; exponent 1: the mean over so many of the nearest, averaged over "
        "the metrics."
    )
    return NeighborsUsed((histogram(effective, "Of the predicted class", note),), "")


def learner_neighbors(used: RowSides, sides: Sides) -> NeighborsUsed:
    """The K of the K-nearest mean that each row's soft average equals, on both sides."""
    if sides.n_neighbors is not None:
        return NeighborsUsed(
            (),
            f"This method has no soft average: every row uses the same K = {sides.n_neighbors}.",
        )
    ends = "nearest" if sides.alpha > 0 else "farthest"
    among = "" if sides.similar is None else f" of the {sides.similar} nearest"
    return NeighborsUsed(
        (
            histogram(
                used.k_similar,
                "Of the row's own class",
                f"α = {number(sides.alpha)}: the mean over so many of the {ends}{among}.",
            ),
            histogram(
                used.k_dissimilar,
                "Of the other classes",
                "Exponent 1: the mean over so many of the nearest.",
            ),
        ),
        "",
    )
