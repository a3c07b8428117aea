"""The automatic classifier: predictions are explained votes, nothing leaks, nothing is lost."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from scipy.special import softmax
from scipy.stats import entropy
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine, make_classification
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import vicinal as vc
from vicinal.automatic.automatic_fit import N_FOLDS, REPEATS
from vicinal.automatic.class_rows import ClassRows, fit_exponent
from vicinal.automatic.metric_path import STARTS
from vicinal.exceptions import IdentifierColumnWarning, TimeLimitWarning
from vicinal.objective.soft_average import k_for_gamma
from vicinal.voting.boosting import grow_boosted
from vicinal.voting.forest import Forest
from vicinal.voting.row_weights import VotingRows
from vicinal.voting.votes import SHARPNESS

X, Y = load_wine(return_X_y=True)
X_TRAIN, X_TEST, Y_TRAIN, Y_TEST = train_test_split(X, Y, random_state=0)
ONES = np.ones(len(X_TRAIN))
DESCENTS = len(ClassRows.descents) * N_FOLDS * REPEATS


@pytest.fixture(scope="module")
def committee():
    return vc.ANNClassifier().fit(X_TRAIN, Y_TRAIN)


@pytest.fixture(scope="module")
def single():
    return vc.ANNClassifier("single").fit(X_TRAIN, Y_TRAIN)


@parametrize_with_checks([vc.ANNClassifier(), vc.ANNClassifier("single")])
def test_is_a_scikit_learn_estimator(estimator, check):
    check(estimator)


def unfold(model, samples):
    """The features, their hat functions and their kernel functions, one at a time."""
    columns = list(samples.T)
    if model.knots_ is not None:
        for x, knots in zip(samples.T, map(np.unique, model.knots_), strict=True):
            columns += [np.interp(x, knots, peak) for peak in np.eye(len(knots))]
    if model.landmarks_ is not None:
        steps = (samples[:, None] - model.landmarks_) * model.kernel_scales_
        columns += list(np.exp(-np.sum(steps**2, axis=2)).T)
    return np.array(columns).T


def naive_weights(choice, d, Z, references):
    """(n,) votes of the training rows at squared distances d (n,) from a query z."""
    k, order = choice.n_neighbors, np.argsort(d, kind="stable")
    nearest, votes = order[:k], np.zeros(len(d))
    if choice.vote == "majority":
        votes[nearest] = 1.0
    elif choice.vote == "epanechnikov":
        votes[nearest] = 1.0 - d[nearest] / d[order[k]]
    elif choice.vote == "local linear":
        votes[nearest] = 1.0 - d[nearest] / d[order[k]]
        a = votes / votes.sum()
        centered = references - a @ references
        S = (centered.T * a) @ centered
        S += np.trace(S) / len(S) * np.eye(len(S))
        b = a * (1.0 + centered @ np.linalg.solve(S, Z - a @ references))
        votes = b / np.sum(b**2)  # 1 / Σ b² rows vote
    else:
        r = softmax(-SHARPNESS[choice.vote] * d[nearest])
        votes[nearest] = np.exp(entropy(r)) * r
    return votes


def naive_leaves(forest, x, references):
    """(n,) votes of the training rows in the leaves of x, one tree at a time."""

    def leaf(node, row):
        while (f := forest.features[node]) >= 0:
            node = forest.children[node, int(row[f] > forest.thresholds[node])]
        return node

    weights = np.zeros(len(references))
    for root in forest.roots:
        mates = np.array([leaf(root, row) == leaf(root, x) for row in references])
        weights += mates / mates.sum() / len(forest.roots)
    return weights / np.sum(weights**2)


def naive_boosted(model, forest, x):
    """(c + 1,) shares: tree by tree, the shrunk mean of what the trees before it have left."""
    indicators = np.eye(len(model.classes_))[model.y_fit_]
    left = indicators - indicators.mean(axis=0)
    found = indicators.mean(axis=0)
    ours, own = forest.leaves(model.X_fit_), forest.leaves(x[None])[0]
    for t in range(len(forest.roots)):
        together = ours[:, t] == ours[:, [t]]
        found = found + 0.1 * left[ours[:, t] == own[t]].sum(axis=0) / (
            sum(ours[:, t] == own[t]) + 1
        )
        left = left - 0.1 * (together @ left) / (together.sum(axis=1) + 1)[:, None]
    return np.r_[found * 100, 0.5] / 100.5


def naive_probabilities(model, queries):
    """The formula of the class docstring, one neighbor at a time."""
    c = len(model.classes_)
    shares = np.zeros((len(queries), c + 1))
    for choice in model.chosen_:
        for q in choice.metrics:
            for i, x in enumerate(queries):
                if choice.vote == "boosted leaves":
                    shares[i] += (
                        choice.weight
                        / len(choice.metrics)
                        * naive_boosted(model, model.forests_[q], x)
                    )
                    continue
                if choice.vote == "leaves":
                    votes = naive_leaves(model.forests_[q], x, model.X_fit_)
                else:
                    L = model.metrics_[q][np.any(model.metrics_[q], axis=1)]
                    z, references = unfold(model, x[None]) @ L.T, unfold(model, model.X_fit_) @ L.T
                    d = cdist(z, references, "sqeuclidean")[0]
                    votes = naive_weights(choice, d, z[0], references)
                by_class = np.bincount(model.y_fit_, votes, minlength=c)
                share = choice.weight / len(choice.metrics)
                shares[i] += share * np.r_[by_class, 0.5] / (votes.sum() + 0.5)
    r, s, tau = shares[:, :c].clip(0.0), shares[:, c:], model.exponent_
    s = s**tau / (s**tau + (1 - s) ** tau)
    return s * model.prior_ + (1 - s) * r**tau / np.sum(r**tau, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def mixed(committee):
    """The committee with a line and a forest, whatever was chosen."""
    model = clone(committee)
    vars(model).update(vars(committee))
    forest = Forest.grow(DecisionTreeClassifier(), 5, X_TRAIN, Y_TRAIN, ONES, seed=0)
    of_metrics = [choice for choice in committee.chosen_ if "leaves" not in choice.vote]
    line, leaves, *others = of_metrics
    model.chosen_ = [
        replace(line, vote="local linear", n_neighbors=40),
        replace(leaves, vote="leaves", metrics=(0,), weight=leaves.weight / 2),
        replace(leaves, vote="boosted leaves", metrics=(1,), weight=leaves.weight / 2),
        *others,
    ]
    boosted = grow_boosted(10, X_TRAIN, np.eye(3)[committee.y_fit_], ONES, seed=0)
    model.forests_, model.exponent_ = [forest, boosted], 1.7
    return model


@pytest.mark.parametrize("mode", ["committee", "single", "mixed"])
def test_probabilities_are_the_formula(mode, request):
    model = request.getfixturevalue(mode)
    P = model.predict_proba(X_TEST)
    assert_allclose(P, naive_probabilities(model, X_TEST), atol=1e-9)
    assert_allclose(P.sum(axis=1), 1.0)
    assert_array_equal(model.predict(X_TEST), model.classes_[P.argmax(axis=1)])
    assert model.score(X_TEST, Y_TEST) > 0.93


@pytest.mark.parametrize("mode", ["committee", "single", "mixed"])
def test_vote_weights_sum_to_the_probabilities(mode, request):
    model = request.getfixturevalue(mode)
    weights, prior_share = model.vote_weights(X_TEST)
    one_hot = np.eye(3)[model.y_fit_]
    assert weights.shape == (len(X_TEST), len(X_TRAIN))
    signed = any(choice.vote in ("local linear", "boosted leaves") for choice in model.chosen_)
    assert weights.data.min() > 0 or signed
    P = weights @ one_hot + prior_share[:, None] * model.prior_
    assert_allclose(P, model.predict_proba(X_TEST), atol=1e-12)
    assert_allclose(P.sum(axis=1), 1.0)


def test_members_restrict_the_kinds():
    seen = []
    forest = vc.ANNClassifier(members=["forest"], callback=seen.append).fit(X_TRAIN, Y_TRAIN)
    assert {choice.vote for choice in forest.chosen_} <= {"leaves", "boosted leaves"}
    assert not seen  # there is no metric to learn
    assert forest.score(X_TEST, Y_TEST) > 0.93
    assert np.all(forest.effective_neighbors(X_TEST) >= 1)
    explanation = forest.explain(X_TEST[:1])[0]
    for vote in explanation.neighbors:
        assert 0 <= vote.separations.sum() <= 1
    assert "thresholds" in str(explanation)
    rows = forest.kneighbors(n_neighbors=5, return_distance=False)
    assert not np.any(rows == np.arange(len(X_TRAIN))[:, None])
    linear = vc.ANNClassifier(members=("linear",)).fit(X_TRAIN, Y_TRAIN)
    assert linear.knots_ is None
    assert linear.forests_ is None
    assert "leaves" not in linear.cv_results_["vote"]


def test_calibration_helps_out_of_fold_and_is_reported(committee):
    before, after = committee.calibration_error_
    assert after < before
    assert committee.exponent_ > 1
    assert f"exponent {committee.exponent_:.2f}" in committee.report()
    bins = np.minimum((10 * committee.oof_proba_.max(axis=1)).astype(int), 9)
    hits = committee.oof_proba_.argmax(axis=1) == committee.y_fit_[committee.oof_rows_]
    gaps = [
        abs(np.sum(committee.oof_proba_.max(axis=1)[bins == b]) - hits[bins == b].sum())
        for b in range(10)
    ]
    assert after == pytest.approx(sum(gaps) / len(hits))


def test_few_rows_leave_the_exponent_near_one():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 2000)
    shares = np.full((2000, 3), 0.1)
    shares[np.arange(2000), np.where(rng.uniform(size=2000) < 0.05, 1 - codes, codes)] = 0.6
    shares[:, 2] = 0.3
    fitted = [
        fit_exponent(shares[:n], VotingRows.of(codes[:n], np.ones(n))) for n in (3, 30, 300, 2000)
    ]
    assert fitted == sorted(fitted)
    assert 0.9 < fitted[0] < 1.2
    assert fitted[-1] > 1.5


def test_kneighbors_are_the_largest_votes_with_their_distances(committee):
    distances, rows = committee.kneighbors(X_TEST[:6], 4)
    weights = committee.vote_weights(X_TEST[:6])[0].toarray()
    references, queries = unfold(committee, X_TRAIN), unfold(committee, X_TEST)
    squared = np.zeros((len(X_TEST), len(X_TRAIN)))
    chosen = [choice for choice in committee.chosen_ if "leaves" not in choice.vote]
    total = sum(choice.weight for choice in chosen)
    for choice in chosen:
        for L in committee.metrics_[list(choice.metrics)]:
            Z = references @ L.T
            spread = 2.0 * np.sum(Z.var(axis=0))
            D = cdist(queries @ L.T, Z, "sqeuclidean")
            squared += choice.weight / total / len(choice.metrics) * D / spread
    for i in range(6):
        assert_allclose(weights[i][rows[i]], np.sort(weights[i])[::-1][:4])
        assert_allclose(distances[i] ** 2, squared[i][rows[i]], rtol=1e-6)


def test_no_training_row_is_its_own_neighbor(committee):
    rows = committee.kneighbors(n_neighbors=5, return_distance=False)
    assert not np.any(rows == np.arange(len(X_TRAIN))[:, None])
    assert np.any(committee.kneighbors(X_TRAIN, 1)[1][:, 0] == np.arange(len(X_TRAIN)))


def test_explanations_add_up(committee):
    explanation = committee.explain(X_TEST[:1], n_neighbors=len(X_TRAIN))[0]
    weights, prior_share = committee.vote_weights(X_TEST[:1])
    assert explanation.prediction == committee.predict(X_TEST[:1])[0]
    assert sum(explanation.probabilities.values()) == pytest.approx(1.0)
    listed = sum(vote.weight for vote in explanation.neighbors)
    assert listed == pytest.approx(weights.sum())
    assert explanation.other_weight == pytest.approx(prior_share[0])
    for vote in explanation.neighbors[:10]:
        assert vote.contributions.sum() == pytest.approx(vote.distance**2, rel=1e-6)
        assert vote.label == Y_TRAIN[vote.row]
    assert "prediction" in str(explanation)
    assert "x0" in explanation.feature_names


def test_effective_neighbors_are_those_of_lemma_3(single):
    L = single.metrics_[0]
    counted = single.effective_neighbors(X_TEST[:5])
    for x, label, count in zip(X_TEST[:5], single.predict(X_TEST[:5]), counted, strict=True):
        members = X_TRAIN[label == Y_TRAIN]
        expected = k_for_gamma((((members - x) @ L.T) ** 2).sum(axis=1), 1.0)
        assert count == pytest.approx(expected, rel=1e-6)


def test_single_is_a_transformer_and_a_committee_is_not(committee, single):
    Z = single.transform(X_TEST)
    assert_allclose(Z, X_TEST @ single.components_.T)
    assert_allclose(single.get_mahalanobis_matrix(), single.components_.T @ single.components_)
    pairs = np.stack([X_TEST[:3], X_TEST[3:6]], axis=1)
    assert_allclose(single.pair_distance(pairs), np.linalg.norm(Z[:3] - Z[3:6], axis=1))
    assert single.set_output(transform="pandas").transform(X_TEST).shape == Z.shape
    single.set_output(transform="default")
    assert not hasattr(committee, "transform")
    with pytest.raises(AttributeError, match="mode='single'"):
        committee.components_  # noqa: B018
    model = make_pipeline(clone(single), KNeighborsClassifier()).fit(X_TRAIN, Y_TRAIN)
    assert model.score(X_TEST, Y_TEST) > 0.9


def test_every_choice_is_readable(committee):
    results = committee.cv_results_
    assert len({len(values) for values in results.values()}) == 1
    assert sorted(results["rank_test_score"]) == list(range(1, len(results["vote"]) + 1))
    assert sum(choice.weight for choice in committee.chosen_) == pytest.approx(1.0)
    best = results["mean_test_error"][results["rank_test_score"] == 1][0]
    report = committee.report()
    assert f"{1 - best:.4f}" in report
    assert committee.chosen_[0].configuration in report
    accuracy = np.mean(committee.oof_proba_.argmax(axis=1) == committee.y_fit_[committee.oof_rows_])
    assert committee.best_score_ == pytest.approx(accuracy)
    assert_allclose(committee.oof_proba_.sum(axis=1), 1.0)  # a mean over the repeated folds


def test_outcome_depends_on_the_seed_and_not_on_threads(committee):
    again = vc.ANNClassifier(n_jobs=1).fit(X_TRAIN, Y_TRAIN)
    assert_array_equal(again.predict_proba(X_TEST), committee.predict_proba(X_TEST))
    assert again.chosen_ == committee.chosen_
    other = vc.ANNClassifier(random_state=1).fit(X_TRAIN, Y_TRAIN)
    assert not np.array_equal(other.metrics_, committee.metrics_)


def test_survives_pickling_and_cross_validation(committee):
    restored = pickle.loads(pickle.dumps(committee))
    assert_array_equal(restored.predict_proba(X_TEST), committee.predict_proba(X_TEST))
    assert cross_val_score(vc.ANNClassifier(), *load_iris(return_X_y=True), cv=3).mean() > 0.93


def test_random_labels_are_predicted_at_chance():
    rng = np.random.default_rng(0)
    samples, labels = rng.normal(size=(400, 5)), rng.integers(0, 2, 400)
    model = vc.ANNClassifier().fit(samples[:200], labels[:200])
    accuracy = model.score(samples[200:], labels[200:])
    assert abs(accuracy - 0.5) < 4 * np.sqrt(0.25 / 200)
    # What is chosen among hundreds of candidates looks a little better than it is; a leak, a row
    # that votes for itself, would show as an accuracy near 1.
    assert model.best_score_ < 0.7


def test_groups_do_not_recognize_each_other():
    """Ten near-copies of each row: without the groups every row finds its copies."""
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(40), 10)
    labels = rng.integers(0, 2, 40)[groups]
    samples = rng.normal(size=(40, 4))[groups] + 1e-3 * rng.normal(size=(400, 4))
    leaking = vc.ANNClassifier().fit(samples, labels)
    honest = vc.ANNClassifier().fit(samples, labels, groups=groups)
    assert leaking.best_score_ > 0.95
    assert honest.best_score_ < 0.75


def test_sample_weights_of_zero_silence_a_row():
    weights = np.ones(len(X_TRAIN))
    weights[:10] = 0.0
    model = vc.ANNClassifier().fit(X_TRAIN, Y_TRAIN, sample_weight=weights)
    shares = model.vote_weights(X_TEST)[0].toarray()
    assert np.all(shares[:, :10] == 0)
    assert np.any(shares[:, 10:] > 0)


def test_class_weights_raise_the_recall_of_a_rare_class():
    samples, labels = make_classification(
        600, 6, n_informative=3, weights=[0.9], class_sep=0.5, random_state=3
    )
    A, B, a, b = train_test_split(samples, labels, random_state=0, stratify=labels)
    plain = vc.ANNClassifier().fit(A, a).predict(B)
    balanced = vc.ANNClassifier(class_weight="balanced").fit(A, a).predict(B)
    assert np.mean(balanced[b == 1]) > np.mean(plain[b == 1]) + 0.05


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("n", "d", "c"), [(30, 2, 2), (60, 1000, 3), (50, 3, 20), (600, 4, 200)])
def test_odd_sizes(n, d, c):
    rng = np.random.default_rng(n)
    labels = np.r_[np.arange(c), rng.integers(0, c, n - c)]
    samples = rng.normal(size=(n, d)) + labels[:, None]
    model = vc.ANNClassifier().fit(samples, labels)
    assert model.predict_proba(samples[:3]).shape == (3, c)
    assert model.score(samples, labels) > 1.5 / c


def test_one_member_classes_constant_columns_and_huge_scales():
    samples = X_TRAIN * np.logspace(-100, 100, X.shape[1])
    samples[:, 3] = 7.0
    labels = Y_TRAIN.astype(str).astype(object)
    labels[0] = "alone"
    model = vc.ANNClassifier().fit(samples, labels)
    assert "alone" in model.classes_
    assert np.isfinite(model.predict_proba(samples)).all()
    assert model.best_score_ > 0.9


@pytest.mark.parametrize("mode", ["committee", "single"])
def test_classes_of_two_leave_the_starting_metrics(mode):
    """A fold's training part then has one row of each class: there is nothing to learn from."""
    labels = np.repeat(np.arange(20), 2)
    samples = np.eye(20)[labels] + 0.01 * np.random.default_rng(0).normal(size=(40, 20))
    model = vc.ANNClassifier(mode).fit(samples, labels)
    assert not model.timed_out_
    assert {choice.configuration for choice in model.chosen_} <= set(STARTS)
    assert model.score(samples, labels) == 1.0


