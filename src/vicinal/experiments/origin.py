"""What produced the results: README.md of their folder."""

from __future__ import annotations

import time
from collections.abc import Sequence

from vicinal.experiments.manifest import DATASETS
from vicinal.experiments.progress import in_words
from vicinal.experiments.records import Measurement, Record, Result
from vicinal.experiments.store import Store
from vicinal.experiments.tables import markdown_table

_TEXT = """# Results of `vicinal reproduce`

`results.csv` and `measurements.csv` hold every record; the tables and figures beside them are made
from those by `vicinal reproduce tables`. How they were obtained is told in `docs/reproduce.md`.
Commits marked + had changes on top of them.

{table}
"""


def readme(store: Store) -> str:
    """Command, number of records, commits, machines and time, by table or figure and data set.

    Parameters
    ----------
    store : results and measurements
    """
    groups: dict[tuple[str, str], list[Record]] = {}
    for result in store.records(Result):
        command = f"table2 --protocol {result.protocol}"
        groups.setdefault((command, result.dataset), []).append(result)
    for measurement in store.records(Measurement):
        groups.setdefault((measurement.figure, measurement.dataset), []).append(measurement)
    order = list(DATASETS)
    keys = sorted(groups, key=lambda key: (key[0], order.index(key[1]) if key[1] in order else 99))
    header = ["command", "data set", "records", "splits", "tuned on rows", "CPU time", "commit",
              "machine", "finished"]  # fmt: skip
    rows = [[f"`vicinal reproduce {key[0]}`", key[1], *_row(groups[key])] for key in keys]
    return _TEXT.format(table=markdown_table(header, rows, " ".join(["---"] * len(header))))


def _row(records: Sequence[Record]) -> list[str]:
    results = [record for record in records if isinstance(record, Result)]
    spent = sum(result.cpu_seconds or 0.0 for result in results)
    failed = sum(record.error is not None for record in records)
    tuned = {result.tuning_rows for result in results if result.tuning_rows is not None}
    return [
        f"{len(records)} ({failed} failed)" if failed else str(len(records)),
        str(len({result.split for result in results})) if results else "–",
        ", ".join(map(str, sorted(tuned))) or "–",
        in_words(spent) if results else "–",
        ", ".join(sorted({record.commit_id for record in records})),
        "; ".join(sorted({record.machine for record in records})),
        time.strftime("%Y-%m-%d", time.gmtime(max(record.finished for record in records))),
    ]
