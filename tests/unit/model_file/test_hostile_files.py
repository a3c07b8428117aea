"""Truncated, altered and hostile files: a ModelFileError, in little time and memory."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import tracemalloc
import warnings
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline

import vicinal as vc
from vicinal.exceptions import ModelFileError
from vicinal.model_file import SCHEMA, load, save
from vicinal.model_file.container import CHECKSUM, DTYPES, KEY, MAX_HEADER, METADATA, checksum
from vicinal.tables.table_model import TableModel
from vicinal.tables.training_table import ColumnRoles

X = np.array([[0.0, 0.0], [0.0, 1.0], [4.0, 0.0], [5.0, 1.0]])
EMPTY = {"dtype": "F64", "shape": [0], "data_offsets": [0, 0]}
KNN = vc.ClassMeanKNN(1).fit(X, ["few", "few", "many", "many"])


@pytest.fixture
def path(tmp_path) -> Path:
    save(KNN, tmp_path / "model.vicinal")
    return tmp_path / "model.vicinal"


def pack(entries: dict[str, Any], text: str, body: bytes) -> bytes:
    header = json.dumps({METADATA: {KEY: text}, **entries}).encode()
    return len(header).to_bytes(8, "little") + header + body


def edit(path: Path, change: Callable[[dict, dict], object], body: bytes | None = None) -> None:
    """Change header entries and document as somebody would who knows the format."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    entries = json.loads(data[8 : 8 + length])
    document = json.loads(entries.pop(METADATA)[KEY])
    rest = data[8 + length :]
    change(entries, document)
    body = rest if body is None else body
    try:
        arrays = {
            name: np.frombuffer(body[slice(*e["data_offsets"])], DTYPES[e["dtype"]]).reshape(
                e["shape"]
            )
            for name, e in entries.items()
        }
        del document[CHECKSUM]
        document[CHECKSUM] = checksum(document, arrays)
    except (ValueError, KeyError, TypeError, IndexError):
        pass  # cannot be signed
    path.write_bytes(pack(entries, json.dumps(document), body))


def test_the_edits_of_these_tests_are_signed(path):
    edit(path, lambda entries, document: document.update(vicinal="9.9"))
    assert load(path).predict([[0.0, 0.0]]) == ["few"]


def test_truncated_files_are_refused(path):
    data = path.read_bytes()
    for length in [*range(0, len(data), 7), len(data) - 1]:
        path.write_bytes(data[:length])
        with pytest.raises(ModelFileError):
            load(path)


def test_every_changed_byte_is_refused_or_changes_nothing(path):
    """White space in the header is all that may change."""
    data = path.read_bytes()
    expected = KNN.predict_proba(X)
    accepted = 0
    for i in range(len(data)):
        path.write_bytes(data[:i] + bytes([data[i] ^ (1 << i % 8)]) + data[i + 1 :])
        try:
            loaded = load(path)
        except ModelFileError:
            continue
        accepted += 1
        assert np.array_equal(loaded.predict_proba(X), expected)
    assert accepted < 5


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00" * 8,
        b"\xff" * 100,
        b"PK\x03\x04" + b"\x00" * 100,
        pickle.dumps({"a": os.getcwd}),
        pack({}, "{}", b""),
        pack({}, "[]", b""),
        pack({}, "nonsense", b""),
        (2).to_bytes(8, "little") + b"[]",
        (4).to_bytes(8, "little") + b"null",
        (20).to_bytes(8, "little") + b'{"__metadata__": [] }',
        (12).to_bytes(8, "little") + b'{"a":1,"a":2}'[:12],
    ],
)
def test_other_files_are_refused(data, tmp_path):
    (tmp_path / "model.vicinal").write_bytes(data)
    with pytest.raises(ModelFileError, match="cannot load .*model.vicinal: it"):
        load(tmp_path / "model.vicinal")


def test_safetensors_of_others_are_refused(tmp_path):
    from safetensors.numpy import save_file

    save_file({"components_": X}, tmp_path / "weights.safetensors")
    with pytest.raises(ModelFileError, match="not written by vicinal"):
        load(tmp_path / "weights.safetensors")


def test_folders_and_pipes_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in (".", "pipe"):
        with pytest.raises(ModelFileError, match="not a regular file"):
            load(tmp_path / name)


def test_newer_formats_say_to_upgrade(path):
    edit(path, lambda _, document: document.update(schema=SCHEMA + 1, vicinal="7.0"))
    with pytest.raises(ModelFileError, match=r"vicinal 7.0 in format 2.*upgrade vicinal"):
        load(path)


@pytest.mark.parametrize("schema", [0, -1, "1", 1.0, True, None, [1]])
def test_versions_that_are_none(path, schema):
    edit(path, lambda _, document: document.update(schema=schema))
    with pytest.raises(ModelFileError, match="version"):
        load(path)