def test_large_data_are_tuned_on_a_stratified_sample_and_all_rows_vote():
    rng = np.random.default_rng(0)
    labels = rng.choice(3, 3000, p=[0.6, 0.38, 0.02])
    samples = rng.normal(size=(3000, 3)) + 2 * np.eye(3)[labels]
    model = vc.ANNClassifier(effort=0.1).fit(samples, labels)
    assert 400 <= len(model.oof_rows_) <= 420
    assert np.bincount(labels[model.oof_rows_]).min() >= 10
    voted = np.unique(model.vote_weights(samples[:500])[0].indices)
    assert len(np.setdiff1d(voted, model.oof_rows_)) > 100


def test_time_limit_returns_the_best_so_far():
    with pytest.warns(TimeLimitWarning, match="max_time"):
        model = vc.ANNClassifier(max_time=1e-6).fit(X_TRAIN, Y_TRAIN)
    assert model.timed_out_
    assert {choice.configuration for choice in model.chosen_} <= set(STARTS)
    assert model.score(X_TEST, Y_TEST) > 0.9
    assert "time limit" in model.report()


def test_interrupted_fit_stores_nothing():
    seen = []

    def interrupt(progress):
        seen.append(progress)
        if len(seen) == 3:
            raise KeyboardInterrupt

    model = vc.ANNClassifier(callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X_TRAIN, Y_TRAIN)
    assert not hasattr(model, "classes_")
    assert [progress.done for progress in seen] == [1, 2, 3]
    assert seen[0].total == DESCENTS
    assert "fold" in seen[0].what
    assert seen[0].seconds_left > 0


