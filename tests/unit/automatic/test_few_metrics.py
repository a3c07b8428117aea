"""Committees of few metrics: what is left out costs the least."""

from itertools import combinations

import numpy as np
import pytest

import vicinal as vc
from vicinal.automatic.committee import greedy_weights, with_few_metrics
from vicinal.automatic.metric_path import MetricName


def squared_error(left, predictions, targets):
    weights = greedy_weights(predictions[left], targets, np.ones(len(targets)))
    return np.sum((np.tensordot(weights, predictions[left], axes=1) - targets) ** 2)


@pytest.fixture
def candidates():
    rng = np.random.default_rng(0)
    targets = np.eye(3)[rng.integers(0, 3, 200)]
    noise = rng.dirichlet(np.ones(3), (8, 200))
    share = np.linspace(0.2, 0.9, 8)[:, None, None]  # the first are the best
    names = [MetricName("a", 2), MetricName("b", 2), None, MetricName("c", 2)] * 2
    return (1.0 - share) * targets + share * noise, targets, names


def test_no_other_metric_alone_is_better(candidates):
    predictions, targets, names = candidates
    left = with_few_metrics(predictions, targets, np.ones(200), names, 1)
    kept = {names[i] for i in left} - {None}
    assert len(kept) == 1
    assert {i for i, name in enumerate(names) if name is None} <= set(left)  # forests stay
    assert all(i in left for i, name in enumerate(names) if name in kept)
    errors = []
    for pair in combinations([name for name in names[:4] if name], 1):
        others = np.array([i for i, name in enumerate(names) if name is None or name in pair])
        errors.append(squared_error(others, predictions, targets))
    assert squared_error(left, predictions, targets) == min(errors)


def test_enough_metrics_change_nothing(candidates):
    predictions, targets, names = candidates
    left = with_few_metrics(predictions, targets, np.ones(200), names, 3)
    assert squared_error(left, predictions, targets) == squared_error(
        np.arange(8), predictions, targets
    )


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_a_committee_has_no_more_metrics_than_it_may(kind):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 4))
    y = X[:, 0] + X[:, 1] ** 2
    y = (y > 1).astype(int) if kind == "classes" else y
    model = vc.ANNClassifier if kind == "classes" else vc.ANNRegressor
    members = ("linear",)
    free = model(members=members, effort=0.02).fit(X, y)
    few = model(members=members, effort=0.02, max_metrics=10).fit(X, y)
    assert len(few.metrics_) == 10  # one per fold, of two deals of five
    assert len(free.metrics_) > 10
    assert sum(choice.weight for choice in few.chosen_) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="max_metrics"):
        model(max_metrics=0).fit(X, y)
