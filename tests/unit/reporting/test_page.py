"""The page as text: what is escaped, what is allowed, how large it is."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import vicinal as vc
from vicinal.reporting import examine, report
from vicinal.reporting.page import jsonable, page, safe_json

HOSTILE = "</script><script>alert(1)</script><!--\u2028&{{script}}"


def data_of(text: str):
    return json.loads(re.search(r'type="application/json">(.*?)</script>', text, re.S)[1])


@given(st.text())
@example(HOSTILE)
@example("<")
def test_any_text_survives_and_cannot_leave_the_element(text):
    written = safe_json([text])
    assert json.loads(written) == [text]
    assert not set(written) & set("<>&\u2028\u2029")
    assert written.isascii()


def test_numbers_are_rounded_and_never_invalid():
    values = np.array([1 / 3, np.nan, np.inf, 123456.789, 2.0])
    assert json.loads(safe_json(values)) == [0.33333, None, None, 123460, 2]
    assert jsonable((np.int64(3), np.bool_(True), None)) == [3, True, None]


def test_texts_of_the_data_are_only_in_the_data_block(iris, iris_ann):
    X, y = iris
    labels = np.where(y == "setosa", HOSTILE, y)
    found = examine(
        vc.RVML().fit(X, labels), X, labels, feature_names=[HOSTILE, "b", "c", "d"],
        ids=[HOSTILE] * 150, title=HOSTILE, provenance={HOSTILE: HOSTILE},
    )  # fmt: skip
    text = page(found)
    assert "alert(1)</script>" not in text
    assert text.count("</script>") == 2
    assert data_of(text)["features"][0] == HOSTILE
    assert data_of(text)["title"] == HOSTILE
    assert html.escape(HOSTILE) in re.search(r"<title>(.*?)</title>", text, re.S)[1]


def test_policy_allows_this_script_and_style_and_nothing_else(iris, iris_ann):
    text = page(examine(iris_ann, *iris))
    policy = html.unescape(re.search(r'Content-Security-Policy" content="(.*?)"', text)[1])
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        body = re.search(rf"<{tag}>(.*?)</{tag}>", text, re.S)[1]
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert rules[f"{tag}-src"] == f"'sha256-{digest}'"


def test_page_needs_no_network(iris, iris_ann):
    text = page(examine(iris_ann, *iris))
    addresses = set(re.findall(r"\w+://[^\s'\"<)]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}  # the name of a namespace, not fetched
    assert "{{" not in text


def test_two_thousand_points_stay_below_six_megabytes(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 20, 2100)
    X = rng.normal(size=(2100, 100)) + 0.2 * y[:, None]
    names = [f"a feature with a rather long name {i}" for i in range(100)]
    path = report(vc.RVML().fit(X, y), X, y, tmp_path / "page.html", feature_names=names)
    assert path.stat().st_size < 6_000_000


def test_a_file_is_replaced_only_by_a_whole_one(tmp_path, iris, iris_ann, monkeypatch):
    path = tmp_path / "page.html"
    path.write_text("older")

    def broken(findings):
        raise RuntimeError("stop")

    with monkeypatch.context() as patch:
        patch.setattr("vicinal.reporting.page.page", broken)
        with pytest.raises(RuntimeError):
            report(iris_ann, *iris, path)
    assert path.read_text() == "older"
    assert report(iris_ann, *iris, str(path)) == path
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]
