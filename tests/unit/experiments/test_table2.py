from __future__ import annotations

import json
from dataclasses import replace

import pytest

from experiments import table2
from experiments.methods import METHODS, Method, Stage, on_backend
from experiments.runner import attempt
from experiments.splits import folds, prepare, with_wrong_labels
from experiments.tuning import Training, tune
from vicinal.learners.gmml import GMML
from vicinal.voting.class_mean import ClassMeanKNN

ONLY = (Stage.of(t=(0.9,)),)
METHOD = Method("toy", "Toy", "vicinal.learners.gmml:GMML", honest=ONLY, paper=ONLY)


def accuracies_by_hand(data, split, ks):
    """K → accuracy on the test part, of the one configuration."""
    parts = prepare(data, split)
    learner = GMML(t=0.9).fit(parts.X_train, parts.y_train)
    Z, queries = learner.transform(parts.X_train), learner.transform(parts.X_test)
    return {
        k: ClassMeanKNN(k, rule="vote").fit(Z, parts.y_train).score(queries, parts.y_test)
        for k in ks
    }


def test_paper_protocol_takes_the_best_k_of_the_test_part(wine):
    gained = 0
    for split in range(5):
        by_hand = accuracies_by_hand(wine, split, range(1, 11))
        result = attempt(table2.ResultTask(wine, METHOD, "paper", split))
        assert result.accuracy == pytest.approx(max(by_hand.values()))
        assert by_hand[json.loads(result.parameters)["K"]] == pytest.approx(result.accuracy)
        gained += min(by_hand.values()) < max(by_hand.values())
    assert gained  # or the best K would be any K


def test_honest_protocol_takes_the_k_of_the_cross_validation(wine):
    for split in range(2):
        result = attempt(table2.ResultTask(wine, METHOD, "honest", split))
        k = json.loads(result.parameters)["K"]
        assert result.accuracy == pytest.approx(accuracies_by_hand(wine, split, [k])[k])
        parts = prepare(wine, split)
        inner = folds(parts.X_train, parts.y_train, split)
        training = Training(parts.X_train, parts.y_train, inner, "honest", split)
        assert k == tune(METHOD, training).n_neighbors
        assert result.seed == result.split == split


def test_a_failing_method_becomes_a_record(iris, failing):
    record = attempt(table2.ResultTask(iris, failing, "honest", 2))
    assert record.accuracy is None
    assert record.error.startswith("InvalidParameter: t == 7.0")
    assert (record.dataset, record.method, record.split) == ("iris", "broken", 2)


def test_records_say_where_they_come_from(iris, gmml):
    record = attempt(table2.ResultTask(iris, gmml, "honest", 0))
    assert set(json.loads(record.versions)) >= {"python", "numpy", "scikit-learn", "vicinal"}
    assert record.commit_id
    assert "cores" in record.machine
    assert record.data == "test"
    assert record.stop_reason == "closed form"
    assert record.tuning_rows == 105


def test_the_automatic_classifier_has_no_paper_protocol(iris):
    honest = table2.tasks([iris], METHODS.values(), "honest", 3)
    paper = table2.tasks([iris], METHODS.values(), "paper", 3)
    assert len(honest) == 39
    assert len(paper) == 36
    assert not any(task.method.name == "auto" for task in paper)
    assert len({task.key for task in honest + paper}) == 75
    with pytest.raises(ValueError, match="honest, paper"):
        table2.tasks([iris], METHODS.values(), "lucky", 3)


def test_the_row_says_what_computed_it_where_somebody_chose(iris):
    by_hand = replace(METHODS["ann+"], backend="numpy")
    rows = [
        attempt(table2.ResultTask(iris, method, "honest", 0, tuning_limit=60))
        for method in (METHODS["ann+"], by_hand)
    ]
    chosen = [json.loads(row.parameters) for row in rows]
    assert "backend" not in chosen[0]
    assert chosen[1] == {**chosen[0], "backend": "numpy"}
    assert rows[0].accuracy == rows[1].accuracy


def test_the_row_names_the_gpu_that_computed_it(iris, monkeypatch):
    monkeypatch.setattr(table2.provenance, "gpu", lambda: "NVIDIA H200")
    monkeypatch.setattr(table2, "DEVICE_BACKENDS", ("numpy",))
    for backend, end in (("numpy", "cores, NVIDIA H200"), ("auto", "cores")):
        method = on_backend(METHODS["nca"], backend)
        row = attempt(table2.ResultTask(iris, method, "honest", 0, tuning_limit=60))
        assert row.error is None
        assert row.machine.endswith(end)


def test_a_gpu_that_is_not_there_fails_a_row_and_not_the_run(iris, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    method = on_backend(METHODS["nca"], "cuda")
    row = attempt(table2.ResultTask(iris, method, "honest", 0, tuning_limit=60))
    assert "needs an NVIDIA GPU" in row.error
    assert row.machine.endswith("cores")


def test_noisy_protocol_learns_from_wrong_labels_and_is_judged_by_right_ones(wine):
    honest = attempt(table2.ResultTask(wine, METHOD, "honest", 0))
    noisy = attempt(table2.ResultTask(wine, METHOD, "noisy", 0))
    parts = with_wrong_labels(prepare(wine, 0), 0)
    learner = GMML(t=0.9).fit(parts.X_train, parts.y_train)
    k = json.loads(noisy.parameters)["K"]
    judge = ClassMeanKNN(k, rule="vote").fit(learner.transform(parts.X_train), parts.y_train)
    by_hand = judge.score(learner.transform(parts.X_test), parts.y_test)
    assert noisy.accuracy == pytest.approx(by_hand)
    assert noisy.tuned_accuracy < honest.tuned_accuracy
    assert noisy.protocol == "noisy"


def test_the_automatic_classifier_says_what_it_tuned_on(iris):
    automatic = replace(METHODS["auto"], fixed={"effort": 0.01})
    record = attempt(table2.ResultTask(iris, automatic, "honest", 0))
    assert record.error is None
    assert (record.tuning_rows, record.n_train) == (39, 105)  # 13 of each class
