"""The automatic classifier against its rivals: the paper's fifteen data sets and open tables.

    python benchmarks/accuracy.py run [--tables iris wine] [--methods CatBoost] [--splits 5]
    python benchmarks/accuracy.py table

Protocol: benchmarks/contest.py; settings of the rivals: benchmarks/rivals.py. Results are lines of
results/classes.jsonl, which tables.py shares; `table` makes results/accuracy.md and the picture of
the calibration from them.
"""

from __future__ import annotations

from contest import ROOT, Contest, Table
from contest_table import write_classes

PAPER = (
    "iris", "wine", "glass", "solar", "ecoli", "cars", "monk1", "australian", "vehicle", "german",
    "coil20", "isolet", "usps", "pendigits", "letter",
)  # fmt: skip
OPEN = (
    Table("caravan", "ISLR/Caravan", "Purchase"),
    Table("chile", "carData/Chile", "vote"),
    Table("beps", "carData/BEPS", "vote"),
    Table("cells", "modeldata/cells", "class"),
    Table("attrition", "modeldata/attrition", "Attrition"),
    Table("credit", "modeldata/credit_data", "Status"),
    Table("hpc", "modeldata/hpc_data", "class"),
    Table("lending", "modeldata/lending_club", "Class"),
    Table("email", "openintro/email", "spam"),
    Table("hawks", "Stat2Data/Hawks", "Species"),
    Table("oj", "ISLR/OJ", "Purchase"),
    Table("bfi", "psych/bfi", "gender"),
    Table("pbc", "survival/pbc", "status"),
    Table("penguins sex", "palmerpenguins/penguins", "sex"),
)
SKLEARN = (
    Table("breast cancer", "sklearn:breast_cancer", "target"),
    Table("digits", "sklearn:digits", "target"),
)
METHODS = (
    "ANNClassifier", "single", "ANNClassifier 0.1", "DeepANN", "CatBoost", "RBF-SVM", "forest",
    "LightGBM", "EBM", "RealMLP", "xRFM", "K-NN", "NCA", "LMNN",
)  # fmt: skip
CONTEST = Contest(
    "The automatic classifier and its rivals",
    (*(Table(name, f"paper:{name}", "target") for name in PAPER), *OPEN, *SKLEARN),
    METHODS,
    ROOT / "results" / "classes.jsonl",
)

if __name__ == "__main__":
    CONTEST.main(write_classes("accuracy", picture=True))
