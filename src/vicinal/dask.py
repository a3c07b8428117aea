"""A fitted model over data of many machines: Dask DataFrames, and folders of Parquet files.

Each worker holds the model once and prepares it at its first part; memory per worker is that of the
model and of one part. The results are those of the model itself, part by part.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from vicinal._typing import LabelArray, Table
from vicinal.exceptions import missing_extra
from vicinal.fitted_model import anatomy, plain_arrays
from vicinal.tables.reading import read_chunks
from vicinal.tables.streaming import CHUNK_ROWS, ChunkWork, coordinates, map_chunks, predictions
from vicinal.tables.table_model import TableCounts, TableModel
from vicinal.tables.writing import table_writer

__all__ = ["predict", "transform"]

Model: TypeAlias = TableModel | BaseEstimator
PathLike: TypeAlias = str | Path
RETRIES = 3
"""Times that a file is tried again after an error of a worker."""


def predict(
    model: Model,
    frame: Table | PathLike,
    out: PathLike | None = None,
    *,
    n_neighbors: int = 0,
) -> Table | list[Path]:
    """Predict the rows of a Dask DataFrame, or of a folder of Parquet files.

    Parameters
    ----------
    model : TableModel or fitted estimator
        An estimator takes the columns that it was fitted on, by name; unnamed ones are x0, x1, …
    frame : dask DataFrame, str or path
        A path is a folder of ``*.parquet`` files that every worker can read.
    out : str or path, optional
        Of a folder: where to, a file of the same name for each; each is complete or not there, and
        one that is there already is not computed again.
    n_neighbors : int, default=0
        Neighbors that are listed; only for a TableModel.

    Returns
    -------
    predicted : dask DataFrame, or list of path
        Lazy, of the partitions of the frame; of a folder, the files written.
    """
    return _map(model, frame, out, predictions(n_neighbors) if n_neighbors else _predicted)


def transform(
    model: Model, frame: Table | PathLike, out: PathLike | None = None
) -> Table | list[Path]:
    """Embed rows so that Euclidean distances are the learned ones; parameters of :func:`predict`.

    A committee has several metrics: there they are those of the weighted mean.
    """
    return _map(model, frame, out, coordinates)


def _map(
    model: Model,
    frame: Table | PathLike,
    out: PathLike | None,
    work: ChunkWork,
) -> Table | list[Path]:
    try:
        import dask  # noqa: F401
    except ImportError as error:
        raise missing_extra("vicinal.dask", "dask", "dask") from error
    if isinstance(frame, str | Path):
        if out is None:
            raise ValueError("a folder of files needs a folder for the results: give out")
        return _map_folder(model, Path(frame), Path(out), work)
    if out is not None or not hasattr(frame, "map_partitions"):
        raise TypeError(
            f"frame is a {type(frame).__name__}; give a Dask DataFrame without out, or a folder "
            "with out"
        )
    meta = _answers(frame._meta_nonempty, model, work).iloc[:0]
    client = _client()
    if client is None:
        compute = partial(_answers, model=model, work=work)
        return frame.map_partitions(compute, meta=meta, enforce_metadata=False)
    shared = _scattered(client, model)
    return frame.map_partitions(_answers, shared, work, meta=meta, enforce_metadata=False)


def _scattered(client: Any, model: Model) -> Any:
    """The model as one object per worker."""
    return client.scatter(model, broadcast=True, hash=False)


def _client() -> Any:
    try:
        from distributed import get_client

        return get_client()
    except (ImportError, ValueError):
        return None


def _answers(part: pd.DataFrame, model: Model, work: ChunkWork) -> pd.DataFrame:
    """The results for a part, with its index."""
    if isinstance(model, TableModel):
        (table,) = map_chunks(model, [part], work, TableCounts())
    else:
        table = pd.DataFrame(_of_estimator(model, part, work))
    return table.set_index(part.index)


def _of_estimator(
    model: BaseEstimator, part: pd.DataFrame, work: ChunkWork
) -> dict[str, LabelArray]:
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        names = [f"x{j}" for j in range(model.n_features_in_)]
    absent = [repr(str(name)) for name in names if name not in part.columns]
    if absent:
        raise ValueError(f"the frame has no column {', '.join(absent)}")
    table = part[list(names)]
    X = table if getattr(model, "encoder_", None) is not None else table.to_numpy(dtype=np.float64)
    with plain_arrays():
        if work is coordinates:
            fitted = anatomy(model)
            Z = fitted.metric.embed(fitted.prepare(X))
            return {f"z{j}": column for j, column in enumerate(Z.T)}
        columns = {"prediction": np.asarray(model.predict(X))}
        if hasattr(model, "predict_proba"):
            P = model.predict_proba(X)
            columns |= {f"p({c})": P[:, j] for j, c in enumerate(model.classes_)}
    return columns


_predicted = predictions(0)


def _map_folder(model: Model, folder: Path, out: Path, work: ChunkWork) -> list[Path]:
    """One result per file, as workers are free; what is there already stays."""
    files = sorted(folder.glob("*.parquet"))
    if not files:
        raise ValueError(f"{folder} has no files *.parquet")
    out.mkdir(parents=True, exist_ok=True)
    if out.resolve() == folder.resolve():
        raise ValueError("out is the folder of the input, whose files would be replaced")
    missing = [file for file in files if not (out / file.name).exists()]
    client = _client()
    if client is None:
        for file in missing:
            _compute_file(file, model, work, out)
    else:
        compute = partial(_compute_file, work=work, out=out.resolve())
        futures = client.map(
            lambda file, shared: compute(file, shared),
            [file.resolve() for file in missing],
            shared=_scattered(client, model),
            pure=False,
            retries=RETRIES,
        )
        client.gather(futures)
    return [out / file.name for file in files]


def _compute_file(file: Path, model: Model, work: ChunkWork, out: Path) -> Path:
    """Read, compute and write a file part by part."""
    roles = model.roles.names if isinstance(model, TableModel) else ()
    with (
        read_chunks(file, roles, size=CHUNK_ROWS) as chunks,
        table_writer(out / file.name) as write,
    ):
        for chunk in chunks.frames:
            write(_answers(chunk, model, work))
    return out / file.name
