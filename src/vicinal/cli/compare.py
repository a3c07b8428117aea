"""``vicinal compare``: all methods on equal terms."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from time import monotonic
from typing import Annotated

import numpy as np
import pandas as pd
import typer
from scipy.stats import rankdata

from vicinal.cli.options import (
    AsJson,
    GroupColumn,
    MaxTime,
    Seed,
    Target,
    TrainFile,
    Types,
    kinds_of,
    require_column,
    seconds_of,
    with_reading_options,
)
from vicinal.cli.output import Output, ProgressBar, collected_warnings, remarked_warnings
from vicinal.exceptions import TableError
from vicinal.tables.methods import METHODS
from vicinal.tables.reading import read_table
from vicinal.tables.selection import FitSettings
from vicinal.tables.table_model import TableModel
from vicinal.tables.text_files import ReadOptions
from vicinal.tables.training_table import (
    ColumnRoles,
    class_labels,
    labels_like,
    prepare_training,
)
from vicinal.validation.folds import Fold, stratified_folds, usable_folds
from vicinal.validation.schedule import Deadline, Schedule, run_tasks


@dataclass(frozen=True)
class MethodTrial:
    """One fit on the training rows of a split, judged by its test rows."""

    accuracy: float
    seconds: float
    timed_out: bool


@dataclass(frozen=True)
class Comparison:
    """The table, the roles of its columns and the seed that methods are compared on."""

    table: pd.DataFrame
    roles: ColumnRoles
    seed: int

    def folds(self, n_splits: int) -> list[Fold]:
        """The outer folds."""
        y, groups = class_labels(self.table[self.roles.target]), self.roles.groups(self.table)
        return usable_folds(stratified_folds(n_splits, y, groups, self.seed), y)


@dataclass(frozen=True)
class Standing:
    """One method over all splits it was tried on."""

    method: str
    accuracy: float
    spread: float
    fit_seconds: float
    rank: int
    accuracies: list[float]
    timed_out: bool


@with_reading_options
def compare(
    train: TrainFile,
    target: Target,
    methods: Annotated[
        str, typer.Option(help=f"Separated by commas, of {', '.join(METHODS)}.")
    ] = ",".join(METHODS),
    splits: Annotated[int, typer.Option(min=2, help="Outer folds, the same for all.")] = 5,
    group: GroupColumn = None,
    types: Types = None,
    *,
    reading: ReadOptions,
    max_time: MaxTime = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Compare methods by nested cross-validation: accuracy, spread, fit time, rank.

    Every method sees the same outer folds, prepares the columns and chooses its settings (K at
    least) on their training rows alone, and is judged by their test rows. The spread is the
    standard deviation over the folds: differences well below it mean nothing. Ctrl-C shows what is
    there so far.

    [bold]Examples[/bold]

    vicinal compare train.csv --target species

    vicinal compare train.csv --target species --methods plain,nca,auto --splits 10 --max-time 10m
    """
    names = [name.strip() for name in methods.split(",")]
    unknown = [name for name in names if name not in METHODS]
    if unknown:
        text = f"{unknown[0]!r} is unknown; use {', '.join(METHODS)}"
        raise typer.BadParameter(text, param_hint="--methods")
    output, seconds = Output(as_json), seconds_of(max_time)
    with remarked_warnings(output):
        table = read_table(train, [target] if group is None else [target, group], reading)
    kinds = kinds_of(types)
    for name, option in ((target, "--target"), (group, "--group"), *((k, "--type") for k in kinds)):
        require_column(table, name, option)
    roles = ColumnRoles(target, None, group, kinds=kinds)
    comparison = Comparison(table[table[target].notna()], roles, seed)
    with remarked_warnings(output):
        folds = comparison.folds(splits)
    trials: dict[str, list[MethodTrial]] = {name: [] for name in names}
    interrupted = False
    try:
        _run(comparison, folds, trials, seconds)
    except KeyboardInterrupt:
        interrupted = True
    _tell(_standings(trials), len(comparison.table), len(folds), output)
    done = min(len(of_method) for of_method in trials.values())
    if interrupted:
        raise KeyboardInterrupt(
            f"interrupted; the table shows what was done before: {done} of {len(folds)} folds of "
            "every method"
        )


def _run(
    comparison: Comparison,
    folds: list[Fold],
    trials: dict[str, list[MethodTrial]],
    seconds: float | None,
) -> None:
    """Fold by fold, so that an interrupt leaves all methods equally far; time is shared alike."""
    jobs = [(name, fold) for fold in folds for name in trials]
    schedule = Schedule(Deadline.after(seconds))

    def fit_and_judge(number: int) -> MethodTrial:
        name, fold = jobs[number]
        bar(f"{len(jobs)} fits", number / len(jobs))
        remaining = schedule.deadline.remaining
        left = None if remaining is None else remaining / (len(jobs) - number)
        return _try(comparison, fold, FitSettings(name, comparison.seed, left))

    with collected_warnings(), ProgressBar() as bar:
        run_tasks(
            fit_and_judge,
            range(len(jobs)),
            schedule,
            done=lambda number, trial: trials[jobs[number][0]].append(trial),
        )


def _try(comparison: Comparison, fold: Fold, settings: FitSettings) -> MethodTrial:
    train, test = (comparison.table.iloc[rows] for rows in fold)
    start = monotonic()
    try:
        data = prepare_training(train, comparison.roles)
        *_, model = TableModel.candidates(data, comparison.roles, settings=settings)
    except TableError:
        raise
    except ValueError as error:
        raise ValueError(f"{settings.method}: {error}") from error
    seconds = monotonic() - start
    truth = labels_like(test[comparison.roles.target], model.classes)
    right = model.predict(test, ignore_unseen=True) == truth
    return MethodTrial(float(np.mean(right)), seconds, bool(model.provenance["timed_out"]))


def _standings(trials: dict[str, list[MethodTrial]]) -> list[Standing]:
    """The methods that were tried, best first; equal means share a rank."""
    tried = {name: done for name, done in trials.items() if done}
    means = {name: float(np.mean([t.accuracy for t in done])) for name, done in tried.items()}
    ranks = rankdata([-mean for mean in means.values()], method="min")
    standings = [
        Standing(
            method=name,
            accuracy=means[name],
            spread=float(np.std([t.accuracy for t in done])),
            fit_seconds=float(np.mean([t.seconds for t in done])),
            rank=int(rank),
            accuracies=[t.accuracy for t in done],
            timed_out=any(t.timed_out for t in done),
        )
        for (name, done), rank in zip(tried.items(), ranks, strict=True)
    ]
    return sorted(standings, key=lambda standing: standing.rank)


def _tell(standings: list[Standing], n_rows: int, n_folds: int, output: Output) -> None:
    rows = [
        (
            s.rank,
            s.method,
            f"{100 * s.accuracy:.2f}",
            f"{100 * s.spread:.2f}",
            f"{s.fit_seconds:.2f}",
            f"{len(s.accuracies)}/{n_folds}",
            "time was up" if s.timed_out else "",
        )
        for s in standings
    ]
    names = ["rank", "method", "accuracy, %", "spread", "fit, s", "folds", ""]
    output.say(f"{n_rows} rows, {n_folds} outer folds")
    output.table(names, rows)
    output.document({"rows": n_rows, "splits": n_folds, "methods": [asdict(s) for s in standings]})
