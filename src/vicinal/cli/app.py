"""All commands, and what becomes of errors: a sentence and an exit code."""

from __future__ import annotations

import errno
import importlib
import inspect
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import vicinal
from vicinal.cli.compare import compare
from vicinal.cli.demo import demo
from vicinal.cli.explain import explain
from vicinal.cli.export import export
from vicinal.cli.fit import fit
from vicinal.cli.info import info
from vicinal.cli.output import visible
from vicinal.cli.predict import predict, transform
from vicinal.cli.serve import serve

EXPECTED: tuple[type[BaseException], ...] = (typer.BadParameter.__mro__[2], typer.Exit, typer.Abort)
"""What typer handles; the first is ClickException, which has moved between its versions."""
INTERRUPTED = 130  # 128 + SIGINT, as shells have it
UNREAD = 141  # 128 + SIGPIPE: what most programs end with where `| head` has seen enough


class Commands(TyperGroup):
    """The group of commands: errors end with one line rather than a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # a pipe without a reader is noticed here, not by the interpreter
            return result
        except KeyboardInterrupt as interrupt:
            _end(str(interrupt) or "interrupted; nothing was written", INTERRUPTED)
        except (ValueError, ImportError, OSError) as error:
            if isinstance(error, OSError) and error.errno == errno.EPIPE:
                _end_quietly()
            _end(f"error: {error}", 1)
        except EXPECTED:
            raise
        except Exception as error:
            if ctx.params.get("debug"):
                raise
            _end(
                f"error: {type(error).__name__}: {' '.join(str(error).split())} (this is a mistake "
                "in vicinal: please report it to its developers, with what the same command says "
                "as vicinal --debug ...)",
                1,
            )


def _end(message: str, code: int) -> None:
    print(visible(message), file=sys.stderr)
    raise typer.Exit(code)


def _end_quietly() -> None:
    """End where the reader of the pipe has gone: nobody wants to hear of it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is still buffered
    raise typer.Exit(UNREAD)


def _flowing(text: str) -> str:
    """Paragraphs as one line each: typer breaks them to the width of the terminal."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


app = typer.Typer(
    name="vicinal",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (fit, predict, explain, transform, compare, info, export, serve, demo):
    app.command(help=_flowing(command.__doc__ or ""))(command)


@app.command(
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
def reproduce(context: typer.Context) -> None:
    """Reproduce the paper's tables and figures (needs a clone of the repository)."""
    clone = Path(vicinal.__file__).resolve().parents[2]  # where the package is at src/vicinal
    if not (clone / "experiments" / "__main__.py").is_file():
        raise ValueError(
            "the experiments are not part of the installed package; "
            "run them from a clone of the repository: python -m experiments"
        )
    if str(clone) not in sys.path:
        sys.path.append(str(clone))
    experiments = importlib.import_module("experiments.__main__")
    experiments.app(context.args, prog_name="vicinal reproduce")


def _version(wanted: bool) -> None:
    if wanted:
        print(f"vicinal {vicinal.__version__}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where an unexpected error comes from.")
    ] = False,
) -> None:
    """Learn the distance that a nearest-neighbor model needs: from a table to a model and back.

    [bold]A first round[/bold]

    vicinal fit train.csv --target species --holdout 0.2 --report report.html

    vicinal predict model.vicinal new.csv --out predicted.csv

    vicinal explain model.vicinal new.csv --row 17

    [bold]Without data at hand[/bold]

    vicinal demo

    Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted, 141 output no longer read.
    """
