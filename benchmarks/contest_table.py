"""Tables of a contest: means over splits, mean ranks, margins with Wilcoxon's test over tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import fill_section
from contest import ROOT, Contest
from rivals import METHODS
from scipy.stats import gmean, rankdata

from experiments.statistics import signed_rank_p

Means = dict[str, np.ndarray]
"""For every method (tables,) the mean over splits; NaN where there is no result."""


def write_classes(name: str, *, picture: bool = False) -> Callable[[Contest], None]:
    """What writes results/<name>.md about a contest of classifiers."""

    def write(contest: Contest) -> None:
        records = contest.records()
        accuracy, loss = (means(contest, records, what) for what in ("accuracy", "log_loss"))
        shown = [
            "## Accuracy in percent, mean over splits",
            by_table(contest, records, accuracy, 100, largest_is_best=True),
            "## Mean ranks",
            ranks({"accuracy": (accuracy, -1), "log-loss": (loss, 1)} | _others(contest, records)),
            "## Margins",
            margins(pairs(contest, records, "accuracy", "ANNClassifier"), "ANNClassifier"),
            "## Log-loss by that of each rival",
            ratios(pairs(contest, records, "log_loss", "ANNClassifier"), "ANNClassifier"),
        ]
        _write(contest, name, records, shown)
        if picture:
            draw_calibration(records, ROOT / "docs" / "images" / "calibration.png")

    return write


def _others(contest: Contest, records: list[dict[str, Any]]) -> dict[str, tuple[Means, int]]:
    return {
        "balanced accuracy": (means(contest, records, "balanced_accuracy"), -1),
        "AUC": (means(contest, records, "auc"), -1),
    }


def write_numbers(contest: Contest) -> None:
    """Write results/regression.md."""
    records = contest.records()
    rmse = means(contest, records, "rmse")
    coverage, width = (means(contest, records, what) for what in ("coverage", "width"))
    ours, theirs = "ANNRegressor", "LightGBM regression"
    both = np.isfinite(width[ours]) & np.isfinite(width[theirs])
    interval = [
        (
            f"Coverage, mean over tables: {ours} {100 * np.nanmean(coverage[ours]):.1f} %, "
            f"{theirs} {100 * np.nanmean(coverage[theirs]):.1f} %."
        ),
        f"Width by that of {theirs}: median {np.median((width[ours] / width[theirs])[both]):.3f}, "
        f"geometric mean {gmean((width[ours] / width[theirs])[both]):.3f}."
        if both.any()
        else "",
    ]
    shown = [
        "## RMSE, mean over splits",
        by_table(contest, records, rmse, 1, largest_is_best=False),
        "## Mean ranks",
        ranks({"RMSE": (rmse, 1), "MAE": (means(contest, records, "mae"), 1)}),
        "## RMSE by that of each rival",
        ratios(pairs(contest, records, "rmse", ours), ours),
        "## The 90 % interval",
        *interval,
    ]
    _write(contest, "regression", records, shown)


def _write(contest: Contest, name: str, records: list[dict[str, Any]], shown: list[str]) -> None:
    settings = "\n".join(f"* {method}: {METHODS[method].about}" for method in contest.methods)
    failures = [f"* {r['data']} {r['method']} {r['split']}: {r['error']}" for r in failed(records)]
    parts = [
        f"# {contest.title}",
        (
            f"Made by `python benchmarks/{name}.py table` from `results/{contest.results.name}`; "
            "the protocol is in `benchmarks/contest.py`, the settings in `benchmarks/rivals.py`. "
            "70/30 splits; every choice is made inside the training part."
        ),
        settings,
        *shown,
        "## Seconds to tune and fit, one core, median",
        seconds(contest, records),
        *(["## Failures", "\n".join(failures)] if failures else []),
    ]
    (ROOT / "results" / f"{name}.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    page = next((p for p in _pages() if f"<!-- results:{name} -->" in p.read_text()), None)
    if page is not None:
        fill_section(page, name, "\n\n".join(part.replace("## ", "### ") for part in shown))


def _pages() -> list[Path]:
    return sorted((ROOT / "docs").rglob("*.md"))


def failed(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [r for r in records if "error" in r]


def means(contest: Contest, records: list[dict[str, Any]], what: str) -> Means:
    """Means over the splits that all methods with results on the table have."""
    values = {(r["data"], r["method"], r["split"]): r[what] for r in records if what in r}
    common = {table.name: common_splits(values, table.name) for table in contest.tables}

    def mean(table: str, method: str) -> float:
        found = [values.get((table, method, split), np.nan) for split in common[table]]
        return float(np.mean(found)) if found else np.nan

    return {
        method: np.array([mean(table.name, method) for table in contest.tables])
        for method in contest.methods
    }


def common_splits(keys: Iterable[tuple[str, str, int]], table: str) -> list[int]:
    """Splits that all methods with results on a table have; keys are table, method and split."""
    by_method: dict[str, set[int]] = {}
    for name, method, split in keys:
        if name == table:
            by_method.setdefault(method, set()).add(split)
    return sorted(set.intersection(*by_method.values())) if by_method else []


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def by_table(
    contest: Contest,
    records: list[dict[str, Any]],
    values: Means,
    factor: float,
    *,
    largest_is_best: bool,
) -> str:
    """One line per table, the best result in bold; the mean over the tables that all have.

    Tables of which the methods have no split in common are named below.
    """
    shown = [m for m in contest.methods if np.isfinite(values[m]).any()]
    cells = factor * np.column_stack([values[m] for m in shown])
    keys = [(r["data"], r["method"], r["split"]) for r in records if "error" not in r]
    rows, left_out = [], []
    for table, row in zip(contest.tables, cells, strict=True):
        n = len(common_splits(keys, table.name))
        if n == 0:
            left_out.append(table.name)
            continue
        found = row[np.isfinite(row)]
        best = found.max() if largest_is_best else found.min()
        texts = ["" if np.isnan(v) else f"{v:.4g}" for v in row]
        marked = [f"**{t}**" if v == best else t for t, v in zip(texts, row, strict=True)]
        rows.append([table.name, str(n), *marked])
    complete = cells[np.isfinite(cells).all(axis=1)]
    if largest_is_best and len(complete):
        texts = [f"{v:.2f}" for v in complete.mean(axis=0)]
        rows.append([f"mean of {len(complete)}", "", *texts])
    shown_rows = markdown(["table", "splits", *shown], rows)
    if not left_out:
        return shown_rows
    return f"{shown_rows}\n\nNot yet measured by all of these methods: {', '.join(left_out)}."


def ranks(scores: dict[str, tuple[Means, int]]) -> str:
    """Mean ranks of the methods over the tables on which all have results; 1 is the best."""
    rows, methods = (
        [],
        [m for m, v in next(iter(scores.values()))[0].items() if np.isfinite(v).any()],
    )
    for name, (values, sign) in scores.items():
        cells = sign * np.column_stack([values[m] for m in methods]).round(9)
        complete = cells[np.isfinite(cells).all(axis=1)]
        found = rankdata(complete, axis=1).mean(axis=0) if len(complete) else cells[0] * np.nan
        rows.append([f"{name} ({len(complete)} tables)", *(f"{r:.2f}" for r in found)])
    return markdown(["mean rank", *methods], rows)


Pairs = dict[str, tuple[np.ndarray, np.ndarray]]
"""For every rival our means and its means (tables,), over the splits that both have."""


def pairs(contest: Contest, records: list[dict[str, Any]], what: str, ours: str) -> Pairs:
    """Our means and those of every rival with results, on the tables that both have."""
    found = {}
    for rival in contest.methods:
        both = means(contest, [r for r in records if r["method"] in (ours, rival)], what)
        known = np.isfinite(both[ours]) & np.isfinite(both[rival])
        if rival != ours and known.any():
            found[rival] = both[ours][known], both[rival][known]
    return found


def margins(of_rivals: Pairs, ours: str) -> str:
    """The mean margin over every rival in points, with Wilcoxon's test over tables."""
    rows = []
    for rival, (mine, theirs) in of_rivals.items():
        found = np.round(100 * (mine - theirs), 9)
        wins, losses = int(np.sum(found > 0)), int(np.sum(found < 0))
        outcome = f"{wins} / {len(found) - wins - losses} / {losses}"
        rows.append([rival, f"{found.mean():+.2f}", outcome, f"{signed_rank_p(found):.4f}"])
    return markdown([f"{ours} minus", "points", "wins / ties / losses", "Wilcoxon p"], rows)


