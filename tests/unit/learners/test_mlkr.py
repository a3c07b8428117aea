"""MLKR: hard input, sets of neighbors, weights, groups, solvers."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils.estimator_checks import parametrize_with_checks

import vicinal as vc
from vicinal.exceptions import ExcludedRowsWarning

pytestmark = pytest.mark.filterwarnings("ignore::vicinal.exceptions.ConvergenceWarning")


@parametrize_with_checks([vc.MLKR(max_iter=5)])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


def samples(n=90, d=4, seed=0):
    """One feature tells y, the others are louder noise."""
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((n, d)) * np.r_[1.0, np.full(d - 1, 3.0)]
    return X, np.sin(2 * X[:, 0])


def leave_one_out(Z, y, k=3):
    D = ((Z[:, None] - Z[None]) ** 2).sum(axis=2)
    np.fill_diagonal(D, np.inf)
    return float(np.mean((y - y[np.argsort(D, axis=1)[:, :k]].mean(axis=1)) ** 2))


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"loss": "huber"},
        {"loss": "absolute"},
        {"loss": (np.square, lambda z: 2 * z)},
        {"n_components": 2},
        {"neighbors": 30, "refresh_every": 10},
        {"solver": "sgd", "n_references": 50, "max_iter": 60, "random_state": 0},
        {"solver": "pgd"},
        {"backend": "numpy"},
    ],
)
def test_noise_is_learned_away(parameters):
    X, y = samples()
    fitted = vc.MLKR(**parameters).fit(X, y)
    assert fitted.objective_ < fitted.history_[0]
    assert leave_one_out(fitted.transform(X), y) < 0.5 * leave_one_out(X, y)


def test_a_pair_of_functions_is_the_loss_that_it_says():
    X, y = samples()
    pair = (np.square, lambda z: 2 * z)
    named, given = (vc.MLKR(loss=loss).fit(X, y) for loss in ("squared", pair))
    assert_allclose(given.components_, named.components_)
    assert given.objective_ == pytest.approx(named.objective_)


@pytest.mark.parametrize("of_x", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("of_y", [1e-12, 1e12])
@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_units_do_not_matter(of_x, of_y, loss):
    X, y = samples(60)
    expected = vc.MLKR(loss=loss, max_iter=20).fit(X, y)
    got = vc.MLKR(loss=loss, max_iter=20).fit(of_x * X, of_y * y + 3 * of_y)
    assert_allclose(of_x * got.components_, expected.components_, rtol=1e-5, atol=1e-5)
    unit = of_y**2 if loss == "squared" else 1.0
    assert got.objective_ == pytest.approx(unit * expected.objective_, rel=1e-6)


def test_one_target_among_constants_counts_alone():
    X, y = samples(60)
    one, several = (
        vc.MLKR(max_iter=20).fit(X, targets)
        for targets in (y, np.column_stack([np.full(60, 0.1), y, np.full(60, 1e6 / 3)]))
    )
    assert_allclose(several.components_, one.components_, rtol=1e-6, atol=1e-8)
    column = vc.MLKR(max_iter=20).fit(X, y[:, None])
    assert_array_equal(column.components_, one.components_)


def test_a_constant_target_is_told():
    X, _ = samples(30)
    with pytest.warns(UserWarning, match="constant"):
        fitted = vc.MLKR().fit(X, np.full(30, 0.1))
    assert fitted.objective_ == 0
    assert np.isfinite(fitted.components_).all()


HARD = {
    "duplicates with different targets": lambda X, y: (np.repeat(X[:30], 2, axis=0), y[:60]),
    "fewer rows than columns": lambda X, y: (np.tile(X[:9], 4), y[:9]),
    "outlier in X": lambda X, y: (np.vstack([1e8 * np.ones(4), X]), np.r_[0, y]),
    "outlier in y": lambda X, y: (X, np.r_[1e9, y[1:]]),
    "two rows": lambda X, y: (X[:2], y[:2]),
    "constant column": lambda X, y: (np.c_[X, np.ones(len(X))], y),
    "all rows equal": lambda X, y: (np.ones((10, 2)), y[:10]),
    "integers": lambda X, y: (X, np.arange(90)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("loss", ["squared", "absolute"])
@pytest.mark.parametrize("case", HARD)
def test_hard_input_gives_no_nan(case, loss):
    fitted = vc.MLKR(loss=loss, max_iter=30).fit(*HARD[case](*samples()))
    assert np.isfinite(fitted.components_).all()
    assert np.isfinite(fitted.objective_)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_targets_that_are_not_numbers_are_refused(bad):
    X, y = samples(20)
    y[3] = bad
    with pytest.raises(ValueError, match="NaN|infinity"):
        vc.MLKR().fit(X, y)
    with pytest.raises(ValueError, match="convert"):
        vc.MLKR().fit(X, np.array(["a", "b"] * 10))
    with pytest.raises(ValueError, match="units of y"):
        vc.MLKR().fit(X, 1e200 * X[:, 0])
    with pytest.raises(ValueError, match="squared, absolute, huber"):
        vc.MLKR(loss="hinge").fit(X, X[:, 0])


def test_a_group_does_not_predict_itself():
    """Every row twice: without groups the copy predicts it, with groups the others do."""
    X, y = samples(60)
    twice, groups = (np.repeat(values, 2, axis=0) for values in (X, np.arange(60)))
    free = vc.MLKR(max_iter=40).fit(twice, np.repeat(y, 2))
    held = vc.MLKR(max_iter=40).fit(twice, np.repeat(y, 2), groups=groups)
    assert free.objective_ < 0.1 * held.objective_
    assert held.objective_ == pytest.approx(2 * vc.MLKR(max_iter=40).fit(X, y).objective_, rel=0.05)


def test_lists_of_all_others_are_all_others():
    X, y = samples(40)
    lists = [[j for j in range(40) if j != i] for i in range(40)]
    listed, complete = (
        vc.MLKR(neighbors=neighbors, max_iter=20).fit(X, y) for neighbors in (lists, "all")
    )
    assert_allclose(listed.components_, complete.components_, rtol=1e-6, atol=1e-8)


def test_rows_without_weight_are_neighbors_only():
    X, y = samples(40)
    weights = np.r_[np.zeros(10), np.ones(30)]
    fitted = vc.MLKR(max_iter=20, tol=0).fit(X, y, sample_weight=weights)
    doubled = vc.MLKR(max_iter=20, tol=0).fit(X, y, sample_weight=2 * weights)
    assert doubled.objective_ == pytest.approx(2 * fitted.objective_)


def test_rows_without_neighbors_are_left_out():
    X, y = samples(20)
    lists = [[] if i == 0 else [0, (i + 1) % 20] for i in range(20)]
    lists[19] = [0, 1]
    with pytest.warns(ExcludedRowsWarning, match="1 of 20"):
        assert vc.MLKR(neighbors=lists, max_iter=3).fit(X, y).n_excluded_ == 1
    with pytest.raises(ValueError, match="No sample has a neighbor"):
        vc.MLKR().fit(X, y, groups=np.zeros(20))


def test_saved_and_loaded(tmp_path):
    X, y = samples(40)
    fitted = vc.MLKR(max_iter=5).fit(X, y)
    vc.save(fitted, tmp_path / "m.vicinal")
    loaded = vc.load(tmp_path / "m.vicinal")
    assert_array_equal(loaded.transform(X), fitted.transform(X))
    assert loaded.objective_ == fitted.objective_


@pytest.mark.parametrize("learner", [vc.MLKR(max_iter=2), vc.NeighborRegressor()])
def test_a_report_says_which_models_of_numbers_it_is_about(learner, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    learner.fit(X, y)
    with pytest.raises(TypeError, match="about ANNRegressor, not about"):
        vc.report(learner, X, y, path=tmp_path / "report.html")
