"""``vicinal export``: a model for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vicinal.cli.options import AsJson, ModelPath, require_place
from vicinal.cli.output import Output
from vicinal.cli.predict import load_table_model
from vicinal.fitted_model import MeanMetric

FORMATS = ("onnx", "faiss", "npy")


def export(
    model: ModelPath,
    to: Annotated[str, typer.Option(metavar="onnx|faiss|npy", help="Format.")],
    out: Annotated[Path, typer.Option(help="File; for npy a folder.")],
    as_json: AsJson = False,
) -> None:
    r"""Export a model: the transform as ONNX, the training rows as a FAISS index, or plain arrays.

    Input of all three are the prepared features (standardized, one-hot) that vicinal info
    lists. ONNX and FAISS need pip install 'vicinal\[export]'.

    [bold]Examples[/bold]

    vicinal export model.vicinal --to onnx --out model.onnx

    vicinal export model.vicinal --to npy --out arrays
    """
    if to not in FORMATS:
        raise typer.BadParameter(f"use {', '.join(FORMATS)}", param_hint="--to")
    require_place(out / "card.json" if to == "npy" and out.is_dir() else out, "--out", model)
    output = Output(as_json)
    fitted = load_table_model(model)
    if isinstance(fitted.fitted.metric, MeanMetric):
        raise ValueError(
            "a committee has several metrics, and no one transform; use vicinal fit --method single"
        )
    if not fitted.fitted.steps:
        raise ValueError("plain K-NN has learned no transform that could be exported")
    from vicinal.export import to_faiss, to_npy, to_onnx

    if to == "onnx":
        to_onnx(fitted.of_features, out)
    elif to == "faiss":
        named = fitted.ids.dtype.kind in "iu"
        to_faiss(fitted.of_features, fitted.training_rows, out, ids=fitted.ids if named else None)
    else:
        to_npy(fitted.of_features, out, feature_names=fitted.feature_names)
    output.say(f"written   {out}")
    output.document({"format": to, "out": str(out)})