def ratios(of_rivals: Pairs, ours: str) -> str:
    """Ratios to every rival; lower is better. p is of the test of the logarithms."""
    rows = []
    for rival, (mine, theirs) in of_rivals.items():
        found = mine / theirs
        p = signed_rank_p(np.round(-np.log(found), 9))
        lower = f"{np.sum(found < 1)} of {len(found)}"
        mean = mine.sum() / theirs.sum()
        texts = [f"{np.median(found):.3f}", f"{gmean(found):.3f}", f"{mean:.3f}", lower]
        rows.append([rival, *texts, f"{p:.4f}"])
    head = [f"{ours} by", "median", "geometric mean", "ratio of means", "lower on", "Wilcoxon p"]
    return markdown(head, rows)


def seconds(contest: Contest, records: list[dict[str, Any]]) -> str:
    taken: dict[tuple[str, str], list[float]] = {}
    for r in records:
        if "seconds" in r:
            taken.setdefault((r["data"], r["method"]), []).append(r["seconds"])
    methods = [m for m in contest.methods if any(method == m for _, method in taken)]
    rows = [
        [t.name, *(f"{np.median(taken.get((t.name, m), [np.nan])):.1f}" for m in methods)]
        for t in contest.tables
        if any(name == t.name for name, _ in taken)
    ]
    return markdown(["table", *methods], rows).replace("nan", "")


def draw_calibration(records: list[dict[str, Any]], path: Path) -> None:
    """Accuracy against confidence, all tables and splits together, in ten bins."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(5, 4.2), layout="constrained")
    ax.plot([0, 1], [0, 1], color="0.6", linewidth=1, label="perfect")
    for method, marker in (("ANNClassifier", "o"), ("K-NN", "s"), ("forest", "^")):
        bins = np.array([r["bins"] for r in records if r["method"] == method and "bins" in r])
        if len(bins) == 0:
            continue
        count, confidence, hits = bins.sum(axis=0).T
        kept = count >= 50
        gap = np.sum(np.abs(confidence - hits)) / count.sum()
        ax.plot(
            confidence[kept] / count[kept], hits[kept] / count[kept],
            marker=marker, label=f"{method} (mean gap {100 * gap:.1f} points)",
        )  # fmt: skip
    ax.set(
        xlabel="confidence: largest probability", ylabel="accuracy", xlim=(0.1, 1), ylim=(0.1, 1)
    )
    ax.legend(frameon=False)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)
