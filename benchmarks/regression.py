"""The automatic regressor against its rivals on raw open tables.

    python benchmarks/regression.py run [--tables ames] [--methods ridge] [--splits 5]
    python benchmarks/regression.py table

Protocol: benchmarks/contest.py; settings of the rivals: benchmarks/rivals.py. Results are lines of
results/regression.jsonl; `table` makes results/regression.md from them.
"""

from __future__ import annotations

from contest import ROOT, Contest, Table
from contest_table import write_numbers

TABLES = (
    Table("diamonds", "ggplot2/diamonds", "price", numbers=True),
    Table("ames", "modeldata/ames", "Sale_Price", numbers=True),
    Table("concrete", "modeldata/concrete", "compressive_strength", numbers=True),
    Table("car prices", "modeldata/car_prices", "Price", numbers=True),
    Table("deliveries", "modeldata/deliveries", "time_to_delivery", numbers=True),
    Table("wage", "ISLR/Wage", "wage", ("logwage",), numbers=True),
    Table("hitters", "ISLR/Hitters", "Salary", numbers=True),
    Table("college", "ISLR/College", "Apps", numbers=True),
    Table("carseats", "ISLR/Carseats", "Sales", numbers=True),
    Table("auto", "ISLR/Auto", "mpg", ("name",), numbers=True),
    Table("boston", "MASS/Boston", "medv", numbers=True),
    Table("cpus", "MASS/cpus", "perf", ("name", "estperf"), numbers=True),
    Table("bdims", "openintro/bdims", "wgt", numbers=True),
    Table("births", "openintro/births14", "weight", ("lowbirthweight",), numbers=True),
    Table("cps1985", "AER/CPS1985", "wage", numbers=True),
    Table("house prices", "AER/HousePrices", "price", numbers=True),
    Table("diabetes", "sklearn:diabetes", "target", numbers=True),
)
METHODS = (
    "ANNRegressor", "DeepANNRegressor", "CatBoost regression", "LightGBM regression", "SVR",
    "forest regression", "ridge", "RealMLP regression", "xRFM regression", "K-NN regression",
)  # fmt: skip
CONTEST = Contest(
    "The automatic regressor and its rivals", TABLES, METHODS, ROOT / "results" / "regression.jsonl"
)

if __name__ == "__main__":
    CONTEST.main(write_numbers)
