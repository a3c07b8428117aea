"""results/accuracy.md and the calibration picture, from the lines of results/accuracy.jsonl."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import fill_section

RANKED = ("committee", "euclid", "nca", "lda", "gmml", "lmnn")  # the mean rank is among these
COMPARED = ("euclid", "nca", "gmml", "lmnn", "lda", "svm", "forest", "single")
NAMES = {
    "committee": "ANNClassifier", "single": "... single", "euclid": "Euclid", "nca": "NCA",
    "lda": "LDA + K-NN", "gmml": "GMML", "lmnn": "LMNN", "svm": "RBF-SVM", "forest": "forest",
}  # fmt: skip


INTRODUCTION = """\
Made by `python benchmarks/accuracy.py table` from `results/accuracy.jsonl`; the protocol, the grids
and seeds are in `benchmarks/accuracy.py`. 70/30 splits; every choice is made inside the training
part."""


def write(
    records: list[dict[str, Any]], datasets: Sequence[str], methods: Sequence[str], root: Path
) -> None:
    means, counts = _means(records, datasets, methods, "accuracy")
    present = [i for i in range(len(datasets)) if np.isfinite(means[i]).all()]
    accuracies = _accuracy_rows(means, counts, datasets, methods)
    summary, probabilities = _summary(means[present], methods), _probabilities(records, datasets)
    parts = [
        "# The automatic classifier and its rivals",
        INTRODUCTION,
        "## Test accuracy, mean over splits",
        accuracies,
        "## Summary",
        summary,
        "## Probabilities",
        probabilities,
        "## Seconds to tune and fit, one core, median",
        _seconds(records, datasets, methods),
    ]
    failures = [r for r in records if "error" in r]
    if failures:
        parts.append("## Failures")
        parts.append(
            "\n".join(f"* {r['data']} {r['method']} {r['split']}: {r['error']}" for r in failures)
        )
    (root / "results" / "accuracy.md").write_text("\n\n".join(parts) + "\n")
    shown = "\n\n".join([accuracies, summary, probabilities])
    fill_section(root / "docs" / "automatic.md", "accuracy", shown)
    draw_calibration(records, root / "docs" / "images" / "calibration.png")


def _means(
    records: list[dict[str, Any]], datasets: Sequence[str], methods: Sequence[str], what: str
) -> tuple[np.ndarray, np.ndarray]:
    """(data sets, methods) mean over splits, NaN where there is none, and the number of splits."""
    values: dict[tuple[str, str], list[float]] = {}
    for record in records:
        if what in record:
            values.setdefault((record["data"], record["method"]), []).append(record[what])
    cells = [[values.get((name, method), []) for method in methods] for name in datasets]
    means = np.array([[np.mean(cell) if cell else np.nan for cell in row] for row in cells])
    return means, np.array([[len(cell) for cell in row] for row in cells])


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _accuracy_rows(
    means: np.ndarray, counts: np.ndarray, datasets: Sequence[str], methods: Sequence[str]
) -> str:
    rows = []
    for name, row, count in zip(datasets, means, counts, strict=True):
        best = np.nanmax(row) if np.isfinite(row).any() else np.nan
        cells = [
            "" if np.isnan(v) else f"**{100 * v:.2f}**" if v == best else f"{100 * v:.2f}"
            for v in row
        ]
        rows.append(
            [name, str(count.min() if count.min() == count.max() else count.tolist()), *cells]
        )
    complete = means[np.isfinite(means).all(axis=1)]
    if len(complete):
        rows.append(
            ["mean", str(len(complete)), *(f"{100 * v:.2f}" for v in complete.mean(axis=0))]
        )
    return _markdown(["data set", "splits", *(NAMES[m] for m in methods)], rows)


def _summary(means: np.ndarray, methods: Sequence[str]) -> str:
    """Mean ranks, and the margin over every rival with Wilcoxon's test over data sets."""
    from scipy.stats import rankdata

    from experiments.statistics import signed_rank_p

    if len(means) < 5:
        return "(too few complete data sets)"
    column = {method: means[:, i] for i, method in enumerate(methods)}
    ranks = rankdata(-np.column_stack([column[m] for m in RANKED]).round(6), axis=1)
    lines = [
        f"{len(means)} data sets with results of all methods. Mean rank among "
        + ", ".join(f"{NAMES[m]} {r:.2f}" for m, r in zip(RANKED, ranks.mean(axis=0), strict=True))
        + "."
    ]
    rows = []
    for pair in [*(("committee", rival) for rival in COMPARED), ("single", "nca")]:
        difference = np.round(column[pair[0]] - column[pair[1]], 9)
        p = signed_rank_p(difference)
        wins, losses = np.sum(difference > 0), np.sum(difference < 0)
        rows.append(
            [
                f"{NAMES[pair[0]]} - {NAMES[pair[1]]}",
                f"{100 * difference.mean():+.2f}",
                f"{wins} / {len(difference) - wins - losses} / {losses}",
                f"{p:.4f}",
            ]
        )
    lines.append(_markdown(["mean margin", "points", "wins / ties / losses", "Wilcoxon p"], rows))
    return "\n\n".join(lines)


def _probabilities(records: list[dict[str, Any]], datasets: Sequence[str]) -> str:
    methods = ("committee", "single", "euclid", "nca", "forest")
    rows = []
    scores = {what: _means(records, datasets, methods, what)[0] for what in ("log_loss", "brier")}
    usable = np.isfinite(scores["brier"]).all(axis=1)
    for what, values in scores.items():
        rows.append([what.replace("_", "-"), *(f"{v:.4f}" for v in values[usable].mean(axis=0))])
    head = [f"mean over {usable.sum()} sets", *(NAMES[m] for m in methods)]
    return _markdown(head, rows) + "\n\nProbabilities are taken as at least 1e-6 in the log-loss."


def _seconds(records: list[dict[str, Any]], datasets: Sequence[str], methods: Sequence[str]) -> str:
    rows = []
    for name in datasets:
        taken = [
            [
                r["seconds"]
                for r in records
                if (r["data"], r["method"]) == (name, m) and "seconds" in r
            ]
            for m in methods
        ]
        rows.append([name, *(f"{np.median(t):.1f}" if t else "" for t in taken)])
    return _markdown(["data set", *(NAMES[m] for m in methods)], rows)


def draw_calibration(records: list[dict[str, Any]], path: Path) -> None:
    """Accuracy against confidence, all data sets and splits together, in ten bins."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(5, 4.2), layout="constrained")
    ax.plot([0, 1], [0, 1], color="0.6", linewidth=1, label="perfect")
    for method, marker in (("committee", "o"), ("euclid", "s"), ("forest", "^")):
        bins = np.array([r["bins"] for r in records if r["method"] == method and "bins" in r])
        if len(bins) == 0:
            continue
        count, confidence, hits = bins.sum(axis=0).T
        kept = count >= 50
        gap = np.sum(np.abs(confidence - hits)) / count.sum()
        ax.plot(
            confidence[kept] / count[kept], hits[kept] / count[kept],
            marker=marker, label=f"{NAMES[method]} (mean gap {100 * gap:.1f} points)",
        )  # fmt: skip
    ax.set(
        xlabel="confidence: largest probability", ylabel="accuracy", xlim=(0.1, 1), ylim=(0.1, 1)
    )
    ax.legend(frameon=False)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)
