"""``vicinal export``: a model for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from vicinal._typing import Document
from vicinal.atomic_write import check_folder
from vicinal.cli.options import AsJson, ModelPath, require_place
from vicinal.cli.output import Output, percent
from vicinal.cli.predict import load_table_model
from vicinal.fitted_model import EuclideanMetric, MeanMetric
from vicinal.tables.table_model import TableModel

FORMATS = ("onnx", "faiss", "npy")
STORES = ("pgvector", "duckdb", "lancedb", "usearch", "hnswlib")


def export(
    model: ModelPath,
    to: Annotated[str, typer.Option(metavar="|".join(FORMATS + STORES), help="Format.")],
    out: Annotated[Path, typer.Option(help="File; for npy and vector stores a folder.")],
    keep_raw: Annotated[
        bool, typer.Option("--keep-raw", help="Vector stores: keep the features in the table.")
    ] = False,
    metric: Annotated[
        str | None,
        typer.Option(metavar="l2|ip|cosine", help="Vector stores: refused if it does not fit."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    r"""Export a model: the transform as ONNX or plain arrays, the training rows for vector search.

    Input of all are the prepared features (standardized, one-hot) that vicinal info lists. ONNX
    and FAISS need pip install 'vicinal\[export]'; duckdb, lancedb and usearch 'vicinal\[stores]';
    hnswlib 'vicinal\[hnswlib]'.

    For a vector store, a folder is written: the vectors, query.py or SQL that asks for neighbors,
    and card.json. A committee (--method auto) is replaced by the one map that keeps its
    neighborhoods best; what that costs in accuracy is told.

    [bold]Examples[/bold]

    vicinal export model.vicinal --to onnx --out model.onnx

    vicinal export model.vicinal --to pgvector --out vectors
    """
    if to not in FORMATS + STORES:
        raise typer.BadParameter(f"use {', '.join(FORMATS + STORES)}", param_hint="--to")
    if to in FORMATS and (keep_raw or metric is not None):
        raise typer.BadParameter("is for vector stores only", param_hint="--keep-raw, --metric")
    _require_out(to, out, model)
    output = Output(as_json)
    fitted = load_table_model(model)
    if isinstance(fitted.fitted.metric, EuclideanMetric):
        raise ValueError("plain K-NN has learned no transform that could be exported")
    facts: Document = {"format": to, "out": str(out)}
    if to in FORMATS:
        _write_transform(fitted, to, out)
    else:
        facts["card"] = _write_store(fitted, to, out, keep_raw=keep_raw, metric=metric)
    output.say(f"written   {out}")
    for line in _cost(facts.get("card", {}).get("replaces_a_committee")):
        output.say(line)
    output.document(facts)


def _require_out(to: str, out: Path, model: Path) -> None:
    """Refuse, before any work, a place that could not be written to."""
    if to not in STORES:
        require_place(out / "card.json" if to == "npy" and out.is_dir() else out, "--out", model)
        return
    try:
        check_folder(out, "card.json")
    except OSError as error:
        raise typer.BadParameter(f"{out}: {error.strerror}", param_hint="--out") from error
    require_place(out.with_name("card.json"), "--out")


def _write_transform(fitted: TableModel, to: str, out: Path) -> None:
    if isinstance(fitted.fitted.metric, MeanMetric):
        raise ValueError(
            "a committee has several metrics, and no one transform; use vicinal fit --method "
            f"single, or export its one best map to a vector store ({', '.join(STORES)})"
        )
    from vicinal.export import to_faiss, to_npy, to_onnx

    if to == "onnx":
        to_onnx(fitted.of_features, out)
    elif to == "faiss":
        named = fitted.ids.dtype.kind in "iu"
        to_faiss(fitted.of_features, fitted.training_rows, out, ids=fitted.ids if named else None)
    else:
        to_npy(fitted.of_features, out, feature_names=fitted.feature_names)


def _write_store(fitted: TableModel, to: str, out: Path, **options: Any) -> Document:
    from vicinal.export import to_vector_store

    return to_vector_store(
        fitted.of_features,
        fitted.training_rows,
        out,
        to,
        ids=fitted.ids,
        labels=fitted.labels,
        feature_names=fitted.feature_names,
        **options,
    )


def _cost(replaced: Document | None) -> list[str]:
    """Lines about the accuracy that a committee loses where one map replaces it."""
    if replaced is None:
        return []
    before, after = (
        percent(replaced[name])
        for name in ("committee_accuracy_out_of_fold", "map_accuracy_cross_validated")
    )
    return [
        f"one map   replaces the metrics of the committee: accuracy {after} instead of {before}",
        f"          (on {replaced['learned_on_rows']} rows; votes: {replaced['vote']})",
    ]