def test_interrupt_within_a_descent_of_one_thread(monkeypatch):
    def interrupt(part, L):
        raise KeyboardInterrupt

    monkeypatch.setattr("vicinal.automatic.metric_path.TrainingPart.components", interrupt)
    with pytest.raises(KeyboardInterrupt):
        vc.ANNClassifier(n_jobs=1).fit(X_TRAIN, Y_TRAIN)


def test_interrupted_refit_keeps_the_model_as_it_was():
    model = vc.ANNClassifier().fit(X_TRAIN, Y_TRAIN)
    before = model.predict_proba(X_TEST)

    def interrupt(progress):
        raise KeyboardInterrupt

    model.set_params(callback=interrupt)
    state = dict(vars(model))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X_TRAIN[:, :4], Y_TRAIN)
    assert vars(model) == state
    assert_array_equal(model.predict_proba(X_TEST), before)
    model.set_params(callback=None, max_time=1e-6)
    state = dict(vars(model))
    with pytest.raises(TimeLimitWarning):  # warnings are errors here
        model.fit(X_TRAIN[:, :4], Y_TRAIN)
    assert vars(model) == state


def test_identifier_columns_are_warned_about():
    numbered = np.c_[X_TRAIN, np.arange(len(X_TRAIN))]
    with pytest.warns(IdentifierColumnWarning, match="Column 13"):
        vc.ANNClassifier().fit(numbered, Y_TRAIN)


