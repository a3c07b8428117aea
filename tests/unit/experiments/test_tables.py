from __future__ import annotations

import csv
import io
import re
from dataclasses import replace

import numpy as np
import pytest

from experiments import tables
from experiments.page import page
from experiments.paper_values import COLUMNS, TABLE2
from experiments.records import Result
from experiments.results_readme import readme
from experiments.summary import compare, summarize
from experiments.table_lines import remarks

from .synthetic import DATASETS, LEVELS, fill, fill_figure2, fill_figure3


@pytest.fixture
def summary(store):
    fill(store)
    return summarize(store, "honest")


def test_the_papers_table_has_every_cell():
    assert len(TABLE2) == 15 * 11
    assert TABLE2["german", "ann+"].mean == 79.91
    assert TABLE2["letter", "rvml"].std == 3.61
    assert all(60 < value.mean < 100 for value in TABLE2.values())
    assert len(COLUMNS) == 11


def test_cells_are_means_and_deviations_in_percent(summary):
    cell = summary.cells["iris", "gmml"]
    assert cell.mean == pytest.approx(87)
    assert cell.std == pytest.approx(1.0)  # of 86, 87, 88
    assert (cell.n, cell.failed) == (3, 0)
    assert cell.paper.mean == 97.47
    assert summary.cells["iris", "euclidean"].paper is None
    assert summary.datasets == ("iris", "wine", "glass", "solar", "ecoli", "cars")


def test_comparison_of_an_unambiguous_table(summary):
    found = compare(summary)
    order = sorted(LEVELS, key=LEVELS.__getitem__, reverse=True)
    assert [found.methods[i] for i in np.argsort(found.ranks)] == order
    assert found.champion == "auto"
    assert all((d.wins, d.losses) == (6, 0) for d in found.duels.values())
    assert found.friedman.chi2 == pytest.approx(6 * 12)  # N (k − 1): all agree


def test_only_complete_data_sets_are_compared(store):
    fill(store)
    row = Result("honest/german/gmml/0", "german", "gmml", "honest", 0, 0, error="no")
    store.save(row)
    found = compare(summarize(store, "honest"))
    assert "german" not in found.datasets
    summary = summarize(store, "honest")
    assert "failed" in tables.markdown(summary)
    assert "1 of 1 splits failed" in tables.markdown(summary)


def test_the_papers_protocol_shows_the_honest_automatic_classifier(store):
    fill(store, "paper")
    assert "auto" not in summarize(store, "paper").methods
    fill(store, "honest")
    summary = summarize(store, "paper")
    assert summary.cells["iris", "auto"].mean == pytest.approx(92)
    assert "honest result" in tables.markdown(summary)


def test_markdown(summary):
    lines = tables.markdown(summary).splitlines()
    (iris,) = [line for line in lines if line.startswith("| Iris")]
    assert iris.startswith("| Iris (3) | 80.00 ± 1.00 | 82.00 ± 1.00 (95.76) |")
    assert iris.endswith("| **92.00 ± 1.00** |")
    widths = {line.count("|") for line in lines if line.startswith("|")}
    assert widths == {len(LEVELS) + 2}
    assert any("probably 69.99" in line for line in lines)
    assert any(line.startswith("| Wilcoxon p |") for line in lines)


def test_latex_is_balanced_and_plain_ascii_where_it_must_be(summary):
    text = tables.latex(summary)
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert {line.count("&") for line in rows} == {len(LEVELS)}
    assert r"\textbf{92.00 $\pm$ 1.00}" in text
    assert "ANN$^{+}$" in text
    assert "% Friedman test of 13 methods" in text
    assert "% Solar, ANN-: 96.99 is probably 69.99" in text
    text.encode("ascii")


def test_ranks_as_csv(summary):
    rows = list(csv.DictReader(io.StringIO(tables.ranks_csv(compare(summary)))))
    assert [row["method"] for row in rows] == list(summary.methods)
    by_name = {row["method"]: row for row in rows}
    assert by_name["auto"] == {
        "method": "auto", "mean_rank": "1", "cpu_seconds": "2", "champion": "auto",
        "wins": "", "ties": "", "losses": "", "p": "",
    }  # fmt: skip
    assert (by_name["nca"]["wins"], by_name["nca"]["losses"]) == ("6", "0")
    assert float(by_name["nca"]["p"]) == pytest.approx(2 / 2**6)


def test_times_of_data_sets_of_any_size_count_alike(store):
    """A geometric mean: by an arithmetic one the slowest data set alone would decide."""
    fill(store)
    store.rows("UPDATE results SET cpu_seconds = 200 WHERE dataset = 'iris' AND method = 'nca'")
    found = compare(summarize(store, "honest"))
    nca = found.cpu_seconds[found.methods.index("nca")]
    assert nca == pytest.approx(2 * 100 ** (1 / len(found.timed)))


def test_times_of_several_machines_are_not_compared(store):
    fill(store)
    found = compare(summarize(store, "honest"))
    assert found.timed == found.datasets
    (row,) = [row for row in store.records(Result, dataset="wine", method="nca") if not row.split]
    store.rows("DELETE FROM results WHERE task = ?", (row.task,))
    store.save(replace(row, machine="another"))
    (row,) = [row for row in store.records(Result, dataset="iris", method="nca") if not row.split]
    store.rows("DELETE FROM results WHERE task = ?", (row.task,))
    store.save(replace(row, parameters='{"backend": "cuda"}'))
    found = compare(summarize(store, "honest"))
    assert set(found.datasets) - set(found.timed) == {"iris", "wine"}
    assert "| CPU, s a split (4 data sets) | 2 |" in tables.markdown(summarize(store, "honest"))


