"""Classes and numbers, from a table to neighbors, in a minute.

    python examples/demo.py [folder]

The data ship with scikit-learn. The folder (``build/demo``) gets the model, ``digits.vicinal``, and
a page about it, ``report.html``. ``vicinal demo`` shows the same from the command line.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, make_friedman1
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import vicinal as vc


def classify(folder: Path) -> Path:
    """Handwritten digits: compare, explain, store, and make a page."""
    digits = load_digits()
    X, X_test, y, y_test = train_test_split(
        digits.data, digits.target, train_size=900, stratify=digits.target, random_state=0
    )
    print(f"CLASSES: {len(X)} training and {len(X_test)} test digits of 8 × 8 pixels")
    model = vc.ANNClassifier(effort=0.08, members=("linear",))
    methods = {
        "plain K-NN": make_pipeline(StandardScaler(), vc.ClassMeanKNN(5, rule="vote")),
        "ANNClassifier": model,
    }
    for name, method in methods.items():
        seconds = fit_time(method, X, y)
        wrong = int((method.predict(X_test) != y_test).sum())
        print(
            f"  {name:<14} {wrong:>3} of {len(y_test)} wrong   fit in {seconds:.1f} s", flush=True
        )
    print(f"\n{model.explain(X_test[:1], n_neighbors=3)[0]}\n")
    vc.save(model, folder / "digits.vicinal")
    assert (vc.load(folder / "digits.vicinal").predict(X_test) == model.predict(X_test)).all()
    return vc.report(
        model, X, y, folder / "report.html", X_test=X_test, y_test=y_test,
        feature_names=digits.feature_names, title="Handwritten digits",
    )  # fmt: skip


def regress() -> None:
    """Friedman's function: of ten columns, five matter, each in its own way."""
    X, y = make_friedman1(700, noise=1.0, random_state=0)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    print(f"NUMBERS: {len(X)} training and {len(X_test)} test rows, 10 columns, 5 of them noise")
    methods = {
        "plain K-NN": make_pipeline(StandardScaler(), KNeighborsRegressor(10)),
        "ANNRegressor": vc.ANNRegressor(effort=0.05, members=("linear", "hat")),
    }
    for name, method in methods.items():
        seconds = fit_time(method, X, y)
        error = np.sqrt(np.mean((method.predict(X_test) - y_test) ** 2))
        print(f"  {name:<14} typical error {error:.1f}   fit in {seconds:.1f} s", flush=True)


def fit_time(method: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Seconds of the fit."""
    start = time.perf_counter()
    method.fit(X, y)
    return time.perf_counter() - start


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    page = classify(folder)
    regress()
    print(f"\nThe model: {folder / 'digits.vicinal'}")
    print(f"The page, open it in a browser: {page.resolve()}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("build/demo"))
