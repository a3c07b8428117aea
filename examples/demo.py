"""The whole way on the handwritten digits: compare, keep the best model, and look at it.

    python examples/demo.py [folder]

The data ships with scikit-learn. The folder (``build/demo``) gets the model, ``digits.vicinal``,
and a page about it, ``report.html``. ``vicinal demo`` shows the same from the command line.
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path

from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import vicinal as vc
from vicinal.model_file import load, save
from vicinal.reporting import report

METHODS = {
    "plain K-NN": make_pipeline(StandardScaler(), vc.ClassMeanKNN(5, rule="vote")),
    "NCA": make_pipeline(StandardScaler(), vc.NCA(max_iter=60), vc.ClassMeanKNN(5, rule="vote")),
    "ANNClassifier": vc.ANNClassifier(),
}


def main(folder: Path) -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)  # NCA stops early on purpose
    digits = load_digits()
    X, X_test, y, y_test = train_test_split(
        digits.data, digits.target, test_size=0.3, stratify=digits.target, random_state=0
    )
    print(f"{len(X)} training and {len(X_test)} test digits of 8 × 8 pixels\n")
    print(f"{'method':<14} {'right':>7} {'wrong':>6} {'fit, s':>7}")
    for name, model in METHODS.items():
        start = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - start
        wrong = int((model.predict(X_test) != y_test).sum())
        print(f"{name:<14} {1 - wrong / len(y_test):>7.1%} {wrong:>6} {seconds:>7.1f}", flush=True)

    model = METHODS["ANNClassifier"]
    print(f"\n{model.explain(X_test[:1], n_neighbors=3)[0]}\n")
    folder.mkdir(parents=True, exist_ok=True)
    save(model, folder / "digits.vicinal")
    assert (load(folder / "digits.vicinal").predict(X_test) == model.predict(X_test)).all()
    page = report(
        model,
        X,
        y,
        folder / "report.html",
        X_test=X_test,
        y_test=y_test,
        feature_names=digits.feature_names,
        title="Handwritten digits",
    )
    print(f"The model: {folder / 'digits.vicinal'}")
    print(f"The page:  {page}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("build/demo"))
