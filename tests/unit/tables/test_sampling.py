"""Samples of files that are read part by part."""

import numpy as np
import pandas as pd
import pytest

from vicinal.tables import sampling
from vicinal.tables.reading import read_chunks, read_table
from vicinal.tables.sampling import read_sample, rows_to_keep
from vicinal.tables.text_files import ReadOptions


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_sample_has_rows_of_the_file_with_the_shares_of_its_classes(
    tmp_path, monkeypatch, ending
):
    rng = np.random.default_rng(0)
    y = rng.choice(["a", "b", "c", None], 3000, p=[0.6, 0.3, 0.005, 0.095])
    table = pd.DataFrame({"x": rng.normal(size=3000), "code": np.arange(3000) % 7, "y": y})
    table["code"] = table["code"].astype(str).where(table.index < 2900, "007")
    path = tmp_path / f"t.{ending}"
    write = table.to_csv if ending == "csv" else table.to_parquet
    write(path, index=False)
    small = 256
    monkeypatch.setattr(sampling, "read_chunks", lambda *words: read_chunks(*words, size=small))
    sample = read_sample(path, (), ReadOptions(), "y", 500, seed=0)
    known = table["y"].notna()
    assert sample.n_rows == known.sum()
    counts, before = sample.frame["y"].value_counts(), table["y"].value_counts()
    assert counts["c"] == min(10, before["c"])
    assert counts["a"] == pytest.approx(500 * before["a"] / known.sum(), abs=1)
    expected = table.loc[sample.frame.index]
    np.testing.assert_allclose(sample.frame["x"], expected["x"])
    assert list(sample.frame["code"]) == list(expected["code"])
    assert list(sample.frame["y"]) == list(expected["y"])
    again = read_sample(path, (), ReadOptions(), "y", 500, seed=0).frame
    np.testing.assert_array_equal(again.index, sample.frame.index)
    assert len(read_sample(path, (), ReadOptions(), "y", 10**6, seed=0).frame) == known.sum()
    assert len(read_table(path)) == 3000


def test_a_file_is_sampled_where_it_is_large_beside_the_memory(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n")
    assert rows_to_keep(path, None) is None
    assert rows_to_keep(path, 50) == 50
    monkeypatch.setattr(sampling, "_free_memory", lambda: 10.0)
    assert rows_to_keep(path, None) == sampling.DEFAULT_ROWS
