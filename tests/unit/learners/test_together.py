"""Learners fitted as a batch: the metrics of each alone, what they share found once."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.preprocessing import scale

from vicinal.exceptions import ConvergenceWarning, SaturatedStartWarning
from vicinal.learners import hinge_compositions, itml
from vicinal.learners import rank_one_learner as composition_learner
from vicinal.learners.ann import ANN
from vicinal.learners.boosting import Boosting
from vicinal.learners.boostmetric import BoostMetric
from vicinal.learners.gmml import GMML
from vicinal.learners.hinge_compositions import HingeCompositions
from vicinal.learners.itml import ITML
from vicinal.learners.nca import NCA
from vicinal.learners.neighbor_fit import NeighborFit
from vicinal.learners.scml import SCML
from vicinal.learners.together import _batches, fit_together
from vicinal.objective.neighbor_objective import NeighborObjective

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

THREE_BASES = np.eye(13)[:3]

BATCHES = {
    "scml": [SCML(beta, max_iter=50, random_state=0) for beta in (10.0, 1e-1, 1e-3, 1e-5, 1e-7)],
    "scml, few bases": [
        SCML(beta, basis=THREE_BASES, max_iter=50, random_state=0) for beta in (1e-2, 1e-5)
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


SIZES = {
    "scml": [5],
    "scml, few bases": [2],
    "scml, drawn": [2],
    "boostmetric": [3],
    "boostmetric, two kinds": [2, 2],
    "itml": [3],
    "nca": [3, 3],
    "ann": [4],
    "ann, refreshed": [2],
    "ann, another solver": [2],
    "gmml": [1, 1],
}


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


def fresh(name):
    """Not clones: those have arrays of their own."""
    return [type(learner)(**learner.get_params()) for learner in BATCHES[name]]


def assert_fitted_as_alone(learners, X, y):
    for learner in learners:
        alone = type(learner)(**learner.get_params()).fit(X, y)
        assert vars(learner).keys() == vars(alone).keys()
        for attribute, value in vars(alone).items():
            found = getattr(learner, attribute)
            np.testing.assert_array_equal(found, value, attribute)
            assert np.asarray(found).dtype == np.asarray(value).dtype, attribute


@pytest.mark.filterwarnings("ignore::vicinal.exceptions.SaturatedStartWarning")
@pytest.mark.parametrize("name", BATCHES)
def test_every_attribute_is_that_of_a_fit_alone(wine, name):
    learners = fresh(name)
    assert [len(batch) for batch in _batches(learners)] == SIZES[name]
    fit_together(learners, *wine)
    assert_fitted_as_alone(learners, *wine)


@pytest.mark.parametrize("name", ["scml", "boostmetric", "itml", "nca"])
@pytest.mark.parametrize("kind", ["float32", "frame", "one-sample class"])
@pytest.mark.filterwarnings("ignore")
def test_whatever_the_samples_are(wine, name, kind):
    X, y = wine[0][::3], wine[1][::3]
    if kind == "float32":
        X = X.astype(np.float32)
    elif kind == "frame":
        pandas = pytest.importorskip("pandas")
        X, y = pandas.DataFrame(X).add_prefix("x"), np.array(["a", "b", "c"])[y]
    else:
        y = np.append(y[:-1], 9)
    learners = fresh(name)
    fit_together(learners, X, y)
    assert_fitted_as_alone(learners, X, y)


@pytest.mark.parametrize("name", ["scml", "boostmetric", "itml", "nca"])
@pytest.mark.filterwarnings("ignore")
def test_nothing_is_left_of_earlier_fits(wine, name):
    """Neither the first one's threshold nor the names of other samples."""
    pandas = pytest.importorskip("pandas")
    X, y = wine
    learners = fresh(name)
    learners[0].fit(X, y).set_threshold(3.0)
    learners[1].fit(pandas.DataFrame(X).add_prefix("x"), y)
    fit_together(learners, X, y)
    assert [hasattr(learner, "threshold_") for learner in learners[1:]] == [False] * (
        len(learners) - 1
    )
    assert_fitted_as_alone(learners[1:], X, y)


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
    fit_together(fresh("scml"), *wine)
    assert (len(triplets), len(bases)) == (1, 1)
    fit_together(fresh("boostmetric, two kinds"), *wine)
    assert len(triplets) == 1 + 2


def test_pairs_are_drawn_once_a_batch(wine, monkeypatch):
    drawn = counted(monkeypatch, itml, "sample_pairs")
    fit_together(fresh("itml"), *wine)
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
    fit_together(fresh("scml")[1:], *wine)
    assert evaluated_at_once[:4] == [1] * 4  # the starts
    assert evaluated_at_once.count(4) > 0.5 * len(evaluated_at_once)


