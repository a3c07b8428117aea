"""vicinal predict, transform, explain, info, export on models of every kind."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist

from vicinal.cli.output import Output
from vicinal.cli.predict import _destination
from vicinal.model_file import load, save

MODELS = ["plain", "nca", "auto", "single"]


@pytest.fixture(params=MODELS)
def path(request, fitted):
    return fitted / f"{request.param}.vicinal"


def test_predictions_probabilities_and_neighbors(folder, run, path, plants):
    result = run("predict", path, "new.csv", "--out", "out.csv", "--neighbors", "3")
    assert result.exit_code == 0, result.stderr
    out, model = pd.read_csv("out.csv"), load(path)
    new = pd.read_csv("new.csv")
    assert list(out["plant"]) == list(new["plant"])
    assert list(out["prediction"]) == list(model.predict(new))
    found = out[["p(poorly)", "p(well)"]].to_numpy()
    np.testing.assert_allclose(found, model.predict_proba(new), rtol=1e-12)
    classes = plants.set_index("plant")["grows"]
    for j in (1, 2, 3):
        assert list(classes[out[f"neighbor_{j}"]]) == list(out[f"neighbor_{j}_class"])
    Z, Z_new = (model.embed(model.prepare(t)) for t in (plants[:100], new))
    if path.stem in ("plain", "nca"):
        distances = np.sort(cdist(Z_new, Z), axis=1)[:, :3]
        shown = out[[f"neighbor_{j}_distance" for j in (1, 2, 3)]].to_numpy()
        np.testing.assert_allclose(shown, distances, rtol=1e-6)
    assert "neighbor_4" not in out.columns


@pytest.mark.parametrize("name", ["out.csv", "out.tsv", "out.parquet", "out.feather"])
def test_the_ending_decides_the_format(folder, run, fitted, name):
    assert run("predict", fitted / "plain.vicinal", "new.csv", "--out", name).exit_code == 0
    readers = {".csv": pd.read_csv, ".parquet": pd.read_parquet, ".feather": pd.read_feather}
    read = readers.get(name[3:], lambda path: pd.read_csv(path, sep="\t"))
    assert len(read(name)) == 20


def test_stdout_is_csv_and_remarks_are_elsewhere(folder, run, fitted, plants):
    plants[100:].assign(extra=1).to_csv("all.csv", index=False)
    result = run("predict", fitted / "nca.vicinal", "all.csv", "--neighbors", "0")
    out = pd.read_csv(io.StringIO(result.stdout))
    assert list(out.columns) == ["plant", "prediction", "p(poorly)", "p(well)"]
    right = np.mean(out["prediction"].to_numpy() == plants["grows"][100:].to_numpy())
    assert f"{100 * right:.1f} % of the 20 rows are right" in result.stderr
    assert "ignored: 'extra'" in result.stderr


def test_json_is_one_document(folder, ask, fitted):
    rows = ask("predict", fitted / "auto.vicinal", "new.csv")
    assert len(rows) == 20
    assert set(rows[0]) >= {"plant", "prediction", "p(well)", "neighbor_1", "neighbor_5_distance"}


def test_missing_values_are_filled_and_said(folder, run, fitted, plants):
    new = plants[100:].drop(columns="grows")
    new.assign(width=np.nan).to_csv("holes.csv", index=False)
    result = run("predict", fitted / "nca.vicinal", "holes.csv", "--out", "out.csv")
    assert result.exit_code == 0
    median = plants["width"][:100].median()
    assert f"column 'width': 20 missing, filled with {median:.6g}" in result.stderr


@pytest.mark.parametrize(
    ("change", "messages"),
    [
        ({"drop": "width"}, ["missing column(s) 'width'", "rename"]),
        ({"soil": "peat"}, ["column 'soil'", "'peat'", "--unseen ignore"]),
        ({"height": "tall"}, ["column 'height'", "'tall' in row 0", "leave them empty"]),
    ],
)
def test_what_does_not_fit_is_named_and_nothing_is_written(folder, run, fitted, change, messages):
    new = pd.read_csv("new.csv")
    new = new.drop(columns=change["drop"]) if "drop" in change else new.assign(**change)
    new.to_csv("bad.csv", index=False)
    (folder / "out.csv").write_text("old")
    before = set(folder.iterdir())
    words = ["--out", "out.csv", "--unseen", "error"]
    result = run("predict", fitted / "nca.vicinal", "bad.csv", *words)
    assert result.exit_code == 1
    assert all(message in result.stderr for message in messages)
    assert (folder / "out.csv").read_text() == "old"
    assert set(folder.iterdir()) == before


def test_unseen_categories_can_be_ignored(folder, run, fitted):
    pd.read_csv("new.csv").assign(soil="peat").to_csv("peat.csv", index=False)
    words = ["predict", fitted / "nca.vicinal", "peat.csv", "--unseen"]
    result = run(*words, "ignore")
    assert result.exit_code == 0
    assert "column 'soil': 'peat' (20 rows) not in training" in result.stderr
    assert run(*words, "maybe").exit_code == 2


def test_transform_gives_the_learned_distances(folder, run, path):
    assert run("transform", path, "new.csv", "--out", "z.parquet").exit_code == 0
    Z = pd.read_parquet("z.parquet").drop(columns="plant").to_numpy()
    model = load(path)
    X = model.prepare(pd.read_csv("new.csv"))
    if path.stem == "auto":  # the mean metric of features and what is made of them
        measured = model.fitted.metric.measure(model.fitted.prepare(X))
        columns, M = measured.columns, measured.M
    else:
        columns, M = X, np.eye(X.shape[1]) if path.stem == "plain" else _metric(model.estimator)
    expected = cdist(columns, columns, "mahalanobis", VI=M)
    np.testing.assert_allclose(cdist(Z, Z), expected, rtol=1e-6, atol=1e-9)


def _metric(estimator):
    learner = estimator["learner"] if hasattr(estimator, "steps") else estimator
    return learner.get_mahalanobis_matrix()


def test_explanations_for_people_and_programs(folder, run, ask, path):
    result = run("explain", path, "new.csv", "--row", "17", "--neighbors", "2")
    assert result.exit_code == 0
    told = ask("explain", path, "new.csv", "--row", "17", "--neighbors", "2")
    assert told["id"] == "p117"
    assert f"row p117: grows = {told['prediction']}" in result.stdout
    assert len(told["neighbors"]) == 2
    for near in told["neighbors"]:
        assert near["id"] in result.stdout
        assert sum(near["shares"].values()) == pytest.approx(near["distance"] ** 2)
        assert set(near["shares"]) == {"height", "width", "soil"}
    assert told["values"]["width"] == pytest.approx(pd.read_csv("new.csv")["width"][17])


def test_a_row_that_is_not_there_is_wrong_usage(folder, run, fitted):
    result = run("explain", fitted / "nca.vicinal", "new.csv", "--row", "20")
    assert result.exit_code == 2
    assert "rows 0 to 19" in result.stderr


def test_info(run, ask, path, plants):
    told = ask("info", path)
    counts = plants["grows"][:100].value_counts().to_dict()
    assert told["classes"] == counts
    assert told["id_column"] == "plant"
    assert [c["name"] for c in told["columns"]] == ["height", "width", "soil", "planet"]
    text = run("info", path).stdout
    assert told["provenance"]["command"] in text
    assert "dropped: it is constant" in text


@pytest.mark.parametrize(
    "words", [["info"], ["predict", "new.csv"], ["explain", "new.csv", "--row", "1"]]
)
def test_a_file_that_is_no_model_is_1(folder, run, words):
    result = run(words[0], "train.csv", *words[1:])
    assert result.exit_code == 1
    assert "error: cannot load train.csv" in result.stderr


def test_a_model_without_columns_is_for_python(folder, run):
    import vicinal as vc

    save(vc.GMML().fit(np.eye(4), [0, 0, 1, 1]), "g.vicinal")
    result = run("info", "g.vicinal")
    assert result.exit_code == 1
    assert "holds an estimator (GMML) without the columns" in result.stderr


@pytest.mark.parametrize(
    ("to", "out"), [("npy", "arrays"), ("onnx", "m.onnx"), ("faiss", "m.faiss")]
)
def test_export(folder, run, fitted, to, out):
    pytest.importorskip({"npy": "numpy"}.get(to, to))
    result = run("export", fitted / "nca.vicinal", "--to", to, "--out", out)
    assert result.exit_code == 0, result.stderr
    assert (folder / out).exists()


def test_a_committee_is_not_exported(folder, run, fitted):
    result = run("export", fitted / "auto.vicinal", "--to", "npy", "--out", "arrays")
    assert result.exit_code == 1
    assert "--method single" in result.stderr
    assert run("export", fitted / "single.vicinal", "--to", "npy", "--out", "arrays").exit_code == 0
    assert run("export", fitted / "nca.vicinal", "--to", "hdf", "--out", "x").exit_code == 2


def test_a_committee_goes_to_a_vector_store_as_one_map(folder, run, ask, fitted):
    result = run("export", fitted / "auto.vicinal", "--to", "pgvector", "--out", "vectors")
    assert result.exit_code == 0, result.stderr
    assert "one map   replaces the metrics of the committee: accuracy" in result.stdout
    assert "p001" in (folder / "vectors" / "load.sql").read_text()
    told = ask(
        "export", fitted / "nca.vicinal", "--to", "pgvector", "--keep-raw", "--out", "vectors"
    )
    assert (told["card"]["metric"], told["card"]["rows"]) == ("ip", 100)


def test_exports_that_would_be_wrong_are_refused(folder, run, fitted):
    words = ["export", fitted / "nca.vicinal", "--out", "vectors", "--to"]
    result = run(*words, "pgvector", "--metric", "ip")
    assert result.exit_code == 1
    assert "lacks the term" in result.stderr
    assert run(*words, "npy", "--keep-raw").exit_code == 2
    (folder / "vectors").mkdir()
    (folder / "vectors" / "mine.txt").write_text("kept")
    assert run(*words, "pgvector").exit_code == 2
    assert (folder / "vectors" / "mine.txt").read_text() == "kept"


def test_markup_in_the_data_is_text(folder, run):
    """A class named like rich's markup, or a script, is printed as it is."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"[red]x": rng.normal(size=40), "y": ["[/bold]", "<script>"] * 20})
    table.to_csv("odd.csv", index=False)
    assert run("fit", "odd.csv", "--target", "y", "--method", "plain").exit_code == 0
    text = run("info", "model.vicinal").stdout
    assert "[red]x" in text
    assert "[/bold]" in text
    document = json.loads(run("info", "model.vicinal", "--json").stdout)
    assert set(document["classes"]) == {"[/bold]", "<script>"}


