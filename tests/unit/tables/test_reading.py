"""Tables on disk: every format, and files that are none."""

from __future__ import annotations

import csv
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import vicinal as vc
from vicinal.atomic_write import atomic_write
from vicinal.exceptions import TableError, TableWarning
from vicinal.tables.reading import read_chunks, read_table
from vicinal.tables.text_files import ReadOptions
from vicinal.tables.writing import safe, table_writer, write_table

TABLE = pd.DataFrame({"size": [1.5, np.nan, 3.0], "color": ["red", None, "blue"], "n": [1, 2, 3]})


@pytest.mark.parametrize(
    "name",
    [
        *("t.csv", "t.tsv", "t.parquet", "t.feather", "t.arrow", "T.CSV"),
        *("t.csv.gz", "t.csv.zst", "t.tsv.gz", "t.jsonl"),
    ],
)
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
        "\ufeffa, b\n1.5, x\nNA, y\n",
        "a\tb\n1.5\tx\n\ty\n",
        "a|b\n1.5|x\n|y\n",
        'a, b\n1.5, "x"\n, "y"\n',
        "a,b\n1.5,x,\nNA,y,\n",
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
        ("t.xls", b"PK", "ending is unknown; use .csv"),
        ("t.xlsx", b"PK", "cannot be read as xlsx"),
        ("t.csv", b"", "cannot be read as csv"),
        ("t.csv", b"a,b\n", "no rows"),
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
        with atomic_write(path) as unfinished:
            unfinished.write_text("half")
            assert path.read_text() == "old"
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    with atomic_write(path) as unfinished:
        unfinished.write_text("new")
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_unknown_endings_write_nothing(tmp_path):
    with pytest.raises(TableError, match="ending"):
        write_table(TABLE, tmp_path / "t.html")
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


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "jsonl", "parquet", "feather", "xlsx"])
def test_parts_make_up_the_whole(tmp_path, ending):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=95), "code": [f"0{i}" for i in range(95)]})
    path = tmp_path / f"t.{ending}"
    if ending == "xlsx":
        table.to_excel(path, index=False)
    else:
        with table_writer(path) as write:
            for start in range(0, 95, 30):
                write(table[start : start + 30])
    with read_chunks(path, size=20) as chunks:
        parts = list(chunks.frames)
    assert [len(part) for part in parts] == [20, 20, 20, 20, 15]
    whole = pd.concat(parts)
    pd.testing.assert_frame_equal(whole, read_table(path), check_dtype=False)
    np.testing.assert_array_equal(whole.index, np.arange(95))
    assert list(whole["code"]) == list(table["code"])
    np.testing.assert_allclose(whole["x"], table["x"], rtol=1e-9)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["007", "12"], ["007", "12"]),
        (["0.5", "12"], [0.5, 12.0]),
        (["12345678901234567890", "1"], ["12345678901234567890", "1"]),
        (["9007199254740993", "1"], [9007199254740993, 1]),
        (["9007199254740993", ""], ["9007199254740993", None]),
        (["12.5%", "3%"], ["12.5%", "3%"]),
        (["True", "False"], [True, False]),
        (["None", "much"], ["None", "much"]),
        ([" 5 ", "6"], [5, 6]),
    ],
)
def test_cells_keep_what_they_say(tmp_path, values, expected):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "".join(f"{value},x\n" for value in values))
    found = vc.read_table(path)["a"]
    assert [None if pd.isna(value) else value for value in found] == expected
    as_text = vc.read_table(path, as_text=["a"])["a"].str.strip()
    assert [value for value in as_text if not pd.isna(value)] == [v.strip() for v in values if v]


