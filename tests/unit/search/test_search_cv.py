"""ANNSearchCV against GridSearchCV, against loops by hand, and among scikit-learn's tools."""

from __future__ import annotations

import pickle
import warnings

import numba
import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.utils.estimator_checks import estimator_checks_generator

import vicinal as vc
from vicinal.search.search_cv import ANNSearchCV

SHORT = {"tol": 0.1}  # converges soon: no warnings
KS = [1, 4, 7]


def short(**parameters):
    return vc.ANN(**(SHORT | parameters))


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X)[::2], y[::2]


def scores_of(search):
    return {name: col for name, col in search.cv_results_.items() if name.endswith("_score")}


@pytest.mark.parametrize("rule", ["vote", "class_mean"])
@pytest.mark.parametrize("standardize", [False, True])
def test_same_as_grid_search_over_a_pipeline(rule, standardize, wine):
    X, y = wine
    X = X * np.geomspace(0.1, 10, X.shape[1])  # so that it matters
    alphas, gammas = [-1.0, 0.5, 2.0], [0.5, 2.0]
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    search = ANNSearchCV(
        short(),
        alphas=alphas,
        gammas=gammas,
        n_neighbors=KS,
        search="grid",
        rule=rule,
        warm_start=False,
        standardize=standardize,
        cv=cv,
    ).fit(X, y)
    scaler = StandardScaler() if standardize else "passthrough"
    knn = vc.ClassMeanKNN(rule=rule)
    pipeline = Pipeline([("scale", scaler), ("ann", short()), ("knn", knn)])
    grid = {"ann__alpha": alphas, "ann__gamma": gammas, "knn__n_neighbors": KS}
    expected = GridSearchCV(pipeline, grid, cv=cv).fit(X, y)
    assert set(scores_of(search)) == {n for n in expected.cv_results_ if n.endswith("_score")}
    for name, column in scores_of(search).items():
        np.testing.assert_array_equal(column, expected.cv_results_[name], err_msg=name)
    best = {name.rpartition("__")[2]: value for name, value in expected.best_params_.items()}
    assert search.best_params_ == best
    assert search.best_index_ == expected.best_index_
    assert search.best_score_ == expected.best_score_
    np.testing.assert_array_equal(search.predict_proba(X), expected.predict_proba(X))
    params = [
        {n.rpartition("__")[2]: v for n, v in p.items()} for p in expected.cv_results_["params"]
    ]
    assert search.cv_results_["params"] == params


def test_separate_search_is_two_lines_of_the_grid(wine):
    X, y = wine
    options = {"alphas": [0.5, 1.0, 4.0], "gammas": [0.25, 2.0], "n_neighbors": KS}
    options |= {"warm_start": False, "cv": 3, "random_state": 0, "refit": False}
    search = ANNSearchCV(short(gamma=0.5), search="separate", **options).fit(X, y)
    options["gammas"] = [0.25, 0.5, 2.0]
    grid = ANNSearchCV(short(), search="grid", **options).fit(X, y)
    np.testing.assert_array_equal(search.gammas_, [0.25, 0.5, 2.0])  # the estimator's own joins
    line = grid.cv_results_["param_gamma"] == 0.5
    means = np.where(line, grid.cv_results_["mean_test_score"], -1)
    best_alpha = grid.cv_results_["param_alpha"][np.argmax(means)]
    line |= grid.cv_results_["param_alpha"] == best_alpha
    for name in ("param_alpha", "param_gamma", "param_n_neighbors", "mean_test_score"):
        np.testing.assert_array_equal(search.cv_results_[name], grid.cv_results_[name][line])
    visited = (search.alphas_[:, None] == best_alpha) | (search.gammas_ == 0.5)
    expected = np.where(visited, grid.error_alpha_gamma_, np.nan)
    np.testing.assert_array_equal(search.error_alpha_gamma_, expected)


