"""The threshold of a pair verifier, against trying every one."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from vicinal.learners.base import best_threshold

STRATEGIES = [
    ("accuracy", 1.0, None),
    ("f_beta", 1.0, None),
    ("f_beta", 0.5, None),
    ("f_beta", 2.0, None),
    ("max_tpr", 1.0, 0.0),
    ("max_tpr", 1.0, 0.7),
    ("max_tpr", 1.0, 1.0),
    ("max_tnr", 1.0, 0.0),
    ("max_tnr", 1.0, 0.7),
    ("max_tnr", 1.0, 1.0),
]


def score(distances, similar, threshold, strategy, beta, min_rate):
    """What the strategy maximizes, counted pair by pair; −1 where its bound is not kept."""
    called = distances <= threshold
    tp = int(np.sum(called & similar))
    fp = int(np.sum(called & ~similar))
    fn = int(np.sum(~called & similar))
    tn = int(np.sum(~called & ~similar))
    if strategy == "accuracy":
        return (tp + tn) / len(distances)
    if strategy == "f_beta":
        return (1 + beta**2) * tp / ((1 + beta**2) * tp + beta**2 * fn + fp)
    tpr, tnr = tp / (tp + fn), tn / (tn + fp)
    goal, bound = (tpr, tnr) if strategy == "max_tpr" else (tnr, tpr)
    return goal if bound >= min_rate else -1.0


def candidates(distances):
    """One threshold for every way to cut: below all, between neighbors, at the largest."""
    d = np.unique(distances)
    return np.concatenate([[d[0] - 1.0], (d[1:] + d[:-1]) / 2, [d[-1]]])


def problem(seed, ties):
    rng = np.random.default_rng(seed)
    similar = rng.random(30) < 0.5
    similar[:2] = True, False
    distances = rng.random(30) + 0.3 * ~similar
    return (np.round(5 * distances) / 5 if ties else distances), similar


@pytest.mark.parametrize(("strategy", "beta", "min_rate"), STRATEGIES)
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_threshold_has_the_best_score_and_is_the_smallest_of_equals(
    strategy, beta, min_rate, ties, seed
):
    distances, similar = problem(seed, ties)
    found = best_threshold(distances, similar, strategy, beta, min_rate)
    tried = candidates(distances)
    scores = np.array([score(distances, similar, t, strategy, beta, min_rate) for t in tried])
    reached = score(distances, similar, found, strategy, beta, min_rate)
    assert_allclose(reached, scores.max(), rtol=1e-12)
    smallest = tried[np.flatnonzero(scores >= scores.max() - 1e-12)[0]]
    assert_array_equal(distances <= found, distances <= smallest)


def test_midway_between_the_two_kinds():
    distances = np.array([0.1, 3.0, 0.5, 2.0])
    assert best_threshold(distances, np.array([True, False, True, False]), "accuracy") == 1.25


def test_largest_distance_where_all_are_called_similar():
    distances, similar = np.array([1.0, 2.0, 3.0]), np.array([False, True, True])
    assert best_threshold(distances, similar, "accuracy") == 3.0


def test_below_all_where_none_is_called_similar():
    distances, similar = np.array([1.0, 2.0, 3.0]), np.array([False, False, True])
    threshold = best_threshold(distances, similar, "accuracy")
    assert threshold < 1.0
    assert_allclose(threshold, 1.0)


def test_equal_distances_are_not_cut_apart():
    distances = np.array([1.0, 1.0, 1.0, 2.0])
    similar = np.array([True, False, True, False])
    assert best_threshold(distances, similar, "accuracy") == 1.5
    same = np.full(4, 1.0)
    assert best_threshold(same, np.array([True, True, True, False]), "accuracy") == 1.0
    assert best_threshold(same, np.array([True, False, False, False]), "accuracy") < 1.0


def test_order_of_the_pairs_does_not_matter():
    distances, similar = problem(0, ties=True)
    shuffled = np.random.default_rng(1).permutation(len(distances))
    for strategy, beta, min_rate in STRATEGIES:
        expected = best_threshold(distances, similar, strategy, beta, min_rate)
        found = best_threshold(distances[shuffled], similar[shuffled], strategy, beta, min_rate)
        assert found == expected


def test_single_precision_is_cut_in_double():
    distances = np.array([1.0, np.nextafter(np.float32(1), np.float32(2))], dtype=np.float32)
    threshold = best_threshold(distances, np.array([True, False]), "accuracy")
    assert distances[0] <= threshold < distances[1]


@pytest.mark.parametrize("strategy", ["max_tpr", "max_tnr"])
@pytest.mark.parametrize("min_rate", [None, -0.1, 1.1, np.nan])
def test_rates_need_a_bound(strategy, min_rate):
    with pytest.raises(ValueError, match=f"{strategy!r} needs min_rate in"):
        best_threshold(*problem(0, ties=False), strategy, min_rate=min_rate)


def test_unknown_strategy():
    with pytest.raises(ValueError, match="'youden' is unknown; use 'accuracy'"):
        best_threshold(*problem(0, ties=False), "youden")
