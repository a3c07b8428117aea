"""Intervals of predicted numbers: residuals out of fold, scaled by those of the nearest rows.

The scale of a row is the average of the absolute residuals of the rows that vote for it, by their
weights. Residuals of the rows that were tuned on, divided by their scales, are exchangeable with
those of further rows, as far as the choice of the model has not seen them: their quantiles, times
the scale of a row, are those of its prediction (normalized split conformal prediction).
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from vicinal._typing import FloatArray

PRIOR_ROWS = 3.0
"""Rows that the mean residual of all counts for in the scale of one."""


def residual_scales(weights: csr_array, residuals: FloatArray) -> FloatArray:
    """(q, t) averages of absolute residuals, positive.

    Parameters
    ----------
    weights : (q, n) row weights; their absolute values count
    residuals : (n, t)
    """
    sizes, absolute = np.abs(residuals), abs(weights)
    mass = np.asarray(absolute.sum(axis=1))
    count = mass**2 / np.maximum(np.asarray((absolute**2).sum(axis=1)), 1e-300)
    local = (absolute @ sizes) / np.where(mass > 0, mass, 1.0)[:, None]
    overall = sizes.mean(axis=0)
    scales = (count[:, None] * local + PRIOR_ROWS * overall) / (count[:, None] + PRIOR_ROWS)
    return np.where(overall > 0, scales, 1.0)


def conformal_quantiles(scores: FloatArray, shares: FloatArray) -> FloatArray:
    """(s, t) quantiles of scores (n, t) that a further score is below with these shares (s,).

    Lower ones are rounded down and upper ones up, to the next of the scores: of n + 1 exchangeable
    scores, at least the share is at most the upper quantile. Shares that need more scores than
    there are take the extreme ones.
    """
    n, ordered = len(scores), np.sort(scores, axis=0)
    places = shares * (n + 1)
    ranks = np.where(shares < 0.5, np.floor(places + 1e-9), np.ceil(places - 1e-9))
    chosen = ordered[np.clip(ranks, 1, n).astype(np.intp) - 1]
    middle = (shares == 0.5)[:, None]
    return np.where(middle, np.median(scores, axis=0), chosen)
