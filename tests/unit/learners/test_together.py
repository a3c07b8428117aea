"""Learners fitted as a batch: the metrics of each alone, what they share found once."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.preprocessing import scale

from vicinal.learners import composition_learner, hinge_compositions, itml
from vicinal.learners.ann import ANN
from vicinal.learners.boostmetric import BoostMetric
from vicinal.learners.gmml import GMML
from vicinal.learners.hinge_compositions import HingeCompositions
from vicinal.learners.itml import ITML
from vicinal.learners.nca import NCA
from vicinal.learners.neighbor_fit import NeighborFit
from vicinal.learners.scml import SCML
from vicinal.learners.together import fit_together
from vicinal.objective.neighbor_objective import NeighborObjective

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

BATCHES = {
    "scml": [SCML(beta, max_iter=50, random_state=0) for beta in (10.0, 1e-1, 1e-3, 1e-5, 1e-7)],
    "scml, few bases": [
        SCML(beta, basis=np.eye(13)[:3], max_iter=50, random_state=0) for beta in (1e-2, 1e-5)
    ],
    "scml, drawn": [
        SCML(beta, solver="adagrad", max_iter=400, random_state=0) for beta in (1e-2, 1e-5)
    ],
    "boostmetric": [BoostMetric(v, max_iter=5) for v in (1e-7, 1e-3, 1e-1)],
    "boostmetric, two kinds": [
        BoostMetric(v, n_similar=k, max_iter=3) for k in (3, 5) for v in (1e-7, 1e-2)
    ],
    "itml": [ITML(gamma, max_iter=9, random_state=0) for gamma in (0.01, 1.0, np.inf)],
    "nca": [NCA(perplexity=p, max_iter=k, random_state=0) for p in (5, 20) for k in (5, 50, 15)],
    "ann": [ANN(alpha=-1.0, max_iter=k, random_state=0) for k in (1, 3, 30, 200)],
    "ann, refreshed": [ANN(similar=3, refresh_every=4, max_iter=k, random_state=0) for k in (3, 9)],
    "ann, another solver": [ANN(solver="pgd", max_iter=k, random_state=0) for k in (3, 9)],
    "gmml": [GMML(t) for t in (0.2, 0.8)],
}


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


@pytest.mark.filterwarnings("ignore::vicinal.exceptions.SaturatedStartWarning")
@pytest.mark.parametrize("name", BATCHES)
def test_every_attribute_is_that_of_a_fit_alone(wine, name):
    together = [clone(learner) for learner in BATCHES[name]]
    fit_together(together, *wine)
    for learner, given in zip(together, BATCHES[name], strict=True):
        alone = clone(given).fit(*wine)
        assert vars(learner).keys() == vars(alone).keys()
        for attribute, value in vars(alone).items():
            np.testing.assert_array_equal(getattr(learner, attribute), value, attribute)


def counted(monkeypatch, owner, name):
    calls, original = [], getattr(owner, name)

    def count(*given, **options):
        calls.append(1)
        return original(*given, **options)

    monkeypatch.setattr(owner, name, count)
    return calls


def test_triplets_and_bases_are_found_once_a_batch(wine, monkeypatch):
    triplets = counted(monkeypatch, composition_learner, "nearest_triplets")
    bases = counted(monkeypatch, SCML, "_bases")
    fit_together([clone(learner) for learner in BATCHES["scml"]], *wine)
    assert (len(triplets), len(bases)) == (1, 1)
    fit_together([clone(learner) for learner in BATCHES["boostmetric, two kinds"]], *wine)
    assert len(triplets) == 1 + 2


def test_pairs_are_drawn_once_a_batch(wine, monkeypatch):
    drawn = counted(monkeypatch, itml, "sample_pairs")
    fit_together([clone(learner) for learner in BATCHES["itml"]], *wine)
    assert len(drawn) == 1


@pytest.fixture
def evaluated_at_once(monkeypatch):
    """How many problems of SCML each evaluation was for."""
    sizes, original = [], HingeCompositions.values_and_gradients

    def record(self, members, params):
        sizes.append(len(members))
        return original(self, members, params)

    monkeypatch.setattr(HingeCompositions, "values_and_gradients", record)
    return sizes


def test_small_problems_are_evaluated_at_once(wine, evaluated_at_once):
    fit_together([clone(learner) for learner in BATCHES["scml"][1:]], *wine)
    assert evaluated_at_once[:4] == [1] * 4  # the starts
    assert evaluated_at_once.count(4) > 0.5 * len(evaluated_at_once)


@pytest.mark.parametrize(("room", "at_once"), [(40_000, 3), (20_000, 1), (1, 1)])
def test_large_problems_are_not(wine, monkeypatch, evaluated_at_once, room, at_once):
    monkeypatch.setattr(hinge_compositions, "AT_ONCE", room)
    small = BATCHES["scml"][1:]  # the first ends at its start
    learners = [clone(learner) for learner in small]
    fit_together(learners, *wine)
    assert max(evaluated_at_once) == at_once
    for learner, given in zip(learners, small, strict=True):
        np.testing.assert_array_equal(learner.components_, clone(given).fit(*wine).components_)


def test_one_descent_serves_every_max_iter(wine, monkeypatch):
    calls = counted(monkeypatch, NeighborObjective, "value_and_gradient")
    NCA(max_iter=50, random_state=0).fit(*wine)
    longest = len(calls)
    fit_together([NCA(max_iter=k, random_state=0) for k in (5, 50, 15)], *wine)
    assert len(calls) == 2 * longest


@pytest.mark.parametrize(
    "options",
    [
        {"random_state": None},
        {"callback": lambda progress: None},
        {"verbose": 2},
        {"warm_start": 1},
    ],
)
def test_who_draws_reports_or_goes_on_is_fitted_alone(wine, monkeypatch, options):
    alone = counted(monkeypatch, NeighborFit, "run")
    options = {"random_state": 0} | options
    fit_together([NCA(max_iter=k, **options) for k in (2, 3)], *wine)
    assert len(alone) == 2


def test_given_arrays_must_be_the_same_one(wine, monkeypatch):
    alone = counted(monkeypatch, NeighborFit, "run")
    starts = np.eye(13), np.eye(13)
    fit_together([NCA(init=L, max_iter=k, random_state=0) for L in starts for k in (2, 3)], *wine)
    assert len(alone) == 0
    fit_together([NCA(init=L, max_iter=2, random_state=0) for L in starts], *wine)
    assert len(alone) == 2


def test_a_callback_is_told_of_its_own_run_only(wine):
    seen = {1e-3: [], 1e-5: []}
    learners = [SCML(beta, max_iter=6, random_state=0, callback=seen[beta].append) for beta in seen]
    fit_together(learners, *wine)
    for progress, learner in zip(seen.values(), learners, strict=True):
        assert [each.n_iter for each in progress] == list(range(1, learner.n_iter_ + 1))


def test_a_bad_parameter_of_any_is_an_error(wine):
    with pytest.raises(ValueError, match="beta"):
        fit_together([SCML(beta, random_state=0) for beta in (1e-3, -1.0)], *wine)
    with pytest.raises(ValueError, match="max_iter"):
        fit_together([NCA(max_iter=k, random_state=0) for k in (3, 0)], *wine)


def test_other_estimators_are_fitted_one_by_one(wine):
    both = [PCA(2), PCA(3)]
    fit_together(both, *wine)
    assert [len(pca.components_) for pca in both] == [2, 3]
    fit_together([], *wine)
