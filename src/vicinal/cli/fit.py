"""``vicinal fit``: from a training table to a model, and a page about it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, get_args

import typer

from vicinal.cli.fitting import FitRequest, run_fit
from vicinal.cli.options import (
    AsJson,
    Encoding,
    GroupColumn,
    MaxTime,
    Missing,
    Seed,
    Separator,
    Target,
    TrainFile,
    Types,
    require_place,
    seconds_of,
)
from vicinal.cli.output import Output
from vicinal.tables.methods import METHODS
from vicinal.tables.training_table import Task


def fit(
    train: TrainFile,
    target: Target,
    method: Annotated[str, typer.Option(help=f"One of {', '.join(METHODS)}.")] = "auto",
    out: Annotated[Path, typer.Option(help="Where the model goes.")] = Path("model.vicinal"),
    report: Annotated[
        Path | None, typer.Option(help="Also write a page about the model, one HTML file.")
    ] = None,
    test: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="Table to judge the model by.")
    ] = None,
    holdout: Annotated[
        float | None, typer.Option(help="Or a share of the rows, such as 0.2, kept apart for that.")
    ] = None,
    refit: Annotated[
        bool,
        typer.Option("--refit", help="After judging, fit once more on all rows, held-out too."),
    ] = False,
    id_column: Annotated[
        str | None, typer.Option("--id", help="Column that names the rows; no feature.")
    ] = None,
    group: GroupColumn = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(help="Use this column though it looks like row numbers; may be repeated."),
    ] = None,
    types: Types = None,
    separator: Separator = None,
    encoding: Encoding = None,
    missing: Missing = None,
    max_time: MaxTime = None,
    effort: Annotated[
        float, typer.Option(help="Of auto and single: 2 tunes on twice the rows.")
    ] = 1.0,
    class_weight: Annotated[
        str | None,
        typer.Option(metavar="balanced", help="Of auto and single: all classes count the same."),
    ] = None,
    max_rows: Annotated[
        int | None,
        typer.Option(min=20, help="Keep a sample of so many rows, each class with its share."),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            metavar="classification|regression",
            help="Whether the target holds classes or numbers; found out if absent.",
        ),
    ] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Fit a nearest-neighbor model to a table, metric and all.

    Numbers are standardized, texts become one-hot features or, with many levels, statistics of the
    target, dates become times and circles, missing values are filled and marked, constant and
    identifier-like columns are dropped. Everything is said, kept in the model, and done again by
    predict.

    --method auto tunes and combines several metrics; single keeps the best one, which can be
    exported; ann searches α, γ and K; any other learner takes its defaults, and K by
    cross-validation; plain learns no metric. Ctrl-C keeps the best
    model so far.

    [bold]Examples[/bold]

    vicinal fit train.csv --target species

    vicinal fit train.parquet --target y --holdout 0.2 --report report.html --max-time 5m

    vicinal fit wine.npz --target y --method nca --out nca.vicinal --json
    """
    request = FitRequest(
        train=train,
        target=target,
        method=method,
        out=out,
        report=report,
        test=test,
        holdout=holdout,
        refit=refit,
        id_column=id_column,
        group_column=group,
        keep=tuple(keep or ()),
        max_time=seconds_of(max_time),
        effort=effort,
        class_weight=class_weight,
        max_rows=max_rows,
        task=_checked_task(task),
        seed=seed,
        types=tuple(types or ()),
        separator=separator,
        encoding=encoding,
        missing=missing,
    )
    _check_usage(request)
    run_fit(request, Output(as_json))


def _checked_task(task: str | None) -> Task | None:
    for known in get_args(Task):
        if task == known:
            return known
    if task is not None:
        raise typer.BadParameter(f"use {' or '.join(get_args(Task))}", param_hint="--task")
    return None


def _check_usage(request: FitRequest) -> None:
    """Refuse what cannot be, before any work is done."""
    method, holdout = request.method, request.holdout
    _ = request.roles, request.reading  # usage errors of --type and --separator
    if method not in METHODS:
        raise typer.BadParameter(f"use one of {', '.join(METHODS)}", param_hint="--method")
    if request.test is not None and holdout is not None:
        raise typer.BadParameter("use --test or --holdout, not both", param_hint="--holdout")
    if holdout is not None and not 0 < holdout <= 0.5:
        raise typer.BadParameter("use a share above 0, up to 0.5", param_hint="--holdout")
    if request.refit and holdout is None:
        raise typer.BadParameter("there is nothing to add without --holdout", param_hint="--refit")
    if request.effort != 1.0 and method not in ("auto", "single"):
        raise typer.BadParameter("only --method auto and single have one", param_hint="--effort")
    if request.class_weight not in (None, "balanced"):
        raise typer.BadParameter("use balanced", param_hint="--class-weight")
    if request.class_weight is not None and method not in ("auto", "single"):
        raise typer.BadParameter(
            "only --method auto and single take it", param_hint="--class-weight"
        )
    if request.effort <= 0:
        raise typer.BadParameter("use a number above 0", param_hint="--effort")
    if request.report is not None and method == "plain":
        raise typer.BadParameter("the page is about a learned metric", param_hint="--report")
    require_place(request.out, "--out", request.train, request.test, request.report)
    require_place(request.report, "--report", request.train, request.test)
