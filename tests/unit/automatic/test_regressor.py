"""The automatic regressor: predictions are explained averages, intervals cover, nothing leaks."""

import pickle
from copy import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_diabetes
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

import vicinal as vc
from vicinal.automatic.intervals import PRIOR_ROWS, conformal_quantiles, residual_scales
from vicinal.automatic.number_rows import NumberRows
from vicinal.exceptions import TimeLimitWarning
from vicinal.voting.forest import Forest
from vicinal.voting.row_weights import TargetRows
from vicinal.voting.sources import Committee

RNG = np.random.default_rng(0)
N, NEW = 140, 60
X = RNG.normal(size=(N + NEW, 4)) * [1.0, 100.0, 1e-3, 1.0] + 7.0
SIGNAL = np.sin(2 * (X[:, 0] - 7)) + (X[:, 1] - 7) / 100
Y = 50.0 + 10.0 * SIGNAL + RNG.normal(size=N + NEW)
X_TRAIN, X_TEST, Y_TRAIN, Y_TEST = X[:N], X[N:], Y[:N], Y[N:]


@pytest.fixture(scope="module")
def committee():
    return vc.ANNRegressor().fit(X_TRAIN, Y_TRAIN)


@pytest.fixture(scope="module")
def single():
    return vc.ANNRegressor("single").fit(X_TRAIN, Y_TRAIN)


@pytest.fixture(scope="module")
def several():
    targets = np.column_stack([Y_TRAIN, 1e6 * X_TRAIN[:, 1], np.full(N, 3.0)])
    return vc.ANNRegressor(members=("linear",)).fit(X_TRAIN, targets), targets


@parametrize_with_checks([vc.ANNRegressor(members=("linear", "hat")), vc.ANNRegressor("single")])
def test_is_a_scikit_learn_estimator(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", ["committee", "single"])
def test_a_prediction_is_a_weighted_average_of_the_targets(name, request):
    model = request.getfixturevalue(name)
    weights, prior_share = model.vote_weights(X_TEST)
    assert_allclose(weights.sum(axis=1) + prior_share, 1.0, atol=1e-12)
    assert_allclose(weights @ Y_TRAIN + prior_share * Y_TRAIN.mean(), model.predict(X_TEST))
    assert model.score(X_TEST, Y_TEST) > 0.8


def test_several_targets_are_averaged_by_the_same_weights(several):
    model, targets = several
    weights, prior_share = model.vote_weights(X_TEST)
    found = weights @ targets + prior_share[:, None] * targets.mean(axis=0)
    assert_allclose(model.predict(X_TEST), found, rtol=1e-9, atol=1e-6)
    assert_allclose(model.predict(X_TEST)[:, 2], 3.0)
    assert model.predict_interval(X_TEST, 0.8).shape == (NEW, 3, 2)
    predicted, std = model.predict(X_TEST, return_std=True)
    assert predicted.shape == std.shape == (NEW, 3)
    quantiles = model.predict_quantiles(X_TEST, [0.1, 0.5, 0.9])
    assert (np.diff(quantiles, axis=2) >= 0).all()


def test_units_of_features_and_targets_do_not_matter(committee):
    scaled = vc.ANNRegressor().fit(X_TRAIN * [1e12, 1e-12, 1.0, 1e3], 1e-12 * Y_TRAIN)
    predicted = scaled.predict(X_TEST * [1e12, 1e-12, 1.0, 1e3])
    assert_allclose(predicted, 1e-12 * committee.predict(X_TEST), rtol=1e-3)


def test_random_targets_are_predicted_by_about_their_mean():
    y, fresh = np.random.default_rng(1).normal(size=(2, N))
    model = vc.ANNRegressor(members=("linear", "hat")).fit(X_TRAIN, y)
    assert model.best_score_ < 0.1
    assert model.score(np.random.default_rng(2).normal(size=(N, 4)) + 7.0, fresh) > -0.1


def test_intervals_cover_what_they_promise_and_widen_where_the_noise_is():
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, size=(1300, 2))
    noise = np.where(x[:, 0] > 0, 2.0, 0.2)
    y = 3 * x[:, 1] + noise * rng.normal(size=1300)
    model = vc.ANNRegressor(members=("linear",)).fit(x[:300], y[:300])
    fresh, truth = x[300:], y[300:]
    for coverage in (0.5, 0.9):
        low, high = model.predict_interval(fresh, coverage).T
        assert np.mean((low <= truth) & (truth <= high)) == pytest.approx(coverage, abs=0.07)
    wide = fresh[:, 0] > 0.2
    narrow = fresh[:, 0] < -0.2
    assert np.mean((high - low)[wide]) > 1.8 * np.mean((high - low)[narrow])
    _, std = model.predict(fresh, return_std=True)
    assert std[wide].mean() == pytest.approx(2.0, rel=0.4)
    assert std[narrow].mean() < std[wide].mean() / 1.8
    quantiles = model.predict_quantiles(fresh, [0.05, 0.5, 0.95])
    assert_array_equal(quantiles[:, [0, 2]].T, [low, high])