@pytest.mark.parametrize(
    "provenance",
    [
        {"how": 3, "held_out": [1], "cross_validated_accuracy": "high", "command": {"a": 1}},
        {"held_out": {"accuracy": None, "rows": "many"}, "timed_out": "yes", "command": "x"},
        {"cross_validated_accuracy": float("nan"), 1.5: (2,), "plain": np.arange(3)},
        ["no", "dict"],
        None,
    ],
)
def test_info_trusts_nothing_that_the_writer_says(folder, run, fitted, provenance):
    model = replace(load(fitted / "nca.vicinal"), provenance=provenance)
    save(model, "odd.vicinal")
    text = run("info", "odd.vicinal").stdout
    assert "100 training rows" in text
    assert "cross-validated" not in text
    told = json.loads(run("info", "odd.vicinal", "--json").stdout, parse_constant=pytest.fail)
    assert told["rows"] == 100


def test_texts_of_strangers_cannot_command_the_terminal(folder, run):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"x\x1b[2J": rng.normal(size=40), "y": ["a\x1b]0;title\x07", "b\x9b1m"] * 20}
    )
    table.to_parquet("odd.parquet")
    assert run("fit", "odd.parquet", "--target", "y", "--method", "plain").exit_code == 0
    shown = run("info", "model.vicinal").stdout
    assert r"x\x1b[2J" in shown
    table.drop(columns="x\x1b[2J").to_parquet("less.parquet")
    error = run("predict", "model.vicinal", "less.parquet").stderr
    missing = run("explain", "model.vicinal", "odd.parquet", "--row", "0").stdout
    assert not set(shown + error + missing) & {"\x1b", "\x07", "\x9b"}