@pytest.mark.parametrize("kind", ["separate", "grid"])
def test_errors_are_the_best_over_the_third_parameter(kind, wine):
    search = ANNSearchCV(
        short(), alphas=[0.5, 2], gammas=[0.5, 1, 3], n_neighbors=KS, search=kind, cv=2
    ).fit(*wine)
    table = pd.DataFrame(search.cv_results_)
    table["error"] = 1 - table["mean_test_score"]
    for attribute, rows, columns in (
        ("error_alpha_k_", "alpha", "n_neighbors"),
        ("error_gamma_k_", "gamma", "n_neighbors"),
        ("error_alpha_gamma_", "alpha", "gamma"),
    ):
        expected = table.pivot_table("error", f"param_{rows}", f"param_{columns}", "min")
        found = getattr(search, attribute)
        np.testing.assert_array_equal(found, expected)
        assert expected.index.tolist() == getattr(search, f"{rows}s_".replace("rss", "rs")).tolist()
    assert np.isnan(search.error_alpha_gamma_).sum() == (2 if kind == "separate" else 0)
    assert 1 - search.best_score_ == np.nanmin(search.error_alpha_gamma_)


@pytest.mark.parametrize("kind", ["separate", "grid"])
def test_warm_starts_follow_the_path(kind, wine):
    """One iteration a fit: what is refitted shows how many came before, and from where."""
    X, y = wine
    learner = vc.ANN(gamma=1.0, max_iter=1)
    search = ANNSearchCV(
        learner, alphas=[0.5, 4.0], gammas=[1.0, 2.0], search=kind, n_neighbors=[1], cv=2
    )
    with pytest.warns(ConvergenceWarning):
        search.fit(X, y)
    alpha, gamma = search.best_params_["alpha"], search.best_params_["gamma"]
    path = [(0.5, 1.0), (4.0, 1.0), (4.0, 2.0)] if alpha == 4 else [(0.5, 1.0), (0.5, 2.0)]
    path = [point for point in path if point[1] <= gamma]
    by_hand = clone(learner).set_params(warm_start=True)
    for a, g in path:
        with pytest.warns(ConvergenceWarning):
            by_hand.set_params(alpha=a, gamma=g).fit(X, y)
    np.testing.assert_array_equal(search.components_, by_hand.components_)
    expected = learner.get_params() | {"alpha": alpha, "gamma": gamma}
    assert search.best_estimator_.get_params() == expected


def test_warm_starts_on_the_folds(wine):
    X, y = wine
    train, test = np.arange(0, 89, 2), np.arange(1, 89, 2)
    alphas = [0.5, 1.0, 2.0, -1.0]
    options = {"gammas": [1.0], "n_neighbors": KS, "cv": [(train, test)], "refit": False}
    search = ANNSearchCV(vc.ANN(max_iter=2), alphas=alphas, **options)
    with pytest.warns(ConvergenceWarning):
        search.fit(X, y)
    learner = vc.ANN(max_iter=2, warm_start=True)
    expected = {}
    for alpha in alphas:
        if alpha < 0:
            learner = clone(learner)  # the other sign begins anew
        with pytest.warns(ConvergenceWarning):
            learner.set_params(alpha=alpha).fit(X[train], y[train])
        Z = learner.transform(X)
        for K in KS:
            knn = vc.ClassMeanKNN(K, rule="vote").fit(Z[train], y[train])
            expected[alpha, K] = knn.score(Z[test], y[test])
    table = search.cv_results_
    keys = zip(table["param_alpha"], table["param_n_neighbors"], strict=True)
    assert [expected[key] for key in keys] == table["mean_test_score"].tolist()