def test_quantiles_of_scores_have_the_conformal_ranks():
    scores = np.arange(1.0, 20.0)[:, None]  # 19 scores: the k-th is the k/20 quantile
    found = conformal_quantiles(scores, np.array([0.05, 0.07, 0.5, 0.93, 0.95, 0.999]))
    assert_array_equal(found[:, 0], [1, 1, 10, 19, 19, 19])


def test_scales_are_weighted_means_of_absolute_residuals():
    weights = sparse.csr_array(np.array([[0.5, -0.5, 0.0], [0.0, 0.0, 1.0]]))
    residuals = np.array([[1.0], [-3.0], [8.0]])
    # Two rows of mean 2, one row of 8; and some of the mean 4.
    expected = [[(2 * 2 + PRIOR_ROWS * 4) / (2 + PRIOR_ROWS)]]
    expected += [[(1 * 8 + PRIOR_ROWS * 4) / (1 + PRIOR_ROWS)]]
    assert_allclose(residual_scales(weights, residuals), expected)
    assert_array_equal(residual_scales(weights, 0 * residuals), 1.0)


def test_out_of_fold_predictions_are_not_better_than_those_of_fresh_rows(committee):
    assert committee.best_score_ == pytest.approx(committee.score(X_TEST, Y_TEST), abs=0.05)
    residuals = Y_TRAIN[committee.oof_rows_] - committee.oof_predictions_
    assert committee.best_score_ == pytest.approx(1 - np.var(residuals) / np.var(Y_TRAIN), abs=0.01)


def test_neighbors_and_explanations_agree_with_the_weights(committee):
    weights = committee.vote_weights(X_TEST[:5])[0].toarray()
    _, rows = committee.kneighbors(X_TEST[:5], 3)
    assert_allclose(np.take_along_axis(weights, rows, 1), -np.sort(-weights, axis=1)[:, :3])
    explained = committee.explain(X_TEST[:5], 3)
    assert_allclose([e.prediction for e in explained], committee.predict(X_TEST[:5]))
    assert [[v.label for v in e.neighbors] for e in explained] == Y_TRAIN[rows].tolist()
    effective = abs(weights).sum(axis=1) ** 2 / (weights**2).sum(axis=1)
    assert_allclose(committee.effective_neighbors(X_TEST[:5]), effective)
    assert_allclose([e.effective_neighbors for e in explained], effective)
    assert "prediction" in str(explained[0])


def test_a_single_metric_is_a_transformer(single):
    Z = single.transform(X_TEST)
    assert Z.shape[1] == len(single.components_)
    assert not hasattr(vc.ANNRegressor(), "transform")
    if single.chosen_[0].vote == "majority":
        k = single.chosen_[0].n_neighbors
        _, rows = single.kneighbors(X_TEST, k)
        assert_allclose(Y_TRAIN[rows].mean(axis=1), single.predict(X_TEST))


def test_added_and_forgotten_rows_change_the_voters(committee):
    grown = copy(committee).add_rows(X_TEST[:30], Y_TEST[:30])
    alone = Committee(
        grown._expanded(np.vstack([X_TRAIN, X_TEST[:30]])),
        TargetRows.of(np.r_[Y_TRAIN, Y_TEST[:30]][:, None], np.ones(N + 30)),
        grown.metrics_,
        grown.chosen_,
        forests=grown.forests_ or (),
        calibration=grown.shrinkage_,
        n_features=4,
    )
    queries = grown._expanded(X_TEST[30:])
    assert_allclose(grown.predict(X_TEST[30:]), alone.predictions(queries)[:, 0], rtol=1e-12)
    assert_allclose(
        grown.predict_interval(X_TEST[30:]) - grown.predict(X_TEST[30:])[:, None],
        committee.predict_interval(X_TEST[30:]) - committee.predict(X_TEST[30:])[:, None],
    )
    shrunk = grown.forget_rows(np.arange(N, N + 30))
    assert_array_equal(shrunk.predict(X_TEST), committee.predict(X_TEST))
    fewer = copy(committee).forget_rows(np.arange(20))
    assert len(fewer.oof_scales_) == len(fewer.oof_rows_) == N - 20
    assert np.isfinite(fewer.predict_interval(X_TEST)).all()
    with pytest.raises(ValueError, match="shape"):
        copy(committee).add_rows(X_TEST[:2], Y_TEST[:4].reshape(2, 2))