def test_remarks_go_to_stderr_with_json_too(folder, run, fitted, plants):
    plants[100:].assign(height=np.nan).to_csv("holes.csv", index=False)
    result = run("predict", fitted / "nca.vicinal", "holes.csv", "--json")
    assert len(json.loads(result.stdout)) == 20
    assert "'height': 20 missing, filled with" in result.stderr
    assert "of the 20 rows are right" in result.stderr


def test_exports_name_the_features_and_the_rows(folder, run, fitted, plants):
    faiss = pytest.importorskip("faiss")
    plants[:100].drop(columns="plant").to_csv("unnamed.csv", index=False)
    words = ["--target", "grows", "--method", "gmml", "--holdout", "0.3"]
    assert run("fit", "unnamed.csv", *words).exit_code == 0
    model = load("model.vicinal")
    assert run("export", "model.vicinal", "--to", "npy", "--out", "arrays").exit_code == 0
    card = json.loads((folder / "arrays" / "card.json").read_text(encoding="utf-8"))
    assert card["feature_names"] == list(model.feature_names)
    assert run("export", "model.vicinal", "--to", "faiss", "--out", "m.faiss").exit_code == 0
    Z = model.embed(model.training_rows[:5]).astype(np.float32)
    _, found = faiss.read_index("m.faiss").search(Z, 1)
    assert found[:, 0].tolist() == model.ids[:5].tolist() != list(range(5))


