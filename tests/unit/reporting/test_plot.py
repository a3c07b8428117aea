"""Every figure draws on the Axes it is given, and draws the numbers of the findings."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.datasets import load_iris

import vicinal as vc
from vicinal import plot
from vicinal.reporting import examine
from vicinal.search.search_cv import ANNSearchCV

pyplot = pytest.importorskip("matplotlib.pyplot")
pyplot.switch_backend("Agg")


@pytest.fixture(scope="module")
def findings():
    X, y = load_iris(return_X_y=True)
    search = ANNSearchCV(
        vc.ANN(tol=0.1), alphas=[0.5, 2.0], gammas=[0.5, 1.0], search="grid",
        n_neighbors=[1, 5], cv=2, random_state=0,
    )  # fmt: skip
    held_out = np.arange(150) % 3 == 0
    search.fit(X[~held_out], y[~held_out])
    return examine(
        search, X[~held_out], y[~held_out], X_test=X[held_out], y_test=y[held_out],
        feature_names=["a", "b", "c", "d"],
    )  # fmt: skip


@pytest.fixture
def ax():
    figure, ax = pyplot.subplots()
    yield ax
    pyplot.close(figure)


@pytest.mark.parametrize("name", plot.__all__)
def test_each_takes_and_returns_an_axes(name, findings, ax):
    draw = getattr(plot, name)
    assert draw(findings, ax=ax) is ax
    assert ax.get_title()
    ax.figure.canvas.draw()
    new = draw(findings)
    assert new is not ax
    pyplot.close(new.figure)


@pytest.mark.parametrize("when", ["before", "after"])
def test_maps_show_every_row(when, findings, ax):
    plot.maps(findings, when, ax=ax)
    drawn = np.concatenate([points.get_offsets() for points in ax.collections])
    expected = getattr(findings.maps, when)
    order = [np.lexsort(np.asarray(points).T) for points in (drawn, expected)]
    np.testing.assert_allclose(drawn[order[0]], expected[order[1]])


def test_bars_are_the_weights(findings, ax):
    plot.feature_weights(findings, ax=ax)
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], findings.metric.weights)
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == [findings.features[f] for f in findings.metric.features]


def test_confusion_carries_the_counts(findings, ax):
    plot.confusion(findings, ax=ax)
    counts = [int(text.get_text() or 0) for text in ax.texts]
    assert counts == findings.errors.confusion.ravel().tolist()


def test_surface_frames_what_was_chosen(findings, ax):
    plot.tuning_surface(findings, 1, ax=ax)
    (frame,) = ax.patches
    row, column = findings.tuning.surfaces[1].chosen[0]
    assert (frame.get_x() + 0.5, frame.get_y() + 0.5) == (column, row)


def test_curve_is_the_history(findings, ax):
    plot.convergence(findings, ax=ax)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), findings.tuning.curves[0].values)


def test_what_a_model_does_not_have_is_said(ax):
    X, y = load_iris(return_X_y=True)
    kernel = examine(vc.RVML(kernel="rbf").fit(X, y), X, y)
    for draw in (plot.feature_weights, plot.metric_heatmap, plot.directions):
        with pytest.raises(ValueError, match="no matrix M"):
            draw(kernel, ax=ax)
    for draw in (plot.tuning_surface, plot.convergence, plot.effective_neighbors):
        with pytest.raises(ValueError, match="has 0"):
            draw(kernel, ax=ax)
    with pytest.raises(ValueError, match="'before' or 'after'"):
        plot.maps(kernel, "during", ax=ax)


def test_many_classes_are_told_apart_by_markers(ax):
    from vicinal.reporting.figure_axes import class_style

    styles = {tuple(class_style(code).items()) for code in range(35)}
    assert len(styles) == 35


def test_a_missing_matplotlib_names_the_extra(findings, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"vicinal\[report\]"):
        plot.margins(findings)
