"""Metrics of the classes of metric-learn, of its own package or of vicinal's, on one small problem.

    python benchmarks/metric_learn/compat.py

In an environment with metric-learn 0.7.0 and scikit-learn < 1.6 it prints what
tests/oracle/test_compat_metric_learn.py holds; in vicinal's own it prints the same of
``vicinal.compat.metric_learn``, to be compared.
"""

from __future__ import annotations

import sys
import warnings
from importlib.util import find_spec

import numpy as np
from itml import toy

if find_spec("metric_learn") is None:
    import vicinal.compat.metric_learn as metric_learn
else:
    import metric_learn

PAIRS = np.array([(i, (i + s) % 60) for s in (1, 3, 6, 7) for i in range(60)])


def fitted(ml, X, y):
    """One fitted estimator per name."""
    signs = np.where(y[PAIRS[:, 0]] == y[PAIRS[:, 1]], 1, -1)
    tuples = X[PAIRS]
    number = min((signs > 0).sum(), (signs < 0).sum())
    quadruplets = np.concatenate([tuples[signs > 0][:number], tuples[signs < 0][:number]], axis=1)
    target = X[:, 0] ** 2 + X[:, 1]
    return {
        "Covariance": ml.Covariance().fit(X),
        "RCA": ml.RCA().fit(X, y),
        "ITML": ml.ITML(tol=1e-8, max_iter=10000).fit(tuples, signs),
        "ITML, covariance": ml.ITML(prior="covariance", tol=1e-8, max_iter=10000).fit(
            tuples, signs, bounds=(1.0, 8.0)
        ),
        "LSML": ml.LSML(tol=1e-8).fit(quadruplets),
        "NCA": ml.NCA(tol=1e-12, max_iter=1000).fit(X, y),
        "MLKR": ml.MLKR(tol=1e-12).fit(X, target),
        "threshold": ml.ITML().fit(tuples, signs, bounds=(1.0, 8.0)),
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    np.set_printoptions(precision=10, suppress=True)
    print(metric_learn.__name__, metric_learn.__version__, sys.version.split()[0])
    for name, estimator in fitted(metric_learn, *toy()).items():
        print(name, repr(estimator.get_mahalanobis_matrix()))
        if hasattr(estimator, "threshold_"):
            print(
                "threshold", repr(estimator.threshold_), repr(getattr(estimator, "bounds_", None))
            )
