"""Summary of the runs of deep_evidence.py: tables, learning curves, pictures of embeddings."""

from __future__ import annotations

import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from common import ROOT, fill_section
from deep_contestants import CONTESTANTS, EARLIER, RIVALS
from deep_evidence import best_candidate, best_trial, validation_scores
from sklearn.manifold import TSNE

DOCS = ROOT / "docs" / "deep.md"
IMAGES = ROOT / "docs" / "images"
TITLES = {
    "omniglot28": "Omniglot, unseen characters",
    "fashion_mnist": "Fashion-MNIST, test images",
}
SCORES = {"recall_at_1": "Recall@1", "map_at_r": "MAP@R"}

Records = list[dict[str, Any]]


def summarize(records: Records, folder: Path) -> None:
    """Write table.md beside the runs, fill docs/deep.md, draw docs/images/deep-*.png."""
    finished = [r for r in records if r["part"] == "test" and "curve" in r and _is_best(r, records)]
    failed = [r for r in records if "error" in r]
    if not finished:
        raise SystemExit(f"{folder} holds no finished test run")
    default = best_candidate(records)
    tables = [table(data, [r for r in finished if r["data"] == data]) for data in _data(finished)]
    if default is not None:
        tables.append(candidates_table(records, default))
    text = "\n\n".join([*tables, provenance(finished, failed)])
    (folder / "table.md").write_text(text + "\n", encoding="utf-8")
    shown = [loss for loss in (default, *EARLIER, *RIVALS) if loss is not None]
    draw_curves(finished, shown, IMAGES / "deep-curves.png")
    pictures = ["![MAP@R during training](images/deep-curves.png)"]
    for data in _data(finished):
        source = folder / f"embeddings-{data}.npz"
        if source.is_file():
            draw_embedding(source, TITLES[data], IMAGES / f"deep-{data}.png")
            pictures.append(f"![{TITLES[data]}, before and after](images/deep-{data}.png)")
    fill_section(DOCS, "deep", "\n\n".join([text, *pictures]))


def _is_best(test: dict[str, Any], records: Records) -> bool:
    """Whether the settings are those that tuning chose; a finer grid may have outdated them."""
    best = best_trial(records, test["data"], test["loss"], test["steps"] // 2)
    settings = test["scale"], test["learning_rate"]
    return best is not None and settings == (best.scale, best.learning_rate)


def _data(records: Records) -> list[str]:
    return [name for name in TITLES if any(r["data"] == name for r in records)]


def table(data: str, records: Records) -> str:
    """Mean ± standard deviation of the last scores over the seeds, the best MAP@R first."""
    by_loss = defaultdict(list)
    for record in records:
        by_loss[record["loss"]].append(record)
    rows = []
    for loss, runs in by_loss.items():
        last = [run["curve"][-1] for run in runs]
        scores = [[100 * scored[name] for scored in last] for name in SCORES]
        cells = [
            f"{statistics.mean(s):.2f} ± {statistics.stdev(s) if len(s) > 1 else 0:.2f}"
            for s in scores
        ]
        chosen = f"{CONTESTANTS[loss].parameter} {runs[0]['scale']:g}"
        seconds = statistics.median(run["seconds"] for run in runs)
        rate = f"{runs[0]['learning_rate']:g}"
        line = " | ".join([loss, *cells, chosen, rate, f"{len(runs)}", f"{seconds:.0f}"])
        rows.append((statistics.mean(scores[1]), f"| {line} |"))
    head = (
        f"**{TITLES[data]}**\n\n"
        "| loss | Recall@1, % | MAP@R, % | chosen | learning rate | seeds | s per run |\n"
        "|---|---|---|---|---|---|---|\n"
    )
    return head + "\n".join(line for _, line in sorted(rows, reverse=True))


def candidates_table(records: Records, default: str) -> str:
    """MAP@R of every candidate by validation, the best on average first: the default."""
    scores = {
        loss: by_data
        for loss, by_data in validation_scores(records).items()
        if set(by_data) == set(TITLES)
    }
    lines = [
        "**Configurations of ANNLoss by validation**, MAP@R, % on held-out training data",
        "",
        f"| configuration | {' | '.join(t.split(',')[0] for t in TITLES.values())} | mean |",
        "|---|" + "---|" * (len(TITLES) + 1),
    ]
    for loss, by_data in sorted(scores.items(), key=lambda item: -sum(item[1].values())):
        cells = [100 * by_data[data] for data in TITLES]
        numbers = " | ".join(f"{cell:.2f}" for cell in [*cells, statistics.mean(cells)])
        lines.append(f"| {f'**{loss}**' if loss == default else loss} | {numbers} |")
    return "\n".join(lines)


def provenance(finished: Records, failed: Records) -> str:
    """The command, the machine and the versions that the numbers come from."""
    machines = sorted({f"{r['machine']}, PyTorch {r['torch']}" for r in finished})
    steps = sorted({r["steps"] for r in finished})
    text = (
        f"`python benchmarks/deep_evidence.py run`; {', '.join(map(str, steps))} steps of 256 "
        f"images; several runs share the GPU, so times compare only roughly; {'; '.join(machines)}."
    )
    if failed:
        losses = sorted({r["loss"] for r in failed})
        text += f" {len(failed)} runs failed ({', '.join(losses)})."
    return text


def draw_curves(records: Records, losses: list[str], path: Path) -> None:
    """MAP@R during training, mean over the seeds, one panel per data set."""
    names = _data(records)
    figure, panels = plt.subplots(
        1, len(names), figsize=(5.5 * len(names), 4.2), squeeze=False, layout="constrained"
    )
    for axes, data in zip(panels[0], names, strict=True):
        for color, loss in enumerate(losses):
            curves = [r["curve"] for r in records if (r["data"], r["loss"]) == (data, loss)]
            if curves:
                steps = [point["step"] for point in curves[0]]
                scores = np.array([[100 * point["map_at_r"] for point in c] for c in curves])
                axes.plot(
                    steps,
                    scores.mean(axis=0),
                    label=loss,
                    color=f"C{color}",
                    linestyle="--" if loss in RIVALS else "-",
                    marker="o",
                    markersize=3,
                )
        axes.set(title=TITLES[data], xlabel="step", ylabel="MAP@R, %")
    panels[0, -1].legend(fontsize=8)
    _save(figure, path)


def draw_embedding(source: Path, title: str, path: Path) -> None:
    """The same images as pixels and as embeddings, both by t-SNE."""
    with np.load(source) as arrays:
        X, Z, y = arrays["X"] / 255.0, arrays["Z"].astype(np.float64), arrays["y"]
    figure, panels = plt.subplots(1, 2, figsize=(10, 5), layout="constrained")
    for axes, points, name in zip(panels, (X, Z), ("pixels", "embedding"), strict=True):
        flat = TSNE(random_state=0, init="pca", perplexity=min(30, len(y) / 4)).fit_transform(
            points
        )
        axes.scatter(*flat.T, c=y, cmap="tab20" if y.max() > 9 else "tab10", s=6)
        axes.set(title=f"{title}: {name}", xticks=[], yticks=[])
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)