@pytest.mark.parametrize("name", ["Unknown", "os.system", "TransformerMixin", "", "x" * 10_000])
def test_unknown_classes(path, name):
    edit(path, lambda _, document: document["model"].update({"class": name}))
    with pytest.raises(ModelFileError, match="does not know") as info:
        load(path)
    assert len(str(info.value)) < 500


def test_unfitted_models_and_parts_of_models(path):
    def unfitted(entries, document):
        entries.clear()
        document["model"]["state"] = None

    edit(path, unfitted, body=b"")
    with pytest.raises(ModelFileError, match="not fitted"):
        load(path)

    def part(entries, document):
        values = {"configuration": "", "iterate": 0, "vote": "majority", "n_neighbors": 1}
        values |= {"weight": 1.0, "metrics": {"tuple": [0]}}
        document["model"] = {"class": "Choice", "parameters": values, "state": None}

    edit(path, part)
    with pytest.raises(ModelFileError, match="only a part"):
        load(path)


def set_state(name: str, value: Any) -> Callable[[dict, dict], object]:
    return lambda entries, document: document["model"]["state"].update({name: value})


def set_parameter(name: str, value: Any) -> Callable[[dict, dict], object]:
    return lambda entries, document: document["model"]["parameters"].update({name: value})


def set_entry(name: str, **values: Any) -> Callable[[dict, dict], object]:
    return lambda entries, document: entries[name].update(values)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_state("n_features_in_", 3), "where others have 3"),
        (set_state("n_features_in_", 0), "integer from 1"),
        (set_state("n_features_in_", 2**62), "integer from 1"),
        (set_state("n_features_in_", True), "integer from 1"),
        (set_state("n_samples_fit_", 5), "where others have 5"),
        (set_state("scale_", 0.0), "scale_ must be from 1e-300"),
        (set_state("scale_", {"float": "nan"}), "scale_ must be from"),
        (set_state("scale_", "1"), "scale_ must be a number"),
        (set_state("classes_", {"strings": ["a"], "width": 1}), "where others have"),
        (set_state("classes_", {"strings": ["a", "a"], "width": 1}), "distinct"),
        (set_state("classes_", {"strings": ["a", 1], "width": 1}), "something else"),
        (set_state("classes_", {"strings": ["ab", "c"], "width": 1}), "width"),
        (set_state("classes_", {"strings": ["ab", "c"], "width": 10**9}), "too wide"),
        (set_state("classes_", {"strings": "references_", "width": 1}), "not valid JSON"),
        (set_state("classes_", {"float": "inf", "more": 1}), "unknown part"),
        (set_state("__class__", "x"), "'__class__' is unknown"),
        (set_state("rows_", {"array": "references_", "order": "C"}), "twice"),
        (set_state("rows_", {"array": "absent", "order": "C"}), "not in it"),
        (lambda e, d: d["model"]["state"].pop("scale_"), "scale_ is missing"),
        (lambda e, d: d["model"]["state"].pop("rows_"), "rows_ is missing"),
        (lambda e, d: d["model"].update(more=1), "incomplete"),
        (lambda e, d: d["model"].update(state=[]), "malformed"),
        (lambda e, d: d["model"].update(parameters=None), "malformed"),
        (set_parameter("n_neighbors", 0), "n_neighbors must be an integer"),
        (set_parameter("rule", "other"), "rule must be one of"),
        (set_parameter("more", 1), "parameter 'more' is unknown"),
        (set_parameter("n_neighbors", 10**30), "too large"),
        (set_entry("rows_", dtype="F64"), "rows_ must be an array of kind 'i'"),
        (set_entry("rows_", dtype="U64"), "rows_ must be an array of kind 'i'"),
        (set_entry("rows_", dtype="F16"), "malformed"),
        (set_entry("rows_", shape=[2, 2]), "rows_ must have 1 axes"),
        (set_entry("rows_", shape=[5]), "malformed"),
        (set_entry("rows_", shape=[2**62, 2**62, 0]), "malformed"),
        (set_entry("rows_", shape=[-4]), "malformed"),
        (set_entry("rows_", shape=[4.0]), "malformed"),
        (set_entry("rows_", data_offsets=[0, 2**63]), "malformed"),
        (set_entry("rows_", data_offsets=[8, 40]), "not where it should be|bytes of arrays"),
        (set_entry("references_", shape=[2, 4]), "where others have"),
        (
            lambda e, d: e.update(more={"dtype": "F64", "shape": [0], "data_offsets": [0, 0]}),
            "more",
        ),
        (lambda e, d: e.pop("rows_"), "not where it should be|bytes of arrays"),
    ],
)
def test_fields_that_contradict_each_other(path, change, message):
    edit(path, change)
    with pytest.raises(ModelFileError, match=message):
        load(path)


