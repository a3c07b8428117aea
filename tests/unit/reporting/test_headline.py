"""The Wilson interval, and the comparison with plain K-NN."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from vicinal.automatic.committee import Choice
from vicinal.reporting.evaluation import Evaluation
from vicinal.reporting.headline import _voters, headline, wilson_interval


@given(st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_wilson_interval_is_where_the_score_test_is_undecided(counts):
    """Its ends p solve |correct/n − p| = z √(p (1 − p)/n)."""
    correct, n = counts
    for p in wilson_interval(correct, n):
        score = abs(correct / n - p)
        assert score == pytest.approx(norm.ppf(0.975) * np.sqrt(p * (1 - p) / n), abs=1e-9)


def evaluation(truth, learned, plain):
    return Evaluation(
        protocol="",
        held_out=True,
        rows=np.arange(len(truth)),
        truth=np.array(truth),
        probabilities=np.eye(3)[learned],
        plain=np.array(plain),
        plain_note="",
        majority=np.zeros(len(truth), dtype=int),
    )


def test_headline_counts_rows():
    found = headline(evaluation([0, 0, 1, 2, 2], [0, 0, 1, 2, 0], [0, 1, 0, 2, 2]), ())
    assert [score.correct for score in found.scores] == [4, 3, 2]
    assert [score.total for score in found.scores] == [5, 5, 5]
    assert (found.gained, found.lost) == (2, 1)
    assert found.p_value == pytest.approx(1.0)  # P(at least as uneven as 2:1 | fair coin)


def test_sign_test_is_the_exact_binomial():
    truth = [0] * 6
    found = headline(evaluation(truth, [0] * 6, [1] * 6), ())
    assert found.p_value == pytest.approx(2 * 0.5**6)


def test_no_difference_is_no_evidence():
    assert headline(evaluation([0, 1], [0, 1], [0, 1]), ()).p_value == 1.0


@pytest.mark.parametrize(
    ("vote", "said"),
    [
        ("majority", "K = 7"),
        ("local linear", "K = 7"),
        ("leaves", "forest"),
        ("boosted leaves", "50 trees"),
        ("stiff global", "all rows"),
    ],
)
def test_headline_says_which_rows_vote(vote, said):
    assert _voters(Choice("any", 50, vote, 7, 1.0, (0,))) == said
