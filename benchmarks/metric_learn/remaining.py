"""LFDA, RCA, Covariance, MMC, LSML and SDML of metric-learn and of vicinal: metrics and seconds.

    python benchmarks/metric_learn/remaining.py [toy]

Run it once in an environment with metric-learn 0.7.0 and scikit-learn < 1.6, once in vicinal's
own; each runs what it has, on the same pairs, quadruplets and chunks. With "toy" only the small
problem, whose matrices as metric-learn prints them are kept, with its version, in
tests/oracle/test_metric_learn.py. For MMC and LSML it prints the value that their problem has at
the metric found: lower is better.
"""

from __future__ import annotations

import sys
import time
import warnings
from importlib.metadata import version
from importlib.util import find_spec

import numpy as np
from itml import blobs, fixed_pairs, toy, version_of
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

REPEATS = 3


def mmc_value(M, X, pairs, similar):
    """−ln of the sum of the dissimilar distances at a sum of the similar squared ones of 1."""
    gaps = X[pairs[:, 0]] - X[pairs[:, 1]]
    squared = np.maximum(np.einsum("pd,pd->p", gaps @ M, gaps), 0.0)
    return 0.5 * np.log(squared[similar].sum()) - np.log(np.sqrt(squared[~similar]).sum())


def lsml_value(M, X, quadruplets):
    """The mean squared violation and the divergence from the identity."""
    a, b, c, d = (X[rows] for rows in quadruplets.T)
    near, far = (np.sqrt(np.einsum("qd,qd->q", V @ M, V)) for V in (a - b, c - d))
    violations = np.maximum(near - far, 0.0)
    return np.mean(violations**2) + np.trace(M) - np.linalg.slogdet(M)[1] - len(M)


def as_quadruplets(pairs, similar):
    """Similar pairs beside dissimilar ones, as many as there are of both."""
    near, far = pairs[similar], pairs[~similar]
    number = min(len(near), len(far))
    return np.concatenate([near[:number], far[:number]], axis=1)


def balance_for(X, pairs, similar):
    """Half of the largest η for which SDML's matrix stays positive definite, prior identity."""
    gaps = X[pairs[:, 0]] - X[pairs[:, 1]]
    signs = np.where(similar, 1.0, -1.0)
    return 0.5 / np.abs(np.linalg.eigvalsh((gaps.T * signs) @ gaps)).max()


def of_metric_learn(X, y, pairs, similar):
    import metric_learn as ml

    signs, quadruplets = np.where(similar, 1, -1), as_quadruplets(pairs, similar)
    eta = balance_for(X, pairs, similar)
    gaps = X[pairs[:, 0]] - X[pairs[:, 1]]
    K = np.eye(X.shape[1]) + eta * (gaps.T * signs) @ gaps
    penalty = 0.1 * np.abs(K - np.diag(np.diag(K))).max()
    return {
        "Covariance": lambda: ml.Covariance().fit(X),
        "RCA": lambda: ml.RCA().fit(X, y),
        "RCA, 2 components": lambda: ml.RCA(n_components=2).fit(X, y),
        "LFDA, plain": lambda: ml.LFDA(k=3, embedding_type="plain").fit(X, y),
        "MMC": lambda: ml.MMC(preprocessor=X).fit(pairs, signs),
        "MMC, tol=1e-8": lambda: ml.MMC(preprocessor=X, tol=1e-8, max_iter=2000).fit(pairs, signs),
        "LSML": lambda: ml.LSML(preprocessor=X).fit(quadruplets),
        "LSML, tol=1e-6": lambda: ml.LSML(preprocessor=X, tol=1e-6).fit(quadruplets),
        "SDML": lambda: ml.SDML(eta, penalty, preprocessor=X).fit(pairs, signs),
    }


def of_vicinal(X, y, pairs, similar):
    import vicinal as vc

    quadruplets = as_quadruplets(pairs, similar)
    return {
        "Covariance": lambda: vc.Covariance().fit(X),
        "RCA": lambda: vc.RCA().fit_chunks(X, y),
        "RCA, 2 components": lambda: vc.RCA(2).fit_chunks(X, y),
        "LFDA, plain": lambda: vc.LFDA(n_neighbors=3, embedding="plain").fit(X, y),
        "MMC": lambda: vc.MMC().fit_pairs(X, pairs, similar),
        "LSML": lambda: vc.LSML().fit_quadruplets(X, quadruplets),
        "SDML": lambda: vc.SDML().fit_pairs(X, pairs, similar),
    }


def measure(fit):
    """The fitted learner and the least seconds; one repeat where that takes long."""
    seconds = []
    while len(seconds) < REPEATS and sum(seconds) < 20:
        start = time.perf_counter()
        model = fit()
        seconds.append(time.perf_counter() - start)
    return model, min(seconds)


def standardized(load):
    X, y = load(return_X_y=True)
    X = X[:, X.std(axis=0) > 0]
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def problems():
    yield "TOY", *toy(), (1, 3, 6, 7)
    if "toy" in sys.argv:
        return
    shifts = (1, 3, 5, 10, 20, 30, 40, 50)
    yield "wine", *standardized(load_wine), shifts
    yield "breast cancer", *standardized(load_breast_cancer), shifts
    yield "blobs", *blobs(), shifts
    yield "digits", *(part[:600] for part in standardized(load_digits)), shifts


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    np.set_printoptions(precision=17)
    for package, learners in {"metric_learn": of_metric_learn, "vicinal": of_vicinal}.items():
        if find_spec(package) is None:
            continue
        print(package, version_of(package), "NumPy", version("numpy"), "scikit-learn", end=" ")
        print(version("scikit-learn"))
        for name, X, y, shifts in problems():
            pairs, similar = fixed_pairs(y, shifts)
            print(f"{name}: {len(X)} rows, {X.shape[1]} features, {len(pairs)} pairs")
            for method, fit in learners(X, y, pairs, similar).items():
                try:
                    model, seconds = measure(fit)
                except (RuntimeError, ValueError) as error:
                    print(f"  {method}: failed, {str(error)[:60]}")
                    continue
                M = model.get_mahalanobis_matrix()
                value = ""
                if method.startswith("MMC"):
                    value = f", value {mmc_value(M, X, pairs, similar):.8f}"
                if method.startswith("LSML"):
                    value = f", value {lsml_value(M, X, as_quadruplets(pairs, similar)):.8f}"
                print(f"  {method}: {seconds:.4f} s, tr M = {np.trace(M):.10g}{value}", flush=True)
                if name == "TOY" and "toy" in sys.argv:
                    print(repr(M))