def test_tables_with_levels_by_target_statistics_do_not_leak():
    rng = np.random.default_rng(4)
    table = pd.DataFrame(
        {
            "size": rng.normal(size=N),
            "code": [f"c{i}" for i in rng.integers(0, 100, N)],
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, N), "D"),
        }
    )
    table.loc[::7, "size"] = None
    model = vc.ANNRegressor(members=("linear",)).fit(table, rng.normal(size=N))
    assert model.best_score_ < 0.1
    assert model.explain(table[:1])[0].feature_names == ("size", "code", "day")
    two = vc.ANNRegressor(members=("linear",)).fit(table, rng.normal(size=(N, 2)))
    assert two.predict(table).shape == (N, 2)


def test_sparse_input_and_gaps_are_taken():
    gaps = X_TRAIN.copy()
    gaps[::5, 3] = np.nan
    model = vc.ANNRegressor(members=("linear",)).fit(gaps, Y_TRAIN)
    assert np.isfinite(model.predict(X_TEST)).all()
    assert model.encoder_ is not None
    dense = vc.ANNRegressor(members=("linear",)).fit(X_TRAIN, Y_TRAIN)
    thin = vc.ANNRegressor(members=("linear",)).fit(sparse.csr_array(X_TRAIN), Y_TRAIN)
    assert_array_equal(thin.predict(X_TEST), dense.predict(X_TEST))


