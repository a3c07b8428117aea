"""The automatic classifier on raw tables with categories, gaps and dates, against its rivals.

    python benchmarks/tables.py run [--tables attrition] [--methods CatBoost] [--splits 5]
    python benchmarks/tables.py table

Protocol: benchmarks/contest.py; settings of the rivals: benchmarks/rivals.py. Results are lines of
results/classes.jsonl, which accuracy.py shares; `table` makes results/tables.md from them.
"""

from __future__ import annotations

from accuracy import OPEN
from contest import ROOT, Contest, Table
from contest_table import write_classes

MORE = (
    Table("penguins species", "palmerpenguins/penguins", "species"),
    Table("births", "openintro/births14", "lowbirthweight", ("weight",)),
    Table("survey", "MASS/survey", "Smoke"),
)
CONTEST = Contest(
    "Raw tables",
    (*(table for table in OPEN if table.name != "caravan"), *MORE),
    ("ANNClassifier", "CatBoost", "LightGBM", "forest", "K-NN"),
    ROOT / "results" / "classes.jsonl",
)

if __name__ == "__main__":
    CONTEST.main(write_classes("tables"))