@pytest.mark.parametrize(
    ("name", "index", "value"),
    [
        ("references_", (0, 0), np.nan),
        ("references_", (1, 1), np.inf),
        ("references_", (1, 1), 1e200),
        ("rows_", 0, -1),
        ("rows_", 0, 4),
        ("rows_", 0, 1),
        ("offsets_", 0, 1),
        ("offsets_", 1, 4),
        ("offsets_", 2, 2**62),
    ],
)
def test_values_that_no_prediction_survives(path, name, index, value):
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    entry = json.loads(data[8 : 8 + length])[name]
    begin, end = entry["data_offsets"]
    body = bytearray(data[8 + length :])
    array = np.frombuffer(body[begin:end], DTYPES[entry["dtype"]]).reshape(entry["shape"]).copy()
    array[index] = value
    body[begin:end] = array.tobytes()
    edit(path, lambda *_: None, body=bytes(body))
    with pytest.raises(ModelFileError, match=name):
        load(path)


def item(document: dict, field: str, name: str) -> list:
    """The pair of this name in a dict of the state."""
    pairs = document["model"]["state"][field]["items"]
    return next(pair for pair in pairs if pair[0] == name)


def choose(**values: Any) -> Callable[[dict, dict], object]:
    def change(entries, document):
        document["model"]["state"]["chosen_"][0]["model"]["parameters"].update(values)

    return change


def set_item(field: str, name: str, at: int, value: Any) -> Callable[[dict, dict], object]:
    return lambda entries, document: item(document, field, name).__setitem__(at, value)


@pytest.mark.parametrize(
    ("model", "change", "message"),
    [
        ("automatic", set_item("cv_results_", "vote", 0, "votes"), "must have a column vote"),
        ("automatic", set_item("cv_results_", "iterate", 1, []), "iterate of another kind"),
        ("automatic", set_item("histories_", "hinge", 1, ["a"]), "hinge of another kind"),
        ("automatic", choose(iterate=999), "not among cv_results_"),
        ("automatic", choose(n_neighbors=5), "not among cv_results_"),
        ("search", set_state("best_params_", None), "best_params_ must be values of alpha"),
        ("search", set_item("best_params_", "alpha", 1, 123.0), "alpha that was not tried"),
        ("search", set_item("best_params_", "n_neighbors", 0, "k"), "best_params_ must be values"),
        ("learner", set_parameter("tol", "x"), "tol must be an instance of float"),
        ("learner", set_parameter("n_components", 99), "n_components=99 exceeds"),
        ("learner", set_parameter("init", [[1.0]]), "init must have 4 columns"),
        ("learner", set_parameter("random_state", "x"), "random_state='x' is not possible"),
        ("kernel", set_parameter("virtual_points", "single"), "virtual_points='single'"),
    ],
)
def test_what_only_a_report_needs_is_checked_too(model, change, message, tmp_path):
    stored = Path(__file__).resolve().parents[2] / "data" / "model-v1" / f"{model}.vicinal"
    path = tmp_path / "model.vicinal"
    path.write_bytes(stored.read_bytes())
    edit(path, lambda *_: None)
    load(path)
    edit(path, change)
    with pytest.raises(ModelFileError, match=message):
        load(path)


