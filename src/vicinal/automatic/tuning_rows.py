"""Which rows the automatic classifier tunes on."""

from __future__ import annotations

import numpy as np

from vicinal._typing import IndexArray

MIN_MEMBERS = 10


def tuning_rows(codes: IndexArray, limit: int, rng: np.random.RandomState) -> IndexArray:
    """All rows, or a stratified sample of about `limit` of them, in ascending order.

    Every class keeps its share, but at least ten rows (all, if it has fewer).
    """
    n = len(codes)
    if n <= limit:
        return np.arange(n)
    kept = []
    for label in np.unique(codes):
        members = rng.permutation(np.flatnonzero(codes == label))
        size = max(round(limit * len(members) / n), min(len(members), MIN_MEMBERS))
        kept.append(members[:size])
    return np.sort(np.concatenate(kept))
