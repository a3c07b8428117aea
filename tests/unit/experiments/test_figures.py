from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from experiments import figure1, figure2, figure3
from experiments.datasets import Dataset
from experiments.figures import new_figure, save
from experiments.runner import attempt, run

from .synthetic import DATASETS, fill_figure2, fill_figure3

pytest.importorskip("matplotlib")


def is_picture(paths) -> bool:
    png, svg = paths[:2]
    return png.read_bytes()[:4] == b"\x89PNG" and "<svg" in svg.read_text()


def test_figure1(tmp_path):
    assert is_picture(figure1.write(tmp_path))


def test_smoothing_is_the_papers(store):
    """r̂e(·, K) = mean of re(·, K + 1) … re(·, K + 5)."""
    fill_figure2(store)
    study = figure2.study(store, "ann+")
    assert study.accuracy.shape == (20, 20, 50)
    raw = study.accuracy.max(axis=1)  # re(α, K), K = 1 … 50
    assert study.alpha_k.shape == (20, 45)
    for k in (1, 17, 45):
        assert_allclose(study.alpha_k[:, k - 1], raw[:, k : k + 5].mean(axis=1))
    assert_allclose(study.gamma_k[4, 9], study.accuracy[:, 4].max(axis=0)[10:15].mean())
    best = np.unravel_index(study.alpha_gamma.argmax(), (20, 20))
    assert [figure2.EXPONENTS[i] for i in best] == [3, 5]


def test_figure2_is_drawn_when_it_is_complete(store, tmp_path):
    assert figure2.write(store, tmp_path) == []
    fill_figure2(store)
    assert is_picture(figure2.write(store, tmp_path))


def test_a_path_of_figure2(wine):
    task = figure2.PathTask(wine, "ann-", -1.0, 0, gammas=(0.5, 2.0))
    record = attempt(task)
    assert record.error is None
    value = json.loads(record.value)
    assert np.shape(value["accuracy"]) == (2, 50)
    assert np.min(value["accuracy"]) > 0.6
    assert len(figure2.tasks(wine, 2)) == 2 * 2 * 20


def test_figure3_ratios_and_picture(store, tmp_path):
    fill_figure3(store, ratio=12.0)
    measured = figure3.timings(store)
    assert_allclose(list(figure3.ratios(measured, "ann+").values()), 12.0)
    assert_allclose(list(figure3.ratios(measured, "ann-").values()), 24.0)
    paths = figure3.write(store, tmp_path)
    assert is_picture(paths)
    assert paths[2].read_text().count("\n") == 1 + 6 * len(DATASETS)
    assert figure3.long_fits(store) == set()


def test_figure3_says_how_often_a_fit_was_timed():
    many, few = figure3.Timing((1.0,) * 30, 5.0), figure3.Timing((70.0, 71.0), 5.0)
    measured = {("iris", "ann+"): many, ("usps", "ann+"): few, ("usps", "lmnn-4"): many}
    assert figure3.runs_in_words(measured) == "30 runs each, but USPS: ANN⁺ 2"
    assert figure3.runs_in_words({("iris", "ann+"): many}) == "30 runs each"


def test_long_fits_are_noticed(store, monkeypatch):
    fill_figure3(store)
    monkeypatch.setattr(figure3, "LONG", 3.0)
    assert figure3.long_fits(store) == {("cars", name) for name in figure3.LMNN}  # 12 × 0.32 s


def test_fits_are_timed_on_the_training_part(store, iris):
    small = Dataset("iris", iris.X[::3], iris.y[::3], "test")
    assert run(figure3.tasks([small], 0, 1), store) == 6
    measured = figure3.timings(store)
    assert {method for _, method in measured} == set(figure3.TIMED)
    assert all(0 < timing.mean < 30 for timing in measured.values())
    learner = figure3.TIMED["ann-"].make({}, "honest", 0)
    assert (learner.alpha, learner.similar) == (-1.0, "all")


def test_the_same_figure_gives_the_same_svg(tmp_path):
    contents = []
    for number in range(2):
        figure = new_figure(2, 2)
        figure.subplots().plot([1, 2])
        contents.append(save(figure, tmp_path / str(number), "f")[1].read_bytes())
    assert contents[0] == contents[1]
