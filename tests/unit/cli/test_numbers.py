"""Numbers as targets on the command line."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import r2_score

from vicinal.model_file import load


@pytest.fixture(scope="module")
def prices():
    """200 houses: size, kind and street, and a price that follows from the first two."""
    rng = np.random.default_rng(0)
    size, kind = rng.uniform(40, 200, 200), rng.choice(["flat", "house"], 200)
    price = 3.0 * size + 150.0 * (kind == "house") + rng.normal(0, 20, 200)
    return pd.DataFrame({"id": [f"{i:03}" for i in range(200)], "size": size, "kind": kind}).assign(
        price=price.round(2)
    )


@pytest.fixture
def place(tmp_path, prices, monkeypatch):
    prices[:160].to_csv(tmp_path / "train.csv", index=False)
    prices[160:].to_csv(tmp_path / "new.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


WORDS = ["fit", "train.csv", "--target", "price", "--id", "id", "--effort", "0.02"]


def test_a_target_of_numbers_is_fitted_and_predicted(place, ask, run, prices):
    told = ask(*WORDS, "--holdout", "0.2")
    assert told["task"] == "regression"
    assert told["out_of_fold"]["rows"] == told["plain_out_of_fold"]["rows"]
    assert told["held_out"]["r2"] > 0.9
    assert told["held_out"]["rows"] == 200 - 40 - told["rows"]
    model = load("model.vicinal")
    result = run("predict", "model.vicinal", "new.csv", "--out", "out.csv", "--neighbors", "2")
    assert result.exit_code == 0, result.stderr
    out = pd.read_csv("out.csv", dtype={"id": str, "neighbor_1": str})
    assert list(out["id"]) == list(prices["id"][160:])
    assert r2_score(prices["price"][160:], out["prediction"]) > 0.9
    X = model.prepare(prices[160:])
    np.testing.assert_allclose(out[["low", "high"]], model.intervals(X))
    inside = (out["low"] < out["prediction"]) & (out["prediction"] < out["high"])
    assert inside.all()
    by_name = prices.set_index("id")["price"]
    np.testing.assert_allclose(out["neighbor_1_value"], by_name[out["neighbor_1"]])


def test_explain_info_and_text_speak_of_numbers(place, run, ask):
    result = run(*WORDS)
    assert result.exit_code == 0, result.stderr
    assert "target    numbers from" in result.stdout
    assert "plain K-NN R²" in result.stdout
    told = ask("explain", "model.vicinal", "new.csv", "--row", "3", "--neighbors", "2")
    low, high = told["interval"]
    assert low < told["prediction"] < high
    for near in told["neighbors"]:
        assert sum(near["shares"].values()) == pytest.approx(near["distance"] ** 2)
    assert (
        "90 % of such rows from" in run("explain", "model.vicinal", "new.csv", "--row", "3").stdout
    )
    assert ask("info", "model.vicinal")["task"] == "regression"
    assert "numbers from" in run("info", "model.vicinal").stdout
    assert run("transform", "model.vicinal", "new.csv", "--out", "z.csv").exit_code == 0


def test_a_page_is_about_the_columns_of_the_table(place, run):
    result = run(*WORDS, "--holdout", "0.25", "--report", "page.html")
    assert result.exit_code == 0, result.stderr
    text = (place / "page.html").read_text()
    found = json.loads(re.search(r'type="application/json">(.*?)</script>', text)[1])
    assert found["features"] == ["size", "kind"]
    assert found["classes"] == []
    assert found["headline"]["scores"][0]["rmse"] < found["headline"]["scores"][1]["rmse"] * 1.1
    assert found["headline"]["total"] == 40
    groups = {one["feature"]: one["groups"] for one in found["errors"]["by_feature"]}
    assert {group["name"] for group in groups["kind"]} == {"flat", "house"}
    assert sum(group["count"] for group in groups["size"]) == 40
    columns = next(fact for fact in found["provenance"] if fact["name"] == "Columns")
    assert columns["lines"][1].startswith("kind: one-hot")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--method", "nca"], "predicts classes; for numbers use auto or single"),
        (["--class-weight", "balanced"], "--class-weight is about classes"),
        (["--task", "classification"], "looks like a measured number"),
    ],
)
def test_what_is_only_for_classes_is_refused(place, run, words, message):
    result = run(*WORDS[:-2], *words)
    assert result.exit_code == 1
    assert message in result.stderr
    assert not (place / "model.vicinal").exists()


def test_the_task_can_be_given(place, run, ask, prices):
    prices.assign(price=(prices["price"] // 100).astype(int)).to_csv("train.csv", index=False)
    assert ask(*WORDS, "--method", "auto")["task"] == "classification"
    assert ask(*WORDS, "--task", "regression")["task"] == "regression"
    assert run(*WORDS, "--task", "counting").exit_code == 2
