"""Command line of the experiments: ``python -m experiments --help``.

Each table and figure of the paper is one command, and each command can be resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.datasets import DATASETS, SMALLEST
from experiments.methods import METHODS, on_backend
from vicinal.cli.app import Commands

if TYPE_CHECKING:  # what computes is imported by the command that needs it: --help is quick
    from experiments.datasets import Dataset
    from experiments.runner import Task
    from experiments.store import Store

FILE = "results.sqlite"

app = typer.Typer(
    cls=Commands,
    help="Reproduce the paper: tables, figures, claims. Every command continues where it stopped.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Out = Annotated[Path, typer.Option(help=f"Folder of {FILE}, the tables and the figures.")]
Data = Annotated[
    Path | None,
    typer.Option(help="Folder of <name>.npz files; default: VICINAL_DATA, then OpenML."),
]
Jobs = Annotated[int, typer.Option(help="Processes, one thread each; -1 is one per core.")]
DatasetNames = Annotated[
    str, typer.Option(help="Names separated by commas, or all, or smallest (the eight smallest).")
]
OUT = Path("results") / "reproduce"


@app.command("table2")
def run_table2(
    datasets: DatasetNames = "all",
    methods: Annotated[str, typer.Option(help="Names separated by commas, or all.")] = "all",
    splits: Annotated[int, typer.Option(min=1, help="70/30 splits.")] = 30,
    protocol: Annotated[str, typer.Option(help="honest, paper or noisy.")] = "honest",
    tuning_rows: Annotated[
        int | None, typer.Option(min=50, help="Tune on at most so many rows; default: all.")
    ] = None,
    backend: Annotated[
        str, typer.Option(help="What computes NCA, PNCA, ANN: auto; cuda or cuda:fast, a GPU.")
    ] = "auto",
    jobs: Jobs = 1,
    out: Out = OUT,
    data: Data = None,
    retry_failed: Annotated[bool, typer.Option(help="Try again what failed before.")] = False,
) -> None:
    """Table 2: every method on every data set, mean ± standard deviation beside the paper's."""
    from experiments import table2, tables

    names = _names(methods, METHODS, {}, "--methods")
    _check_backend(backend, names)
    chosen = [on_backend(METHODS[name], backend) for name in names]
    loaded = _load(datasets, data)
    if protocol not in table2.PROTOCOLS:
        known = ", ".join(table2.PROTOCOLS)
        raise typer.BadParameter(f"use one of {known}", param_hint="--protocol")
    wanted = table2.tasks(loaded, chosen, protocol, splits, tuning_rows)
    with _store(out) as store:
        if retry_failed:
            failures = store.forget_failures(task.key for task in wanted)
            print(f"failures that will be tried again: {failures}")
        _run(wanted, store, jobs)
        _report(tables.write(store, protocol, out))


@app.command("figure1")
def run_figure1(out: Out = OUT) -> None:
    """Figure 1: the hard region, computed."""
    from experiments import figure1

    _report(figure1.write(out))


@app.command("figure2")
def run_figure2(
    splits: Annotated[int, typer.Option(min=1, help="Accuracies are means over so many.")] = 5,
    jobs: Jobs = 1,
    out: Out = OUT,
    data: Data = None,
) -> None:
    """Figure 2: accuracy on German as a function of α, γ and K."""
    from experiments import figure2

    with _store(out) as store:
        for one in _load(figure2.DATASET, data):
            _run(figure2.tasks(one, splits), store, jobs)
        _draw(figure2.write, store, out)


@app.command("figure3")
def run_figure3(
    datasets: DatasetNames = "all",
    runs: Annotated[int, typer.Option(min=1, help="Fits of each method.")] = 30,
    jobs: Jobs = 1,
    out: Out = OUT,
    data: Data = None,
) -> None:
    """Figure 3: fit times of ANN⁺, ANN⁻ and LMNN with 4 … 7 targets, one thread each.

    Where one fit takes over a minute, three runs have to do.
    """
    from experiments import figure3

    loaded = _load(datasets, data)
    few = min(runs, figure3.FEW_RUNS)
    with _store(out) as store:
        _run(figure3.tasks(loaded, 0, few), store, jobs)
        long = figure3.long_fits(store)
        later = [t for t in figure3.tasks(loaded, few, runs) if (t.data.name, t.method) not in long]
        for name, method in sorted(long):
            print(f"{name}, {method}: a fit takes over a minute, {few} runs")
        _run(later, store, jobs)
        _draw(figure3.write, store, out)