def test_no_share_is_minus_zero(folder, run, fitted):
    text = run(
        "explain", fitted / "nca.vicinal", "new.csv", "--row", "1", "--neighbors", "9"
    ).stdout
    assert "(-0 %)" not in text


def test_an_id_column_may_be_called_like_a_column_of_the_result(folder, run):
    for name in ("train.csv", "new.csv"):
        table = pd.read_csv(name).rename(columns={"plant": "prediction"})
        table.to_csv(name, index=False)
    words = ["--target", "grows", "--id", "prediction", "--method", "plain"]
    assert run("fit", "train.csv", *words).exit_code == 0
    result = run("predict", "model.vicinal", "new.csv", "--out", "out.csv")
    assert result.exit_code == 0
    table = pd.read_csv("out.csv")
    assert list(table.columns[:2]) == ["prediction_id", "prediction"]
    assert table["prediction_id"][0] == "p100"


def test_plain_models_have_nothing_to_export(folder, run):
    run("fit", "train.csv", "--target", "grows", "--method", "plain")
    result = run("export", "model.vicinal", "--to", "npy", "--out", "arrays")
    assert result.exit_code == 1
    assert "no transform" in result.stderr


def test_any_length_is_predicted_part_by_part(folder, run, fitted, monkeypatch):
    monkeypatch.setattr("vicinal.cli.predict.CHUNK_ROWS", 7)
    monkeypatch.setattr("vicinal.tables.reading.CHUNK_ROWS", 7)
    parts, whole = folder / "parts.csv", folder / "whole.csv"
    assert run("predict", fitted / "auto.vicinal", "new.csv", "--out", parts).exit_code == 0
    monkeypatch.undo()
    os.chdir(folder)
    assert run("predict", fitted / "auto.vicinal", "new.csv", "--out", whole).exit_code == 0
    pd.testing.assert_frame_equal(pd.read_csv(parts), pd.read_csv(whole))


