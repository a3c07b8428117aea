"""README.md of the folder of results: commands, times, commits and machines."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

from experiments.datasets import DATASETS
from experiments.methods import METHODS
from experiments.progress import in_words
from experiments.records import Measurement, Record, Result
from experiments.store import Store
from experiments.summary import AUTO
from experiments.table2 import compared
from experiments.tables import markdown_table

_TEXT = """# Results of `vicinal reproduce`

`results.csv` and `measurements.csv` hold every record; the tables and figures beside them are made
from those by `vicinal reproduce tables`. How they were obtained is told in `docs/reproduce.md`.
Each command asks for the records of its line, in one process or several (`--jobs`); what is there
already, on another line too, is not computed again. Times are sums over the records, of Figure 3
over the fits alone. Commits marked + had changes on top of them. Figure 1 is computed when it is
drawn, by `vicinal reproduce figure1` in a second, and has no records.

{table}
"""
_HEADER = ["command", "records", "tuned on rows", "CPU time", "wall time", "commit", "machine",
           "finished"]  # fmt: skip


def readme(store: Store) -> str:
    """Command, number of records, times, commits and machines, by table or figure and data set.

    Parameters
    ----------
    store : results and measurements
    """
    groups: dict[tuple[str, str, str], list[Record]] = {}
    for result in store.records(Result):
        groups.setdefault((result.kind, result.dataset, result.backend), []).append(result)
    for point in store.records(Measurement):
        groups.setdefault((point.kind, point.dataset, ""), []).append(point)
    order = list(DATASETS)
    keys = sorted(
        groups, key=lambda k: (k[0], order.index(k[1]) if k[1] in order else len(order), k[2])
    )
    rows = [_row(groups[key]) for key in keys]
    return _TEXT.format(table=markdown_table(_HEADER, rows, " ".join(["---"] * len(_HEADER))))


def _row(records: Sequence[Record]) -> list[str]:
    results = [record for record in records if isinstance(record, Result)]
    failed = sum(record.error is not None for record in records)
    command = _table_command(results) if results else _figure_command(records)
    tuned = {result.tuning_rows for result in results if result.tuning_rows is not None}
    return [
        f"`vicinal reproduce {command}`",
        f"{len(records)} ({failed} failed)" if failed else str(len(records)),
        ", ".join(map(str, sorted(tuned))) or "–",
        _sum_in_words([result.cpu_seconds for result in results]),
        _sum_in_words([_wall_seconds(record) for record in records]),
        ", ".join(sorted({record.commit_id for record in records})),
        "; ".join(sorted({record.machine for record in records})),
        time.strftime("%Y-%m-%d", time.gmtime(max(record.finished for record in records))),
    ]


def _table_command(results: Sequence[Result]) -> str:
    first = results[0]
    words = [f"table2 --protocol {first.protocol} --datasets {first.dataset}"]
    methods = {result.method for result in results}
    if methods != {method.name for method in compared(METHODS.values(), first.protocol)}:
        words.append(f"--methods {','.join(name for name in METHODS if name in methods)}")
    words.append(f"--splits {max(result.split for result in results) + 1}")
    samples = [r.tuning_rows for r in results if r.sampled and r.method != AUTO]
    if samples:
        words.append(f"--tuning-rows {samples[0]}")
    if first.backend:
        words.append(f"--backend {first.backend}")
    return " ".join(words)


def _figure_command(records: Sequence[Record]) -> str:
    first = records[0]
    runs = len({record.task.rpartition("/")[2] for record in records})
    if first.kind == "figure2":
        return f"figure2 --splits {runs}"
    return f"{first.kind} --datasets {first.dataset} --runs {runs}"


def _wall_seconds(record: Record) -> float | None:
    if record.seconds is not None or isinstance(record, Result):
        return record.seconds
    return json.loads(record.value).get("fit_seconds")


def _sum_in_words(seconds: Sequence[float | None]) -> str:
    known = [s for s in seconds if s is not None]
    return in_words(sum(known)) if known else "–"
