"""``vicinal demo``: the whole way on data that ships with scikit-learn."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer


def demo(
    folder: Annotated[Path, typer.Argument(help="Where the files go.")] = Path("vicinal-demo"),
) -> None:
    """Show the commands at work on 569 tumors: fit, predict, explain, info.

    Makes a folder with a training table, new rows, a model, predictions, and a page to look at. It
    prints every command before it runs it, so that you can go on from there.
    """
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split

    from vicinal.cli.app import app
    from vicinal.tables.writing import write_table

    data = load_breast_cancer(as_frame=True)
    table = data.data.assign(diagnosis=data.target_names[data.target])
    train, new = train_test_split(table, test_size=69, stratify=data.target, random_state=0)
    folder.mkdir(parents=True, exist_ok=True)
    write_table(train, folder / "train.csv")
    write_table(new.drop(columns="diagnosis"), folder / "new.csv")
    model, rows = str(folder / "model.vicinal"), str(folder / "new.csv")
    learn = ["fit", str(folder / "train.csv"), "--target", "diagnosis", "--holdout", "0.25"]
    for words in (
        [*learn, "--out", model, "--report", str(folder / "report.html")],
        ["predict", model, rows, "--out", str(folder / "predicted.csv")],
        ["explain", model, rows, "--row", "0", "--neighbors", "3"],
        ["info", model],
    ):
        print(f"\n$ {shlex.join(['vicinal', *words])}", flush=True)
        code = app(words, standalone_mode=False)
        if code:
            raise typer.Exit(code)
    print(f"\nThe page: {folder / 'report.html'}")
