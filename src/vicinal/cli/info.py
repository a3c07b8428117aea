"""``vicinal info``: what is in a model file."""

from __future__ import annotations

from typing import Any

import numpy as np

from vicinal.cli.options import AsJson, ModelPath
from vicinal.cli.output import Output, percent
from vicinal.cli.predict import load_table_model


def info(model: ModelPath, as_json: AsJson = False) -> None:
    """Show what a model file holds: method, accuracy, classes, and what is done to each column.

    Safe on files from strangers: a model file holds numbers and text, no code.

    [bold]Example[/bold]

    vicinal info model.vicinal
    """
    output = Output(as_json)
    fitted = load_table_model(model)
    facts = fitted.provenance
    labels, counts = np.unique(fitted.labels, return_counts=True)
    output.say(f"{fitted.target} by {facts.get('how', type(fitted.estimator).__name__)}")
    for line in _lines(facts):
        output.say(line)
    rows, features = fitted.training_rows.shape
    output.say(f"{rows} training rows, {features} features, {model.stat().st_size / 1e6:.2f} MB")
    output.say()
    output.table(["class", "rows"], list(zip(labels, counts.tolist(), strict=True)))
    output.say()
    output.table(["column", "what is done to it"], [(p.name, str(p)) for p in fitted.columns])
    output.document(
        {
            "target": fitted.target,
            "estimator": type(fitted.estimator).__name__,
            "classes": {str(c): n for c, n in zip(labels, counts.tolist(), strict=True)},
            "rows": rows,
            "features": list(fitted.feature_names),
            "columns": [plan.to_state() for plan in fitted.columns],
            "id_column": fitted.id_column,
            "group_column": fitted.group_column,
            "provenance": facts,
        }
    )


def _lines(facts: dict[str, Any]) -> list[str]:
    lines = []
    if facts.get("cross_validated_accuracy") is not None:
        plain = facts.get("plain_cross_validated_accuracy")
        beside = "" if plain is None else f" (plain K-NN {percent(plain)})"
        lines.append(f"{percent(facts['cross_validated_accuracy'])} cross-validated{beside}")
    if facts.get("held_out"):
        held_out = facts["held_out"]
        lines.append(f"{percent(held_out['accuracy'])} of {held_out['rows']} held-out rows")
    if facts.get("timed_out") or facts.get("interrupted"):
        why = "interrupted" if facts.get("interrupted") else "its time was up"
        lines.append(f"the fit did not end by itself: {why}")
    if "command" in facts:
        lines.append(f"{facts['command']}   (vicinal {facts['vicinal']}, {facts['written']})")
    return lines
