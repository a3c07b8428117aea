"""LMNN against metric-learn 0.7.0: the same numbers, and the time to the same value.

metric-learn needs an old scikit-learn, hence an environment of its own; what it gives is recorded
in ``tests/oracle/test_lmnn.py`` and passed to the second call:

    python benchmarks/metric_learn/lmnn.py reference          # with metric-learn==0.7.0
    python benchmarks/metric_learn/lmnn.py time VALUE SECONDS # with vicinal

Seconds are of processor time, all threads together: other work on the machine hardly changes it.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

N_ROWS, N_TARGETS, N_ITERATIONS = 2000, 4, 100
LEARN_RATES = (1e-7, 1e-6, 1e-5, 1e-4)
"""The default, and larger ones: it is given the best of them."""


def toy() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.RandomState(0)  # NumPy has frozen its stream
    y = np.arange(60) % 3
    means = np.array([[0, 0, 0, 0], [2, 0, 1, 0], [0, 2, 0, 1]])
    return random.randn(60, 4) + means[y], y


def letter() -> tuple[np.ndarray, np.ndarray]:
    from common import letter

    return letter(N_ROWS)


def reference() -> None:
    """metric-learn's loss and gradient on TOY at L = I, and its descent on letter."""
    import metric_learn
    from metric_learn.lmnn import _sum_outer_products

    print("metric-learn", metric_learn.__version__)
    X, y = toy()
    learner = metric_learn.LMNN(n_neighbors=3)
    learner.labels_ = np.arange(3)
    targets = learner._select_targets(X, y)
    pull = _sum_outer_products(X, targets.ravel(), np.repeat(np.arange(len(X)), 3))
    for name, L in {"identity": np.eye(4), "diag(1, .5, 2, .1)": np.diag([1, 0.5, 2, 0.1])}.items():
        gradient, value, active = learner._loss_grad(X, L, pull, 3, 0.5, targets, y)
        size = np.linalg.norm(gradient)
        print(f"TOY, L = {name}: E {value:.10f}, active {active}, |dE/dL| {size:.10f}")
    X, y = letter()
    for rate in LEARN_RATES:
        learner = metric_learn.LMNN(
            n_neighbors=N_TARGETS,
            max_iter=N_ITERATIONS + 1,
            learn_rate=rate,
            init="identity",
        )
        values = []
        evaluate = learner._loss_grad

        def recorded(*arguments, evaluate=evaluate, values=values):
            values.append(evaluate(*arguments))
            return values[-1]

        learner._loss_grad = recorded
        start = time.process_time()
        learner.fit(X, y)
        seconds = time.process_time() - start
        lowest = min(value for _, value, _ in values)
        print(
            f"letter {N_ROWS}, learn_rate {rate:g}: E {values[0][1]:.6f} -> {lowest:.6f}, "
            f"{learner.n_iter_} iterations, {len(values)} evaluations, {seconds:.2f} s"
        )


def time_to(value: float, seconds: float) -> None:
    """How long vicinal takes to that value, and to the end."""
    from common import print_header, verdict

    from vicinal.learners.lmnn import LMNN

    print_header("LMNN against metric-learn")
    X, y = letter()
    LMNN(N_TARGETS, init="identity", max_iter=1, tol=0.1, callback=lambda _: True).fit(X, y)
    start = time.process_time()
    reached = LMNN(
        N_TARGETS, init="identity", callback=lambda progress: progress.objective <= value
    ).fit(X, y)
    taken = time.process_time() - start
    print(f"E {reached.objective_:.6f} after {reached.n_iter_} iterations, {taken:.3f} s")
    verdict("times faster to the same value", seconds / taken, "", ">= 10", seconds >= 10 * taken)
    start = time.process_time()
    learner = LMNN(N_TARGETS).fit(X, y)
    taken = time.process_time() - start
    print(
        f"to the end: E {learner.objective_:.6f}, {learner.n_iter_} iterations, "
        f"{learner.stop_reason_}, {taken:.2f} s"
    )


if __name__ == "__main__":
    if sys.argv[1:] == ["reference"]:
        reference()
    elif len(sys.argv) == 4 and sys.argv[1] == "time":
        time_to(float(sys.argv[2]), float(sys.argv[3]))
    else:
        raise SystemExit(__doc__)
