"""Rows that come and go: as if the model had been prepared with these voters."""

import pickle
from copy import copy

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_wine, make_classification
from sklearn.neighbors import KNeighborsClassifier

import vicinal as vc
from vicinal.voting.row_weights import VotingRows
from vicinal.voting.sources import Committee

X, Y = load_wine(return_X_y=True)
FIT, LATER, ASKED = np.arange(0, 150), np.arange(150, 165), np.arange(165, 178)
ORDER = np.random.RandomState(0).permutation(len(X))
X, Y = X[ORDER], Y[ORDER]
NAMES = np.array(["zero", "one", "two"])[Y]


@pytest.fixture(scope="module", params=["committee", "single"])
def model(request):
    return vc.ANNClassifier(request.param, effort=0.5).fit(X[FIT], NAMES[FIT])


def prepared_with(model, rows, weights=None):
    """Probabilities of a committee that is built from scratch with these rows of X as voters."""
    codes = np.searchsorted(model.classes_, NAMES[rows])
    weights = np.ones(len(rows)) if weights is None else weights
    shares = np.array([weights[codes == c].sum() for c in range(3)])
    voters = VotingRows(codes, weights, shares / weights.sum())
    committee = Committee(
        model._expanded(X[rows]), voters, model.metrics_, model.chosen_,
        forests=model.forests_ or (), calibration=model.exponent_,
    )  # fmt: skip
    return committee.predictions(model._expanded(X[ASKED]))


def test_added_rows_vote_as_if_they_had_always_been_there(model):
    changed = copy(model).add_rows(X[LATER], NAMES[LATER])
    rows = np.r_[FIT, LATER]
    assert_array_equal(changed.predict_proba(X[ASKED]), prepared_with(model, rows))
    assert_array_equal(changed.X_fit_, X[rows])
    assert_array_equal(changed.classes_[changed.y_fit_], NAMES[rows])
    assert changed.n_samples_fit_ == len(rows)
    weights = changed.vote_weights(X[LATER])[0].toarray()
    assert (weights[np.arange(15), np.arange(150, 165)] > 0).all()  # each finds itself


def test_forgotten_rows_never_vote(model):
    gone = np.arange(10, 40)
    changed = copy(model).forget_rows(gone)
    rows = np.setdiff1d(FIT, gone)
    assert_array_equal(changed.predict_proba(X[ASKED]), prepared_with(model, rows))
    assert_array_equal(changed.X_fit_[changed.oof_rows_], X[np.setdiff1d(model.oof_rows_, gone)])
    assert len(changed.oof_proba_) == len(changed.oof_rows_)


def test_what_was_added_can_be_forgotten_bit_by_bit(model):
    before = model.predict_proba(X[ASKED])
    changed = copy(model).add_rows(X[LATER], NAMES[LATER], np.full(15, 3.0))
    assert not np.array_equal(changed.predict_proba(X[ASKED]), before)
    changed.forget_rows(np.arange(150, 165))
    assert_array_equal(changed.predict_proba(X[ASKED]), before)
    for name in ("X_fit_", "y_fit_", "row_weights_", "prior_", "oof_rows_", "oof_proba_"):
        assert_array_equal(getattr(changed, name), getattr(model, name))


def test_weights_of_added_rows(model):
    weights = np.linspace(0.0, 2.0, 15)
    changed = copy(model).add_rows(X[LATER], NAMES[LATER], weights)
    expected = prepared_with(model, np.r_[FIT, LATER], np.r_[np.ones(150), weights])
    np.testing.assert_allclose(changed.predict_proba(X[ASKED]), expected, rtol=1e-13)


def test_new_rows_count_as_much_as_their_class():
    x, y = make_classification(120, weights=[0.8], random_state=0)
    model = vc.ANNClassifier("single", class_weight="balanced", effort=0.1).fit(x, y)
    of_class = [model.row_weights_[model.y_fit_ == c].mean() for c in range(2)]
    added = copy(model).add_rows(x[:20], y[:20])
    np.testing.assert_allclose(added.row_weights_[120:], np.array(of_class)[y[:20]])


