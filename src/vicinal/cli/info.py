"""``vicinal info``: what is in a model file."""

from __future__ import annotations

import numpy as np

from vicinal.cli.options import AsJson, ModelPath
from vicinal.cli.output import Output, percent
from vicinal.cli.predict import load_table_model
from vicinal.tables.remarks import column_documents, column_text
from vicinal.tables.table_model import TableModel


def info(model: ModelPath, as_json: AsJson = False) -> None:
    """Show what a model file holds: method, accuracy, classes, and what is done to each column.

    Safe on files from strangers: a model file holds numbers and text, no code. The accuracies are
    what its writer says; predict on rows with known classes to see for yourself.

    [bold]Example[/bold]

    vicinal info model.vicinal
    """
    output = Output(as_json)
    fitted = load_table_model(model)
    facts = fitted.provenance
    labels, counts = _classes(fitted)
    how = _text(facts, "how") or type(fitted.estimator).__name__
    output.say(f"{fitted.target} by {how}")
    for line in _lines(facts):
        output.say(line)
    rows, features = fitted.training_rows.shape
    output.say(f"{rows} training rows, {features} features, {model.stat().st_size / 1e6:.2f} MB")
    output.say()
    if fitted.task == "classification":
        output.table(["class", "rows"], list(zip(labels, counts, strict=True)))
    else:
        low, high = fitted.labels.min(), fitted.labels.max()
        output.say(f"numbers from {low:.6g} to {high:.6g}, mean {fitted.labels.mean():.6g}")
    output.say()
    output.table(
        ["column", "what is done to it"], [(e.name, column_text(e)) for e in fitted.columns]
    )
    output.document(
        {
            "target": fitted.target,
            "estimator": type(fitted.estimator).__name__,
            "classes": {str(c): n for c, n in zip(labels, counts, strict=True)},
            "task": fitted.task,
            "rows": rows,
            "features": list(fitted.feature_names),
            "columns": column_documents(fitted.columns),
            "id_column": fitted.roles.id_column,
            "group_column": fitted.roles.group_column,
            "provenance": facts,
        }
    )


def _classes(fitted: TableModel) -> tuple[list[object], list[int]]:
    """The classes and their numbers of training rows; none of a model of numbers."""
    if fitted.task == "regression":
        return [], []
    labels, counts = np.unique(fitted.labels, return_counts=True)
    return labels.tolist(), counts.tolist()


def _lines(facts: object) -> list[str]:
    """Lines about the fit, as its writer tells it; entries of an unexpected type are left out."""
    lines = []
    accuracy, plain = (_share(facts, f"{kind}cross_validated_accuracy") for kind in ("", "plain_"))
    if accuracy is not None:
        beside = "" if plain is None else f" (plain K-NN {percent(plain)})"
        lines.append(f"{percent(accuracy)} cross-validated{beside}")
    r2 = _share(facts, "cross_validated_r2")
    if r2 is not None:
        lines.append(f"R² {r2:.3f} cross-validated")
    held_out = _entry(facts, "held_out")
    accuracy, rows = _share(held_out, "accuracy"), _entry(held_out, "rows")
    if accuracy is not None and type(rows) is int:
        lines.append(f"{percent(accuracy)} of {rows} held-out rows")
    for reason, words in (("interrupted", "interrupted"), ("timed_out", "its time was up")):
        if _entry(facts, reason) is True:
            lines.append(f"the fit did not end by itself: {words}")
    command = _text(facts, "command")
    if command:
        version, written = _text(facts, "vicinal"), _text(facts, "written")
        lines.append(f"{command}   (vicinal {version or '?'}, {written or '?'})")
    return lines


def _entry(facts: object, name: str) -> object:
    return facts.get(name) if isinstance(facts, dict) else None


def _text(facts: object, name: str) -> str | None:
    value = _entry(facts, name)
    return value if isinstance(value, str) else None


def _share(facts: object, name: str) -> float | None:
    value = _entry(facts, name)
    return value if type(value) is float and 0.0 <= value <= 1.0 else None