def test_warm_starts_save_iterations_and_change_nothing_where_the_minimum_is_unique(wine):
    X, y = wine
    options = {"alphas": [-0.25, -0.5, -1.0], "gammas": [1.0, 2.0, 4.0], "search": "grid"}
    options |= {"cv": 2, "random_state": 0, "refit": False, "n_neighbors": KS}
    learner = vc.ANN(-1.0, loss="logistic", max_iter=2000, tol=1e-7)  # smooth, convex in M
    warm = ANNSearchCV(learner, **options).fit(X[:, :4], y)
    cold = ANNSearchCV(learner, warm_start=False, **options).fit(X[:, :4], y)
    n_iter = [search.cv_results_["mean_n_iter"].mean() for search in (warm, cold)]
    assert n_iter[0] < n_iter[1]
    means = [search.cv_results_["mean_test_score"] for search in (warm, cold)]
    np.testing.assert_array_equal(*means)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_an_interrupt_ends_the_search_and_leaves_the_model_as_it_was(n_jobs, wine):
    begun = []

    def interrupt(progress):
        begun.append(progress.n_iter == 1)
        if sum(begun) == 4:
            raise KeyboardInterrupt

    search = ANNSearchCV(short(), alphas=[1.0], gammas=[1.0], cv=2, n_jobs=n_jobs).fit(*wine)
    before = dict(vars(search))
    search.set_params(estimator=short(callback=interrupt), alphas=np.arange(1.0, 20.0), cv=3)
    with pytest.raises(KeyboardInterrupt):
        search.fit(wine[0][:, :4], wine[1])
    assert sum(begun) < 10
    assert search.n_features_in_ == before["n_features_in_"]
    assert search.cv_results_ is before["cv_results_"]


def test_results_do_not_depend_on_n_jobs(wine):
    options = {"alphas": [0.5, 2.0], "gammas": [0.5, 1.0], "cv": 3, "random_state": 0}
    one, two = (
        ANNSearchCV(short(), n_jobs=n_jobs, n_neighbors=KS, **options).fit(*wine)
        for n_jobs in (None, 2)
    )
    for name, column in scores_of(one).items():
        np.testing.assert_array_equal(column, two.cv_results_[name])
    np.testing.assert_array_equal(one.cv_results_["mean_n_iter"], two.cv_results_["mean_n_iter"])
    np.testing.assert_array_equal(one.components_, two.components_)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_kernels_have_the_threads_of_the_caller(n_jobs, wine):
    """Their number decides in which order large sums are made, so it must not depend on n_jobs."""
    threads = set()

    def look(progress):
        threads.add(numba.get_num_threads())

    search = ANNSearchCV(short(callback=look), alphas=[1.0], gammas=[1.0], cv=2, n_jobs=n_jobs)
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        search.fit(*wine)
    finally:
        numba.set_num_threads(before)
    assert threads == {1}


def test_pnca_has_no_gamma(wine):
    X, y = wine
    learner = vc.PNCA(**SHORT)
    search = ANNSearchCV(learner, alphas=[0.5, 2.0], n_neighbors=KS, cv=2).fit(X, y)
    assert search.error_alpha_gamma_.shape == (2, 1)
    assert search.best_params_["gamma"] == 1.0
    assert search.best_estimator_.alpha == search.best_params_["alpha"]
    with pytest.raises(ValueError, match="PNCA has no gamma"):
        ANNSearchCV(learner, gammas=[1.0]).fit(X, y)
    with pytest.raises(ValueError, match="n_jobs == 0"):
        ANNSearchCV(learner, n_jobs=0).fit(X, y)


def test_defaults_follow_the_estimator(wine):
    X, y = wine
    search = ANNSearchCV(short(alpha=-1.0), refit=False, cv=2).fit(X[:, :3], y)
    np.testing.assert_array_equal(search.alphas_, -(2.0 ** np.arange(4, -5, -1)))
    np.testing.assert_array_equal(search.gammas_, 2.0 ** np.arange(-3, 4))
    assert search.n_neighbors_.tolist() == list(range(1, 44, 3))  # 44 voters, no 46
    assert len(search.cv_results_["params"]) == (9 + 7 - 1) * 15


def test_ties_go_to_the_smallest():
    """Two clusters far apart: every setting is right."""
    X = np.r_[np.zeros((10, 2)), np.full((10, 2), 50.0)]
    X += np.random.default_rng(0).normal(size=X.shape)
    search = ANNSearchCV(short(), alphas=[2, 1], gammas=[3, 1], n_neighbors=[5, 3], cv=2)
    search.fit(X, np.repeat([0, 1], 10))
    assert search.best_params_ == {"alpha": 1.0, "gamma": 1.0, "n_neighbors": 3}
    assert np.all(search.cv_results_["rank_test_score"] == 1)


