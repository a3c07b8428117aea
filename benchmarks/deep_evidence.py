"""Deep losses compared: the same network, batches and number of steps, retrieval scores.

    python benchmarks/deep_evidence.py run [--workers 8] [--limit 540] [--out results/deep]
    python benchmarks/deep_evidence.py summarize

Omniglot: trained on the background characters, retrieval among characters never seen.
Fashion-MNIST: trained on the 60,000 training images, retrieval among the 10,000 test images. There
are three parts:

* tuning: every loss gets the same number of trials, two learning rates × five values of its own
  scale, one seed, half the steps, judged by MAP@R on classes (Omniglot) or images (Fashion-MNIST)
  held out of the training part;
* validation: the best trial of every configuration that may become the default of ANNLoss, with all
  steps and three seeds, judged on the same held-out part. The default is the one with the highest
  MAP@R, averaged over the data sets;
* test: the best trial of every loss, with all steps and three seeds, judged on the test images.

One JSON line is written for each finished run; lines that exist, in results/deep or in --out, are
not run again. With --rows, which tries the script out, only lines of as many rows count, and --out
must be a folder of its own. VICINAL_DATA is the folder of the data sets; pytorch-metric-learning
must be importable for losses of that package. On a machine without it, put a copy on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import ROOT
from deep_contestants import (
    CONTESTANTS,
    LEARNING_RATES,
    MEMBERS,
    PROXY_RATE,
    convolutional_network,
    make_objective,
)
from deep_retrieval import retrieval_scores
from torch import Tensor, nn

from vicinal.deep.training import class_batches

RESULTS = ROOT / "results" / "deep"
DATA = ("omniglot28", "fashion_mnist")
PARTS = ("tuning", "validation", "test")
SEEDS = (0, 1, 2)
BATCH = 256
CHECKPOINTS = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
"""Where on the way a run is scored, as shares of its steps."""
CANDIDATES = [member.name for member in MEMBERS]


@dataclass(frozen=True)
class Run:
    """What is trained; two runs that are equal are the same run."""

    part: str
    """"tuning", "validation" or "test"."""
    data: str
    loss: str
    scale: float
    learning_rate: float
    seed: int
    steps: int


@dataclass(frozen=True)
class Images:
    """Images (n, 1, 28, 28) in bytes and classes (n,) from 0, on the device."""

    X: Tensor
    y: Tensor

    def pixels(self, rows: Tensor | slice) -> Tensor:
        """(b, 1, 28, 28) in [0, 1]."""
        return (self.X[rows].float() / 255).contiguous(memory_format=torch.channels_last)


# -------------------------------------------------------------------------------------- data


@lru_cache
def load(data: str, part: str, device: torch.device, rows: int | None) -> tuple[Images, Images]:
    """Images to train on, and images to search in."""
    folder = Path(os.environ.get("VICINAL_DATA", ROOT.parent / "shared" / "data"))
    with np.load(folder / f"{data}.npz", allow_pickle=False) as arrays:
        X, y = arrays["X"], arrays["y"]
        if data == "omniglot28":
            searched, alphabet = arrays["is_evaluation"], arrays["alphabet"]
            held = np.isin(alphabet, np.unique(alphabet[~searched])[::5])
        else:
            searched = arrays["is_test"]
            held = np.arange(len(y)) >= np.count_nonzero(~searched) * 5 // 6
    train = ~searched
    if part != "test":
        train, searched = train & ~held, train & held
    return tuple(_images(X[chosen], y[chosen], device, rows) for chosen in (train, searched))


def _images(X: np.ndarray, y: np.ndarray, device: torch.device, rows: int | None) -> Images:
    codes = np.unique(y[:rows], return_inverse=True)[1]
    images = torch.as_tensor(X[:rows].reshape(-1, 1, 28, 28), device=device)
    return Images(images, torch.as_tensor(codes, device=device))


# ---------------------------------------------------------------------------------- training


def execute(run: Run, out: Path | None, rows: int | None) -> dict[str, Any]:
    """Train and score; an error is a result, too. With ``out`` some embeddings are kept there."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    machine = torch.cuda.get_device_name() if device.type == "cuda" else "CPU"
    record = asdict(run) | {"machine": machine, "torch": torch.__version__}
    record |= {} if rows is None else {"rows": rows}
    start = time.perf_counter()
    try:
        record["curve"] = _train(run, device, out, rows)
    except Exception as problem:
        record["error"] = f"{type(problem).__name__}: {problem}"[:300]
    return record | {"seconds": round(time.perf_counter() - start, 2)}


