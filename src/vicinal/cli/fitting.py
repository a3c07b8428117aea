"""The work of ``vicinal fit``: read, split, fit, judge and write, keeping the best model so far."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

import numpy as np
import pandas as pd

from vicinal._typing import Document, LabelArray
from vicinal.cli.class_scores import (
    class_table,
    further_classes,
    number_lines,
    score_lines,
    score_texts,
)
from vicinal.cli.options import kinds_of, reading_of, require_column
from vicinal.cli.output import (
    Output,
    ProgressBar,
    collected_warnings,
    column_lines,
    dropped_rows,
    remarked_warnings,
    show_duration,
)
from vicinal.exceptions import TableError
from vicinal.features.table_encoder import EncodedSamples
from vicinal.model_file import save
from vicinal.tables.holdout import judge
from vicinal.tables.reading import read_table
from vicinal.tables.remarks import column_documents, column_text
from vicinal.tables.sampling import read_sample, rows_to_keep
from vicinal.tables.selection import FitSettings
from vicinal.tables.table_model import NamedColumns, TableModel
from vicinal.tables.text_files import ReadOptions
from vicinal.tables.training_table import (
    ColumnRoles,
    Task,
    TrainingTable,
    find_task,
    labels_like,
    prepare_training,
    target_numbers,
    target_strata,
    target_values,
)
from vicinal.validation.folds import hold_out
from vicinal.validation.schedule import Deadline, Schedule
from vicinal.version import __version__

SHOWN_CLASSES = 20
JUDGING_SHARE = 0.25
"""Of --max-time, where there are rows to judge by."""


@dataclass(frozen=True)
class FitRequest:
    """The options of ``vicinal fit``."""

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
    class_weight: str | None = None
    max_rows: int | None = None
    task: Task | None = None
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
        """Options for reading the tables: names and groups stay as they are written."""
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
    """The result of a fit: the model, plain K-NN beside it, the time taken."""

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
    deadline = Deadline.after(request.max_time)
    with remarked_warnings(output):
        parts = _read(request, output)
    _tell_plan(parts, output)
    fitted = _fit(request, parts.train, _shortened(deadline, parts.test, request.refit))
    judged = None
    if parts.test is not None and not fitted.interrupted:
        judged = _judged(fitted, parts.test, deadline)
    if request.refit and not fitted.interrupted:
        fitted = _refit(request, fitted, parts.everything, deadline)
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
    table = _read_training(request, output)
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
    task = request.task or find_task(known[request.target])
    _check_task(request, task)
    if request.test is not None:
        train = prepare_training(known, request.roles, task)
        test = read_table(request.test, request.roles.names, request.reading)
        require_column(test, request.target, "--test")
        test = test[test[request.target].notna()]
        for text in check_test(train, test, request.roles):
            output.remark(text)
        return Parts(train, test, known)
    if request.holdout is None:
        return Parts(prepare_training(known, request.roles, task), None, known)
    y, groups = target_values(known[request.target], task), request.roles.groups(known)
    rows, test_rows = hold_out(target_strata(y, task), groups, request.holdout, request.seed)
    train = prepare_training(known.iloc[rows], request.roles, task)
    return Parts(train, known.iloc[test_rows], known)


def _check_task(request: FitRequest, task: Task) -> None:
    """Refuse what is only for classes, before any work."""
    if task == "classification":
        return
    if request.class_weight is not None:
        raise TableError(
            f"--class-weight is about classes, and target {request.target!r} holds numbers; leave "
            "it out, or use --task classification"
        )


def _read_training(request: FitRequest, output: Output) -> pd.DataFrame:
    """The training table, or a sample of one that does not fit in memory."""
    wanted = rows_to_keep(request.train, request.max_rows)
    if wanted is None:
        return read_table(request.train, request.roles.names, request.reading)
    sample = read_sample(
        request.train, request.roles.names, request.reading, request.target, wanted, request.seed
    )
    if len(sample.frame) < sample.n_rows:
        reason = "as asked for" if request.max_rows else "the file is large beside the free memory"
        output.say(
            f"rows      a sample of {len(sample.frame):,} of {sample.n_rows:,} is kept, each class "
            f"with its share ({reason})"
        )
    return sample.frame


def _tell_plan(parts: Parts, output: Output) -> None:
    """Print, before the work, what will be done to each column, and the classes."""
    for line in column_lines(parts.train.encoder.columns_):
        output.say(line)
    if parts.train.task == "regression":
        y = np.asarray(parts.train.rows.y, dtype=np.float64)
        output.say(f"target    numbers from {y.min():.6g} to {y.max():.6g}, mean {y.mean():.6g}")
        output.flush()
        return
    counts = Counter(parts.train.rows.y.tolist())
    shown = [f"{label} {count:,}" for label, count in counts.most_common(SHOWN_CLASSES)]
    more = f", and {len(counts) - SHOWN_CLASSES} more" if len(counts) > SHOWN_CLASSES else ""
    output.say(f"classes   {', '.join(shown)}{more}")
    output.flush()


def _shortened(deadline: Deadline, test: pd.DataFrame | None, refit: bool) -> float | None:
    """Seconds for the fit: of those that are left, some are for judging and for another fit."""
    remaining = deadline.remaining
    if remaining is None:
        return None
    share = (1.0 - JUDGING_SHARE * (test is not None)) / (1 + refit)
    return max(share * remaining, 1e-3)


def _fit(request: FitRequest, train: TrainingTable, seconds: float | None) -> Fitted:
    """All candidates until the last, or until Ctrl-C."""
    found: list[TableModel] = []
    start, interrupted = monotonic(), False
    with collected_warnings() as warnings, ProgressBar() as bar:
        settings = FitSettings(
            request.method, request.seed, seconds, request.effort, request.class_weight, bar
        )
        try:
            found.extend(TableModel.candidates(train, request.roles, settings=settings))
        except KeyboardInterrupt:
            if not found:
                raise
            interrupted = True
    return Fitted(found[-1], found[0], monotonic() - start, warnings, interrupted)


def _refit(
    request: FitRequest, fitted: Fitted, everything: pd.DataFrame, deadline: Deadline
) -> Fitted:
    """The same on all rows; interrupted, the judged model remains the best."""
    try:
        data = prepare_training(everything, request.roles, fitted.model.task)
        remaining = deadline.remaining
        again = _fit(request, data, None if remaining is None else max(remaining, 1e-3))
    except KeyboardInterrupt:
        return replace(fitted, interrupted=True)
    if again.interrupted:
        return replace(fitted, interrupted=True)
    return replace(again, seconds=fitted.seconds + again.seconds)


def _provenance(request: FitRequest, fitted: Fitted, judged: Document | None) -> Document:
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


def _tell(request: FitRequest, output: Output, fitted: Fitted, judged: Document | None) -> None:
    model, facts = fitted.model, fitted.model.provenance
    took = show_duration(fitted.seconds)
    why = "interrupted" if fitted.interrupted else "the time was up"
    up = f"; {why}: this is the best so far" if facts["timed_out"] or fitted.interrupted else ""
    output.say(f"model     {facts['how']} ({took}{up})")
    if facts["out_of_fold"] is not None:
        of_model, of_plain = facts["out_of_fold"], facts["plain_out_of_fold"]
        lines = score_lines if model.task == "classification" else number_lines
        for line in lines("accuracy", of_model, of_plain):
            output.say(line)
    if judged is not None:
        if model.task == "classification":
            lines_of_judged = score_lines("held out", judged, judged["plain"])
        else:
            lines_of_judged = number_lines("held out", judged)
        for line in lines_of_judged:
            output.say(line)
        if judged["of_rows"] > judged["rows"]:
            output.say(
                f"          judged by {judged['rows']:,} of {judged['of_rows']:,} rows: time"
            )
    scores = judged or facts["out_of_fold"]
    if scores is not None and model.task == "classification":
        output.say()
        output.table(*class_table(scores))
        for line in further_classes(scores):
            output.say(line)
        output.say()
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
            "task": model.task,
            "classes": model.classes if model.task == "classification" else None,
            "columns": column_documents(model.columns),
            **facts,
        }
    )


def _write_page(
    request: FitRequest, path: Path, model: TableModel, test: pd.DataFrame | None
) -> None:
    from vicinal.reporting import report

    held_out: Document = {}
    ids = model.ids.astype(str).tolist()
    if test is not None:
        y_test = _page_targets(model, test)
        known = np.array([target is not None for target in y_test])
        held_out = {
            "X_test": EncodedSamples(model.prepare(test[known], ignore_unseen=True), model.encoder),
            "y_test": y_test[known].astype(model.labels.dtype),
        }
        ids += model.roles.ids(test[known]).astype(str).tolist()
    scores = model.provenance["held_out"] or model.provenance["out_of_fold"]
    with ProgressBar() as bar:
        bar("page", None)
        report(
            model.of_features,
            EncodedSamples(model.training_rows, model.encoder),
            model.labels,
            path,
            **held_out,
            ids=ids,
            title=f"{request.target} of {_shown_name(request.train)}",
            reasons={"K": f"{model.provenance['how']}."},
            provenance={
                **(score_texts(scores) if model.task == "classification" else {}),
                "Command": model.provenance["command"],
                "Seed": str(request.seed),
                "Columns": [f"{e.name}: {column_text(e)}" for e in model.columns],
            },
        )


def _page_targets(model: TableModel, test: pd.DataFrame) -> LabelArray:
    """(n,) classes or numbers of a test table; None where the class is not known to the model."""
    if model.task == "regression":
        return target_numbers(test[model.target]).astype(object)
    return labels_like(test[model.target], model.classes)


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
        if train.task == "classification" and not _has_known_class(test[roles.target], train):
            shown = ", ".join(map(repr, train.classes[:5].astype(str).tolist()))
            raise TableError(f"no row of {roles.target!r} has a class of that one, such as {shown}")
        columns = NamedColumns.of(train.encoder)
        encoded = train.encoder.encode(columns.select(test))
    except TableError as error:
        raise TableError(f"the test table does not fit the training table: {error}") from error
    return [
        f"note: test column {name!r}: {', '.join(map(repr, sorted(levels)[:5]))} not in training, "
        "taken as no known one"
        for name, levels in encoded.unseen.items()
    ]


def _has_known_class(column: pd.Series, train: TrainingTable) -> bool:
    return any(label is not None for label in labels_like(column, train.classes))


def _judged(fitted: Fitted, test: pd.DataFrame, deadline: Deadline) -> Document | None:
    """The scores on held-out rows, with plain K-NN as on the page; None where Ctrl-C ends it."""
    from vicinal.reporting.evaluation import plain_voter

    model = fitted.model
    try:
        plain = None
        if model is not fitted.plain and model.task == "classification":
            codes = np.searchsorted(model.classes, model.labels)
            plain = plain_voter(model.training_rows, codes, model.encoder.feature_columns_)
        with ProgressBar() as bar:
            return judge(model, plain, test, Schedule(deadline, listener=bar))
    except KeyboardInterrupt:
        return None
