"""A real client asks a real server, and gets what the model says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time

import httpx
import numpy as np
import pytest
from sklearn.datasets import load_wine

import vicinal as vc
from vicinal.tables.row_explanation import explain_row

X, Y = load_wine(return_X_y=True)
NUMBERS = [{f"x{j}": float(v) for j, v in enumerate(x)} for x in X[:5]]


def rows_of(frame):
    return frame.drop(columns="grows").to_dict(orient="records")


def ok(reply):
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_predictions_of_a_table(table_server, models, plants):
    new = plants[80:]
    found = ok(table_server.post("/predict", json={"rows": rows_of(new)}))
    model = models["table, auto"]
    assert [row["prediction"] for row in found["rows"]] == model.predict(new).tolist()
    P = [[row["probabilities"][c] for c in ("poorly", "well")] for row in found["rows"]]
    np.testing.assert_allclose(P, model.predict_proba(new), rtol=1e-12)
    assert [row["id"] for row in found["rows"]] == new["plant"].tolist()
    assert found["remarks"] == []


def test_neighbors_and_explanations_of_a_table(table_server, models, plants):
    new, model = plants[80:83], models["table, auto"]
    question = {"rows": rows_of(new), "neighbors": 3}
    near = ok(table_server.post("/neighbors", json=question))["rows"]
    distances, rows = model.nearest(model.prepare(new), 3)
    assert [[n["id"] for n in row["neighbors"]] for row in near] == model.ids[rows].tolist()
    found = [[n["distance"] for n in row["neighbors"]] for row in near]
    np.testing.assert_allclose(found, distances, rtol=1e-12)
    told = ok(table_server.post("/explain", json=question))["rows"]
    expected = explain_row(model, new[:1], 3)
    assert told[0]["prediction"] == expected.prediction
    assert told[0]["values"]["soil"] == new["soil"].iloc[0]
    for ours, theirs in zip(expected.neighbors, told[0]["neighbors"], strict=True):
        assert ours.id == theirs["id"]
        assert theirs["weight"] == pytest.approx(ours.weight)
        assert theirs["shares"] == pytest.approx(ours.shares)


@pytest.mark.parametrize("name", ["ANNClassifier", "ClassMeanKNN"])
def test_estimators_of_numbers(serve, models, name):
    model = models[name]
    with serve(name) as (client, _):
        found = ok(client.post("/predict", json={"rows": NUMBERS}))["rows"]
        assert [row["prediction"] for row in found] == model.predict(X[:5]).tolist()
        near = ok(client.post("/neighbors", json={"rows": NUMBERS, "neighbors": 2}))["rows"]
        rows = model.kneighbors(X[:5], 2)[1]
        assert [[n["id"] for n in row["neighbors"]] for row in near] == rows.tolist()
        told = client.post("/explain", json={"rows": NUMBERS[:1], "neighbors": 2})
        if name == "ClassMeanKNN":
            assert (told.status_code, "does not explain" in told.json()["error"]) == (400, True)
        else:
            weights = [n["weight"] for n in ok(told)["rows"][0]["neighbors"]]
            expected = [n.weight for n in model.explain(X[:1], 2)[0].neighbors]
            assert weights == pytest.approx(expected)
        info = ok(client.get("/info"))
        assert (info["rows"], info["estimator"]) == (178, name)
        wrong = [{**NUMBERS[0], "x3": "high"}]
        reply = client.post("/predict", json={"rows": wrong})
        assert reply.json() == {"error": "column 'x3' takes numbers; row 0 has 'high'"}


def test_a_regressor(serve, models):
    model, rows = models["ANNRegressor"], X[:4, 1:]
    asked = [{f"x{j}": float(v) for j, v in enumerate(x)} for x in rows]
    with serve("ANNRegressor", changes=True) as (client, _):
        found = ok(client.post("/predict", json={"rows": asked}))["rows"]
        assert [row["prediction"] for row in found] == model.predict(rows).tolist()
        near = ok(client.post("/neighbors", json={"rows": asked, "neighbors": 2}))["rows"]
        numbers = model.kneighbors(rows, 2)[1]
        assert [[n["id"] for n in row["neighbors"]] for row in near] == numbers.tolist()
        assert near[0]["neighbors"][0]["label"] == model.y_fit_[numbers[0, 0]]
        told = ok(client.post("/explain", json={"rows": asked[:1]}))["rows"][0]
        assert len(told["neighbors"]) == 5
        added = [{**asked[0], "target": 13.0}]
        assert ok(client.post("/rows", json={"rows": added}))["rows"] == 179
        assert client.post("/rows", json={"rows": asked}).status_code == 400


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"soil": "moor"}, "'moor' (1 row(s)) did not occur in training"),
        ({"height": "tall"}, "height"),
        ({"height": 1e300}, "height"),
        ({"height": 10**400}, "height"),
        ({"soil": None, "width": None}, None),
        ({"color": "red"}, None),
    ],
)
def test_messages_are_those_of_the_command_line(table_server, models, plants, changes, message):
    row = {**rows_of(plants[80:81])[0], **changes}
    reply = table_server.post("/predict", content=json.dumps({"rows": [row]}), headers=JSON)
    if message is None:
        assert ok(reply)["remarks"], "what is missing or ignored is told"
    else:
        assert reply.status_code == 400
        assert message in reply.json()["error"]


JSON = {"content-type": "application/json"}


def test_unseen_levels_may_be_ignored(table_server, plants):
    row = {**rows_of(plants[80:81])[0], "soil": "moor"}
    found = ok(table_server.post("/predict", json={"rows": [row], "unseen": "ignore"}))
    assert "'moor' (1 rows) not in training" in found["remarks"][0]


def test_missing_columns_are_named(table_server, plants):
    first, second = rows_of(plants[80:82])
    reply = table_server.post("/predict", json={"rows": [{"height": 1.0}]})
    assert reply.status_code == 400
    assert "missing column(s) 'width', 'soil'" in reply.json()["error"]
    del second["soil"]
    reply = table_server.post("/predict", json={"rows": [first, second]})
    assert reply.json()["error"].startswith("row 1 has no 'soil'")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[" * 100_000,
        b'{"rows": []}',
        b'{"rows": [{"height": [1]}]}',
        b'{"rows": [{"height": 1}], "neighbors": 0}',
        b'{"rows": [{"height": 1}], "other": 0}',
        b'{"rows": [{"\\ud800": "\\udfff"}]}',
        b'{"rows": [{"height": NaN, "width": Infinity, "soil": "clay"}]}',
        b'{"rows": [{"height": true, "width": "\\u0000", "soil": "\\ud800"}]}',
        b"\xff\xfe",
    ],
)
@pytest.mark.parametrize("path", ["/predict", "/neighbors", "/explain"])
def test_bad_input_is_an_error_of_the_client(table_server, path, body):
    reply = table_server.post(path, content=body, headers=JSON)
    assert reply.status_code in (400, 422), reply.text
    assert list(reply.json()) == ["error"]
    assert "Traceback" not in reply.text


def test_what_is_not_declared_as_json_is_not_read(table_server, plants):
    body = json.dumps({"rows": rows_of(plants[80:81])})
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        reply = table_server.post("/predict", content=body, headers={"content-type": kind})
        assert reply.status_code == 422


def test_limits(serve, plants):
    with serve("table, plain", max_rows=2, max_bytes=1000) as (client, _):
        assert ok(client.post("/predict", json={"rows": rows_of(plants[:2])}))
        reply = client.post("/predict", json={"rows": rows_of(plants[:3])})
        assert (reply.status_code, "more than 2" in reply.json()["error"]) == (400, True)
        long = b" " * 1001
        assert client.post("/predict", content=long, headers=JSON).status_code == 413
        parts = (b" " * 100 for _ in range(11))  # without a length that is told before
        assert client.post("/predict", content=parts, headers=JSON).status_code == 413


def test_only_who_has_the_token_is_answered(serve, plants):
    body = {"rows": rows_of(plants[80:81])}
    with serve("table, plain", token="secret-token") as (client, _):
        for given in (None, "", "Bearer", "Bearer secret-toke", "secret-token", "Bearer ÿ"):
            headers = {} if given is None else {"authorization": given.encode("latin-1")}
            reply = client.post("/predict", json=body, headers=headers)
            assert reply.status_code == 401, given
            assert client.get("/info", headers=headers).status_code == 401
        assert client.get("/health").status_code == 200
        ok(client.post("/predict", json=body, headers={"authorization": "Bearer secret-token"}))


def test_other_hosts_are_not_answered(table_server):
    assert table_server.get("/health", headers={"host": "evil.example:80"}).status_code == 421
    for host in ("localhost", "LOCALHOST:1", "127.0.0.1:9", "[::1]:80"):
        assert table_server.get("/health", headers={"host": host}).status_code == 200


def test_rows_come_and_go(serve, models, plants):
    model, new = models["table, auto"], plants[80:]
    added = new.to_dict(orient="records")
    with serve("table, auto", changes=True) as (client, _):
        assert ok(client.post("/rows", json={"rows": added})) == {"rows": 90, "version": 2}
        near = ok(client.post("/neighbors", json={"rows": rows_of(new), "neighbors": 1}))["rows"]
        # Each new row counts most for itself.
        names = new["plant"].tolist()
        assert np.mean([r["neighbors"][0]["id"] for r in near] == np.array(names)) > 0.7
        assert ok(client.post("/rows/forget", json={"ids": names})) == {"rows": 80, "version": 3}
        found = ok(client.post("/predict", json={"rows": rows_of(new)}))
        P = [row["probabilities"]["well"] for row in found["rows"]]
        np.testing.assert_array_equal(P, model.predict_proba(new)[:, 1])
        assert found["version"] == 3
        for path, body, message in [
            ("/rows", {"rows": rows_of(new)}, "need the column(s) 'grows'"),
            ("/rows", {"rows": [{**added[0], "grows": "never"}]}, "'never' in row 0"),
            ("/rows/forget", {"ids": ["p999"]}, "no training row is called 'p999'"),
            ("/rows/forget", {"ids": plants["plant"][:80].tolist()}, "0 of 80 rows would remain"),
        ]:
            reply = client.post(path, json=body)
            assert reply.status_code == 400, path
            assert message in reply.json()["error"]
        assert ok(client.get("/info"))["rows"] == 80


def test_rows_change_in_models_of_other_kinds(serve, plants):
    with serve("table, plain", changes=True) as (client, _):
        added = plants[80:].to_dict(orient="records")
        assert ok(client.post("/rows", json={"rows": added}))["rows"] == 90
    with serve("ClassMeanKNN", changes=True) as (client, _):
        row = {**NUMBERS[0], "target": 2}
        assert ok(client.post("/rows", json={"rows": [row]}))["rows"] == 179
        near = ok(client.post("/neighbors", json={"rows": NUMBERS[:1], "neighbors": 2}))["rows"]
        assert {n["id"] for n in near[0]["neighbors"]} == {0, 178}
        assert ok(client.post("/rows/forget", json={"ids": [178, "3"]}))["rows"] == 177


def test_rows_do_not_change_unless_allowed(table_server, plants):
    assert table_server.post("/rows", json={"rows": [{"a": 1}]}).status_code == 404


def test_a_replaced_file_is_read_without_a_lost_request(serve, models, plants):
    rows = {"rows": rows_of(plants[80:82])}
    with serve("table, plain") as (client, source):
        stop, replies = threading.Event(), []

        def ask():
            with httpx.Client(base_url=client.base_url, timeout=60) as own:
                while not stop.is_set():
                    replies.append(own.post("/predict", json=rows))

        askers = [threading.Thread(target=ask) for _ in range(2)]
        for asker in askers:
            asker.start()
        while not replies:
            time.sleep(0.01)
        vc.save(models["table, auto"], source.path)
        deadline = time.monotonic() + 30
        while source.current.version == 1 and time.monotonic() < deadline:
            time.sleep(0.01)
        count = len(replies)
        while len(replies) < count + 5 and time.monotonic() < deadline:
            time.sleep(0.01)
        stop.set()
        for asker in askers:
            asker.join()
        assert {reply.status_code for reply in replies} == {200}
        assert {reply.json()["version"] for reply in replies} == {1, 2}
        source.path.write_bytes(b"not a model")
        while source.last_error is None and time.monotonic() < deadline:
            time.sleep(0.01)
        health = ok(client.get("/health"))
        assert health["version"] == 2
        assert "not read" in health["last_error"]
        ok(client.post("/predict", json=rows))


def test_an_unexpected_error_shows_nothing_of_itself(serve, plants, monkeypatch):
    with serve("table, plain") as (client, source):
        monkeypatch.setattr(type(source.current.model), "predict", lambda *given: 1 / 0)
        reply = client.post("/predict", json={"rows": rows_of(plants[80:81])})
    assert reply.status_code == 500
    assert reply.json() == {"error": "this is a mistake in vicinal; its log says more"}


def test_pages_and_schema_need_nothing_from_elsewhere(table_server):
    for path in ("/", "/docs"):
        page = table_server.get(path)
        assert page.status_code == 200
        assert "http:" not in page.text
        assert "https:" not in page.text
        assert "default-src 'none'" in page.headers["content-security-policy"]
    schema = ok(table_server.get("/openapi.json"))
    assert set(schema["paths"]) == {"/predict", "/neighbors", "/explain", "/info", "/health"}
    info = ok(table_server.get("/info"))
    assert [column["name"] for column in info["columns"]] == ["height", "width", "soil"]
    assert set(info["example"]) == {"height", "width", "soil"}


def test_what_does_not_predict_is_not_served(tmp_path):
    from vicinal.serve import ModelSource

    vc.save(vc.GMML().fit(X, Y), tmp_path / "metric.vicinal")
    with pytest.raises(TypeError, match="does not predict"):
        ModelSource(tmp_path / "metric.vicinal")


def test_the_command_serves_and_ends_when_told(models, plants, tmp_path):
    vc.save(models["table, plain"], tmp_path / "m.vicinal")
    words = [sys.executable, "-c", "import vicinal.cli as c; c.main()", "serve", "m.vicinal"]
    words += ["--port", "0"]
    process = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        address = None
        for line in process.stderr:
            if "running on" in line:
                address = line.split("running on ")[1].split()[0]
                break
        body = {"rows": rows_of(plants[80:81])}
        assert ok(httpx.post(f"{address}/predict", json=body, timeout=60))
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(timeout=60) in (0, -signal.SIGTERM)
    finally:
        process.kill()
        process.stderr.close()
