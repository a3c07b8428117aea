"""Vector stores: recall of their approximate indexes, and seconds per query, for both forms.

    python benchmarks/vector_stores.py [rows]

Letter, one metric (GMML), 10 neighbors of 500 queries; recall is the share of the exact ones.
"""

from __future__ import annotations

import runpy
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from common import letter, print_header
from scipy.spatial.distance import cdist

import vicinal as vc
from vicinal.export import to_vector_store

QUERIES, K = 500, 10


def recall(found: np.ndarray, exact: np.ndarray) -> float:
    """The share of the found rows that are no farther than the K-th nearest: ties count."""
    squared = np.take_along_axis(exact, found, axis=1)
    return float(np.mean(squared <= np.sort(exact, axis=1)[:, K - 1 : K] * (1 + 1e-5) + 1e-9))


def line(store: str, form: str, how: str, ask: Callable[[], tuple], exact: np.ndarray) -> None:
    """Time one search of all queries, and print its recall."""
    start = time.perf_counter()
    rows = ask()[1]
    seconds = time.perf_counter() - start
    told = f"{1e3 * seconds / QUERIES:9.2f} ms"
    print(f"{store:9} {form:4} {how:28} recall {recall(rows, exact):.4f} {told}", flush=True)


def pgvector(folder: Path, form: str, queries: np.ndarray, exact: np.ndarray) -> None:
    import pgserver
    import psycopg

    with tempfile.TemporaryDirectory() as data:
        server = pgserver.get_server(Path(data) / "pg", cleanup_mode="delete")
        server.psql((folder / "load.sql").read_text())
        search = runpy.run_path(str(folder / "query.py"))["search"]
        with psycopg.connect(server.get_uri()) as connection:
            line("pgvector", form, "exact", lambda: search(queries, K, connection), exact)
        kind = "ip" if form == "raw" else "l2"
        server.psql(f"CREATE INDEX ON vicinal_rows USING hnsw (embedding vector_{kind}_ops);")
        for ef in (40, 200, 1000):
            with psycopg.connect(server.get_uri()) as connection:
                connection.execute(f"SET hnsw.ef_search = {ef}")
                connection.execute("SET enable_seqscan = off")
                ask = lambda: search(queries, K, connection)  # noqa: E731
                line("pgvector", form, f"hnsw, ef_search {ef}", ask, exact)
        server.cleanup()


def lancedb(folder: Path, form: str, queries: np.ndarray, exact: np.ndarray) -> None:
    import lancedb

    search = runpy.run_path(str(folder / "query.py"))["search"]
    line("lancedb", form, "exact", lambda: search(queries, K), exact)
    table = lancedb.connect(folder).open_table("vicinal_rows")
    metric = "dot" if form == "raw" else "l2"
    for kind in ("IVF_FLAT", "IVF_HNSW_SQ"):
        table.create_index(
            metric=metric, vector_column_name="embedding", index_type=kind, num_partitions=64
        )
        ask = lambda: search(queries, K, exact=False, nprobes=8)  # noqa: E731
        line("lancedb", form, f"{kind}, 8 of 64 partitions", ask, exact)


def duckdb(folder: Path, form: str, queries: np.ndarray, exact: np.ndarray) -> None:
    search = runpy.run_path(str(folder / "query.py"))["search"]
    line("duckdb", form, "exact (no index in the package)", lambda: search(queries, K), exact)


def usearch(folder: Path, form: str, queries: np.ndarray, exact: np.ndarray) -> None:
    search = runpy.run_path(str(folder / "query.py"))["search"]
    line("usearch", form, "exact", lambda: search(queries, K), exact)
    if form == "z":  # query.py refuses the other
        line("usearch", form, "graph", lambda: search(queries, K, exact=False), exact)


def hnswlib(folder: Path, form: str, queries: np.ndarray, exact: np.ndarray) -> None:
    search = runpy.run_path(str(folder / "query.py"))["search"]
    line("hnswlib", form, "exact", lambda: search(queries, K), exact)
    for ef in (50, 200, 1000) if form == "z" else ():
        ask = lambda: search(queries, K, exact=False, ef=ef)  # noqa: B023, E731
        line("hnswlib", form, f"graph, ef {ef}", ask, exact)


if __name__ == "__main__":
    print_header("Vector stores")
    X, y = letter(int(sys.argv[1]) if len(sys.argv) > 1 else None)
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order], y[order]
    rows, queries = X[QUERIES:], X[:QUERIES]
    model = vc.GMML().fit(rows, y[QUERIES:])
    exact = cdist(model.transform(queries), model.transform(rows), "sqeuclidean")
    print(f"{len(rows)} rows of {rows.shape[1]} features, {QUERIES} queries, {K} neighbors")
    for form in ("z", "raw"):
        for store in (pgvector, lancedb, duckdb, usearch, hnswlib):
            with tempfile.TemporaryDirectory() as folder:
                out = Path(folder) / "out"
                to_vector_store(model, rows, out, store.__name__, keep_raw=form == "raw")
                store(out, form, queries, exact)
