from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from vicinal.classifiers.class_mean import ClassMeanKNN
from vicinal.experiments.methods import METHODS, Method, Stage
from vicinal.experiments.splits import folds, prepare
from vicinal.experiments.tuning import Training, tune, vote_hits
from vicinal.learners.gmml import GMML

# Runs are capped, and the runner keeps such warnings to the record's stop reason.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture
def training(wine) -> Training:
    parts = prepare(wine, 0)
    inner = folds(parts.X_train, parts.y_train, 0)
    return Training(parts.X_train, parts.y_train, inner, "paper", 0)


def test_choice_is_that_of_a_naive_cross_validation(training, gmml):
    totals = {}
    for t in (0.1, 0.5, 0.9):
        for k in gmml.neighbors("paper"):
            hits = 0
            for fold in training.folds:
                X, y = training.X, training.y
                learner = GMML(t=t).fit(X[fold.train], y[fold.train])
                vote = ClassMeanKNN(k, rule="vote")
                vote.fit(learner.transform(X[fold.train]), y[fold.train])
                predicted = vote.predict(learner.transform(X[fold.test]))
                hits += int((predicted == y[fold.test]).sum())
            totals[t, k] = hits
    best = max(totals.values())
    choice = tune(gmml, training)
    t, k = choice.parameters["t"], choice.n_neighbors
    assert totals[t, k] == best
    assert choice.accuracy == best / len(training.y)
    assert (t, k) == min(key for key, hits in totals.items() if hits == best)  # ties: the first
    assert choice.n_fits == 15


def test_half_of_the_configurations_see_only_two_folds(training, gmml):
    honest = replace(training, protocol="honest")
    assert tune(gmml, honest).n_fits == 3 * 2 + 1 * 3
    euclidean = METHODS["euclidean"]
    assert tune(euclidean, honest).n_fits == 5


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
    assert [alpha for alpha, _ in seen] == [0.5, 1.0, 2.0] * 5
    assert [start is None for _, start in seen] == [True, False, False] * 5
    starts = [start for _, start in seen if start is not None]
    assert len({start.tobytes() for start in starts}) == len(starts)  # never another fold's
    assert choice.factor.shape == (13, 13)


def test_hits_of_every_k_are_those_of_the_classifier(training, wine):
    parts = prepare(wine, 1)
    learner = GMML().fit(parts.X_train, parts.y_train)
    ks = [1, 2, 5, 40]
    hits = vote_hits(learner, (parts.X_train, parts.y_train), (parts.X_test, parts.y_test), ks)
    for k, found in zip(ks, hits, strict=True):
        vote = ClassMeanKNN(k, rule="vote").fit(learner.transform(parts.X_train), parts.y_train)
        predicted = vote.predict(learner.transform(parts.X_test))
        assert found == np.sum(predicted == parts.y_test)
