"""Peak memory and speed of ``vicinal predict`` on tables of growing length.

A model of 500 rows by 20 columns predicts a CSV and a Parquet file. The peak of the process is
compared with that of the same command on 1,000 rows: what remains must not grow with the file.

    python benchmarks/bench_streaming.py --rows 200000 2000000
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from vicinal.tables.writing import table_writer

COLUMNS, PART = 20, 100_000


def part_of(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Rows with 18 numbers, a category and a column of 300 levels."""
    numbers = {f"x{j}": rng.normal(size=n).round(4) for j in range(COLUMNS - 2)}
    table = pd.DataFrame(numbers)
    table["kind"] = rng.choice(list("abcdef"), n)
    return table.assign(code=[f"k{code:03}" for code in rng.integers(300, size=n)])


def write(path: Path, n: int) -> None:
    """A table of n rows, part by part."""
    rng = np.random.default_rng(1)
    with table_writer(path) as rows:
        for start in range(0, n, PART):
            rows(part_of(rng, min(PART, n - start)))


def measured(*words: str) -> tuple[float, float]:
    """Seconds and peak memory (MB) of a command."""
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "vicinal", *words], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"vicinal {' '.join(words)} failed")
    return time.perf_counter() - start, usage.ru_maxrss / 1024


def main() -> None:
    """Print a table: rows, format, size, seconds, peak memory, and what is above 1,000 rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[200_000, 2_000_000])
    parser.add_argument("--method", default="gmml")
    parser.add_argument("--formats", nargs="+", default=["csv", "parquet"])
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        rng = np.random.default_rng(0)
        train = part_of(rng, 500)
        train.assign(y=train["x0"] + rng.normal(size=500) > 0).to_csv("train.csv", index=False)
        measured("fit", "train.csv", "--target", "y", "--method", wanted.method)
        print("rows        format   file, MB  seconds  peak, MB  above 1,000 rows, MB")
        for ending in wanted.formats:
            base = 0.0
            for n in (1000, *wanted.rows):
                path = Path(f"new.{ending}")
                write(path, n)
                words = ("model.vicinal", str(path), "--neighbors", "1", "--out", f"out.{ending}")
                seconds, peak = measured("predict", *words)
                base = base or peak
                size = path.stat().st_size / 1e6
                print(
                    f"{n:<11,} {ending:<8} {size:>8.1f}  {seconds:>7.1f}  {peak:>8.0f}"
                    f"  {peak - base:>20.0f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
