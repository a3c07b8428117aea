"""A server under load, on bad input, and against its schema: python benchmarks/serve_load.py.

The server is ``vicinal serve`` in a process of its own, on loopback; this process asks. Bounded:
15 seconds per load, 10,000 bad requests, some hundred generated from the schema. A shortened run
on letter: 10,000 training rows of 16 features, a committee.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import httpx
import numpy as np
import pandas as pd
from common import ROOT, fill_section, letter, print_header

import vicinal as vc
from vicinal.tables.selection import FitSettings
from vicinal.tables.table_model import TableModel

SECONDS, ROWS, BAD = 15.0, 10_000, 10_000
SCHEMA_TESTS = """
import schemathesis
from hypothesis import HealthCheck, settings
schema = schemathesis.openapi.from_url({url!r} + "/openapi.json")
@schema.parametrize()
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), database=None)
def test_api(case):
    case.call_and_validate()
"""


def train(folder: Path) -> pd.DataFrame:
    """Fit and save a model; the rows that it has not seen."""
    X, y = letter(ROWS + 1000)
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    table["letter"] = [chr(65 + int(label)) for label in y]
    settings = FitSettings(method="auto", effort=0.25)
    model = TableModel.fit(table[:ROWS], "letter", settings=settings)
    vc.save(model, folder / "letter.vicinal")
    return table[ROWS:].drop(columns="letter")


def start(folder: Path) -> tuple[subprocess.Popen[str], str]:
    """The server, and its address."""
    code = "import vicinal.cli as c; c.main()"
    words = [sys.executable, "-c", code, "serve", "letter.vicinal", "--port", "0"]
    log = (folder / "log").open("w")
    process = subprocess.Popen([*words, "--allow-changes"], cwd=folder, stderr=log, stdout=log)
    while True:
        found = re.search(r"http://127\.0\.0\.1:\d+", (folder / "log").read_text())
        if found:
            return process, found[0]
        time.sleep(0.1)


async def load(url: str, path: str, bodies: list[bytes], clients: int) -> str:
    """Ask for a while from so many clients at once: requests per second, p50 and p99."""
    taken: list[float] = []
    statuses: Counter[int] = Counter()
    end = time.perf_counter() + SECONDS

    async def ask(number: int) -> None:
        async with httpx.AsyncClient(base_url=url, timeout=120) as client:
            i = number
            while time.perf_counter() < end:
                begin = time.perf_counter()
                reply = await client.post(
                    path,
                    content=bodies[i % len(bodies)],
                    headers={"content-type": "application/json"},
                )
                taken.append(time.perf_counter() - begin)
                statuses[reply.status_code] += 1
                i += clients

    begin = time.perf_counter()
    await asyncio.gather(*(ask(i) for i in range(clients)))
    seconds = time.perf_counter() - begin
    p50, p99 = 1e3 * np.percentile(taken, [50, 99])
    n, rate = len(json.loads(bodies[0])["rows"]), len(taken) / seconds
    assert set(statuses) == {200}, statuses
    return f"| `{path}` | {n} | {clients} | {rate:.1f} | {n * rate:.0f} | {p50:.0f} | {p99:.0f} |"


def bad_requests(url: str, good: dict, number: int) -> Counter[int]:
    """Statuses of requests that are wrong in random ways."""
    rng = random.Random(0)
    paths = ["/predict", "/neighbors", "/explain", "/rows", "/rows/forget", "/nothing"]
    cells = [None, True, "", "x", "\ud800", "\0", "1e999", 1e308, -1e308, 5e-324, 10**25, 10**400]
    cells += [float("nan"), float("inf"), [], {}, "9" * 5000, "=1+1", "2020-01-01", -0.0]

    def spoiled() -> bytes:
        row = dict(good)
        for _ in range(rng.randint(1, 4)):
            name = rng.choice([*row, "letter", "", "\ud800", "x" * 300])
            if rng.random() < 0.2 and name in row:
                del row[name]
            else:
                row[name] = rng.choice(cells)
        body = {"rows": [row] * rng.choice([1, 1, 2])}
        if rng.random() < 0.3:
            body[rng.choice(["neighbors", "unseen", "ids", "more"])] = rng.choice(
                [*cells, 3, "ignore"]
            )
        text = json.dumps(body).encode()
        if rng.random() < 0.3:
            text = bytearray(text)
            for _ in range(rng.randint(1, 3)):
                text[rng.randrange(len(text))] = rng.randrange(256)
        return bytes(text)

    found: Counter[int] = Counter()
    with httpx.Client(base_url=url, timeout=60) as client:
        for _ in range(number):
            headers = {"content-type": rng.choice(["application/json"] * 9 + ["text/plain"])}
            method = rng.choice(["POST"] * 9 + ["GET"])
            reply = client.request(method, rng.choice(paths), content=spoiled(), headers=headers)
            found[reply.status_code] += 1
    return found


def against_schema(url: str, folder: Path) -> str:
    """The last line of schemathesis's tests."""
    (folder / "test_schema.py").write_text(SCHEMA_TESTS.format(url=url))
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_schema.py"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=600)
    if done.returncode:
        print(done.stdout[-6000:])
    return done.stdout.strip().splitlines()[-1]


def main(folder: Path) -> None:
    """Print everything, and put the table into the documentation."""
    new = train(folder)
    rows = new.to_dict(orient="records")
    process, url = start(folder)
    try:
        lines = [
            "| | rows per request | clients | requests/s | rows/s | p50, ms | p99, ms |",
            "|---|---|---|---|---|---|---|",
        ]
        for path, n, clients in [
            ("/predict", 1, 1), ("/predict", 1, 4), ("/predict", 100, 1), ("/neighbors", 1, 1),
            ("/explain", 1, 1),
        ]:  # fmt: skip
            bodies = [
                json.dumps({"rows": rows[i : i + n]}).encode() for i in range(0, 1000 - n + 1, n)
            ]
            lines.append(asyncio.run(load(url, path, bodies, clients)))
            print(lines[-1], flush=True)
        statuses = bad_requests(url, rows[0], BAD)
        told = ", ".join(f"{status}: {count:,}" for status, count in sorted(statuses.items()))
        lines += ["", f"{BAD:,} requests that are wrong in random ways, statuses: {told}."]
        print(lines[-1], flush=True)
        summary = against_schema(url, folder)
        lines += ["", f"schemathesis on the schema, 60 examples per route: {summary.strip('= ')}."]
        print(lines[-1], flush=True)
    finally:
        process.terminate()
        print(f"the server ended with {process.wait(timeout=60)}")
    if "Traceback" in (folder / "log").read_text():
        print((folder / "log").read_text()[-3000:])
    if not statuses[500]:
        fill_section(ROOT / "docs" / "serving.md", "serve", "\n".join(lines))


if __name__ == "__main__":
    print_header(f"Serving letter, {ROWS:,} training rows, committee")
    print(f"load average before {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as name:
        main(Path(name))
