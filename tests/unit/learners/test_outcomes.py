"""How a fit ends: wrong parameters, warnings, interrupts."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.preprocessing import scale

from vicinal.exceptions import ConvergenceWarning, SaturatedStartWarning
from vicinal.learners.ann import ANN
from vicinal.learners.boostmetric import Boosting, BoostMetric
from vicinal.learners.itml import ITML
from vicinal.learners.nca import NCA
from vicinal.learners.scml import SCML
from vicinal.learners.scml_problem import ScmlProblem
from vicinal.objective.neighbor_objective import NeighborObjective


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


@pytest.mark.parametrize(
    ("learner", "error", "message"),
    [
        (SCML(-1.0), ValueError, "beta"),
        (NCA(max_iter=0), ValueError, "max_iter"),
        (NCA(max_iter="5"), TypeError, "max_iter must be an instance of int"),
        (ANN(similar=1.0), ValueError, r"similar=1\.0"),
        (ITML(n_pairs=20.0), TypeError, "n_pairs"),
    ],
)
def test_a_bad_parameter_is_an_error(wine, learner, error, message):
    with pytest.raises(error, match=message):
        clone(learner).fit(*wine)


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


def count_calls(monkeypatch, owner, name, interrupt_at=0):
    """Count the calls of a method; one of them may be interrupted."""
    calls, original = [], getattr(owner, name)

    def call(*given, **options):
        calls.append(1)
        if len(calls) == interrupt_at:
            raise KeyboardInterrupt
        return original(*given, **options)

    monkeypatch.setattr(owner, name, call)
    return calls


@pytest.mark.parametrize(
    ("learner", "owner", "name", "number"),
    [
        (BoostMetric(), Boosting, "leading", 4),
        (SCML(1e-3, random_state=0), ScmlProblem, "smoothed", 30),
        (NCA(), NeighborObjective, "value_and_gradient", 20),
    ],
)
def test_an_interrupt_keeps_what_was_learned(wine, monkeypatch, learner, owner, name, number):
    calls = count_calls(monkeypatch, owner, name, interrupt_at=number)
    learner = clone(learner)
    with pytest.raises(KeyboardInterrupt, match="what it had learned is kept"):
        learner.fit(*wine)
    assert len(calls) == number
    assert learner.stop_reason_ == "interrupted"
    assert not learner.converged_
    assert learner.transform(wine[0]).shape[0] == 178
    assert learner.objective_ < learner.history_[0]


@pytest.mark.parametrize(
    ("load", "standardized", "reached", "evaluations"),
    [
        (load_iris, True, 2.059242596984423, 169),
        (load_iris, False, 2.089698685499033, 193),
        (load_wine, True, 0.4718136130343571, 127),
        (load_wine, False, 7.403239261364864, 177),
    ],
)
def test_default_fits_need_less_than_half_the_evaluations_of_before(
    monkeypatch, load, standardized, reached, evaluations
):
    """To the objective at which fits ended before kinks were smoothed, recorded then."""
    X, y = load(return_X_y=True)
    counted = count_calls(monkeypatch, NeighborObjective, "smoothed")
    stop = ANN(callback=lambda progress: progress.objective <= reached)
    learner = stop.fit(scale(X) if standardized else X, y)
    assert learner.objective_ <= reached
    assert len(counted) <= 0.3 * evaluations


def test_the_hinge_loss_of_an_iterate_is_not_computed_again(wine, monkeypatch):
    evaluations = count_calls(monkeypatch, ScmlProblem, "smoothed")
    margins = count_calls(monkeypatch, ScmlProblem, "_margins")
    learner = SCML(1e-3, max_iter=40, random_state=0)
    with pytest.warns(ConvergenceWarning):
        learner.fit(*wine)
    assert len(margins) - len(evaluations) < 15  # those that look for small weights


def test_smoothed_hinge_is_evaluated_on_all_rows(wine):
    from vicinal.learners.rank_one_metrics import TripletSums
    from vicinal.supervision import nearest_triplets

    X, y = wine
    problem = ScmlProblem(TripletSums(X, nearest_triplets(X, y, 1, 1)), np.eye(13), 0.1)
    with pytest.raises(ValueError, match="all rows"):
        problem.value_and_gradient(np.ones(13), np.arange(3))


def test_a_callback_of_two_arguments_is_called_as_by_scikit_learn(wine):
    X, y = wine
    seen, progress = [], []

    def note(transformation, n_iter, into):
        into.append((transformation, n_iter))
        return True  # scikit-learn pays no attention to it

    nca = NCA(n_components=2, max_iter=3)
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        nca.set_params(callback=partial(note, into=seen)).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        nca.set_params(callback=lambda p: progress.append((p.components, p.n_iter))).fit(X, y)
    assert [n_iter for _, n_iter in seen] == [n_iter for _, n_iter in progress] == [1, 2, 3]
    for (flat, _), (components, _) in zip(seen, progress, strict=True):
        assert_array_equal(flat, components.ravel())
    assert_array_equal(seen[-1][0], nca.components_.ravel())
    quiet = NCA(max_iter=3, callback=lambda p, into=None: True).fit(X, y)
    assert quiet.stop_reason_ == "callback"
