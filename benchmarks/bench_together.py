"""Small problems as a batch against one after the other: `fit_together` on the rows of one fold.

    python benchmarks/bench_together.py

The learners are those that `vicinal reproduce` cross-validates by its honest protocol; the data
come with scikit-learn, and a fifth of the rows is left out. Both ways give the same metrics, which
is checked.
"""

from __future__ import annotations

import warnings

import numpy as np
from common import print_header, time_alternately
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.preprocessing import scale

from experiments.methods import METHODS
from vicinal.learners.together import fit_together

REPEATS = 9


def one_by_one(learners: list, X: np.ndarray, y: np.ndarray) -> list:
    fitted = [clone(learner) for learner in learners]
    for learner in fitted:
        learner.fit(X, y)
    return fitted


def as_a_batch(learners: list, X: np.ndarray, y: np.ndarray) -> list:
    fitted = [clone(learner) for learner in learners]
    fit_together(fitted, X, y)
    return fitted


def main() -> None:
    """Print one line a method and data set."""
    print_header("small problems as a batch")
    warnings.simplefilter("ignore")  # runs are capped: few converge
    print(f"{'data':<14}{'method':<13}{'fits':>5}{'one by one':>12}{'batch':>9}  ratio (median)")
    for load in (load_iris, load_wine, load_breast_cancer):
        X, y = load(return_X_y=True)
        part = np.arange(len(X)) % 5 != 0
        X, y = scale(X)[part], y[part]
        for name in ("itml", "scml", "boostmetric", "nca"):
            method = METHODS[name]
            (stage,) = method.stages("honest")
            learners = [method.make(values, "honest", 0) for values in stage.values]
            for alone, batched in zip(
                one_by_one(learners, X, y), as_a_batch(learners, X, y), strict=True
            ):
                np.testing.assert_array_equal(alone.components_, batched.components_)
            seconds = time_alternately(
                {
                    "alone": lambda learners=learners, X=X, y=y: one_by_one(learners, X, y),
                    "batch": lambda learners=learners, X=X, y=y: as_a_batch(learners, X, y),
                },
                REPEATS,
            )
            alone, batch = (seconds[way] for way in ("alone", "batch"))
            print(
                f"{load.__name__[5:]:<14}{method.label:<13}{len(learners):>5}"
                f"{1e3 * alone['best']:>9.1f} ms{1e3 * batch['best']:>6.1f} ms"
                f"  {alone['best'] / batch['best']:.2f} ({alone['median'] / batch['median']:.2f})"
            )


if __name__ == "__main__":
    main()
