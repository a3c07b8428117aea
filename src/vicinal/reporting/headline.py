"""Section 1: how good, against what, and what was chosen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from vicinal.reporting.evaluation import Evaluation
from vicinal.reporting.findings import Chosen, Headline, Score

Z_95 = 1.959963984540054
"""The 97.5 % quantile of the normal distribution."""


def wilson_interval(correct: int, total: int) -> tuple[float, float]:
    """The 95 % Wilson score interval of a proportion p = correct/total.

    .. code-block:: text

        (p + z²/2n ± z √(p(1 − p)/n + z²/4n²)) / (1 + z²/n)

    Parameters
    ----------
    correct, total : int
        ``total`` is positive.

    Examples
    --------
    >>> low, high = wilson_interval(9, 10)
    >>> round(low, 4), round(high, 4)
    (0.5958, 0.9821)
    """
    p, square = correct / total, Z_95**2 / total
    center = (p + square / 2) / (1 + square)
    half = np.sqrt(p * (1 - p) * square + square**2 / 4) / (1 + square)
    return max(0.0, float(center - half)), min(1.0, float(center + half))


def headline(evaluation: Evaluation, chosen: tuple[Chosen, ...]) -> Headline:
    """The three accuracies on the same rows, and the sign test of the first two."""
    truth = evaluation.truth
    learned = evaluation.predicted == truth
    plain = evaluation.plain == truth
    gained = int(np.sum(learned & ~plain))
    lost = int(np.sum(plain & ~learned))
    return Headline(
        protocol=evaluation.protocol,
        scores=(
            _score("Learned metric", "this model", learned),
            _score("Plain K-NN", evaluation.plain_note, plain),
            _score("Majority class", "always the most frequent", evaluation.majority == truth),
        ),
        gained=gained,
        lost=lost,
        p_value=float(binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0,
        chosen=chosen,
    )


def _score(name: str, note: str, right: NDArray[np.bool_]) -> Score:
    correct, total = int(right.sum()), len(right)
    low, high = wilson_interval(correct, total)
    return Score(name, note, correct, total, correct / total, low, high)
