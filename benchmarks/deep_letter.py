"""DeepANN on the letters of the paper: configurations by validation, then the best on new seeds.

    python benchmarks/deep_letter.py run [--device cuda] [--workers 4]
    python benchmarks/deep_letter.py table

70 % of the 20,000 rows are for training, 15 % of them for validation, inside DeepANN. The test part
decides nothing: the configuration of the best validation accuracy is reported. Results are lines of
results/deep/letter.jsonl, written as soon as they are there; a second run goes on where the first
was stopped. `table` makes results/deep/letter.md from them.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from contest import DATA, ROOT

RESULTS = ROOT / "results" / "deep" / "letter.jsonl"
BASE = {"batch_size": 512, "learning_rate": 3e-3, "hidden": (512,), "max_epochs": 60}
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "periodic": {},
    "two hidden layers": {"hidden": (512, 512)},
    "dropout 0.3": {"dropout": 0.3},
    "piecewise": {"embedding": "piecewise"},
    "slow": {"learning_rate": 1e-3},
    "weight decay 0.1": {"weight_decay": 0.1},
    "80 % candidates": {"candidates": 0.8},
    "no feature embedding": {"embedding": None},
}
SEEDS = (0, 1, 2)


def records() -> list[dict[str, Any]]:
    return (
        [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []
    )


def chosen(found: list[dict[str, Any]]) -> str:
    """The configuration of the best validation accuracy at seed 0."""
    first = [r for r in found if r["seed"] == 0]
    return str(max(first, key=lambda r: r["validation"])["configuration"])


def measure(name: str, seed: int, device: str) -> dict[str, Any]:
    from sklearn.model_selection import train_test_split

    from vicinal.deep import DeepANN

    with np.load(DATA / "letter.npz") as arrays:
        X, y = arrays["X"].astype(np.float64), arrays["y"]
    parts = train_test_split(X, y, test_size=0.3, random_state=seed, stratify=y)
    X_train, X_test, y_train, y_test = parts
    start = time.perf_counter()
    settings = BASE | CONFIGURATIONS[name]
    model = DeepANN(**settings, device=device, random_state=seed).fit(X_train, y_train)
    return {
        "configuration": name,
        "seed": seed,
        "validation": float(model.validation_accuracy_.max()),
        "test": float(model.score(X_test, y_test)),
        "epochs": model.n_iter_,
        "seconds": round(time.perf_counter() - start, 1),
        "device": device,
    }


def run(device: str, workers: int) -> None:
    from joblib import Parallel, delayed

    def complete(tasks: list[tuple[str, int]]) -> None:
        done = {(r["configuration"], r["seed"]) for r in records()}
        results: Iterator[Any] = Parallel(n_jobs=workers, return_as="generator_unordered")(
            delayed(measure)(*task, device) for task in tasks if task not in done
        )
        for record in results:
            with RESULTS.open("a") as file:
                file.write(json.dumps(record) + "\n")
            print(record, flush=True)

    complete([(name, 0) for name in CONFIGURATIONS])
    best = chosen(records())
    complete([(best, seed) for seed in SEEDS])


def table() -> None:
    found = records()
    best = chosen(found)
    tests = [r["test"] for r in found if r["configuration"] == best and r["seed"] in SEEDS]
    lines = [
        "| configuration | validation accuracy, % | test accuracy, % | epochs | s |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {r['configuration']} | {100 * r['validation']:.2f} | {100 * r['test']:.2f} "
        f"| {r['epochs']} | {r['seconds']} |"
        for r in sorted(found, key=lambda r: -r["validation"])
        if r["seed"] == 0
    ]
    spread = f" ± {100 * np.std(tests, ddof=1):.2f}" if len(tests) > 1 else ""
    score = f"**{100 * np.mean(tests):.2f}{spread} %** ({len(tests)} splits and seeds)"
    settings = ", ".join(f"{k}={v!r}" for k, v in (BASE | CONFIGURATIONS[best]).items())
    lines += [
        "",
        f"Chosen by validation on the first split: **{best}**, `DeepANN({settings})`.",
        f"Its test accuracy: {score}. Device: {found[0]['device']}.",
    ]
    (RESULTS.parent / "letter.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("run", "table"))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    if given.command == "run":
        run(given.device, given.workers)
    else:
        table()
