"""There is always a best model so far, and the last one is the best."""

from __future__ import annotations

import os
import signal

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

import vicinal as vc
from vicinal.automatic.metric_path import STARTS
from vicinal.exceptions import TableError
from vicinal.fitted_model import anatomy
from vicinal.tables.selection import FitSettings, candidates
from vicinal.tables.table_model import TableModel
from vicinal.tables.training_table import ColumnRoles, prepare_training
from vicinal.validation.folds import stratified_folds
from vicinal.voting.votes import N_NEIGHBORS


def table_of(X, y, groups=None):
    """A training table of numbers."""
    frame = pd.DataFrame({f"x{j}": column for j, column in enumerate(np.transpose(X))}).assign(y=y)
    if groups is None:
        return prepare_training(frame, ColumnRoles("y"))
    return prepare_training(frame.assign(group=groups), ColumnRoles("y", None, "group"))


@pytest.fixture(scope="module")
def table():
    X, y = make_classification(100, 6, n_informative=3, n_classes=2, random_state=0)
    return table_of(X, y)


def oracle(table, learner, seed=0):
    rows = table.rows
    model = Pipeline([("learner", learner), ("knn", vc.ClassMeanKNN(rule="vote"))])
    folds = stratified_folds(5, rows.y, rows.groups, seed)
    grid = {"knn__n_neighbors": [k for k in N_NEIGHBORS if k <= 80]}
    return GridSearchCV(model, grid, cv=folds).fit(rows.X, rows.y)


def test_k_is_that_of_grid_search(table):
    *_, last = candidates(table, FitSettings("gmml"))
    expected = oracle(table, vc.GMML(random_state=0))
    assert last.estimator["knn"].n_neighbors == expected.best_params_["knn__n_neighbors"]
    assert last.accuracy == pytest.approx(expected.best_score_)
    np.testing.assert_array_equal(
        last.estimator.predict(table.frame), expected.predict(table.rows.X)
    )
    assert not last.timed_out


def test_plain_comes_first_and_the_learned_metric_last(table):
    kinds = [c.estimator.steps[1][0] for c in candidates(table, FitSettings("nca"))]
    assert kinds == ["knn", "learner", "learner"]
    found = list(candidates(table, FitSettings("plain")))
    assert [c.estimator.steps[1][0] for c in found] == ["knn"]
    expected = oracle(table, "passthrough")
    assert found[0].accuracy == pytest.approx(expected.best_score_)
    assert found[0].estimator["knn"].n_neighbors == expected.best_params_["knn__n_neighbors"]


@pytest.mark.parametrize("method", ["auto", "single"])
def test_the_automatic_methods(table, method):
    told = []
    settings = FitSettings(method, listener=lambda stage, done: told.append((stage, done)))
    first, last = candidates(table, settings)
    assert first.how.startswith("plain")
    assert isinstance(last.estimator, vc.ANNClassifier)
    assert last.estimator.mode == ("single" if method == "single" else "committee")
    assert last.estimator.callback is None
    assert ("metrics and votes", 1.0) in told


def test_ann_searches_and_leaves_no_callback_behind(table, monkeypatch):
    monkeypatch.setattr("vicinal.tables.selection.ALPHAS", [0.5, 1.0])
    monkeypatch.setattr("vicinal.tables.selection.GAMMAS", [1.0])
    told = []
    settings = FitSettings("ann", listener=lambda stage, done: told.append(done))
    *_, last = candidates(table, settings)
    search = last.estimator["search"]
    assert set(search.cv_results_["param_alpha"]) == {0.5, 1.0}
    assert last.accuracy == pytest.approx(search.best_score_, abs=0.05)
    assert search.estimator.callback is None
    assert search.best_estimator_.callback is None
    assert told[-1] == 1.0


@pytest.mark.parametrize("method", ["nca", "ann", "auto"])
def test_no_time_gives_a_model_that_says_so(table, method):
    *_, last = candidates(table, FitSettings(method, max_time=1e-9))
    assert last.timed_out
    assert last.estimator.predict(table.frame).shape == (100,)
    if method == "nca":
        assert last.estimator["learner"].n_iter_ <= 1
        assert "not cross-validated" in last.how