@pytest.mark.parametrize(("room", "at_once"), [(40_000, 3), (20_000, 1), (1, 1)])
def test_large_problems_are_not(wine, monkeypatch, evaluated_at_once, room, at_once):
    monkeypatch.setattr(hinge_compositions, "AT_ONCE", room)
    learners = fresh("scml")[1:]  # the first ends at its start
    fit_together(learners, *wine)
    assert max(evaluated_at_once) == at_once
    assert_fitted_as_alone(learners, *wine)


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


def test_a_parameter_of_another_type_is_an_error_as_alone(wine):
    with pytest.raises(TypeError, match="max_iter must be an instance of int"):
        fit_together([NCA(max_iter=k, random_state=0) for k in (5, "5")], *wine)
    with pytest.raises(ValueError, match=r"similar=1\.0"):
        fit_together([ANN(similar=k, random_state=0) for k in (1, 1.0)], *wine)
    with pytest.raises(TypeError, match="n_pairs"):
        fit_together([ITML(n_pairs=n, random_state=0) for n in (20, 20.0)], *wine)


def test_a_fit_of_one_s_own_is_used(wine):
    class Doubled(NCA):
        def fit(self, X, y):
            self.seen_ = True
            return super().fit(2 * X, y)

    learners = [Doubled(max_iter=k, random_state=0) for k in (2, 3)]
    fit_together(learners, *wine)
    assert all(learner.seen_ for learner in learners)
    assert_fitted_as_alone(learners, *wine)


def interrupt_at(monkeypatch, owner, name, number):
    """The number-th call is interrupted; how many there were in all."""
    calls, original = [], getattr(owner, name)

    def call(*given, **options):
        calls.append(1)
        if len(calls) == number:
            raise KeyboardInterrupt
        return original(*given, **options)

    monkeypatch.setattr(owner, name, call)
    return calls


def test_an_interrupt_ends_the_work_and_keeps_what_is_done(wine, monkeypatch):
    calls = interrupt_at(monkeypatch, Boosting, "leading", 8)
    learners = [BoostMetric(v, max_iter=5) for v in (1e-7, 1e-6, 1e-5)]
    with pytest.raises(KeyboardInterrupt, match="what it had learned is kept"):
        fit_together(learners, *wine)
    assert len(calls) == 8
    assert [hasattr(learner, "components_") for learner in learners] == [True, True, False]
    assert learners[1].stop_reason_ == "interrupted"


@pytest.mark.parametrize("room", [2**21, 1])
def test_an_interrupt_of_problems_in_step(wine, monkeypatch, room):
    monkeypatch.setattr(hinge_compositions, "AT_ONCE", room)
    calls = interrupt_at(monkeypatch, HingeCompositions, "values_and_gradients", 30)
    learners = fresh("scml")[1:]
    with pytest.raises(KeyboardInterrupt):
        fit_together(learners, *wine)
    assert len(calls) == 30
    reasons = [getattr(learner, "stop_reason_", None) for learner in learners]
    assert reasons == ["interrupted"] * 4 if room > 1 else ["interrupted", None, None, None]


def test_an_interrupt_keeps_the_shorter_descents(wine, monkeypatch):
    calls = interrupt_at(monkeypatch, NeighborObjective, "value_and_gradient", 20)
    learners = [NCA(max_iter=k, random_state=0) for k in (100, 5)]
    with pytest.raises(KeyboardInterrupt):
        fit_together(learners, *wine)
    assert len(calls) == 20
    assert [learner.stop_reason_ for learner in learners] == ["interrupted", "max_iter"]


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("learner", "warning"),
    [
        (SCML(max_iter=2), ConvergenceWarning),
        (SCML(10.0), SaturatedStartWarning),
        (BoostMetric(max_iter=1), ConvergenceWarning),
        (ITML(max_iter=1), ConvergenceWarning),
        (NCA(max_iter=1), ConvergenceWarning),
    ],
)
def test_a_warning_names_the_line_of_the_fit(wine, learner, warning):
    with pytest.warns(warning) as caught:
        clone(learner).fit(*wine)
    assert caught[0].filename == __file__


def test_the_hinge_loss_of_an_iterate_is_not_computed_again(wine, monkeypatch):
    sizes = counted(monkeypatch, HingeCompositions, "values_and_gradients")
    margins = counted(monkeypatch, HingeCompositions, "_margins")
    learner = SCML(1e-3, max_iter=50, random_state=0).fit(*wine)
    assert len(margins) - len(sizes) < 0.1 * learner.n_iter_  # where a step was rejected


def test_other_estimators_are_fitted_one_by_one(wine):
    both = [PCA(2), PCA(3)]
    fit_together(both, *wine)
    assert [len(pca.components_) for pca in both] == [2, 3]
    fit_together([], *wine)