def test_groups_and_weights_are_heeded():
    rng = np.random.default_rng(5)
    groups = np.repeat(np.arange(N // 4), 4)
    seen = rng.normal(size=(N // 4, 3))[groups] + 0.01 * rng.normal(size=(N, 3))
    y = rng.normal(size=N // 4)[groups]  # only to be known from rows of the same group
    fits = [
        vc.ANNRegressor(members=("linear",)).fit(seen, y, groups=given) for given in (None, groups)
    ]
    assert fits[0].best_score_ > 0.8
    assert fits[1].best_score_ < 0.3
    weights = np.r_[np.ones(N // 2), np.zeros(N // 2)]
    model = vc.ANNRegressor(members=("linear",)).fit(X_TRAIN, Y_TRAIN, sample_weight=weights)
    assert not abs(model.vote_weights(X_TEST)[0][:, N // 2 :]).sum()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n", [2, 3, 7, 12])
def test_few_rows_are_enough(n):
    model = vc.ANNRegressor().fit(X_TRAIN[:n], Y_TRAIN[:n])
    assert np.isfinite(model.predict(X_TEST)).all()
    assert np.isfinite(model.predict_interval(X_TEST)).all()


def test_constant_targets_duplicates_and_outliers():
    model = vc.ANNRegressor(members=("linear",)).fit(X_TRAIN[:40], np.full(40, 5.0))
    assert_allclose(model.predict(X_TEST), 5.0)
    same = np.repeat(X_TRAIN[:15], 4, axis=0)
    doubled = vc.ANNRegressor(members=("linear",)).fit(same, RNG.normal(size=60))
    assert np.isfinite(doubled.predict(X_TEST)).all()
    wild = Y_TRAIN[:60].copy()
    wild[0] = 1e9
    assert np.isfinite(vc.ANNRegressor().fit(X_TRAIN[:60], wild).predict(X_TEST)).all()


def test_input_that_cannot_be_used_is_refused():
    for y, message in ((Y_TRAIN[:10], "inconsistent"), (np.full(N, np.nan), "y contains NaN")):
        with pytest.raises(ValueError, match=message):
            vc.ANNRegressor().fit(X_TRAIN, y)
    with pytest.raises(ValueError, match="standardize y"):
        vc.ANNRegressor().fit(X_TRAIN, 1e200 * Y_TRAIN)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, np.nan])
def test_shares_that_are_none_are_refused(committee, share):
    with pytest.raises(ValueError, match="coverage"):
        committee.predict_interval(X_TEST, share)
    with pytest.raises(ValueError, match="q"):
        committee.predict_quantiles(X_TEST, [0.5, share])


def test_a_time_limit_a_callback_and_threads():
    told = []
    with pytest.warns(TimeLimitWarning):
        vc.ANNRegressor(max_time=1e-3, callback=told.append).fit(X_TRAIN, Y_TRAIN)
    assert told[-1].done == told[-1].total
    one, two = (vc.ANNRegressor(n_jobs=n).fit(X_TRAIN, Y_TRAIN).predict(X_TEST) for n in (1, 2))
    assert_array_equal(one, two)


def test_the_report_and_a_pickle(committee):
    text = committee.report()
    assert "R²" in text
    assert "Chosen" in text
    again = pickle.loads(pickle.dumps(committee))
    assert_array_equal(again.predict(X_TEST), committee.predict(X_TEST))


def test_leaves_of_a_regression_forest_average_as_the_forest_does():
    tree = DecisionTreeRegressor(min_samples_leaf=3, max_features=0.5)
    weights = np.ones(N)
    forest = Forest.grow(tree, 1, X_TRAIN, Y_TRAIN, weights, 0)
    assert forest.leaves(X_TRAIN).shape == (N, 1)


@pytest.mark.parametrize("name", ["committee", "single"])
def test_a_model_file_predicts_the_same(name, request, tmp_path):
    model = request.getfixturevalue(name)
    vc.save(model, tmp_path / "model.vicinal")
    loaded = vc.load(tmp_path / "model.vicinal")
    assert_array_equal(loaded.predict(X_TEST), model.predict(X_TEST))
    assert_array_equal(loaded.predict_interval(X_TEST), model.predict_interval(X_TEST))
    assert loaded.chosen_ == model.chosen_


def test_a_model_file_of_several_targets(several, tmp_path):
    vc.save(several[0], tmp_path / "model.vicinal")
    loaded = vc.load(tmp_path / "model.vicinal")
    assert_array_equal(loaded.predict_interval(X_TEST), several[0].predict_interval(X_TEST))


@pytest.mark.parametrize(
    "changes",
    [
        {"oof_scales_": "negative"},
        {"y_fit_": "nan"},
        {"shrinkage_": 2.0},
        {"oof_predictions_": "two axes"},
        {"prior_": np.zeros(2)},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_what_contradicts_itself_is_not_saved(committee, changes, tmp_path):
    model, (name, value) = copy(committee), next(iter(changes.items()))
    old = getattr(model, name)
    made = {"negative": -old, "nan": old * np.nan, "two axes": np.reshape(old, (-1, 1))}
    setattr(model, name, made[value] if isinstance(value, str) else value)
    with pytest.raises(vc.model_file.ModelFileError, match=name):
        vc.save(model, tmp_path / "model.vicinal")


def test_the_rows_of_numbers_share_out_the_prior():
    rows = NumberRows.standardized(Y_TRAIN[:, None], np.ones(N))
    assert_allclose(rows.prior, 0.0, atol=1e-12)
    shares = np.array([[2.0, 0.0], [0.0, 1.0]])
    moved = rows.calibrated(shares, 0.25)
    assert_allclose(moved, [[1.5, 0.25], [0.0, 1.0]])
    # The best share of the prior, found by trying.
    noise = np.random.default_rng(6).normal(size=N)
    shares = np.c_[rows.targets[:, 0] + 2 * noise, np.zeros(N)]
    grid = np.linspace(0, 1, 1001)
    errors = [np.sum((rows.targets - rows.calibrated(shares, s)[:, :1]) ** 2) for s in grid]
    assert rows.calibration(shares) == pytest.approx(grid[np.argmin(errors)], abs=1e-3)
    assert_array_equal(replace(rows, weights=rows.weights)[np.arange(3)].learned, rows.learned[:3])


def test_diabetes_is_predicted_as_well_as_is_known():
    data, target = load_diabetes(return_X_y=True)
    model = vc.ANNRegressor(members=("linear", "hat")).fit(data[:300], target[:300])
    assert model.score(data[300:], target[300:]) > 0.45


def test_boosted_trees_are_members_like_others(tmp_path):
    model = vc.ANNRegressor(members=("forest",)).fit(X_TRAIN, Y_TRAIN)
    assert "boosted leaves" in {choice.vote for choice in model.chosen_}
    predictions = model.predict(X_TEST)
    weights, prior_share = model.vote_weights(X_TEST)
    assert_allclose(weights @ Y_TRAIN + prior_share * model.prior_, predictions, rtol=1e-10)
    vc.save(model, tmp_path / "m.vicinal")
    loaded = vc.load(tmp_path / "m.vicinal")
    assert_array_equal(loaded.predict(X_TEST), predictions)
    assert_array_equal(loaded.predict_interval(X_TEST), model.predict_interval(X_TEST))
    assert "thresholds" in str(model.explain(X_TEST[:1])[0])
    assert_array_equal(copy(model).forget_rows(np.arange(20)).X_fit_, X_TRAIN[20:])
    rows = model.kneighbors(n_neighbors=3, return_distance=False)
    assert not np.any(rows == np.arange(N)[:, None])


def test_boosted_trees_follow_thresholds():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(400, 12))
    y = 2.0 * (X[:, 0] > 0.3) + (X[:, 1] > 0.6) * (X[:, 2] > 0.5) + 0.1 * rng.normal(size=400)
    model = vc.ANNRegressor().fit(X[:250], y[:250])
    boosted = sum(choice.weight for choice in model.chosen_ if choice.vote == "boosted leaves")
    assert boosted > 0.3
    assert model.score(X[250:], y[250:]) > 0.93