@app.command("tables")
def write_all(
    out: Out = OUT,
    claims: Annotated[Path, typer.Option(help="Where the page of claims goes.")] = Path(
        "docs/claims.md"
    ),
) -> None:
    """Write every table, figure and the page of claims from the results there are."""
    from experiments import figure1, figure2, figure3, table2, tables
    from experiments.claims import claims_page
    from experiments.results_readme import readme

    with _store(out, there=True) as store:
        paths = [
            path for protocol in table2.PROTOCOLS for path in tables.write(store, protocol, out)
        ]
        paths += [
            *figure1.write(out),
            *figure2.write(store, out),
            *figure3.write(store, out),
            *store.dump(out),
        ]
        claims.parent.mkdir(parents=True, exist_ok=True)
        claims.write_text(claims_page(store), encoding="utf-8")
        (out / "README.md").write_text(readme(store), encoding="utf-8")
        _report([*paths, out / "README.md", claims])


@app.command()
def status(out: Out = OUT) -> None:
    """Show what is done, running and left; works from another terminal too."""
    from experiments.progress import in_words
    from experiments.status import status as progress_of

    with _store(out, there=True) as store:
        found = progress_of(store)
    for one in found:
        rest = "" if one.done == one.total else f", {in_words(one.left)} left"
        failed = f", {one.failed} failed" if one.failed else ""
        print(f"{one.kind:<15}{one.dataset:<11}{one.done:>5}/{one.total}{failed}{rest}")
        for task in one.running:
            print(f"    running {task}")


@app.command()
def merge(
    sources: Annotated[
        list[Path], typer.Argument(help="SQLite files of other machines, or folders of results.")
    ],
    out: Out = OUT,
) -> None:
    """Take over the results of other files; what is there already stays."""
    with _store(out) as store:
        try:
            taken = store.merge(sources)
        except (FileNotFoundError, ValueError) as error:
            raise typer.BadParameter(str(error), param_hint="SOURCES") from None
    print(f"{taken} records taken over into {store.path}")


def _run(tasks: Sequence[Task], store: Store, jobs: int) -> None:
    from joblib import effective_n_jobs

    from experiments.progress import make_listener
    from experiments.runner import run

    listener = make_listener(tasks, store.done, effective_n_jobs(jobs))
    try:
        run(tasks, store, n_jobs=jobs, listener=listener)
    except KeyboardInterrupt:
        message = f"interrupted; what is finished is in {store.path}, the same command continues"
        raise KeyboardInterrupt(message) from None
    left = {task.key for task in tasks} - store.done()
    if left:
        print(f"{len(left)} left to another process, which is computing them")


def _load(names: str, folder: Path | None) -> list[Dataset]:
    """Load the available data sets; print one line for each of the others."""
    from experiments.datasets import load_available

    chosen = _names(names, DATASETS, {"smallest": SMALLEST}, "--datasets")
    loaded, missing = load_available(chosen, folder)
    for name, reason in missing.items():
        print(f"{name} is left out: {reason}")
    return list(loaded.values())


def _names(
    text: str, known: dict[str, Any], groups: dict[str, Sequence[str]], option: str
) -> list[str]:
    names: list[str] = []
    for word in text.split(","):
        name = word.strip()
        if name == "all":
            names += known
        elif name in groups:
            names += groups[name]
        elif name in known:
            names.append(name)
        else:
            hint = ", ".join(["all", *groups, *known])
            raise typer.BadParameter(f"{name!r} is unknown; known are {hint}", param_hint=option)
    return list(dict.fromkeys(names))


def _check_backend(backend: str, methods: Sequence[str]) -> None:
    """Check the backend before any work, or every fit would fail."""
    from vicinal.kernels import DEVICE_BACKENDS

    known = ("auto", *DEVICE_BACKENDS)
    if backend not in known:
        raise typer.BadParameter(f"use one of {', '.join(known)}", param_hint="--backend")
    if backend == "auto":
        return
    able = [name for name in METHODS if on_backend(METHODS[name], backend) != METHODS[name]]
    if not set(able) & set(methods):
        hint = f"none of these methods runs on a GPU; {', '.join(able)} do"
        raise typer.BadParameter(hint, param_hint="--backend")
    try:
        from vicinal.kernels.gpu import check_device

        check_device(backend)
    except (ImportError, RuntimeError) as error:
        raise typer.BadParameter(str(error), param_hint="--backend") from None


def _store(out: Path, there: bool = False) -> Store:
    """Open the results in a folder; they must exist if the command only reads."""
    from experiments.store import Store

    path = out / FILE
    if there and not path.is_file():
        raise typer.BadParameter(f"{path} does not exist; run a command first", param_hint="--out")
    try:
        return Store(path)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--out") from None


def _draw(write: Callable[[Store, Path], list[Path]], store: Store, out: Path) -> None:
    """Draw a figure; without matplotlib, say that the measurements are stored."""
    try:
        _report(write(store, out))
    except ImportError as error:
        print(f"measured, not drawn ({error}); `vicinal reproduce tables` draws from {store.path}")


def _report(paths: Sequence[Path]) -> None:
    for path in paths:
        print(f"wrote {path}")


if __name__ == "__main__":
    app()
