from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from experiments.methods import METHODS, Method, Stage
from experiments.splits import folds, prepare
from experiments.tuning import Training, tune
from vicinal.learners.gmml import GMML
from vicinal.voting.class_mean import ClassMeanKNN

# Runs are capped, and the runner keeps such warnings to the record's stop reason.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


GRID = Stage.of(t=tuple(np.linspace(0.05, 0.95, 10)))


@pytest.fixture
def training(wine) -> Training:
    parts = prepare(wine, 0)
    inner = folds(parts.X_train, parts.y_train, 0)
    return Training(parts.X_train, parts.y_train, inner, "paper", 0)


def test_choice_is_that_of_a_naive_cross_validation(training, gmml):
    ks = gmml.neighbors("paper")
    totals = {t: np.zeros(len(ks), dtype=int) for t in (0.1, 0.5, 0.9)}
    for number, fold in enumerate(training.folds):
        if number == 2:  # the better half of three is one
            first = max(total.max() for total in totals.values())
            t = min(t for t, total in totals.items() if total.max() == first)
            totals = {t: totals[t]}
        X, y = training.X, training.y
        for t, total in totals.items():
            learner = GMML(t=t).fit(X[fold.train], y[fold.train])
            for i, k in enumerate(ks):
                vote = ClassMeanKNN(k, rule="vote")
                vote.fit(learner.transform(X[fold.train]), y[fold.train])
                predicted = vote.predict(learner.transform(X[fold.test]))
                total[i] += int((predicted == y[fold.test]).sum())
    ((t, hits),) = totals.items()
    choice = tune(gmml, training)
    assert choice.parameters["t"] == t
    assert choice.accuracy == hits.max() / len(training.y)
    assert choice.n_neighbors == ks[int(hits.argmax())]  # ties: the smallest
    assert choice.n_fits == 3 + 3 + 1 + 1 + 1


@pytest.mark.parametrize("protocol", ["honest", "paper"])
def test_from_the_third_fold_on_half_of_the_configurations_drop_out(training, gmml, protocol):
    training = replace(training, protocol=protocol)
    ten = replace(gmml, honest=(GRID,), paper=(GRID,))
    assert tune(ten, training).n_fits == 10 + 10 + 5 + 2 + 1
    assert tune(METHODS["euclidean"], training).n_fits == 5


def test_later_stages_keep_the_best_so_far(training):
    """A stage of bad values changes nothing."""
    good, bad = Stage.of(t=(0.3, 0.6)), Stage.of(ridge=(1e6,), prior=("identity",))
    first = Method("a", "A", "vicinal.learners.gmml:GMML", honest=(good,))
    both = replace(first, honest=(good, bad))
    honest = replace(training, protocol="honest")
    alone, with_bad = tune(first, honest), tune(both, honest)
    assert with_bad.accuracy >= alone.accuracy
    if with_bad.accuracy == alone.accuracy:
        assert with_bad.parameters == alone.parameters


def test_configurations_start_from_the_one_before_in_their_fold(training, monkeypatch):
    seen = []
    method = METHODS["pnca"]

    def make(self, parameters, protocol, seed, init=None):
        seen.append((parameters["alpha"], None if init is None else init.copy()))
        return original(self, parameters, protocol, seed, init)

    original = Method.make
    monkeypatch.setattr(Method, "make", make)
    small = replace(method, paper=(Stage.of(alpha=(0.5, 1.0, 2.0)),))
    choice = tune(small, training)
    assert [alpha for alpha, _ in seen[:6]] == [0.5, 1.0, 2.0] * 2
    assert [start is None for _, start in seen] == [True, False, False] * 2 + [True] * 3
    starts = [start for _, start in seen if start is not None]
    assert len({start.tobytes() for start in starts}) == len(starts)  # never another fold's
    assert choice.factor.shape == (13, 13)


def test_configurations_without_a_path_are_fitted_one_by_one_until_they_are_dropped(
    training, monkeypatch
):
    made = []

    def make(self, parameters, protocol, seed, init=None):
        made.append(init)
        return original(self, parameters, protocol, seed, init)

    original = Method.make
    monkeypatch.setattr(Method, "make", make)
    method, training = METHODS["itml"], replace(training, protocol="honest")
    choice = tune(method, training)
    n = len(method.stages("honest")[0].values)
    assert choice.n_fits == len(made) == n + n + n // 2 + n // 4 + max(1, n // 8)
    assert made == [None] * len(made)