@pytest.mark.parametrize("cv", [5, GroupKFold(5)], ids=["number", "splitter"])
def test_groups_do_not_leak(cv):
    """Labels are random, but rows of a group are alike: only who knows the group can tell."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), 4)
    X = np.repeat(rng.normal(size=(40, 5)), 4, axis=0) + 1e-3 * rng.normal(size=(160, 5))
    y = np.repeat(np.arange(40) % 2, 4)
    options = {"alphas": [1.0], "gammas": [1.0], "n_neighbors": [1], "refit": False}
    search = ANNSearchCV(short(), random_state=0, **options)
    assert search.fit(X, y).best_score_ == 1.0
    assert search.set_params(cv=cv).fit(X, y, groups=groups).best_score_ < 0.75


def test_metadata_reaches_the_learner(wine):
    X, y = wine
    weight = np.random.default_rng(0).uniform(size=len(y))
    groups = np.arange(len(y)) // 2
    options = {"alphas": [1.0], "gammas": [1.0], "n_neighbors": KS, "cv": 2, "random_state": 0}
    search = ANNSearchCV(short(), **options).fit(X, y, sample_weight=weight, groups=groups)
    direct = short().fit(X, y, sample_weight=weight, groups=groups)
    np.testing.assert_array_equal(search.components_, direct.components_)
    with pytest.raises(TypeError, match="unexpected keyword arguments \\['weight'\\]"):
        search.fit(X, y, weight=weight)
    with pytest.raises(ValueError, match="groups must have one entry per sample"):
        search.fit(X, y, groups=groups[:-1])
    with pytest.raises(ValueError, match="sample_weight must be positive in at least two classes"):
        search.fit(X, y, sample_weight=y == 1)


def test_small_classes_make_no_trouble():
    """Classes of 1, 2 and 3 members, five folds; and folds that a class is missing from."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(5), [1, 2, 3, 12, 12])
    X = rng.normal(size=(30, 2)) + y[:, None]
    options = {"alphas": [-1.0, 1.0], "gammas": [1.0], "rule": "class_mean", "refit": False}
    search = ANNSearchCV(short(), random_state=0, **options).fit(X, y)
    assert search.n_splits_ == 5
    assert search.n_neighbors_.max() == 46  # this rule takes what there is
    keep = y < 3
    assert ANNSearchCV(short(), **options).fit(X[keep], y[keep]).n_splits_ == 3
    by_class = [(np.flatnonzero(y != 0), np.flatnonzero(y == 0))]
    assert ANNSearchCV(short(), cv=by_class, **options).fit(X, y).best_score_ == 0.0


def test_any_splitter(wine):
    X, y = wine
    options = {"alphas": [1.0], "gammas": [1.0], "n_neighbors": KS, "refit": False}
    splitter = KFold(4, shuffle=True, random_state=1)
    a = ANNSearchCV(short(), cv=splitter, **options).fit(X, y)
    b = ANNSearchCV(short(), cv=splitter.split(X), **options).fit(X, y)
    assert a.n_splits_ == 4
    np.testing.assert_array_equal(*(s.cv_results_["mean_test_score"] for s in (a, b)))


