"""Exports to vector stores: a folder with the vectors, how to query them, and a card."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from vicinal._typing import Document
from vicinal.atomic_write import check_folder, whole_folder
from vicinal.exceptions import missing_extra
from vicinal.export.committee_map import NEIGHBORS
from vicinal.export.vector_table import VectorTable, vector_table
from vicinal.version import __version__

CARD = "card.json"
TABLE = "vicinal_rows"
MOST_DIMENSIONS = 16_000
"""Of pgvector."""
MOST_INDEXED = 2_000
"""Of an index of pgvector."""
EF_CONSTRUCTION, LINKS = 200, 16
"""Of the graph of hnswlib."""
NO_GRAPH = "partitions only: graphs (HNSW) by inner product find next to none of the nearest rows"


def to_vector_store(
    model: BaseEstimator,
    X: ArrayLike,
    folder: str | os.PathLike[str],
    store: str,
    *,
    ids: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    keep_raw: bool = False,
    metric: str | None = None,
    feature_names: Sequence[str] | None = None,
) -> Document:
    """Write the rows of X as vectors for a vector store, and what queries them.

    Parameters
    ----------
    model : estimator
        A fitted metric learner, search or automatic classifier, or a Pipeline that contains one.
        A committee is replaced by the one linear map that keeps its neighborhoods best; the card
        says what that costs.
    X : array-like of shape (n_samples, n_features)
        The reference rows, as the model takes them.
    folder : str or path
        Is created. One that an earlier export has written is replaced; any other is an error.
    store : {"pgvector", "duckdb", "lancedb", "usearch", "hnswlib"}
        Packages are those of ``vicinal[stores]`` and ``vicinal[hnswlib]``; "pgvector" needs none.
    ids : array-like of shape (n_samples,), optional
        Integers or texts that name the rows; by default their numbers.
    labels : array-like of shape (n_samples,), optional
        Classes or numbers of the rows.
    keep_raw : bool, default=False
        Keep the features in the table: vectors [x, −½xᵀMx], asked by inner product with [Mq, 1].
        Exact searches only: graphs by inner product find next to none of the nearest rows.
    metric : {"l2", "ip", "cosine"}, optional
        Of the store. One that would find other neighbors is refused, with the reason.
    feature_names : sequence of str, optional
        For the card; default: those that the model was fitted with.

    Returns
    -------
    card : dict
        The content of ``card.json``.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_iris
    >>> import vicinal as vc
    >>> from vicinal.export import to_vector_store
    >>> X, y = load_iris(return_X_y=True)
    >>> nca = vc.NCA(n_components=2).fit(X, y)
    >>> card = to_vector_store(nca, X, tempfile.mkdtemp(), "pgvector", labels=y)
    >>> card["rows"], card["dimension"], card["metric"], sorted(card["files"])[-2:]
    (150, 2, 'l2', ['query.py', 'query.sql'])
    """
    if store not in STORES:
        raise ValueError(f"store={store!r} is unknown; use one of {', '.join(STORES)}")
    check_folder(folder, CARD)
    if store != "pgvector" and not _is_unicode(Path(folder).absolute()):
        raise ValueError(f"{store} writes only to paths in UTF-8; choose another folder")
    options = {"ids": ids, "labels": labels, "keep_raw": keep_raw, "metric": metric}
    table = vector_table(model, X, **options)  # type: ignore[arg-type]
    if feature_names is None:
        feature_names = getattr(model, "feature_names_in_", None)
    with whole_folder(folder, CARD) as unfinished:
        _write_query_map(table, unfinished)
        _write_query_code(store, unfinished)
        _write_files(store, table, unfinished)
        card = _card(table, store, feature_names, unfinished)
        text = json.dumps(card, indent=2, ensure_ascii=False)
        (unfinished / CARD).write_text(text + "\n", encoding="utf-8")
    return card


def _write_files(store: str, table: VectorTable, folder: Path) -> None:
    """The files of the store; where it cannot write them, whatever it raises, an OSError."""
    try:
        STORES[store](table, folder)
    except (OSError, ValueError, ImportError):
        raise
    except Exception as error:
        said = " ".join(str(error).split())
        raise OSError(f"{store} could not write its files: {said}") from error


def _is_unicode(path: Path) -> bool:
    try:
        str(path).encode()
    except UnicodeEncodeError:  # halves of surrogate pairs stand for bytes that are not UTF-8
        return False
    return True


def _write_query_map(table: VectorTable, folder: Path) -> None:
    arrays = {name: getattr(table.queries, name) for name in ("A", "center", "offset")}
    if table.shift is not None:
        arrays["shift"] = table.shift.A
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array, allow_pickle=False)


def _write_query_code(store: str, folder: Path) -> None:
    source = files("vicinal.export") / "query_code"
    parts = [
        (source / f"{name}.py.txt").read_text(encoding="utf-8")
        for name in ("common", store, "main")
    ]
    (folder / "query.py").write_text("".join(parts), encoding="utf-8")


def _card(table: VectorTable, store: str, names: Sequence[str] | None, folder: Path) -> Document:
    n, m = table.vectors.shape
    raw = table.raw
    card: Document = {
        "written_by": f"vicinal {__version__}",
        "store": store,
        "rows": n,
        "dimension": m,
        "dtype": "float32",
        "metric": table.metric,
        "holds": "[x, -1/2 (x - c)' M (x - c)]" if raw else "A (x - center)",
        "query": "[M (q - c), 1] = A (q - center) + offset" if raw else "A (q - center)",
        "nearest": "largest inner product" if raw else "smallest Euclidean distance",
        "how": "query.py: search(features, k) gives learned distances and row numbers",
        "approximate_indexes": NO_GRAPH if raw else "as the store has them",
        "features": {
            "number": len(table.queries.center),
            "names": None if names is None or table.before else [str(name) for name in names],
            "made_by": list(table.before),
        },
    }
    if table.replaced is not None:
        found = table.replaced
        card["replaces_a_committee"] = {
            "learned_on_rows": found.n_rows,
            "committee_accuracy_out_of_fold": found.committee_accuracy,
            "map_accuracy_cross_validated": found.map_accuracy,
            "vote": f"exp(-distance^2) of the {NEIGHBORS} nearest rows",
        }
    card["vectors_sha256"] = hashlib.sha256(table.vectors.tobytes()).hexdigest()
    card["files"] = {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    return card


# -------------------------------------------------------------------------------------- stores


def _write_pgvector(table: VectorTable, folder: Path) -> None:
    """``load.sql`` for psql, ``index.sql`` and ``query.sql``."""
    m = table.vectors.shape[1]
    if m > MOST_DIMENSIONS:
        raise ValueError(f"pgvector holds up to {MOST_DIMENSIONS} dimensions, not {m}")
    names = {"row_id": np.arange(len(table.vectors)), "id": table.ids, "label": table.labels}
    columns = {name: values for name, values in names.items() if values is not None}
    types = {"i": "bigint", "f": "double precision", "U": "text"}
    defined = [f"{name} {types[values.dtype.kind]} NOT NULL" for name, values in columns.items()]
    with (folder / "load.sql").open("w", encoding="utf-8", newline="\n") as file:
        file.write(
            f"-- psql -v ON_ERROR_STOP=1 -f load.sql\nBEGIN;\n"
            f"CREATE EXTENSION IF NOT EXISTS vector;\nCREATE TABLE {TABLE} (\n  "
            + ",\n  ".join([*defined, f"embedding vector({m}) NOT NULL", "PRIMARY KEY (row_id)"])
            + f"\n);\nCOPY {TABLE} ({', '.join(columns)}, embedding) FROM STDIN;\n"
        )
        numbers = "[" + ",".join(["%.9g"] * m) + "]"  # 9 digits give back a float32
        cells = [map(_copied, values.tolist()) for values in columns.values()]
        for *row, vector in zip(*cells, table.vectors.tolist(), strict=True):
            file.write("\t".join([*row, numbers % tuple(vector)]) + "\n")
        file.write("\\.\nCOMMIT;\n")
    operator = "<#>" if table.raw else "<->"
    if m <= MOST_INDEXED and not table.raw:  # by inner product the graph finds next to nothing
        (folder / "index.sql").write_text(
            "-- approximate from then on; SET hnsw.ef_search raises recall and time\n"
            f"CREATE INDEX ON {TABLE} USING hnsw (embedding vector_l2_ops);\n",
            encoding="utf-8",
        )
    shown = ", ".join(columns)
    value = "-(embedding <#> $1::vector) AS score" if table.raw else "embedding <-> $1::vector"
    _write_sql(
        folder,
        f"SELECT {shown}, {value}{'' if table.raw else ' AS distance'}\nFROM {TABLE}\n"
        f"ORDER BY embedding {operator} $1::vector\nLIMIT $2",
    )


def _copied(value: object) -> str:
    """A cell of COPY's text format."""
    text = repr(value) if isinstance(value, float) else str(value)
    if "\0" in text:
        raise ValueError("PostgreSQL holds no texts with a zero byte: change the ids or labels")
    for character, written in (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r")):
        text = text.replace(character, written)
    return text


def _write_sql(folder: Path, query: str) -> None:
    (folder / "query.sql").write_text(
        f"-- $1: the vector of the query (query.py: embed), $2: how many rows\n{query}\n",
        encoding="utf-8",
    )


def _write_duckdb(table: VectorTable, folder: Path) -> None:
    """``vectors.duckdb`` and ``query.sql``."""
    duckdb = _needed("duckdb")
    m = table.vectors.shape[1]
    with duckdb.connect(str(folder / "vectors.duckdb")) as connection:
        connection.register("given", _arrow(table))
        connection.execute(f"CREATE TABLE {TABLE} AS SELECT * FROM given")
    shown = "row_id, id" + ("" if table.labels is None else ", label")
    function, direction = ("array_inner_product", " DESC") if table.raw else ("array_distance", "")
    value = "score" if table.raw else "distance"
    _write_sql(
        folder,
        f"SELECT {shown}, {function}(embedding, $1::FLOAT[{m}]) AS {value}\nFROM {TABLE}\n"
        f"ORDER BY {value}{direction}\nLIMIT $2",
    )


def _write_lancedb(table: VectorTable, folder: Path) -> None:
    """The table ``vicinal_rows.lance``."""
    _needed("lancedb").connect(folder).create_table(TABLE, _arrow(table))


def _arrow(table: VectorTable) -> Any:
    """The rows as an Arrow table: row_id, id, label, embedding."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise missing_extra("this export", "pyarrow", "stores") from error
    flat = pa.array(table.vectors.ravel())
    columns = {"row_id": pa.array(np.arange(len(table.vectors))), "id": pa.array(table.ids)}
    if table.labels is not None:
        columns["label"] = pa.array(table.labels)
    vectors = pa.FixedSizeListArray.from_arrays(flat, table.vectors.shape[1])
    return pa.table({**columns, "embedding": vectors})


def _write_usearch(table: VectorTable, folder: Path) -> None:
    """``vectors.usearch``, ``ids.npy`` and ``labels.npy``."""
    _needed("usearch")
    from usearch.index import Index

    metric = "ip" if table.raw else "l2sq"
    index = Index(ndim=table.vectors.shape[1], metric=metric, dtype="f32")
    index.add(np.arange(len(table.vectors)), table.vectors)
    index.save(str(folder / "vectors.usearch"))
    _write_names(table, folder)


def _write_hnswlib(table: VectorTable, folder: Path) -> None:
    """``vectors.hnsw``, ``ids.npy`` and ``labels.npy``."""
    hnswlib = _needed("hnswlib", extra="hnswlib")
    n, m = table.vectors.shape
    index = hnswlib.Index("ip" if table.raw else "l2", m)
    index.init_index(n, ef_construction=EF_CONSTRUCTION, M=LINKS)
    index.add_items(table.vectors, np.arange(n))
    path = folder / "vectors.hnsw"
    index.save_index(str(path))
    if path.stat().st_size != index.index_file_size():  # hnswlib hides a full disk
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    _write_names(table, folder)


def _write_names(table: VectorTable, folder: Path) -> None:
    """Write the names that the row numbers of an index stand for."""
    names: dict[str, NDArray[np.generic] | None] = {"ids": table.ids, "labels": table.labels}
    for name, values in names.items():
        if values is not None:
            np.save(folder / f"{name}.npy", values, allow_pickle=False)


def _needed(package: str, extra: str = "stores") -> Any:
    try:
        return __import__(package)
    except ImportError as error:
        raise missing_extra("this export", package, extra) from error


STORES: dict[str, Callable[[VectorTable, Path], None]] = {
    "pgvector": _write_pgvector,
    "duckdb": _write_duckdb,
    "lancedb": _write_lancedb,
    "usearch": _write_usearch,
    "hnswlib": _write_hnswlib,
}
"""Every store, and what writes for it."""
