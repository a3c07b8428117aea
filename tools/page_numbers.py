"""Numbers in the README and the pages, taken from ``results/``.

python tools/page_numbers.py [--check]

A page writes ``<!-- number:name -->12<!-- /number -->``; this script puts the number there that the
file in ``results/`` says, or with ``--check`` names every page that says another one. Tables stand
between ``<!-- table:name -->`` and ``<!-- /table -->`` in the same way.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results"
MARK = re.compile(r"<!-- number:(?P<name>[\w-]+) -->(?P<text>.*?)<!-- /number -->")

TABLE = re.compile(r"<!-- table:(?P<name>[\w-]+) -->\n(?P<text>.*?)<!-- /table -->", re.DOTALL)


def found(file: str, pattern: str, group: int | str = 1) -> str:
    """What a pattern finds in a file of results; it must be there once."""
    matches = list(re.finditer(pattern, (RESULTS / file).read_text(encoding="utf-8"), re.MULTILINE))
    if len(matches) != 1:
        raise ValueError(f"results/{file}: {len(matches)} times {pattern!r}")
    return str(matches[0][group])


def margin(rival: str, column: int, file: str = "accuracy.md") -> str:
    """Of the table of margins in accuracy: 1 points, 2 wins / ties / losses, 3 Wilcoxon p."""
    row = rf"^\| {re.escape(rival)} \| ([+-][\d.]+) \| (\d+ / \d+ / \d+) \| ([\d.]+) \|$"
    return found(file, row, column)


def regression(rival: str, column: int) -> str:
    """Of the table of RMSE ratios: 1 the median, 2 on how many tables it is lower."""
    row = rf"(?s)## RMSE by.*?\| {re.escape(rival)} \| ([\d.]+) \|[^\n]*?\| (\d+ of \d+) \|"
    return found("regression.md", row, column)


def whole(text: str) -> str:
    """A decimal number without its decimals, rounded."""
    return f"{float(text):.0f}"


NUMBERS: dict[str, Callable[[], str]] = {
    "over-catboost": lambda: margin("CatBoost", 1),
    "over-catboost-tables": lambda: margin("CatBoost", 2),
    "over-catboost-p": lambda: margin("CatBoost", 3),
    "over-svm": lambda: margin("RBF-SVM", 1),
    "over-svm-tables": lambda: margin("RBF-SVM", 2),
    **{
        f"tables-{rival.lower()}{what}": partial(margin, rival, column, "tables.md")
        for rival in ("CatBoost", "LightGBM", "forest")
        for column, what in enumerate(("", "-tables", "-p"), start=1)
    },
    **{
        f"rmse-{name}{what}": partial(regression, rival, column)
        for name, rival in {
            "catboost": "CatBoost regression",
            "lightgbm": "LightGBM regression",
            "forest": "forest regression",
            "svr": "SVR",
            "ridge": "ridge",
            "knn": "K-NN regression",
        }.items()
        for column, what in enumerate(("", "-tables"), start=1)
    },
    "coverage": lambda: found("regression.md", r"mean over tables: ANNRegressor ([\d.]+ %)"),
    "latency-one": lambda: whole(found("latency.txt", r"^one row\s.* ([\d.]+)x\s+12")),
    "latency-many": lambda: whole(found("latency.txt", r"^256 rows at once.* ([\d.]+)x\s+4\b")),
    "nca-2000": lambda: whole(found("framework.txt", r"scikit-learn, 2000 rows: ([\d.]+)x")),
    "nca-5000": lambda: whole(found("framework.txt", r"scikit-learn, 5000 rows: ([\d.]+)x")),
    "nca-5000-theirs": lambda: whole(
        found("framework.txt", r"first 5000 rows: scikit-learn ([\d.]+) s")
    ),
    "nca-5000-ours": lambda: found(
        "framework.txt", r"first 5000 rows: scikit-learn.*vicinal ([\d.]+) s"
    ),
    "nca-memory": lambda: found("framework.txt", r"^NCA\(max_iter=3\), above the import: (\d+) MB"),
    "nca-memory-theirs": lambda: whole(
        str(int(found("framework.txt", r"arrays of n x n: (\d+) MB")) / 1000)
    ),
    "gpu-million": lambda: found("gpu-h200.txt", r"1,000,000 x 32, high: ([\d.]+) s \(to reach"),
    "gpu-memory": lambda: found(
        "gpu-h200.txt", r"1,000,000 x 32, high: [\d.]+ s, peak memory ([\d.]+) GiB"
    ),
    "gpu-kdd": lambda: whole(found("gpu-h200.txt", r"^fit: ([\d.]+) s \(to reach: <= 300")),
    "search-speedup": lambda: whole(
        found("search.txt", r"(?s)german.*?GridSearchCV, grid, cold: ([\d.]+)x.*?wine")
    ),
    "letter": lambda: found("deep/letter.md", r"^Its test accuracy: \*\*(.+ %)\*\*"),
    "letter-settings": lambda: found("deep/letter.md", r"(`DeepANN\(.+\)`)"),
    "first-fit": lambda: whole(found("framework.txt", r"empty cache: ([\d.]+) s")),
}


def compared() -> str:
    """What `vicinal compare` printed about the wines of scikit-learn, without the times."""
    found = json.loads((RESULTS / "compare-wine.json").read_text(encoding="utf-8"))
    lines = [
        "| {rank} | {method} | {:.2f} | {:.2f} |".format(
            100 * one["accuracy"], 100 * one["spread"], **one
        )
        for one in found["methods"]
    ]
    return "\n".join(["| rank | method | accuracy, % | spread |", "|---|---|---|---|", *lines, ""])


TABLES: dict[str, Callable[[], str]] = {"compare-wine": compared}


def pages() -> list[Path]:
    """The README and all pages that are written by hand."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def filled(text: str) -> str:
    """The text of a page with the numbers that the results say."""

    def number(match: re.Match[str]) -> str:
        name = match["name"]
        if name not in NUMBERS:
            raise ValueError(f"there is no number {name!r}: add it to {Path(__file__).name}")
        return f"<!-- number:{name} -->{NUMBERS[name]()}<!-- /number -->"

    def table(match: re.Match[str]) -> str:
        return f"<!-- table:{match['name']} -->\n{TABLES[match['name']]()}<!-- /table -->"

    return TABLE.sub(table, MARK.sub(number, text))


def main(checking: bool) -> int:
    """Fill all pages, or name those that differ (and return 1)."""
    differing = []
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if (right := filled(text)) != text:
            differing.append(page.relative_to(ROOT).as_posix())
            if not checking:
                page.write_text(right, encoding="utf-8")
    if differing:
        print(f"{'differ from results/' if checking else 'updated'}: {', '.join(differing)}")
    return int(checking and bool(differing))


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
