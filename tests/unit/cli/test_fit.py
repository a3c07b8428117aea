"""vicinal fit: what it says, what it writes, what it refuses."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import balanced_accuracy_score, log_loss, roc_auc_score

import vicinal as vc
from vicinal.cli.class_scores import class_table, further_classes
from vicinal.model_file import load

COLUMNS = ["--target", "grows", "--id", "plant", "--group", "plot"]


def test_everything_done_to_the_columns_is_said(folder, run):
    result = run("fit", "train.csv", *COLUMNS, "--method", "gmml")
    assert result.exit_code == 0
    text = result.stdout
    assert "1 of numbers: standardized" in text
    assert "height: standardized, mean" in text
    assert "3 missing filled with" in text
    assert "soil: one-hot, 4 categories: clay, loam, sand, (missing); 2 missing" in text
    assert "planet: dropped: it is constant, earth in every row" in text
    assert "GMML, K =" in text
    assert "model.vicinal, which holds 100 training rows" in text
    assert result.stderr == ""
    model = load(folder / "model.vicinal")
    assert model.estimator["learner"].n_features_in_ == 7
    assert model.ids[0] == "p000"
    assert model.provenance["command"] == (
        "vicinal fit train.csv --target grows --method gmml --id plant --group plot"
    )


def test_held_out_rows_are_not_in_the_model_and_judge_it(folder, ask, plants):
    told = ask("fit", "train.csv", *COLUMNS, "--method", "nca", "--holdout", "0.25")
    model = load(folder / "model.vicinal")
    held_out = told["held_out"]
    rest = plants[:100][~plants["plant"][:100].isin(model.ids)]
    assert len(rest) == held_out["rows"] == 100 - told["rows"]
    assert held_out["accuracy"] == np.mean(model.predict(rest) == rest["grows"])
    low, high = held_out["interval"]
    assert low < held_out["accuracy"] < high
    assert not set(rest["plot"]) & set(plants.set_index("plant").loc[model.ids, "plot"])


def test_refit_holds_all_rows_and_keeps_the_judgment(folder, ask):
    options = ["--method", "gmml", "--holdout", "0.25"]
    before = ask("fit", "train.csv", *COLUMNS, *options)
    after = ask("fit", "train.csv", *COLUMNS, *options, "--refit")
    assert after["held_out"] == before["held_out"]
    assert after["rows"] == 100 > before["rows"]
    assert len(load(folder / "model.vicinal").ids) == 100


def test_a_test_table_judges_too(folder, ask, plants):
    plants[100:].to_parquet(folder / "test.parquet")
    told = ask("fit", "train.csv", *COLUMNS, "--method", "gmml", "--test", "test.parquet")
    model = load(folder / "model.vicinal")
    right = model.predict(plants[100:]) == plants["grows"][100:]
    assert told["held_out"]["accuracy"] == np.mean(right)
    assert told["rows"] == 100


def test_the_same_seed_gives_the_same_model(folder, run):
    for name in ("a", "b"):
        assert run("fit", "train.csv", *COLUMNS, "--out", f"{name}.vicinal").exit_code == 0
    rows = pd.read_csv("new.csv")
    models = [load(folder / f"{name}.vicinal") for name in ("a", "b")]
    np.testing.assert_array_equal(*(model.predict_proba(rows) for model in models))
    assert isinstance(models[0].estimator, vc.ANNClassifier)


def test_npz_with_class_names(folder, ask):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(2, size=60)
    np.savez("t.npz", X=X + y[:, None], y=y, class_names=["no", "yes"])
    told = ask("fit", "t.npz", "--target", "y", "--method", "rvml")
    assert told["classes"] == ["no", "yes"]
    assert told["features"] == ["x0", "x1", "x2"]


def test_max_time_returns_the_best_so_far_and_says_so(folder, run):
    result = run("fit", "train.csv", *COLUMNS, "--method", "nca", "--max-time", "0.001s")
    assert result.exit_code == 0
    assert "the time was up: this is the best so far" in result.stdout
    assert load(folder / "model.vicinal").provenance["timed_out"]


def test_rows_without_a_class_are_left_out_and_counted(folder, run, plants):
    plants[:100].assign(grows=plants["grows"].where(plants.index > 6)).to_csv(
        "holes.csv", index=False
    )
    result = run("fit", "holes.csv", *COLUMNS, "--method", "plain")
    assert "7 without grows: left out" in result.stdout
    assert "93 training rows" in result.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--target", "nope"], "there is no column 'nope'"),
        (["--target", "grows", "--id", "nope"], "--id"),
        (["--target", "grows", "--keep", "nope"], "--keep"),
        (["--target", "grows", "--method", "nope"], "auto, single, ann"),
        (["--target", "grows", "--holdout", "0.9"], "up to 0.5"),
        (["--target", "grows", "--holdout", "0.2", "--test", "new.csv"], "not both"),
        (["--target", "grows", "--test", "new.csv"], "no column 'grows'"),
        (["--target", "grows", "--refit"], "--holdout"),
        (["--target", "grows", "--method", "nca", "--effort", "2"], "auto"),
        (["--target", "grows", "--effort", "0"], "above 0"),
        (["--target", "grows", "--method", "plain", "--report", "r.html"], "learned metric"),
        (["--target", "grows", "--max-time", "soon"], "90s, 5m"),
        (["--target", "grows", "--out", "no/folder/m.vicinal"], "no folder"),
        (["--target", "grows", "--out", "."], "it is a folder"),
        (["--target", "grows", "--out", "n" * 256], "too long"),
        (["--target", "grows", "--out", "/dev/null"], "not a regular file"),
        ([], "--target"),
    ],
)
def test_wrong_usage_is_2_and_writes_nothing(folder, run, words, message):
    before = set(folder.iterdir())
    result = run("fit", "train.csv", *words)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.replace("│", " ").split())
    assert set(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("target", "message"),
    [("height", "looks like a measured number"), ("planet", "1 class"), ("plant", "names rather")],
)
def test_targets_that_are_not_classes_are_1(folder, run, target, message):
    result = run("fit", "train.csv", "--target", target, "--task", "classification")
    assert result.exit_code == 1
    assert message in result.stderr
    assert not (folder / "model.vicinal").exists()


def test_an_interrupt_writes_the_best_so_far(folder, run, monkeypatch):
    """Ctrl-C in the third fold of the choice of K; the real signal is in test_interrupt."""
    from vicinal.cli.output import ProgressBar

    def interrupt(self, stage, done):
        if stage == "choice of K" and done > 0.4:
            raise KeyboardInterrupt

    monkeypatch.setattr(ProgressBar, "__call__", interrupt)
    result = run("fit", "train.csv", *COLUMNS, "--method", "nca", "--report", "r.html")
    assert result.exit_code == 130
    assert "interrupted; the best model so far is model.vicinal; no page" in result.stderr
    model = load(folder / "model.vicinal")
    assert "not cross-validated" in model.provenance["how"]
    assert model.provenance["interrupted"]
    assert not (folder / "r.html").exists()


def test_an_interrupt_of_the_refit_keeps_the_judged_model(folder, run, monkeypatch):
    from vicinal.cli.output import ProgressBar

    stages = []

    def interrupt(self, stage, done):
        stages.append(stage)
        if stage == "plain K-NN" and "gmml, all rows" in stages:
            raise KeyboardInterrupt

    monkeypatch.setattr(ProgressBar, "__call__", interrupt)
    monkeypatch.setattr(  # GMML has no iterations to tell of
        "vicinal.tables.selection.make_learner", _told(stages, "gmml, all rows")
    )
    words = ["--method", "gmml", "--holdout", "0.25", "--refit"]
    result = run("fit", "train.csv", *COLUMNS, *words)
    assert result.exit_code == 130
    assert "the best model so far is model.vicinal" in result.stderr
    assert "without the held-out ones" in result.stdout
    model = load(folder / "model.vicinal")
    assert len(model.ids) < 100
    assert model.provenance["held_out"]["rows"] == 100 - len(model.ids)


def _told(stages, stage):
    def make_learner(method, seed):
        stages.append(stage)
        return vc.GMML(random_state=seed)

    return make_learner


def test_an_interrupt_of_the_page_says_where_the_model_is(folder, run, monkeypatch):
    import vicinal.reporting

    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(vicinal.reporting, "report", interrupt)
    result = run("fit", "train.csv", *COLUMNS, "--method", "gmml", "--report", "r.html")
    assert result.exit_code == 130
    assert "the model is model.vicinal, no page" in result.stderr
    assert len(load(folder / "model.vicinal").ids) == 100


def test_an_interrupt_before_any_model_writes_nothing(folder, run, monkeypatch):
    from vicinal.cli.output import ProgressBar

    def interrupt(self, stage, done):
        raise KeyboardInterrupt

    monkeypatch.setattr(ProgressBar, "__call__", interrupt)
    before = set(folder.iterdir())
    result = run("fit", "train.csv", *COLUMNS)
    assert result.exit_code == 130
    assert "nothing was written" in result.stderr
    assert set(folder.iterdir()) == before


def test_the_page_gets_the_names_and_the_held_out_rows(folder, run, monkeypatch):
    import vicinal.reporting

    seen = {}

    def report(model, X, y, path, **options):
        seen.update(options, X=X, y=y)
        path.write_text("page")

    monkeypatch.setattr(vicinal.reporting, "report", report)
    words = ["--method", "gmml", "--holdout", "0.25", "--report", "r.html"]
    assert run("fit", "train.csv", *COLUMNS, *words).exit_code == 0
    assert (folder / "r.html").read_text() == "page"
    assert len(seen["ids"]) == len(set(seen["ids"])) == 100
    names = list(seen["X"].encoder.get_feature_names_out())
    assert names[:3] == ["height", "height=(missing)", "width"]
    assert len(seen["X"].X) + len(seen["X_test"].X) == 100
    assert set(seen["y_test"]) <= {"well", "poorly"}
    assert seen["provenance"]["Seed"] == "0"
    assert any(line.startswith("planet: dropped") for line in seen["provenance"]["Columns"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"drop": "width"}, "missing column(s) 'width'"),
        ({"width": "12 kg"}, "column 'width' holds numbers, but 20"),
        ({"grows": None}, "no row has a class in 'grows'"),
        ({"grows": "so so"}, "no row of 'grows' has a class of that one, such as 'poorly', 'well'"),
    ],
)
def test_a_test_table_that_does_not_fit_is_refused_before_the_work(
    folder, run, plants, monkeypatch, change, message
):
    test = plants[100:].drop(columns=change.pop("drop", [])).assign(**change)
    test.to_parquet("test.parquet")
    monkeypatch.setattr("vicinal.cli.fitting._fit", lambda *_: pytest.fail("it was fitted"))
    result = run("fit", "train.csv", *COLUMNS, "--test", "test.parquet")
    assert result.exit_code == 1
    assert f"the test table does not fit the training table: {message}" in result.stderr


def test_labels_that_are_merged_are_said_in_one_line(folder, run, plants):
    labels = plants["grows"].replace("well", "very well")
    labels[labels == "very well"] = ["very  well", *labels[labels == "very well"][1:]]
    plants.assign(grows=labels).to_csv("train.csv", index=False)
    for command in (["fit", "--method", "plain"], ["compare", "--methods", "plain"]):
        result = run(command[0], "train.csv", "--target", "grows", *command[1:])
        assert result.exit_code == 0
        (line,) = [text for text in result.stderr.splitlines() if "white space" in text]
        assert line.startswith("note: target 'grows': 1 label(s) differ")


def test_classes_that_are_not_shown_are_counted_after_the_table():
    one = {"rows": 1, "precision": None, "recall": 1.0, "f1": 1.0}
    scores = {"classes": [{"label": f"c{i}", **one} for i in range(32)]}
    assert len(class_table(scores)[1]) == 30
    assert further_classes(scores) == ["and 2 more; --json lists them all"]
    assert further_classes({"classes": scores["classes"][:30]}) == []


def test_unseen_categories_of_a_test_table_are_said(folder, run, plants):
    plants[100:].assign(soil="moss").to_parquet("test.parquet")
    result = run("fit", "train.csv", *COLUMNS, "--method", "gmml", "--test", "test.parquet")
    assert result.exit_code == 0
    assert "note: test column 'soil': 'moss' not in training" in result.stderr


def test_the_page_and_the_terminal_agree_on_held_out_accuracies(folder, run, monkeypatch):
    import vicinal.reporting.page as write

    seen = []
    page = write.page
    monkeypatch.setattr(write, "page", lambda findings: seen.append(findings) or page(findings))
    words = ["--method", "nca", "--holdout", "0.4", "--report", "r.html", "--seed", "3"]
    assert run("fit", "train.csv", *COLUMNS, *words).exit_code == 0
    told = load(folder / "model.vicinal").provenance
    learned, plain, _ = seen[0].headline.scores
    assert learned.accuracy == told["held_out"]["accuracy"]
    assert plain.accuracy == told["held_out"]["plain_accuracy"]
    assert {c.name: c.why for c in seen[0].headline.chosen}["K"] == f"{told['how']}."


def test_a_training_table_whose_name_is_not_utf_8(folder, run):
    name = os.fsdecode(b"train-\xff.csv")
    os.rename("train.csv", name)
    result = run("fit", name, *COLUMNS, "--method", "plain")
    assert result.exit_code == 0
    assert load("model.vicinal").provenance["data"] == "train-\N{REPLACEMENT CHARACTER}.csv"


def test_the_plan_and_the_classes_are_said_before_the_work(folder, run, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("vicinal.tables.table_model.TableModel.candidates", stop)
    result = run("fit", "train.csv", *COLUMNS)
    assert result.exit_code == 130
    assert "soil: one-hot" in result.stdout
    assert "classes   " in result.stdout
    assert "well " in result.stdout
    assert "poorly " in result.stdout


def test_scores_are_those_of_the_predictions(folder, ask, plants):
    told = ask("fit", "train.csv", *COLUMNS, "--method", "nca", "--holdout", "0.3")
    model = load(folder / "model.vicinal")
    rest = plants[:100][~plants["plant"][:100].isin(model.ids)]
    P = model.predict_proba(rest)
    held_out = told["held_out"]
    assert held_out["rows"] == held_out["of_rows"] == len(rest)
    assert held_out["log_loss"] == pytest.approx(log_loss(rest["grows"], np.maximum(P, 1e-15)))
    expected = balanced_accuracy_score(rest["grows"], model.predict(rest))
    assert held_out["balanced_accuracy"] == pytest.approx(expected)
    assert held_out["roc_auc"] == pytest.approx(roc_auc_score(rest["grows"] == "well", P[:, 1]))
    assert [one["label"] for one in held_out["classes"]] == ["poorly", "well"]
    assert told["out_of_fold"]["rows"] == told["plain_out_of_fold"]["rows"]


def test_for_rare_classes_balanced_accuracy_comes_first(folder, run):
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    pd.DataFrame({"x": x, "y": np.where(x > 1.6, "yes", "no")}).to_csv("rare.csv", index=False)
    text = run("fit", "rare.csv", "--target", "y", "--class-weight", "balanced").stdout
    line = next(line for line in text.splitlines() if line.startswith("accuracy"))
    assert "balanced accuracy" in line
    assert "said first because class 'yes' has" in text
    assert run("fit", "rare.csv", "--target", "y", "--class-weight", "up").exit_code == 2


@pytest.mark.parametrize(("column", "words"), [("height", "used anyway"), ("planet", "constant")])
def test_keep_that_does_nothing_is_an_error(folder, run, column, words):
    result = run("fit", "train.csv", *COLUMNS, "--keep", column)
    assert result.exit_code == 1
    assert words in result.stderr


def test_kinds_can_be_given(folder, run):
    words = ["--type", "width=drop", "--type", "planet=category", "--missing", "sand,-"]
    result = run("fit", "train.csv", *COLUMNS, "--method", "gmml", *words)
    assert "width: dropped: as asked for" in result.stdout
    assert "clay, loam, (missing)" in result.stdout
    command = load("model.vicinal").provenance["command"]
    assert "--type width=drop" in command
    assert run("fit", "train.csv", *COLUMNS, "--type", "width=numeric").exit_code == 2
    assert run("fit", "train.csv", *COLUMNS, "--type", "nope=drop").exit_code == 2


def test_a_judge_stops_when_the_time_is_up(folder, plants, run, monkeypatch):
    monkeypatch.setattr("vicinal.tables.holdout.FIRST_ROWS", 5)
    words = ["--method", "plain", "--holdout", "0.3", "--max-time", "0.001s"]
    result = run("fit", "train.csv", *COLUMNS, *words)
    assert result.exit_code == 0
    assert "judged by 5 of " in result.stdout