def test_a_class_may_be_forgotten_and_come_back(model):
    gone = np.flatnonzero(NAMES[FIT] == "two")
    changed = copy(model).forget_rows(gone)
    assert set(changed.predict(X)) == {"zero", "one"}
    assert changed.explain(X[ASKED][:1])[0].probabilities["two"] == 0.0
    changed.add_rows(X[gone], NAMES[gone])
    assert set(changed.predict(X)) == {"zero", "one", "two"}


def test_a_changed_model_is_pickled_and_saved(model, tmp_path):
    changed = copy(model).add_rows(X[LATER], NAMES[LATER]).forget_rows([0, 151])
    vc.save(changed, tmp_path / "model.vicinal")
    for again in (vc.load(tmp_path / "model.vicinal"), pickle.loads(pickle.dumps(changed))):
        assert_array_equal(again.predict_proba(X[ASKED]), changed.predict_proba(X[ASKED]))


def test_columns_of_a_table_are_encoded_as_in_fit():
    frame = pd.DataFrame({"number": X[:, 0], "kind": np.where(X[:, 1] > 2, "a", "b")})
    frame.loc[::7, "number"] = np.nan
    model = vc.ANNClassifier(effort=0.2).fit(frame[:120], NAMES[:120])
    encoded = model.encoder_.transform(frame[120:150])
    changed = copy(model).add_rows(frame[120:150], NAMES[120:150])
    assert_array_equal(changed.X_fit_[120:], encoded)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([150], "from 0 to 149"),
        ([-1], "from 0 to 149"),
        ([0.5], "row numbers"),
        ([[1]], "row numbers"),
        (np.ones(150, dtype=bool), "row numbers"),
        (np.arange(150), "would remain"),
    ],
)
def test_refused_rows_change_nothing(model, rows, message):
    before = dict(vars(model))
    with pytest.raises(ValueError, match=message):
        model.forget_rows(rows)
    assert all(value is before[name] for name, value in vars(model).items())


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (X[:2], ["one", "three"], "'three', which the fit did not see"),
        (X[:2], ["one"], "inconsistent"),
        (X[:2, :3], ["one", "two"], "3 features"),
        (X[:2], [0, 1], "class 0"),
        (X[:2] * np.inf, ["one", "two"], "infinity"),
    ],
)
def test_refused_additions(model, x, y, message):
    with pytest.raises(ValueError, match=message):
        model.add_rows(x, y)
    assert model.n_samples_fit_ == 150


@pytest.mark.parametrize("rule", ["class_mean", "vote"])
def test_class_mean_knn_is_that_of_a_fit_with_these_rows(rule):
    changed = vc.ClassMeanKNN(3, rule=rule).fit(X[FIT], NAMES[FIT])
    changed.add_rows(X[LATER], NAMES[LATER]).forget_rows([7, 3, 160])
    rows = np.delete(np.r_[FIT, LATER], [3, 7, 160])
    fitted = vc.ClassMeanKNN(3, rule=rule).fit(X[rows], NAMES[rows])
    assert vars(changed).keys() == vars(fitted).keys()
    for name, value in vars(fitted).items():
        assert_array_equal(getattr(changed, name), value)
    assert_array_equal(changed.predict_proba(X[ASKED]), fitted.predict_proba(X[ASKED]))
    peer = KNeighborsClassifier(3).fit(X[rows], NAMES[rows])
    assert_array_equal(changed.kneighbors(X[ASKED])[1], peer.kneighbors(X[ASKED])[1])


def test_class_mean_knn_refuses_what_cannot_vote():
    knn = vc.ClassMeanKNN(3, rule="vote").fit(X[:5], Y[:5])
    for rows, message in ([0, 1, 2], "cannot vote"), (range(5), "none left"), ([5], "0 to 4"):
        with pytest.raises(ValueError, match=message):
            knn.forget_rows(list(rows))
    with pytest.raises(ValueError, match="labels of type"):
        knn.add_rows(X[:1], ["a"])
    assert knn.n_samples_fit_ == 5
