"""Scores of classes as text: what is said first, and the table of the classes."""

from __future__ import annotations

from vicinal._typing import Document
from vicinal.cli.output import percent
from vicinal.validation.scores import RARE_SHARE

SHOWN_CLASSES = 30


def score_lines(name: str, scores: Document, plain: Document) -> list[str]:
    """Accuracy, or balanced accuracy where a class is rare, beside that of plain K-NN."""
    low, high = map(percent, scores["interval"])
    right = (
        f"{percent(scores['accuracy'])} of {scores['rows']:,} rows right (95 % interval {low} to "
        f"{high}); plain K-NN {percent(plain['accuracy'])} of the same rows"
    )
    balanced = (
        f"{percent(scores['balanced_accuracy'])} balanced accuracy; plain K-NN "
        f"{percent(plain['balanced_accuracy'])}"
    )
    rare = rare_class(scores)
    first, second = (right, balanced) if rare is None else (balanced, right)
    area = "" if scores["roc_auc"] is None else f"ROC AUC {scores['roc_auc']:.3f}, "
    lines = [f"{name:<10}{first}", f"{'':<10}{second}"]
    if rare is not None:
        lines.insert(1, f"{'':<10}said first because {rare}: accuracy says little about it")
    return [*lines, f"{'':<10}{area}log-loss {scores['log_loss']:.4f}"]


def rare_class(scores: Document) -> str | None:
    """The rarest class, if it is rare."""
    there = [one for one in scores["classes"] if one["rows"]]
    rarest = min(there, key=lambda one: one["rows"])
    if rarest["rows"] * len(there) >= RARE_SHARE * scores["rows"]:
        return None
    return f"class {rarest['label']!r} has {percent(rarest['rows'] / scores['rows'])} of the rows"


def class_table(scores: Document) -> tuple[list[str], list[tuple[object, ...]]]:
    """Names and rows of a table: precision, recall and F1 of every class."""
    rows = [
        (
            str(one["label"]),
            one["rows"],
            *(
                "–" if one[key] is None else percent(one[key])
                for key in ("precision", "recall", "f1")
            ),
        )
        for one in scores["classes"][:SHOWN_CLASSES]
    ]
    return ["class", "rows", "precision", "recall", "F1"], rows


def further_classes(scores: Document) -> list[str]:
    """What is said after a table that does not have all classes."""
    more = len(scores["classes"]) - SHOWN_CLASSES
    return [f"and {more} more; --json lists them all"] if more > 0 else []


def score_texts(scores: Document | None) -> dict[str, str | list[str]]:
    """The same for the page."""
    if scores is None or "accuracy" not in scores:
        return {}
    balanced = f"{percent(scores['balanced_accuracy'])} of {scores['rows']:,} rows"
    rare = rare_class(scores)
    if rare is not None:
        balanced += f"; the figure to look at, because {rare}"
    area = "" if scores["roc_auc"] is None else f"ROC AUC {scores['roc_auc']:.3f}, "
    names, rows = class_table(scores)
    lines = [
        f"{row[0]}: " + ", ".join(f"{n} {v}" for n, v in zip(names[1:], row[1:], strict=True))
        for row in rows
    ]
    return {
        "Balanced accuracy": balanced,
        "Probabilities": f"{area}log-loss {scores['log_loss']:.4f}",
        "Classes": lines + further_classes(scores),
    }


def number_lines(name: str, scores: Document, plain: Document | None = None) -> list[str]:
    """Errors of predicted numbers, beside those of plain K-NN where they are known."""
    errors = (
        f"root mean squared error {scores['rmse']:.5g}, mean absolute error {scores['mae']:.5g}"
    )
    lines = [f"{name:<10}R² {scores['r2']:.3f}, {errors}, on {scores['rows']:,} rows"]
    if plain is not None:
        lines.append(
            f"{'':<10}plain K-NN R² {plain['r2']:.3f}, {plain['rmse']:.5g} and {plain['mae']:.5g} "
            "on the same rows"
        )
    if scores["coverage"] is not None:
        share = percent(scores["coverage"])
        lines.append(f"{'':<10}{share} of the rows inside of their 90 % intervals")
    return lines
