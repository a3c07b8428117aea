"""Sources of row weights: prepared once, and the same answer as prepared anew."""

import gc
import pickle
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from vicinal.voting.class_mean import ClassMeanKNN
from vicinal.voting.row_weights import VotingRows
from vicinal.voting.sources import Committee, effective_counts, prepared

Member = namedtuple("Member", "vote n_neighbors weight metrics")
MEMBERS = (
    Member("majority", 3, 0.5, (0, 1)),
    Member("epanechnikov", 5, 0.2, (1, 2)),
    Member("soft", 9, 0.3, (2, 3)),
)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)) + 100.0
    metrics = rng.normal(size=(4, 3, 4))
    metrics[1, 2] = metrics[1, :, 0] = 0.0  # of lower rank, and without the first feature
    metrics[3] = 0.0
    rows = VotingRows.of(rng.integers(0, 3, 60), rng.uniform(0.5, 2.0, 60))
    return X, rows, metrics, rng.normal(size=(20, 4)) + 100.0


def test_a_committee_is_the_weighted_mean_of_its_members(data):
    X, rows, metrics, queries = data
    expected = 0.0
    for member in MEMBERS:
        for q in member.metrics:
            alone = Committee(X, rows, metrics, [member._replace(weight=1.0, metrics=(q,))])
            expected += member.weight / 2 * alone.predictions(queries)
    committee = Committee(X, rows, metrics, MEMBERS)
    assert_allclose(committee.predictions(queries), expected, atol=1e-14)
    weights, prior_share = committee.sparse_weights(queries)
    assert_allclose(weights.sum(axis=1) + prior_share, 1.0)


def test_the_limit_of_memory_and_batches_change_nothing(data, monkeypatch):
    X, rows, metrics, queries = data
    kept, anew = (Committee(X, rows, metrics, MEMBERS, limit) for limit in (2**20, 0))
    assert (kept.keep, anew.keep) == (True, False)
    assert_array_equal(kept.predictions(queries), anew.predictions(queries))
    weights, _ = kept.sparse_weights(queries)
    for ours, theirs in zip(
        kept.neighbors(queries, weights, 50), anew.neighbors(queries, weights, 50), strict=True
    ):
        assert_array_equal(ours, theirs)
    monkeypatch.setattr("vicinal.voting.sources.ENTRIES", 100)
    in_batches = Committee(X, rows, metrics, MEMBERS)
    assert_allclose(in_batches.predictions(queries), kept.predictions(queries), atol=1e-12)


def test_rows_that_are_projected_once_give_the_same_answers(data, monkeypatch):
    X, rows, metrics, queries = data
    members = (*MEMBERS, Member("local linear", 20, 0.4, (0, 1, 2)))
    differences = Committee(X, rows, metrics, members)
    monkeypatch.setattr("vicinal.voting.nearest_rows.WIDE", 8)  # two of the four metrics are wider
    kept = Committee(X, rows, metrics, members)
    assert_allclose(kept.predictions(queries), differences.predictions(queries), atol=1e-10)
    for limit in (X.nbytes + 5000, 0):  # too little for projected rows, too little for any
        less = Committee(X, rows, metrics, members, limit)
        assert less.keep == (limit > 0)
        assert_array_equal(less.predictions(queries), differences.predictions(queries))
    alone = np.concatenate([kept.predictions(query[None]) for query in queries])
    assert_array_equal(alone, kept.predictions(queries))
    for q, found in enumerate(kept._nearest.metrics):
        near = (queries - X[:7, None])[:, :, found.columns] @ found.L.T  # (7, 20, m)
        ours = kept._nearest.distances(q, queries, np.arange(7))
        assert_allclose(ours, (near**2).sum(axis=2).T, rtol=1e-9)


def test_a_row_that_may_not_vote_has_no_weight(data):
    X, rows, metrics, _ = data
    committee, own = Committee(X, rows, metrics, MEMBERS), np.arange(60)
    weights, prior_share = committee.sparse_weights(X, own)
    assert not weights.diagonal().any()
    assert_allclose(weights.sum(axis=1) + prior_share, 1.0)
    _, indices = committee.neighbors(X, weights, 59, own)
    assert_array_equal(np.sort(np.c_[indices, own], axis=1), np.tile(own, (60, 1)))


def test_effective_counts_of_equal_distances_are_all_of_them():
    assert_allclose(effective_counts(np.full((1, 7), 3.0)), 7.0)


class Model:
    def __init__(self, value):
        self.value = value
        self.builds = []

    @prepared("value")
    def doubled(self):
        self.builds.append(self.value)
        return [2 * self.value]


def test_a_prepared_value_is_built_once_until_what_it_is_made_of_is_replaced():
    model = Model(3)
    assert model.doubled is model.doubled
    assert model.doubled == [6]
    model.value = 5
    assert model.doubled == [10]
    assert model.builds == [3, 5]
    assert "doubled" not in vars(model)
    copy = pickle.loads(pickle.dumps(model))
    assert copy.doubled is not model.doubled
    assert not hasattr(Model, "doubled")
    kept = vars(Model)["doubled"]._kept
    del model, copy
    gc.collect()
    assert not kept


def test_a_prepared_value_that_is_too_large_is_not_kept():
    class Large:
        keep = False

    class Owner:
        large = prepared()(lambda owner: Large())

    owner = Owner()
    assert owner.large is not owner.large
    assert not vars(Owner)["large"]._kept


@pytest.mark.parametrize("rule", ["class_mean", "vote"])
def test_a_classifier_answers_from_what_it_was_fitted_on_last(rule):
    rng = np.random.default_rng(1)
    X, y, queries = rng.normal(size=(80, 3)), rng.integers(0, 3, 80), rng.normal(size=(30, 3))
    model = ClassMeanKNN(4, rule=rule).fit(X, y)
    before, state = model.predict_proba(queries), dict(vars(model))
    assert vars(model) == state
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(model.predict_proba, [queries] * 8):
            assert_array_equal(found, before)
    model.fit(X[:40] + 1.0, y[:40])
    fresh = ClassMeanKNN(4, rule=rule).fit(X[:40] + 1.0, y[:40])
    assert_array_equal(model.predict_proba(queries), fresh.predict_proba(queries))


@pytest.mark.parametrize("rule", ["class_mean", "vote"])
@pytest.mark.parametrize("k", [1, 5, 30])
def test_vote_weights_of_both_rules_sum_to_the_probabilities(rule, k):
    rng = np.random.default_rng(k)
    X, y = rng.normal(size=(70, 3)), rng.permutation(np.repeat([0, 1, 2], [40, 25, 5]))
    model = ClassMeanKNN(k, rule=rule).fit(X, y)
    queries = rng.normal(size=(20, 3))
    weights, prior_share = model.vote_weights(queries)
    assert not prior_share.any()
    one_hot = np.eye(3)[y]
    assert_allclose(weights @ one_hot, model.predict_proba(queries), atol=1e-12)
    voters = np.diff(weights.indptr)
    assert_array_equal(voters, k if rule == "vote" else np.minimum([40, 25, 5], k).sum())