@pytest.mark.parametrize(
    ("encoding", "said"), [("cp1252", "cp1252"), ("utf-16", None), ("utf-8-sig", None)]
)
def test_encodings_are_found_and_said(tmp_path, encoding, said):
    path = tmp_path / "t.csv"
    path.write_bytes("a,b\nkäse,1\nbrot – hell,2\n".encode(encoding))
    if said:
        with pytest.warns(TableWarning, match=f"read as {said}"):
            table = vc.read_table(path)
    else:
        table = vc.read_table(path)
    assert list(table["a"]) == ["käse", "brot – hell"]
    again = vc.read_table(path, encoding=encoding)
    pd.testing.assert_frame_equal(again, table)
    with pytest.raises(TableError, match="'klingon' is unknown"):
        vc.read_table(path, encoding="klingon")


def test_a_header_that_is_one_field_shorter_names_all_but_the_first(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\nr1,1,x\nr2,2,y\n")
    with pytest.warns(TableWarning, match="one field more than the header"):
        table = vc.read_table(path)
    assert table.to_dict("list") == {"row_names": ["r1", "r2"], "a": [1, 2], "b": ["x", "y"]}
    path.write_text("a,b\nr1,1,x,5\nr2,2,y,6\n")
    with pytest.raises(TableError, match="header has 2 fields, and 2 rows have 4"):
        vc.read_table(path)
    path.write_text("a,b\n1,x\n2,y,5\n")
    with pytest.raises(TableError, match="Expected 2 fields in line 3, saw 3"):
        vc.read_table(path)


def test_separator_and_marks_can_be_given(tmp_path):
    path = tmp_path / "t.txt"
    path.write_text("a:b\n1:x\n-:.\n3:y\n")
    table = vc.read_table(path, separator=":", missing=["-", "."])
    np.testing.assert_array_equal(table["a"], [1, np.nan, 3])
    assert table["b"].isna().tolist() == [False, True, False]


def test_parts_of_a_table_are_numbers_where_training_had_them(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,01\n2,2\n")
    with read_chunks(path, options=ReadOptions(numbers=["b"])) as chunks:
        (table,) = chunks.frames
    assert table["a"].tolist() == ["1", "2"]
    assert table["b"].tolist() == [1, 2]


def test_commas_that_are_decimal_marks_are_said(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;b;c\n1,5;1.5;x\n999;2;y\n;3;z\n")
    with pytest.warns(TableWarning, match="'a': its commas were read as decimal marks, 1,5 as 1.5"):
        table = vc.read_table(path)
    np.testing.assert_array_equal(table["a"], [1.5, 999, np.nan])
    assert list(table["c"]) == ["x", "y", "z"]
    with warnings.catch_warnings(), read_chunks(path, options=ReadOptions(numbers=["a"])) as chunks:
        warnings.simplefilter("error")
        (frame,) = chunks.frames
    np.testing.assert_array_equal(frame["a"], [1.5, 999, np.nan])


def test_truth_values_may_be_missing_in_a_part_of_a_table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\nTrue,x\n,y\nfalse,z\n")
    with read_chunks(path, options=ReadOptions(numbers=["a"])) as chunks:
        (table,) = chunks.frames
    assert table["a"].tolist() == [True, None, False]


def test_values_that_differ_in_white_space_are_merged_and_said(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\nx,1\n x,2\nx ,3\ny,4\n")
    with pytest.warns(TableWarning, match="'a': 2 value.*white space"):
        assert list(vc.read_table(path)["a"]) == ["x", "x", "x", "y"]


def test_lines_of_a_part_may_all_lack_a_column(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"a": 1, "b": "x"}\n{"a": 2}\n{"a": 3, "c": 1}\n')
    with read_chunks(path, size=1) as chunks:
        parts = list(chunks.frames)
    assert [list(part.columns) for part in parts] == [["a", "b"], ["a", "b"], ["a", "b", "c"]]
    assert parts[1]["b"].isna().all()


def test_lines_that_are_not_objects_are_named(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"a": "007", "b": 1}\n\n{"a": "8", "b": null}\n')
    assert vc.read_table(path)["a"].tolist() == ["007", "8"]
    for line in ("[1]", "{a}"):
        path.write_text('{"a": 1}\n' + line)
        with pytest.raises(TableError, match="line 2 is not"):
            vc.read_table(path)
