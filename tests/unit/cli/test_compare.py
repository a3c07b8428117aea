"""vicinal compare: the same folds for all, against cross-validation by hand."""

from __future__ import annotations

import numpy as np
import pytest

from vicinal.tables.selection import FitSettings
from vicinal.tables.table_model import TableModel
from vicinal.validation.folds import stratified_folds

WORDS = ["compare", "train.csv", "--target", "grows", "--splits", "3"]


def test_accuracies_are_those_of_nested_cross_validation(folder, ask, plants):
    told = ask(*WORDS, "--methods", "plain,gmml")
    table = plants[:100]
    folds = stratified_folds(3, table["grows"].to_numpy(str), None, 0)
    for standing in told["methods"]:
        expected = []
        for train, test in folds:
            settings = FitSettings(standing["method"])
            model = TableModel.fit(table.iloc[train], "grows", settings=settings)
            right = model.predict(table.iloc[test], ignore_unseen=True) == table["grows"].iloc[test]
            expected.append(right.mean())
        assert standing["accuracies"] == pytest.approx(expected)
        assert standing["accuracy"] == pytest.approx(np.mean(expected))
        assert standing["spread"] == pytest.approx(np.std(expected))
        assert standing["fit_seconds"] > 0
    accuracies = [standing["accuracy"] for standing in told["methods"]]
    assert accuracies == sorted(accuracies, reverse=True)
    assert told["methods"][0]["rank"] == 1


def test_the_table_and_the_time(folder, run):
    result = run(*WORDS, "--methods", "plain,nca", "--max-time", "0.01s", "--group", "plot")
    assert result.exit_code == 0
    assert "100 rows, 3 outer folds" in result.stdout
    assert "time was up" in result.stdout


def test_ctrl_c_shows_what_there_is(folder, run, monkeypatch):
    from vicinal.cli.output import ProgressBar

    def interrupt(self, stage, done):
        if done:
            raise KeyboardInterrupt

    monkeypatch.setattr(ProgressBar, "__call__", interrupt)
    result = run(*WORDS, "--methods", "plain,gmml")
    assert result.exit_code == 130
    assert "plain" in result.stdout
    assert "gmml" not in result.stdout


@pytest.mark.parametrize("words", [["--methods", "plain,nope"], ["--group", "nope"]])
def test_wrong_usage(folder, run, words):
    result = run(*WORDS, *words)
    assert result.exit_code == 2
    assert "nope" in result.stderr