def test_a_bad_value_is_named_by_its_row_in_the_whole_table(folder, run, fitted, monkeypatch):
    monkeypatch.setattr("vicinal.cli.predict.CHUNK_ROWS", 7)
    new = pd.read_csv("new.csv").astype({"height": object})
    new.loc[16, "height"] = "tall"
    new.to_csv("bad.csv", index=False)
    before = set(folder.iterdir())
    result = run("predict", fitted / "nca.vicinal", "bad.csv", "--out", "out.csv")
    assert result.exit_code == 1
    assert "'tall' in row 16" in result.stderr
    assert set(folder.iterdir()) == before


@pytest.mark.parametrize("name", ["out.xlsx", "out", "out.csv.bz2"])
def test_an_ending_that_cannot_be_written_is_refused_first(folder, run, fitted, name, monkeypatch):
    monkeypatch.setattr("vicinal.cli.predict.load_table_model", lambda *_: pytest.fail("loaded"))
    result = run("predict", fitted / "nca.vicinal", "new.csv", "--out", name)
    assert result.exit_code == 2
    assert "ending is unknown" in " ".join(result.stderr.replace("│", " ").split())


def test_the_standard_input_is_a_table(folder, fitted):
    words = ["predict", str(fitted / "plain.vicinal"), "-", "--neighbors", "0"]
    code = "from vicinal.cli import main; main()"
    for data in ((folder / "new.csv").read_bytes(), gzip.compress(Path("new.csv").read_bytes())):
        done = subprocess.run([sys.executable, "-c", code, *words], input=data, capture_output=True)
        assert done.returncode == 0, done.stderr
        assert len(pd.read_csv(io.BytesIO(done.stdout))) == 20


def test_a_pipe_is_read_without_remarks(folder, run, fitted):
    os.mkfifo("pipe")
    writer = subprocess.Popen(["sh", "-c", "cat new.csv > pipe"])
    result = run("predict", fitted / "plain.vicinal", "pipe", "--neighbors", "0")
    assert writer.wait(10) == 0
    assert result.exit_code == 0, result.stderr
    assert "unclosed" not in result.stderr
    assert len(pd.read_csv(io.StringIO(result.stdout))) == 20


@pytest.mark.parametrize("name", [".", "full"])
def test_a_folder_is_no_place_for_a_table(folder, run, fitted, name):
    (folder / "full").mkdir()
    result = run("predict", fitted / "plain.vicinal", "new.csv", "--out", name)
    assert result.exit_code == 2
    assert "it is a folder" in " ".join(result.stderr.replace("│", " ").split())


def test_names_and_labels_keep_their_zeros(folder, run):
    rng = np.random.default_rng(0)
    x = rng.normal(size=40)
    labels = np.where(x > 0, "01", "02")
    table = pd.DataFrame({"id": [f"{i:04}" for i in range(40)], "x": x, "y": labels})
    table.to_csv("codes.csv", index=False)
    words = ["--target", "y", "--id", "id", "--method", "plain"]
    assert run("fit", "codes.csv", *words).exit_code == 0
    result = run("predict", "model.vicinal", "codes.csv", "--out", "out.csv")
    assert "% of the 40 rows are right" in result.stderr
    out = pd.read_csv("out.csv", dtype=str)
    assert list(out["id"]) == list(table["id"])
    assert set(out["prediction"]) == {"01", "02"}
    assert {"p(01)", "p(02)"} <= set(out.columns)
    assert set(out["neighbor_1"]) <= set(table["id"])


def test_rows_reach_a_terminal_without_control_characters(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    label = "a\x1b[31m\u202e"
    shown = []
    for as_json in (False, True):
        monkeypatch.setattr(sys, "stdout", Terminal())
        with _destination(None, Output(as_json)) as write:
            write(pd.DataFrame({"prediction": [label]}))
        shown.append(sys.stdout.getvalue())
        monkeypatch.undo()
    assert shown[0] == "prediction\na\\x1b[31m\\u202e\n"
    assert "\x1b" not in shown[1]
    assert "\u202e" not in shown[1]
    assert json.loads(shown[1]) == [{"prediction": label}]
