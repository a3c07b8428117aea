"""Tables on disk: every format, and files that are none."""

from __future__ import annotations

import csv

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from vicinal.atomic_write import whole_file
from vicinal.exceptions import TableError
from vicinal.tables.reading import read_table, safe, write_table

TABLE = pd.DataFrame({"size": [1.5, np.nan, 3.0], "color": ["red", None, "blue"], "n": [1, 2, 3]})


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.parquet", "t.feather", "t.arrow", "T.CSV"])
def test_what_is_written_is_read(tmp_path, name):
    write_table(TABLE, tmp_path / name)
    pd.testing.assert_frame_equal(read_table(tmp_path / name), TABLE, check_dtype=False)


def test_arrow_streams_are_read(tmp_path):
    table = pa.Table.from_pandas(TABLE)
    with (
        pa.OSFile(str(tmp_path / "t.arrow"), "wb") as sink,
        pa.ipc.new_stream(sink, table.schema) as out,
    ):
        out.write_table(table)
    pd.testing.assert_frame_equal(read_table(tmp_path / "t.arrow"), TABLE, check_dtype=False)


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1.5,x\n?,y\n",
        "a;b\n1.5;x\n;y\n",
        "a;b\n1,5;x\n;y\n",
        "\ufeffa, b\n1.5, x\nNA, y\n",
        "a\tb\n1.5\tx\n\ty\n",
    ],
)
def test_dialects_of_csv(tmp_path, text):
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    table = read_table(tmp_path / "t.csv")
    assert list(table.columns) == ["a", "b"]
    np.testing.assert_array_equal(table["a"], [1.5, np.nan])
    assert list(table["b"]) == ["x", "y"]


def test_npz_has_names_categories_and_wanted_arrays(tmp_path):
    X = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 2.0]])
    np.savez(
        tmp_path / "t.npz",
        X=X,
        y=[1, 0, 1],
        feature_names=["len", "kind"],
        categorical=[False, True],
        class_names=["no", "yes"],
        patient=[7, 7, 8],
        leak=[1, 0, 1],
    )
    table = read_table(tmp_path / "t.npz", ["y", "patient"])
    assert list(table.columns) == ["len", "kind", "y", "patient"]
    assert list(table["y"]) == ["yes", "no", "yes"]
    assert isinstance(table["kind"].dtype, pd.CategoricalDtype)
    np.testing.assert_array_equal(table["len"], X[:, 0])


def test_npz_without_names(tmp_path):
    np.savez(tmp_path / "t.npz", X=np.eye(2), y=[1, 0])
    assert list(read_table(tmp_path / "t.npz").columns) == ["x0", "x1"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.xlsx", b"PK", "ending is unknown; use .csv"),
        ("t.csv", b"", "cannot be read as csv"),
        ("t.csv", b"a,b\n", "no rows"),
        ("t.csv", b"a,b\n\xff\xfe,1\n", "not UTF-8"),
        ("t.csv", b'a,b\n"1,2\n', "cannot be read as csv"),
        ("t.parquet", b"PAR1 no", "cannot be read as parquet"),
        ("t.arrow", b"no", "cannot be read as arrow"),
        ("t.npz", b"no", "NPZ|npz"),
        ("t.npz", b"PK\x03\x04 no", "not an NPZ archive"),
    ],
)
def test_broken_files_are_named(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError, match=message):
        read_table(tmp_path / name)


@pytest.mark.parametrize(
    "arrays", [{"y": [1]}, {"X": [1.0]}, {"X": np.eye(2), "feature_names": ["a"]}]
)
def test_npz_of_another_shape_is_refused(tmp_path, arrays):
    np.savez(tmp_path / "t.npz", **arrays)
    with pytest.raises(TableError, match="t.npz"):
        read_table(tmp_path / "t.npz")


def test_pickled_arrays_are_not_loaded(tmp_path):
    np.savez(tmp_path / "t.npz", X=np.array([[object()]], dtype=object))
    with pytest.raises(TableError, match="t.npz"):
        read_table(tmp_path / "t.npz")


def test_repeated_columns_are_refused(tmp_path):
    table = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    with (
        pa.OSFile(str(tmp_path / "t.arrow"), "wb") as sink,
        pa.ipc.new_stream(sink, table.schema) as out,
    ):
        out.write_table(table)
    with pytest.raises(TableError, match="more than one column 'a'"):
        read_table(tmp_path / "t.arrow")


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("old")

    def fail():
        with whole_file(path) as unfinished:
            unfinished.write_text("half")
            assert path.read_text() == "old"
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    with whole_file(path) as unfinished:
        unfinished.write_text("new")
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_unknown_endings_write_nothing(tmp_path):
    with pytest.raises(TableError, match="ending"):
        write_table(TABLE, tmp_path / "t.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", ["text", "objects"])
def test_npz_files_are_never_unpickled_nor_is_it_advised(tmp_path, content):
    path = tmp_path / "t.npz"
    if content == "text":
        path.write_text("a,b\n1,2\n")
    else:
        np.savez(path, X=np.array([[{}]], dtype=object), y=[1])
    with pytest.raises(TableError, match="not an NPZ archive of numbers and texts") as told:
        read_table(path, ["y"])
    assert "pickle" not in str(told.value)


@pytest.mark.parametrize("ending", [".npz", ".parquet", ".feather"])
def test_damaged_files_are_named_in_one_sentence(tmp_path, ending):
    path = tmp_path / f"table{ending}"
    rng = np.random.default_rng(0)
    if ending == ".npz":
        np.savez_compressed(path, X=rng.normal(size=(50, 3)))
    else:
        write_table(pd.DataFrame(rng.normal(size=(50, 3)), columns=list("abc")), path)
    data = bytearray(path.read_bytes())
    for start in range(0, len(data), 37):
        damaged = data.copy()
        damaged[start : start + 9] = b"\xff" * len(damaged[start : start + 9])
        path.write_bytes(damaged)
        try:
            read_table(path)
        except TableError as error:
            assert path.name in str(error)


def test_cells_with_any_line_break_come_back(tmp_path):
    table = pd.DataFrame({"a": ["x\ry", "x\ny", "x\r\ny", 'say "x"'], "b": [1.5, 0.1, -2.0, 1e-9]})
    write_table(table, tmp_path / "table.csv")
    with (tmp_path / "table.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert [row[0] for row in rows] == ["a", *table["a"]]
    assert [float(row[1]) for row in rows[1:]] == table["b"].tolist()
    assert (tmp_path / "table.csv").read_bytes().startswith(b'a,b\n"x\ry",1.5\n')


def test_cells_that_a_spreadsheet_would_compute_are_marked():
    table = pd.DataFrame({"=a": ["=1+1", "-x", "fine", "@y"], "n": [-1.0, 2.0, 3.0, 4.0]})
    marked = safe(table)
    assert list(marked.columns) == ["'=a", "n"]
    assert marked["'=a"].tolist() == ["'=1+1", "'-x", "fine", "'@y"]
    assert marked["n"].tolist() == [-1.0, 2.0, 3.0, 4.0]
