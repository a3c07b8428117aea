"""The margins are those of the objective: its value can be put together from them."""

from __future__ import annotations

import numpy as np
import pytest

import vicinal as vc
from vicinal.learners.base import MetricLearner
from vicinal.reporting.errors import References, row_sides, sides_of


def sides(learner: MetricLearner, X, codes, n_neighbors=5):
    rows = References(X, learner.transform(X), codes)
    how = sides_of(learner, n_neighbors)
    return row_sides(rows, np.arange(len(X)), rows, how), how


@pytest.mark.parametrize(
    "learner",
    [
        vc.ANN(alpha=2.0, gamma=0.5, loss="logistic", regularization=0.0, max_iter=8, tol=1e-2),
        vc.ANN(alpha=-1.0, loss="squared_hinge", regularization=0.0, max_iter=8, tol=1e-2),
        vc.NCA(max_iter=8, tol=1e-2),
    ],
    ids=["ANN+", "ANN-", "NCA"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_losses_of_the_margins_sum_to_the_objective(learner, iris):
    X, y = iris
    codes = np.unique(y, return_inverse=True)[1]
    learner.fit(X, y)
    found, how = sides(learner, X, codes)
    loss = learner._configuration().loss
    total = loss.value((found.s - found.t) / how.gamma).sum()
    assert total == pytest.approx(learner.objective_, rel=1e-6)


def test_a_learner_without_soft_averages_has_means_of_the_nearest(iris):
    X, y = iris
    codes = np.unique(y, return_inverse=True)[1]
    learner = vc.RVML().fit(X, y)
    found, _ = sides(learner, X, codes, n_neighbors=3)
    Z = learner.transform(X)
    for i in (0, 70, 149):
        d = np.sort(np.sum((Z - Z[i]) ** 2, axis=1)[(codes == codes[i]) & (np.arange(150) != i)])
        assert found.s[i] == pytest.approx(d[:3].mean())
    assert set(found.k_similar) == {3.0}


def test_a_row_alone_in_its_class_has_no_margin():
    X = np.arange(5.0)[:, None]
    rows = References(X, X, np.array([0, 0, 1, 1, 2]))
    how = sides_of(vc.ANN(), 5)
    found = row_sides(rows, np.arange(5), rows, how)
    assert np.isnan(found.s).tolist() == [False, False, False, False, True]


def test_effective_k_counts_the_neighbors_whose_mean_is_the_soft_average(iris):
    X, y = iris
    codes = np.unique(y, return_inverse=True)[1]
    learner = vc.ANN(alpha=1.5, tol=1e-2).fit(X, y)
    found, _ = sides(learner, X, codes)
    Z = learner.transform(X)
    d = np.sort(np.sum((Z - Z[60]) ** 2, axis=1)[codes != codes[60]])
    k = found.k_dissimilar[60]
    whole = int(k)
    mean = (d[:whole].sum() + (k - whole) * d[whole]) / k
    assert mean == pytest.approx(found.t[60], rel=1e-6)