def test_many_warnings_become_one(wine):
    search = ANNSearchCV(vc.ANN(max_iter=2), alphas=[1, 2], gammas=[1.0], cv=2, refit=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search.fit(*wine)
    assert [w.category for w in caught] == [ConvergenceWarning]
    assert "max_iter=2" in str(caught[0].message)
    assert "4 times during the search" in str(caught[0].message)
    assert caught[0].filename == __file__


def test_the_metric_is_in_the_units_of_the_data(wine):
    X, y = wine
    X = 5.0 + X * np.geomspace(0.1, 10, X.shape[1])
    options = {"alphas": [1.0], "gammas": [1.0], "n_neighbors": KS, "cv": 2, "standardize": True}
    search = ANNSearchCV(short(), **options).fit(X, y)
    Z, u = search.transform(X), X[0] - X[7]
    squared = np.sum((Z[0] - Z[7]) ** 2)
    assert u @ search.get_mahalanobis_matrix() @ u == pytest.approx(squared)
    np.testing.assert_allclose((X - X.mean(axis=0)) @ search.components_.T, Z, atol=1e-9)
    np.testing.assert_array_equal(search.predict(X), search.classifier_.predict(Z))


def test_among_scikit_learns_tools(wine):
    X, y = wine
    names = np.array(["a", "b", "c"])[y]
    search = ANNSearchCV(short(), alphas=[1.0], gammas=[1.0], n_neighbors=KS, standardize=True)
    search.set_params(random_state=0, cv=3)
    scores = cross_val_score(make_pipeline(StandardScaler(), search), X, names, cv=3)
    assert scores.mean() > 0.85
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(13)])
    with config_context(transform_output="pandas"):
        search.fit(frame, names)
        assert list(search.transform(frame).columns) == search.get_feature_names_out().tolist()
        expected = search.predict_proba(frame)
    again = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(again.predict_proba(frame), expected)
    assert search.fit(X.astype(np.float32), y).transform(X.astype(np.float32)).dtype == np.float32


def test_search_without_refit(wine):
    search = ANNSearchCV(short(), alphas=[1.0], gammas=[1.0], cv=2, refit=False)
    with pytest.raises(NotFittedError):
        search.predict(wine[0])
    search.fit(*wine)
    assert search.best_params_["alpha"] == 1.0
    for method in (search.predict, search.transform, search.predict_proba):
        with pytest.raises(NotFittedError, match="refit=True"):
            method(wine[0])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"search": "both"}, "search='both'"),
        ({"rule": "mean"}, "rule='mean'"),
        ({"alphas": []}, "alphas=\\[\\]"),
        ({"alphas": [np.nan]}, "alphas"),
        ({"gammas": [0.0, 1.0]}, "gammas=.* must be positive"),
        ({"gammas": [np.inf]}, "gammas=.* must be positive"),
        ({"n_neighbors": [0, 1]}, "integers ≥ 1"),
        ({"n_neighbors": [1.5]}, "integers ≥ 1"),
        ({"n_neighbors": [1, 45]}, "n_neighbors=45 cannot vote: .* has 44 samples"),
        ({"cv": 1}, "cv == 1"),
        ({"cv": b"x"}, "cv=b'x' is not possible; use a whole number >= 2"),
        ({"cv": "x"}, "cv='x' is not possible"),
        ({"cv": True}, "cv=True is not possible"),
        ({"cv": 2.0}, "cv=2.0 is not possible"),
        ({"cv": 10**400}, "cv is too large"),
        ({"cv": [1]}, "pairs of rows"),
        ({"cv": [(np.arange(40), np.arange(0))]}, "folds without rows"),
        ({"estimator": vc.NCA()}, "got NCA; .* use vc.PNCA"),
        ({"estimator": vc.LMNN()}, "must be vc.ANN"),
    ],
)
def test_clear_errors(parameters, message, wine):
    search = ANNSearchCV(short(), alphas=[1.0], gammas=[1.0], cv=2).set_params(**parameters)
    with pytest.raises(ValueError, match=message):
        search.fit(*wine)


def test_verbose_logs_every_fit(wine, caplog):
    ANNSearchCV(short(), alphas=[1, 2], gammas=[1.0], cv=2, refit=False, verbose=1).fit(*wine)
    assert len(caplog.records) == 4
    assert "fold 2 of 2" in caplog.text


CHECKED = ANNSearchCV(short(), alphas=(1.0, 2.0), gammas=(1.0,), cv=2)


@pytest.mark.parametrize(
    ("estimator", "check"),
    list(estimator_checks_generator(CHECKED)),
    ids=lambda x: x.func.__name__ if hasattr(x, "func") else "search",
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)