def peak_of_loading(path: Path) -> int:
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError):
            load(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_declared_size_is_not_allocated(path):
    data = path.read_bytes()
    for length in (2**63, 2**40, MAX_HEADER + 1, len(data)):
        path.write_bytes(length.to_bytes(8, "little") + data[8:])
        assert peak_of_loading(path) < 10**6


def test_a_header_beyond_the_limit_is_not_read(tmp_path):
    path = tmp_path / "model.vicinal"
    length = MAX_HEADER + 1
    with open(path, "wb") as file:  # a sparse file
        file.write(length.to_bytes(8, "little"))
        file.truncate(8 + length)
    assert peak_of_loading(path) < 10**6


def test_wide_strings_are_not_allocated(path):
    """One long string would make thousands of others as long: a gigabyte from 40 kB."""
    strings = ["x" * 20_000, *map(str, range(999))]

    def change(entries, document):
        arrays = [{"strings": strings, "width": 20_000}] * 50
        document["model"]["parameters"]["rule"] = arrays

    edit(path, change)
    assert peak_of_loading(path) < 200 * 10**6


@pytest.mark.parametrize("depth", [30, 900, 100_000])
@pytest.mark.parametrize("where", ["header", "document", "parameter"])
def test_bottomless_nesting(path, where, depth):
    nest = "[" * depth + "]" * depth
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    entries = json.loads(data[8 : 8 + length])
    document = json.loads(entries[METADATA][KEY])
    if where == "header":
        header = b'{"x":' + nest.encode() + b"}"
        path.write_bytes(len(header).to_bytes(8, "little") + header)
    elif where == "document":
        text = '{"format":"vicinal model","schema":1,"vicinal":"1","model":' + nest + "}"
        path.write_bytes(pack({}, text, b""))
    elif depth == 30:
        edit(path, lambda e, d: d["model"]["parameters"].update(rule=json.loads(nest)))
    else:
        text = json.dumps(document).replace('"class_mean"', nest)
        path.write_bytes(pack({k: v for k, v in entries.items() if k != METADATA}, text, b""))
    with pytest.raises(ModelFileError):
        load(path)


@pytest.mark.parametrize("depth", [10, 150])
def test_models_within_models(path, depth):
    def change(entries, document):
        for _ in range(depth):
            steps = [{"tuple": ["step", {"model": document["model"]}]}]
            parameters = {"steps": steps, "verbose": False}
            document["model"] = {"class": "Pipeline", "parameters": parameters, "state": None}

    edit(path, change)
    with pytest.raises(ModelFileError, match="nested too deeply|not valid JSON"):
        load(path)


def test_half_of_a_surrogate_pair_is_refused(path):
    edit(path, set_state("classes_", {"strings": ["a", "\ud800"], "width": 1}))
    with pytest.raises(ModelFileError, match="Unicode|checksum"):
        load(path)


def test_the_checksum_is_the_documented_one(path):
    """As docs/model-files.md says, without a line of vicinal."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    entries = json.loads(data[8 : 8 + length])
    document = json.loads(entries.pop("__metadata__")["vicinal"])
    written = document.pop("sha256")
    dtypes = {"F64": "<f8", "I64": "<i8"}
    lines = [document, *({n: [dtypes[e["dtype"]], e["shape"]]} for n, e in sorted(entries.items()))]
    digest = hashlib.sha256()
    for line in lines:
        digest.update(json.dumps(line, sort_keys=True, ensure_ascii=False).encode() + b"\n")
    for _, entry in sorted(entries.items()):
        begin, end = entry["data_offsets"]
        digest.update(data[8 + length + begin : 8 + length + end])
    assert digest.hexdigest() == written


def test_the_checksum_covers_names_dtypes_and_shapes(path):
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    entries = json.loads(data[8 : 8 + length])
    text = entries.pop(METADATA)[KEY]
    for change in ({"shape": [2, 4]}, {"dtype": "I64"}):
        changed = deepcopy(entries)
        changed["references_"].update(change)
        path.write_bytes(pack(changed, text, data[8 + length :]))
        with pytest.raises(ModelFileError, match="checksum"):
            load(path)


def test_numbers_beyond_the_range_are_refused(path):
    data = path.read_bytes()
    path.write_bytes(data.replace(b'\\"n_neighbors\\": 1', b'\\"n_neighbors\\": 1e400'))
    length = int.from_bytes(data[:8], "little") + 4
    path.write_bytes(length.to_bytes(8, "little") + path.read_bytes()[8:])
    with pytest.raises(ModelFileError, match="not valid JSON"):
        load(path)


def test_arrays_that_do_not_fit_into_memory(path, monkeypatch):
    def empty(*_):
        raise MemoryError("of the machine")

    monkeypatch.setattr(np, "empty", empty)
    with pytest.raises(ModelFileError, match="do not fit into memory"):
        load(path)


def table_model(estimator, rows):
    encoder = vc.TableEncoder().fit(pd.DataFrame(rows + np.arange(len(rows))[:, None] / 7))
    pipeline = Pipeline([("encoder", encoder), ("last", estimator)])
    return TableModel(pipeline, ColumnRoles("y"), np.arange(len(rows)), rows=rows)


def test_a_table_model_without_its_training_rows(path):
    save(table_model(KNN, X), path)

    def drop_rows(entries, document):
        document["model"]["state"]["rows"] = None
        del entries["rows"]

    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    entries = json.loads(data[8 : 8 + length])
    body = data[8 + length :]
    begin, end = entries["rows"]["data_offsets"]

    def move_up(entries, document):
        drop_rows(entries, document)
        for name, entry in entries.items():
            if name != METADATA and entry["data_offsets"][0] >= end:
                entry["data_offsets"] = [at - (end - begin) for at in entry["data_offsets"]]

    edit(path, move_up, body[:begin] + body[end:])
    with pytest.raises(ModelFileError, match="training rows are missing"):
        load(path)


def test_a_table_model_around_a_search_that_was_not_refitted(path):
    rng = np.random.default_rng(0)
    rows, y = rng.normal(size=(20, 2)), np.arange(20) % 2
    search = vc.ANNSearchCV(vc.PNCA(max_iter=2), alphas=[1.0], n_neighbors=[1], cv=2, refit=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(rows, y)
    with pytest.raises(NotFittedError, match="refit=True"):
        table_model(search, rows)