def test_time_that_ends_in_the_middle_keeps_the_learned_metric(table, monkeypatch):
    """The time is up in the second fold: K is that of the first, the metric that of all."""
    from vicinal.validation import schedule

    full = list(candidates(table, FitSettings("nca")))
    now = [0.0]
    monkeypatch.setattr(schedule, "monotonic", lambda: now[0])

    def listen(stage, done):
        if stage == "choice of K" and done > 0.2:  # the second of five folds
            now[0] = 1e9

    *_, cut = candidates(table, FitSettings("nca", max_time=10.0, listener=listen))
    assert cut.timed_out
    assert "1-fold" in cut.how
    np.testing.assert_array_equal(
        cut.estimator["learner"].components_, full[1].estimator["learner"].components_
    )


@pytest.mark.parametrize(
    ("stage", "kinds"),
    [
        ("plain", []),
        ("all rows", ["knn", "learner"]),
        ("choice of K", ["knn", "learner"]),
    ],
)
def test_an_interrupt_leaves_what_there_is(table, stage, kinds):
    def interrupt(told, done):
        if stage in told:
            raise KeyboardInterrupt

    found = []
    with pytest.raises(KeyboardInterrupt):
        found.extend(candidates(table, FitSettings("nca", listener=interrupt)))
    assert [c.estimator.steps[1][0] for c in found] == kinds
    if found:
        assert found[-1].estimator.predict(table.frame).shape == (100,)
        assert found[-1].estimator["learner"].callback is None
        assert ("not converged" in found[-1].how) == (stage == "all rows")


def test_groups_are_never_split(table):
    """Twins in two folds would make 1-NN perfect; groups see through it."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(40, 3)), 2, axis=0)
    y = np.repeat(rng.integers(2, size=40), 2)
    twins = np.repeat(np.arange(40), 2)
    apart = next(iter(candidates(table_of(X, y), FitSettings("plain"))))
    together = next(iter(candidates(table_of(X, y, twins), FitSettings("plain"))))
    assert apart.accuracy > 0.8
    assert together.accuracy < 0.75


def test_an_unknown_method_is_named(table):
    with pytest.raises(TableError, match="'nope' is unknown; use auto"):
        list(candidates(table, FitSettings("nope")))


@pytest.mark.parametrize("method", ["ann", "nca"])
def test_too_few_rows_for_a_method_name_the_class_and_the_way_out(method):
    rows = table_of(np.random.default_rng(0).normal(size=(6, 3)), np.repeat(["x", "y", "z"], 2))
    steps = candidates(rows, FitSettings(method))
    assert len(next(steps).estimator.steps) == 2
    with pytest.raises(
        TableError, match=r"'x' has 2 row.*more rows, or use --method plain"
    ) as told:
        list(steps)
    assert str(told.value).startswith(method)


def test_auto_makes_do_with_two_rows_a_class():
    rows = table_of(np.random.default_rng(0).normal(size=(6, 3)), np.repeat(["x", "y", "z"], 2))
    *_, best = candidates(rows, FitSettings("auto"))
    chosen = best.estimator.chosen_
    assert {choice.configuration for choice in chosen} <= {*STARTS, "forest", "boosting"}


@pytest.mark.filterwarnings("ignore::vicinal.exceptions.ExcludedRowsWarning")
def test_a_fold_of_one_class_is_told_with_its_groups():
    """ANNSearchCV cannot leave out such a fold."""
    groups = np.repeat(np.arange(6), 10)
    y = np.where((groups == 0) & (np.arange(60) > 1), "b", "a")
    rows = table_of(np.random.default_rng(0).normal(size=(60, 2)), y, groups)
    with pytest.raises(TableError, match=r"'b' has rows of 1 group.*more rows and groups"):
        list(candidates(rows, FitSettings("ann")))


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_ctrl_c_keeps_the_committee_so_far(task):
    """The signal comes after the first descent; what follows is not learned, the choice is made."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = np.where(X[:, 0] * X[:, 1] > 0, "a", "b") if task == "classification" else X[:, 0]
    frame = pd.DataFrame(X, columns=list("abcd")).assign(target=y)
    roles = ColumnRoles("target")
    told = []

    def listen(stage, done):
        if stage == "metrics and votes" and done:
            told.append(done)
            if len(told) == 1:
                os.kill(os.getpid(), signal.SIGINT)

    found = []
    settings = FitSettings(listener=listen)
    with pytest.raises(KeyboardInterrupt):
        found.extend(
            TableModel.candidates(prepare_training(frame, roles, task), roles, settings=settings)
        )
    assert anatomy(found[-1].estimator).committee is not None
    assert found[-1].provenance["timed_out"]
    assert len(found[-1].predict(frame)) == 200
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
