"""Repeat the attack on vicinal: generated inputs, crafted files, interrupts, kills, full disks.

    python benchmarks/robustness.py run --jobs 2                     # everything; resumes
    python benchmarks/robustness.py run --sections files --seconds 300
    python benchmarks/robustness.py run --sections inputs --estimators DeepANN --seed 9
    python benchmarks/robustness.py table                            # results/robustness.md

Cases are numbered, and a case depends on the seed and its number alone. They are computed in
batches; each finished batch is one line of the output, and batches that are there already are not
computed again. To stop is safe at any time.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SECTIONS = {"files": 30_000, "inputs": 30_000, "interrupts": 506, "kills": 264, "full disk": 200}
"""How many cases; some interrupts and kills come after the end and do not count."""
BATCH = {"files": 500, "inputs": 250, "interrupts": 22, "kills": 22, "full disk": 50}
TARGETS = {"files": 30_000, "inputs": 30_000, "interrupts": 200, "kills": 200, "full disk": 1}
MISSED = ("after the end",)
FOLDERS = re.compile(r"(?<=\")/\S*/(?=(benchmarks|src|site-packages|lib)/)")
"""Where a machine keeps its files: not in the results."""


def environment(section: str) -> dict[str, str]:
    """One thread per process; compiled code with bounds checks for files, in a cache of its own."""
    variables = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    if section == "files":
        folder = Path(tempfile.gettempdir()) / f"vicinal-bounds-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        variables |= {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(folder)}
    return variables


def run_batch(
    section: str, seed: int, first: int, count: int, estimators: list[str]
) -> dict[str, Any]:
    """Compute cases `first` to `first + count` of a section."""
    import robustness_cases

    robustness_cases.CHOSEN[:] = estimators
    begin = time.perf_counter()
    outcomes: Counter[str] = Counter()
    failures = []
    attack = robustness_cases.ATTACKS[section]
    with tempfile.TemporaryDirectory(prefix="vicinal-robustness-") as folder:
        for number in range(first, first + count):
            kind, outcome = attack(seed, number, Path(folder))
            summary = outcome.partition("\n")[0]
            outcomes[f"{kind}: {summary}"] += 1
            if summary.startswith("FAILED"):
                shown = FOLDERS.sub("", outcome)
                failures.append(f"{section} {number} ({kind}): {summary}\n{shown[-3000:]}")
    return {
        "section": section, "seed": seed, "first": first, "count": count,
        "seconds": round(time.perf_counter() - begin, 1),
        "outcomes": outcomes, "failures": failures,
    }  # fmt: skip


def done(out: Path) -> list[dict[str, Any]]:
    """The finished batches; a line that was cut off by a kill is ignored."""
    batches = {}
    for line in out.read_text(encoding="utf-8").splitlines() if out.exists() else []:
        try:
            batch = json.loads(line)
        except ValueError:
            continue
        batches[batch["section"], batch["seed"], batch["first"]] = batch
    return list(batches.values())


def run(options: argparse.Namespace) -> None:
    begin = time.monotonic()
    finished = {(b["section"], b["seed"], b["first"]) for b in done(options.out)}
    where = {"commit": commit(), "python": platform.python_version(), "cores": os.cpu_count()}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    for section in options.sections:
        size, total = BATCH[section], options.count or SECTIONS[section]
        tasks = [
            (section, options.seed, first, min(size, total - first), options.estimators)
            for first in range(0, total, size)
            if (section, options.seed, first) not in finished
        ]
        os.environ.update(environment(section))
        pool = ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn"))
        futures = [pool.submit(run_batch, *task) for task in tasks]
        try:
            left = max(options.seconds - (time.monotonic() - begin), 0.0)
            for future in as_completed(futures, timeout=left):
                batch = {**future.result(), **where}
                with options.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(batch) + "\n")
                failed = len(batch["failures"])
                print(
                    f"{section} {batch['first']}: {batch['seconds']} s, {failed} failures",
                    flush=True,
                )
                for failure in batch["failures"][:3]:
                    print(failure)
        except TimeoutError:
            print(f"{section}: the time is over; run again to go on")
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list((pool._processes or {}).values()):
                process.terminate()
    print(table(done(options.out)))


def commit() -> str:
    """The commit that is measured, as far as git knows."""
    named = os.environ.get("VICINAL_COMMIT")
    words = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    found = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
    return named or found or "unknown"


def table(batches: list[dict[str, Any]]) -> str:
    """Counts and failures as Markdown."""
    lines = ["# Robustness", "", "| attack | cases | to reach | failures |", "|---|---:|---:|---:|"]
    details = []
    for section, target in TARGETS.items():
        mine = [batch for batch in batches if batch["section"] == section]
        counts: Counter[str] = Counter()
        for batch in mine:
            counts.update(batch["outcomes"])
        cases = sum(n for name, n in counts.items() if not name.endswith(MISSED))
        failures = sum(len(batch["failures"]) for batch in mine)
        lines.append(f"| {section} | {cases:,} | {target:,} | {failures} |")
        details += ["", f"## {section[0].upper()}{section[1:]}", "", "| what: outcome | cases |"]
        details += ["|---|---:|", *(f"| {name} | {n:,} |" for name, n in sorted(counts.items()))]
        details += [f"\n```text\n{f}\n```" for batch in mine for f in batch["failures"][:3]]
    seeds = sorted({batch["seed"] for batch in batches})
    commits = sorted({batch["commit"] for batch in batches})
    lines += [
        "",
        f"Seeds {seeds}, commits {', '.join(commits)}. What each attack does and what counts",
    ]
    lines += ["as a failure is said in `benchmarks/robustness_cases.py`."]
    return "\n".join(lines + details) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["run", "table"])
    parser.add_argument("--sections", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, help="cases per section")
    parser.add_argument(
        "--estimators", nargs="+", default=[], help="of inputs and interrupts; use another --seed"
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=3600.0, help="start nothing new after")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "robustness.jsonl")
    options = parser.parse_args()
    if options.command == "run":
        run(options)
    else:
        options.out.with_suffix(".md").write_text(table(done(options.out)), encoding="utf-8")
    sys.exit(any(batch["failures"] for batch in done(options.out)))


if __name__ == "__main__":
    main()
