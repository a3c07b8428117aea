"""Tuning surfaces against cv_results_, and the figures of the errors against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import precision_recall_fscore_support

import vicinal as vc
from vicinal.reporting import examine
from vicinal.reporting.errors import calibration, histogram, probability_margins


def test_surfaces_of_a_search(iris, iris_search):
    found = examine(iris_search, *iris)
    by_gamma, by_k = found.tuning.surfaces
    results = iris_search.cv_results_
    for i, alpha in enumerate(iris_search.alphas_):
        for j, k in enumerate(iris_search.n_neighbors_):
            here = (results["param_alpha"] == alpha) & (results["param_n_neighbors"] == k)
            assert by_k.error[i, j] == pytest.approx(1 - results["mean_test_score"][here].max())
    for surface in (by_gamma, by_k):
        row, column = surface.chosen[0]
        assert surface.error[row, column] == pytest.approx(np.nanmin(surface.error))
    best = iris_search.best_params_
    assert float(by_gamma.x[by_gamma.chosen[0][1]]) == best["gamma"]
    assert int(by_k.x[by_k.chosen[0][1]]) == best["n_neighbors"]
    assert float(by_k.y[by_k.chosen[0][0]]) == best["alpha"]
    assert by_gamma.x == ("0.5", "1", "2")
    names = [chosen.name for chosen in found.headline.chosen]
    assert names == ["Method", "α", "γ", "K"]
    np.testing.assert_array_equal(
        found.tuning.curves[0].values, iris_search.best_estimator_.history_
    )


def test_surfaces_of_a_committee(iris, iris_committee):
    found = examine(iris_committee, *iris)
    results = iris_committee.cv_results_
    assert sum(s.error.size for s in found.tuning.surfaces) == len(results["iterate"])
    assert not any(np.isnan(s.error).any() for s in found.tuning.surfaces)
    lowest = min(surface.error.min() for surface in found.tuning.surfaces)
    assert lowest == pytest.approx(np.min(results["mean_test_error"]))
    framed = sum(len(surface.chosen) for surface in found.tuning.surfaces)
    assert framed == len(iris_committee.chosen_)
    assert {c.name for c in found.tuning.curves} == set(iris_committee.histories_)
    assert len(found.headline.chosen) == 1 + len(iris_committee.chosen_)
    k = found.neighbors.histograms[0].median
    assert k == pytest.approx(np.median(iris_committee.effective_neighbors(iris[0])), rel=1e-9)


def test_pnca_has_no_gamma_to_show(iris):
    from vicinal.search.search_cv import ANNSearchCV

    search = ANNSearchCV(
        vc.PNCA(tol=0.1), alphas=[1.0, 2.0], n_neighbors=[1, 3], cv=2, random_state=0
    )
    found = examine(search.fit(*iris), *iris)
    assert [surface.title for surface in found.tuning.surfaces] == ["α × K"]
    assert [chosen.name for chosen in found.headline.chosen] == ["Method", "α", "K"]


def test_figures_of_the_classes(wine, wine_pipeline):
    X, y, X_test, y_test = wine
    found = examine(wine_pipeline, X, y, X_test=X_test, y_test=y_test)
    predicted = found.maps.predictions[found.maps.held_out]
    precision, recall, _, support = precision_recall_fscore_support(y_test, predicted)
    np.testing.assert_allclose(found.errors.precision, precision)
    np.testing.assert_allclose(found.errors.recall, recall)
    np.testing.assert_array_equal(found.errors.support, support)
    assert np.trace(found.errors.confusion) == found.headline.scores[0].correct


def test_a_class_that_only_the_held_out_rows_have(iris):
    X, y = iris
    known = y != "versicolor"
    model = vc.RVML().fit(X[known], y[known])
    found = examine(model, X[known], y[known], X_test=X, y_test=y)
    assert found.classes == ("setosa", "versicolor", "virginica")
    assert found.errors.recall[1] == 0
    assert np.isnan(found.errors.precision[1])
    assert found.errors.recall[2] > 0.9


def test_margins_are_the_lead_of_the_true_class():
    P = np.array([[0.7, 0.2, 0.1], [0.1, 0.5, 0.4]])
    np.testing.assert_allclose(probability_margins(np.array([0, 2]), P), [0.5, -0.1])


def test_rows_at_risk_have_the_smallest_margins(iris, iris_committee):
    found = examine(iris_committee, *iris)
    codes = np.unique(iris[1], return_inverse=True)[1]
    margins = probability_margins(codes, iris_committee.oof_proba_)
    order = np.argsort(margins, kind="stable")[: len(found.errors.at_risk)]
    assert [risk.point for risk in found.errors.at_risk] == order.tolist()
    np.testing.assert_allclose([risk.margin for risk in found.errors.at_risk], margins[order])


def test_calibration_bins():
    P = np.array([[0.95, 0.05], [0.98, 0.02], [0.45, 0.55], [1.0, 0.0]])
    found = calibration(np.array([0, 1, 1, 0]), P)
    np.testing.assert_allclose(found.promised, [0.55, (0.95 + 0.98 + 1) / 3])
    np.testing.assert_allclose(found.came_true, [1, 2 / 3])
    assert found.counts.tolist() == [1, 3]


def test_histograms_leave_out_what_is_not_finite():
    found = histogram(np.array([1.0, np.nan, 3.0, 3.0]), "", "")
    assert found.counts.sum() == 3
    assert found.median == 3
    assert histogram(np.array([np.nan]), "", "").counts.sum() == 0