def test_float32_frames_and_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X_TRAIN.astype(np.float32), columns=[f"f{i}" for i in range(13)])
    model = vc.ANNClassifier("single").fit(frame, Y_TRAIN)
    assert model.predict_proba(frame).dtype == np.float32
    assert model.transform(frame).dtype == np.float32
    assert model.explain(frame[:1])[0].feature_names[2] == "f2"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"mode": "both"}, "use one of 'committee', 'single'"),
        ({"effort": 0}, "effort"),
        ({"members": ["tree"]}, "a sequence of some of 'linear'"),
        ({"members": "linear"}, "members"),
        ({"members": []}, "members"),
        ({"max_time": -1}, "max_time"),
        ({"n_jobs": "all"}, "n_jobs"),
        ({"n_jobs": 0}, "n_jobs == 0, must be a whole number other than 0"),
    ],
)
def test_bad_parameters_are_said_before_any_work(parameters, message):
    with pytest.raises((ValueError, TypeError), match=message):
        vc.ANNClassifier(**parameters).fit(X, Y)


def test_one_group_or_unknown_metadata_is_an_error():
    with pytest.raises(TypeError, match="sample_weight and groups"):
        vc.ANNClassifier().fit(X, Y, group=Y)
    with pytest.raises(ValueError, match="group"):
        vc.ANNClassifier().fit(X, Y, groups=np.zeros(len(Y)))


def test_progress_is_logged(caplog):
    with caplog.at_level("INFO", logger="vicinal"):
        vc.ANNClassifier(verbose=1).fit(X_TRAIN, Y_TRAIN)
    logged = [message for message in caplog.messages if "s left" in message]
    assert any(f"{DESCENTS}/{DESCENTS}" in message for message in logged)
