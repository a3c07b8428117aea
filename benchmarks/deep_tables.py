"""DeepANN on the tables of the accuracy contest, beside ANNClassifier and CatBoost.

    python benchmarks/deep_tables.py run [--tables iris wine] [--splits 3]
    python benchmarks/deep_tables.py table

Tables, splits and settings are those of benchmarks/accuracy.py, without the largest data sets of
the paper. Results of DeepANN are lines of results/deep/tables.jsonl; those of the others are read
from results/classes.jsonl. `table` makes results/deep/tables.md and a section of docs/deep.md.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from accuracy import CONTEST as ACCURACY
from common import fill_section
from contest import ROOT, Contest
from contest_table import by_table, margins, means, pairs, ratios, seconds

OURS = "DeepANN"
RIVALS = ("ANNClassifier", "CatBoost")
LARGE = {"coil20", "isolet", "usps", "pendigits", "letter"}


def beside(contest: Contest) -> tuple[Contest, list[dict[str, Any]]]:
    """The contest with its rivals, and the results of all on the splits that DeepANN has."""
    own = [r for r in contest.records() if "error" not in r]
    splits = {(r["data"], r["split"]) for r in own}
    theirs = [
        r
        for r in ACCURACY.records()
        if r["method"] in RIVALS and (r["data"], r["split"]) in splits and "error" not in r
    ]
    return replace(contest, methods=(OURS, *RIVALS)), [*own, *theirs]


def write(contest: Contest) -> None:
    """Write results/deep/tables.md and the section of docs/deep.md."""
    failures = [json.dumps(r) for r in contest.records() if "error" in r]
    contest, records = beside(contest)
    accuracy, loss = (means(contest, records, what) for what in ("accuracy", "log_loss"))
    shown = [
        "Accuracy in percent, mean over the splits that the three methods have",
        by_table(contest, records, accuracy, 100, largest_is_best=True),
        f"The largest data sets of the paper are left out: {', '.join(sorted(LARGE))}.",
        "Accuracy and log-loss over the tables",
        margins(pairs(contest, records, "accuracy", OURS), OURS),
        ratios(pairs(contest, records, "log_loss", OURS), OURS),
    ]
    more = [
        "Log-loss",
        by_table(contest, records, loss, 1, largest_is_best=False),
        "Seconds to fit, one core, median; other work ran beside some of the fits",
        seconds(contest, records),
    ]
    origin = (
        "Made by `python benchmarks/deep_tables.py table` from `results/deep/tables.jsonl` and "
        "`results/classes.jsonl`."
    )
    page = "\n\n".join([f"# {contest.title}", origin, *shown, *more, *failures])
    (contest.results.parent / "tables.md").write_text(page + "\n", encoding="utf-8")
    fill_section(ROOT / "docs" / "deep.md", "deep-tables", "\n\n".join(shown))


CONTEST = Contest(
    "DeepANN on tables",
    tuple(table for table in ACCURACY.tables if table.name not in LARGE),
    (OURS,),
    ROOT / "results" / "deep" / "tables.jsonl",
)

if __name__ == "__main__":
    CONTEST.main(write)
