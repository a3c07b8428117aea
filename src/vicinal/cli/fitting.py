"""The work of ``vicinal fit``: read, split, fit, judge and write, keeping the best model so far."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pandas as pd

from vicinal.cli.options import kinds_of, reading_of, require_column
from vicinal.cli.output import (
    Output,
    ProgressBar,
    collected_warnings,
    column_documents,
    column_lines,
    column_text,
    dropped_rows,
    percent,
    remarked_warnings,
    show_duration,
)
from vicinal.exceptions import TableError
from vicinal.model_file import save
from vicinal.tables.reading import read_table
from vicinal.tables.selection import FitSettings
from vicinal.tables.table_model import NamedColumns, TableModel
from vicinal.tables.text_files import ReadOptions
from vicinal.tables.training_table import (
    ColumnRoles,
    TrainingTable,
    class_labels,
    labels_like,
    prepare_training,
)
from vicinal.validation.folds import hold_out
from vicinal.validation.scores import wilson_interval
from vicinal.version import __version__


@dataclass(frozen=True)
class FitRequest:
    """What was asked for on the command line."""

    train: Path
    target: str
    method: str = "auto"
    out: Path = Path("model.vicinal")
    report: Path | None = None
    test: Path | None = None
    holdout: float | None = None
    refit: bool = False
    id_column: str | None = None
    group_column: str | None = None
    keep: tuple[str, ...] = ()
    max_time: float | None = None
    effort: float = 1.0
    seed: int = 0
    types: tuple[str, ...] = ()
    separator: str | None = None
    encoding: str | None = None
    missing: str | None = None

    @property
    def roles(self) -> ColumnRoles:
        """The columns that are not features."""
        return ColumnRoles(
            self.target, self.id_column, self.group_column, self.keep, kinds_of(list(self.types))
        )

    @property
    def reading(self) -> ReadOptions:
        """How the tables are read: names and groups as they are written."""
        options = reading_of(self.separator, self.encoding, self.missing)
        names = [name for name in (self.id_column, self.group_column) if name is not None]
        return replace(options, as_text=names)

    @property
    def command(self) -> str:
        """The command line, with names of files instead of paths."""
        words = ["vicinal", "fit", _shown_name(self.train)]
        for option in fields(self)[1:]:
            value = getattr(self, option.name)
            if value is None or value is False or value == option.default:
                continue
            for one in value if isinstance(value, tuple) else (value,):
                name = "type" if option.name == "types" else option.name.removesuffix("_column")
                flag = f"--{name.replace('_', '-')}"
                words += [flag] if one is True else [flag, _shown_name(one)]
        return shlex.join(words)


@dataclass(frozen=True)
class Parts:
    """The rows to learn from, and those to judge by, if any."""

    train: TrainingTable
    test: pd.DataFrame | None
    everything: pd.DataFrame


@dataclass(frozen=True)
class Fitted:
    """What came out: the model, plain K-NN beside it, how long it took."""

    model: TableModel
    plain: TableModel
    seconds: float
    warnings: list[str]
    interrupted: bool


def _shown_name(value: object) -> str:
    """An option as text; of a path its name, with bytes that are not UTF-8 replaced."""
    if isinstance(value, Path):
        return os.fsencode(value.name).decode("utf-8", errors="replace")
    return str(value)


def run_fit(request: FitRequest, output: Output) -> None:
    """Fit, write and tell; KeyboardInterrupt with a message after the best so far is written."""
    parts = _read(request, output)
    fitted = _fit(request, parts.train)
    judged = None if parts.test is None else judge(fitted.model, fitted.plain, parts.test)
    if request.refit and not fitted.interrupted:
        fitted = _refit(request, fitted, parts.everything)
    model = replace(fitted.model, provenance=_provenance(request, fitted, judged))
    save(model, request.out)
    _tell(request, output, replace(fitted, model=model), judged)
    if fitted.interrupted:
        report = "; no page was written" if request.report else ""
        raise KeyboardInterrupt(f"interrupted; the best model so far is {request.out}{report}")
    if request.report is not None:
        try:
            _write_page(request, request.report, model, None if request.refit else parts.test)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"interrupted; the model is {request.out}, no page was written"
            ) from None
        output.say(f"page      {request.report}")


def _read(request: FitRequest, output: Output) -> Parts:
    with remarked_warnings(output):
        table = read_table(request.train, request.roles.names, request.reading)
    for name, option in (
        (request.target, "--target"),
        (request.id_column, "--id"),
        (request.group_column, "--group"),
        *((name, "--keep") for name in request.keep),
        *((name, "--type") for name in request.roles.kinds),
    ):
        require_column(table, name, option)
    known = table[table[request.target].notna()]
    if len(known) < len(table):
        output.say(dropped_rows(len(table) - len(known), request.target))
    if request.test is not None:
        train = prepare_training(known, request.roles)
        with remarked_warnings(output):
            test = read_table(request.test, request.roles.names, request.reading)
        require_column(test, request.target, "--test")
        test = test[test[request.target].notna()]
        for text in check_test(train, test, request.roles):
            output.remark(text)
        return Parts(train, test, known)
    if request.holdout is None:
        return Parts(prepare_training(known, request.roles), None, known)
    y, groups = class_labels(known[request.target]), request.roles.groups(known)
    rows, test_rows = hold_out(y, groups, request.holdout, request.seed)
    train = prepare_training(known.iloc[rows], request.roles)
    return Parts(train, known.iloc[test_rows], known)


def _fit(request: FitRequest, train: TrainingTable) -> Fitted:
    """All candidates until the last, or until Ctrl-C."""
    found: list[TableModel] = []
    start, interrupted = monotonic(), False
    with collected_warnings() as warnings, ProgressBar() as bar:
        settings = FitSettings(
            request.method, request.seed, request.max_time, request.effort, listener=bar
        )
        try:
            found.extend(TableModel.candidates(train, request.roles, settings=settings))
        except KeyboardInterrupt:
            if not found:
                raise
            interrupted = True
    return Fitted(found[-1], found[0], monotonic() - start, warnings, interrupted)


def _refit(request: FitRequest, fitted: Fitted, everything: pd.DataFrame) -> Fitted:
    """The same on all rows; interrupted, the judged model remains the best."""
    try:
        again = _fit(request, prepare_training(everything, request.roles))
    except KeyboardInterrupt:
        return replace(fitted, interrupted=True)
    if again.interrupted:
        return replace(fitted, interrupted=True)
    return replace(again, seconds=fitted.seconds + again.seconds)


def _provenance(
    request: FitRequest, fitted: Fitted, judged: dict[str, Any] | None
) -> dict[str, Any]:
    return {
        **fitted.model.provenance,
        "held_out": judged,
        "interrupted": fitted.interrupted,
        "fit_seconds": round(fitted.seconds, 3),
        "warnings": fitted.warnings,
        "data": _shown_name(request.train),
        "command": request.command,
        "vicinal": __version__,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _tell(
    request: FitRequest, output: Output, fitted: Fitted, judged: dict[str, Any] | None
) -> None:
    model, facts = fitted.model, fitted.model.provenance
    for line in column_lines(model.columns):
        output.say(line)
    took = show_duration(fitted.seconds)
    up = "; the time was up: this is the best so far" if facts["timed_out"] else ""
    output.say(f"model     {facts['how']} ({took}{up})")
    accuracy, plain = facts["cross_validated_accuracy"], facts["plain_cross_validated_accuracy"]
    if accuracy is not None:
        output.say(f"accuracy  {percent(accuracy)} cross-validated; plain K-NN {percent(plain)}")
    if judged is not None:
        low, high = map(percent, judged["interval"])
        right, plain = percent(judged["accuracy"]), percent(judged["plain_accuracy"])
        rows = f"{judged['rows']} rows right (95 % interval {low} to {high})"
        output.say(f"held out  {right} of {rows}; plain K-NN {plain}")
    for text in [] if output.as_json else fitted.warnings:  # they are in the document
        output.remark(f"note: {text}")
    apart = request.holdout and not (request.refit and not fitted.interrupted)
    without = ", without the held-out ones" if apart else ""
    output.say(f"written   {request.out}, which holds {len(model.ids)} training rows{without}")
    output.document(
        {
            "model": str(request.out),
            "report": None if request.report is None else str(request.report),
            "rows": len(model.ids),
            "features": list(model.feature_names),
            "classes": model.classes,
            "columns": column_documents(model.columns),
            **facts,
        }
    )


def _write_page(
    request: FitRequest, path: Path, model: TableModel, test: pd.DataFrame | None
) -> None:
    from vicinal.reporting import report

    held_out: dict[str, Any] = {}
    ids = model.ids.astype(str).tolist()
    if test is not None:
        y_test = labels_like(test[request.target], model.classes)
        known = np.array([label is not None for label in y_test])
        held_out = {
            "X_test": model.prepare(test[known], ignore_unseen=True),
            "y_test": y_test[known].astype(model.classes.dtype),
        }
        ids += model.roles.ids(test[known]).astype(str).tolist()
    with ProgressBar() as bar:
        bar("page", None)
        report(
            model.of_features,
            model.training_rows,
            model.labels,
            path,
            **held_out,
            feature_names=list(model.feature_names),
            ids=ids,
            title=f"{request.target} of {_shown_name(request.train)}",
            reasons={"K": f"{model.provenance['how']}."},
            provenance={
                "Command": model.provenance["command"],
                "Seed": str(request.seed),
                "Columns": [f"{e.name}: {column_text(e)}" for e in model.columns],
            },
        )


def check_test(train: TrainingTable, test: pd.DataFrame, roles: ColumnRoles) -> list[str]:
    """Refuse a test table that the model of `train` could not predict; remarks on the others.

    Parameters
    ----------
    train : TrainingTable
    test : DataFrame
    roles : ColumnRoles
    """
    try:
        if len(test) == 0:
            raise TableError(f"no row has a class in {roles.target!r}")
        columns = NamedColumns.of(train.encoder)
        encoded = train.encoder.encode(columns.select(test))
    except TableError as error:
        raise TableError(f"the test table does not fit the training table: {error}") from error
    return [
        f"note: test column {name!r}: {', '.join(map(repr, sorted(levels)[:5]))} not in training, "
        "taken as no known one"
        for name, levels in encoded.unseen.items()
    ]


def judge(model: TableModel, plain: TableModel, test: pd.DataFrame) -> dict[str, Any]:
    """Accuracy on held-out rows, with its 95 % interval, and that of plain K-NN.

    Plain K-NN is that of the page (its K by leave-one-out), so that both say the same; unless
    plain K-NN is what was asked for.
    """
    from vicinal.reporting.evaluation import plain_predictions

    truth = labels_like(test[model.target], model.classes)
    X = model.prepare(test, ignore_unseen=True)
    right = model.predicted(X) == truth
    plain_right = right
    if model is not plain:
        labels, codes = np.unique(model.labels, return_inverse=True)
        predicted, _ = plain_predictions(model.training_rows, codes, X)
        plain_right = labels[predicted] == truth
    hits, n = int(right.sum()), len(truth)
    return {
        "rows": n,
        "accuracy": hits / n,
        "interval": list(wilson_interval(hits, n)),
        "plain_accuracy": float(plain_right.mean()),
    }