def test_wrong_labels_have_a_table_of_their_own(store):
    fill(store, "noisy")
    summary = summarize(store, "noisy")
    assert summary.cells["iris", "auto"].mean == pytest.approx(92)
    assert summary.cells["iris", "nca"].paper is None
    text = tables.markdown(summary)
    assert "20% of the training labels are wrong" in text
    assert "misprint" not in text
    assert "69.99" not in text


def test_samples_that_were_tuned_on_are_named(store):
    for method, rows in (("gmml", 2000), ("nca", 2000), ("auto", 4000)):
        store.save(
            Result(
                f"honest/letter/{method}/0", "letter", method, "honest", 0, 0, accuracy=0.9,
                tuning_rows=rows, n_train=14000, tune_seconds=0.0, fit_seconds=0.0,
                predict_seconds=0.0,
            )
        )  # fmt: skip
    first, second = remarks(summarize(store, "honest"))
    assert first.startswith("Letter: tuned on a stratified sample of 2,000 of the 14,000 training")
    assert second.startswith("Letter, ANNClassifier: tuned on a stratified sample of 4,000 of")


def test_data_that_differ_from_the_papers_are_named(summary):
    text = tables.markdown(summary)
    assert "* Ecoli: 7 features; the paper counts 343" in text
    assert "* Cars: the paper says neither" in text


def test_csv_has_one_line_a_cell(summary):
    rows = list(csv.DictReader(io.StringIO(tables.long_csv(summary))))
    assert len(rows) == len(DATASETS) * len(LEVELS)
    (row,) = [r for r in rows if r["dataset"] == "wine" and r["method"] == "ann+"]
    assert (float(row["mean"]), float(row["paper_mean"])) == (90.0, 98.15)


def test_page_is_self_contained(summary, store, tmp_path):
    paths = tables.write(store, "honest", tmp_path)
    assert {path.name for path in paths} == {
        "table2-honest.md", "table2-honest.tex", "table2-honest.csv", "table2-honest.html",
        "ranks-honest.png", "ranks-honest.svg", "ranks-honest.csv",
    }  # fmt: skip
    text = (tmp_path / "table2-honest.html").read_text(encoding="utf-8")
    assert "http" not in text.replace("http://www.w3.org", "")
    assert "data:image/svg+xml;base64," in text
    assert text.count("<tr>") == 1 + len(DATASETS) + 4
    assert page(summary, compare(summary), []).count("<img") == 0
    assert tables.write(store, "paper", tmp_path) == []  # nothing to show


def test_readme_says_what_produced_the_results(store):
    fill(store, splits=2)
    rows = [line for line in readme(store).splitlines() if "table2 --protocol honest" in line]
    assert len(rows) == len(DATASETS)
    (first,) = {record.commit_id for record in store.records(Result)}
    assert all(first in row and "cores" in row for row in rows)
    # 26 records of 2 s CPU and 1.75 s
    command = "`vicinal reproduce table2 --protocol honest --datasets iris --splits 2`"
    assert rows[0].startswith(f"| {command} | 26 | – | 52 s | 46 s |")


def test_readme_gives_the_options_that_the_records_need(store):
    fill_figure2(store)
    fill_figure3(store)
    for method, more in (
        ("gmml", {"tuning_rows": 2000}),
        ("auto", {"tuning_rows": 4000}),
        ("nca", {"tuning_rows": 2000, "parameters": '{"K": 1, "backend": "cuda"}'}),
    ):
        store.save(
            Result(
                f"honest/letter/{method}/4", "letter", method, "honest", 4, 4, n_train=14000, **more
            )
        )
    commands = re.findall(r"`vicinal reproduce (.*?)`", readme(store))
    table = "table2 --protocol honest --datasets letter --methods"
    assert f"{table} gmml,auto --splits 5 --tuning-rows 2000" in commands
    assert f"{table} nca --splits 5 --tuning-rows 2000 --backend cuda" in commands
    assert "figure3 --datasets iris --runs 1" in commands
    assert "figure2 --splits 1" in commands


def test_dump_holds_every_record(store, tmp_path):
    fill(store)
    results, measurements = store.dump(tmp_path)
    with results.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(store.records(Result))
    assert rows[0]["commit_id"]
    assert measurements.read_text().count("\n") == 1  # the header


def test_tuning_on_a_sample_is_said(store):
    seconds = {"tune_seconds": 1.0, "fit_seconds": 1.0, "predict_seconds": 1.0}
    for name, tuned, n in (("coil20", 400, 1008), ("iris", 105, 105)):
        row = Result(f"honest/{name}/nca/0", name, "nca", "honest", 0, 0, accuracy=0.9, **seconds)
        store.save(replace(row, tuning_rows=tuned, n_train=n))
    text = tables.markdown(summarize(store, "honest"))
    assert "Coil20: tuned on a stratified sample of 400 of the 1,008 training rows" in text
    assert "Iris: tuned" not in text