def _train(
    run: Run, device: torch.device, out: Path | None, rows: int | None
) -> list[dict[str, float]]:
    torch.manual_seed(run.seed)
    train, searched = load(run.data, run.part, device, rows)
    network = convolutional_network().to(device, memory_format=torch.channels_last)
    n_classes = int(train.y.max()) + 1
    objective, own = make_objective(run.loss, run.scale, n_classes, device)
    rate = run.learning_rate
    groups = [{"params": list(network.parameters())}, {"params": own, "lr": PROXY_RATE * rate}]
    optimizer = torch.optim.AdamW(groups[: 1 + bool(own)], lr=rate, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, run.steps)
    marks = {max(1, round(share * run.steps)) for share in CHECKPOINTS}
    curve = []
    batches = _batches(train, run.seed)
    for step in range(1, run.steps + 1):
        batch = next(batches)
        Z = _embed(network, train.pixels(batch))
        loss = objective(Z, train.y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step == run.steps or (run.part == "test" and step in marks):
            Z = embed_all(network, searched)
            curve.append({"step": step, "loss": loss.item(), **retrieval_scores(Z, searched.y)})
    if out is not None:
        _keep_embeddings(run, out, Z, searched)
    return curve


def _batches(images: Images, seed: int) -> Any:
    """Rows of batches of one size, groups of four of a class, the same for every loss."""
    rng = np.random.RandomState(seed)
    codes = images.y.cpu().numpy()
    while True:
        order = np.concatenate(class_batches(codes, BATCH, rng))
        size = min(BATCH, len(order))
        yield from torch.as_tensor(order, device=images.y.device).split(size)[: len(order) // size]


def _embed(network: nn.Module, X: Tensor) -> Tensor:
    with torch.autocast("cuda", dtype=torch.bfloat16, enabled=X.is_cuda):
        return network(X).float()


@torch.no_grad()
def embed_all(network: nn.Module, images: Images) -> Tensor:
    """(n, m) embeddings of length 1."""
    network.eval()
    starts = range(0, len(images.X), 4096)
    Z = torch.cat([_embed(network, images.pixels(slice(s, s + 4096))) for s in starts])
    network.train()
    return nn.functional.normalize(Z, dim=1)


def _keep_embeddings(run: Run, out: Path, Z: Tensor, images: Images) -> None:
    """Some rows, for the picture: of few classes where there are many."""
    y = images.y.cpu().numpy()
    kept = np.flatnonzero(y < 20) if y.max() > 20 else np.arange(min(2000, len(y)))
    np.savez_compressed(
        out / f"embeddings-{run.data}.npz",
        Z=Z.cpu().numpy()[kept].astype(np.float16),
        X=images.X.cpu().numpy()[kept].reshape(len(kept), -1),
        y=y[kept],
    )


# ------------------------------------------------------------------------------------- runs


def read(folder: Path, rows: int | None = None) -> list[dict[str, Any]]:
    """The records in a folder's runs.jsonl of runs with so many rows; None: with all."""
    path = folder / "runs.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.is_file() else []
    records = [json.loads(line) for line in lines if line.endswith("\n")]
    return [record for record in records if record.get("rows") == rows]


def drop_incomplete_line(path: Path) -> None:
    """Cut off what follows the last newline: the run that was being written when all stopped."""
    if path.is_file():
        complete, newline, _ = path.read_bytes().rpartition(b"\n")
        os.truncate(path, len(complete + newline))


def as_run(record: dict[str, Any]) -> Run:
    return Run(**{name: record[name] for name in Run.__dataclass_fields__})


def best_trial(records: list[dict[str, Any]], data: str, loss: str, steps: int) -> Run | None:
    """The trial of the grid, of so many steps, with the highest MAP@R; None if none succeeded."""
    wanted = ("tuning", data, loss, steps)
    trials = [
        record
        for record in records
        if tuple(record[name] for name in ("part", "data", "loss", "steps")) == wanted
        and record["scale"] in CONTESTANTS[loss].scales
        and "curve" in record
    ]
    if not trials:
        return None
    return as_run(max(trials, key=lambda record: record["curve"][-1]["map_at_r"]))


def validation_scores(records: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """MAP@R by candidate and data set: the mean over the seeds of the validation runs."""
    scores: dict[str, dict[str, list[float]]] = {}
    for record in records:
        if record["part"] == "validation" and "curve" in record:
            of_loss = scores.setdefault(record["loss"], {})
            of_loss.setdefault(record["data"], []).append(record["curve"][-1]["map_at_r"])
    return {
        loss: {data: float(np.mean(values)) for data, values in of_loss.items()}
        for loss, of_loss in scores.items()
    }


def best_candidate(records: list[dict[str, Any]]) -> str | None:
    """The candidate that is best on average over all data sets that any candidate was judged on."""
    scores = validation_scores(records)
    n_data = max(map(len, scores.values()), default=0)
    complete = {
        loss: float(np.mean(list(by_data.values())))
        for loss, by_data in scores.items()
        if len(by_data) == n_data
    }
    return max(complete, key=complete.__getitem__, default=None)


def plan(records: list[dict[str, Any]], arguments: argparse.Namespace, part: str) -> list[Run]:
    """The runs of a part that are missing, first seed first, so that a part of them is of use."""
    runs = []
    pairs, half = list(product(arguments.data, arguments.losses)), arguments.steps // 2
    if part == "tuning":
        for (data, loss), rate in product(pairs, LEARNING_RATES):
            runs += [Run(part, data, loss, s, rate, 0, half) for s in CONTESTANTS[loss].scales]
    else:
        chosen = [
            trial
            for data, loss in pairs
            if (part == "test" or loss in CANDIDATES)
            and (trial := best_trial(records, data, loss, half))
        ]
        runs = [
            replace(trial, part=part, seed=seed, steps=arguments.steps)
            for seed, trial in product(SEEDS[: arguments.seeds], chosen)
        ]
    done = {as_run(record) for record in records}
    return [run for run in runs if run not in done]


def perform(
    runs: list[Run],
    pool: Executor,
    arguments: argparse.Namespace,
    end: float,
    pictured: str | None,
) -> None:
    """Write a line whenever a run has finished, and the embeddings of the loss to be pictured."""
    path = arguments.out / "runs.jsonl"
    drop_incomplete_line(path)
    with path.open("a", encoding="utf-8") as file:
        futures = set()
        for run in runs:
            shown = run.part == "test" and run.seed == 0 and run.loss == pictured
            out = arguments.out if shown else None
            futures.add(pool.submit(_in_time, run, out, arguments.rows, end))
        for future in as_completed(futures):
            if record := future.result():
                print(json.dumps(record), file=file, flush=True)
                reached = record.get("error") or f"{record['curve'][-1]['map_at_r']:.4f}"
                print(*list(record.values())[:6], reached, record["seconds"], flush=True)


def _in_time(run: Run, out: Path | None, rows: int | None, end: float) -> dict[str, Any] | None:
    return execute(run, out, rows) if time.time() < end else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=("run", "summarize"))
    parser.add_argument("--out", type=Path, default=RESULTS, help="where new lines go")
    parser.add_argument("--steps", type=int, default=1500, help="of a test run; tuning has half")
    parser.add_argument("--seeds", type=int, default=len(SEEDS))
    parser.add_argument("--workers", type=int, default=1, help="runs at a time")
    parser.add_argument("--limit", type=float, default=1e9, help="start no run after these seconds")
    parser.add_argument("--rows", type=int, help="of every part at most, to try it out in --out")
    parser.add_argument("--data", nargs="+", choices=DATA, default=DATA)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--losses", nargs="+", choices=CONTESTANTS, default=list(CONTESTANTS))
    arguments = parser.parse_args()
    if arguments.action == "summarize":
        from deep_summary import summarize

        summarize(read(arguments.out), arguments.out)
        return
    if arguments.rows is not None and arguments.out.resolve() == RESULTS.resolve():
        parser.error("--rows is for trials: give them a folder of their own with --out")
    end = time.time() + arguments.limit
    arguments.out.mkdir(parents=True, exist_ok=True)
    folders = {RESULTS.resolve(), arguments.out.resolve()}
    context = get_context("spawn")
    with ProcessPoolExecutor(arguments.workers, context, torch.set_num_threads, (1,)) as pool:
        for part in arguments.parts:
            records = [record for folder in folders for record in read(folder, arguments.rows)]
            runs = plan(records, arguments, part)
            perform(runs, pool, arguments, end, best_candidate(records))


if __name__ == "__main__":
    main()
