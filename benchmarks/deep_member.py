"""What a committee would gain from DeepANN as a member: mixtures of their probabilities.

    python benchmarks/deep_member.py run [--tables iris wine]
    python benchmarks/deep_member.py table

ANNClassifier and DeepANN are fitted to the training part of split 0 of small tables of the accuracy
contest, and (1 − w) · P + w · Q is judged on its test part, for w from 0 to 1. Results are lines of
results/deep/member.jsonl; `table` prints the changes at w = 0.2, and at the best w, which a
committee could not know.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np
from accuracy import CONTEST
from contest import ROOT, Table, split
from rivals import METHODS

RESULTS = ROOT / "results" / "deep" / "member.jsonl"
TABLES = (
    "glass", "cars", "pbc", "solar", "wine", "ecoli", "penguins sex", "beps", "hawks", "vehicle",
    "australian", "oj", "attrition", "german",
)  # fmt: skip
SHARES = np.linspace(0.0, 1.0, 11)
AS_MEMBER = 2  # SHARES[2] = 0.2


def measure(table: Table) -> dict[str, Any]:
    """Accuracy and log-loss of every mixture, and CPU seconds of the fits."""
    X, y = table.load()
    train, test = split(y, 0, numbers=False)
    answers, seconds = [], {}
    for method in ("ANNClassifier", "DeepANN"):
        start = time.process_time()
        model = METHODS[method].fit(X.iloc[train].reset_index(drop=True), y[train], 0)
        seconds[method] = round(time.process_time() - start, 2)
        answers.append(model.predict_proba(X.iloc[test].reset_index(drop=True)))
    truth = np.searchsorted(model.classes_, y[test])
    mixtures = [(1 - w) * answers[0] + w * answers[1] for w in SHARES]
    of_truth = [P[np.arange(len(truth)), truth] for P in mixtures]
    return {
        "data": table.name,
        "n_test": len(truth),
        "cpu_seconds": seconds,
        "accuracy": [float(np.mean(P.argmax(axis=1) == truth)) for P in mixtures],
        "log_loss": [float(-np.mean(np.log(np.maximum(p, 1e-6)))) for p in of_truth],
    }


def records() -> list[dict[str, Any]]:
    return [json.loads(line) for line in RESULTS.read_text().splitlines()]


def show() -> None:
    """Print the mean changes that DeepANN makes."""
    found = records()
    points = 100 * np.array([r["accuracy"] for r in found])
    losses = np.log([r["log_loss"] for r in found])
    points, losses = points - points[:, :1], losses - losses[:, :1]
    for name, gain, change in (
        ("share 0.2", points[:, AS_MEMBER], losses[:, AS_MEMBER]),
        ("best share of each table", points.max(axis=1), losses.min(axis=1)),
    ):
        wins, defeats = int(np.sum(change < 0)), int(np.sum(change > 0))
        print(
            f"{name}: accuracy {gain.mean():+.2f} points (better {np.sum(gain > 0)}, worse "
            f"{np.sum(gain < 0)} of {len(gain)}); log-loss times {np.exp(change.mean()):.3f} "
            f"(lower {wins}, higher {defeats})"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("run", "table"))
    parser.add_argument("--tables", nargs="+", default=TABLES, choices=TABLES)
    given = parser.parse_args()
    if given.command == "run":
        done = {r["data"] for r in records()} if RESULTS.exists() else set()
        for each in CONTEST.tables:
            if each.name in given.tables and each.name not in done:
                line = json.dumps(measure(each))
                with RESULTS.open("a") as file:
                    file.write(line + "\n")
                print(line, flush=True)
    else:
        show()
