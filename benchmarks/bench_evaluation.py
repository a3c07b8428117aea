"""One evaluation (value + gradient) of NCA: against scikit-learn, against BLAS, and its growth."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
from common import letter, print_header, time_alternately, verdict
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from threadpoolctl import threadpool_limits

import vicinal as vc
from vicinal.kernels import make_kernel
from vicinal.kernels.cpu.cpu_kernel import BLOCK_ELEMENTS
from vicinal.learners.blas_threads import single_threaded_blas
from vicinal.objective.losses import SIGMOID
from vicinal.objective.neighbor_objective import NeighborObjective, plain_shift
from vicinal.objective.neighbor_sets import build_comparisons
from vicinal.objective.parametrization import Factor


def nca_objective(X, y):
    order = np.argsort(y, kind="stable")
    X, y = X[order] - X.mean(axis=0), y[order]
    offsets = np.searchsorted(y, np.arange(y.max() + 2))
    comparisons = build_comparisons(X, offsets)
    return NeighborObjective(
        X=X,
        comparisons=comparisons,
        kernel=make_kernel(comparisons),
        parametrization=Factor(),
        loss=SIGMOID,
        alpha=1.0,
        gamma=1.0,
        shift=plain_shift(comparisons, 1.0),
        weights=np.ones(len(X)),
        pull=np.zeros((X.shape[1], X.shape[1])),
    )


def as_in_a_fit(objective):
    """Value and gradient with BLAS on one thread, which is how ``fit`` evaluates."""

    def evaluate(L):
        with single_threaded_blas():
            return objective.value_and_gradient(L)

    return evaluate


def against_scikit_learn(n=5000, repeats=5):
    X, y = letter(n)
    ours, L = nca_objective(X, y), np.eye(X.shape[1])
    ours = as_in_a_fit(ours)
    theirs = NeighborhoodComponentsAnalysis()
    theirs.n_iter_, theirs.n_features_in_ = 1, X.shape[1]
    mask = y[:, None] == y[None, :]
    taken = time_alternately(
        {
            "vicinal": lambda: ours(L),
            "scikit-learn": lambda: theirs._loss_grad_lbfgs(L.ravel(), X, mask, -1.0),
        },
        repeats,
    )
    print(f"\nletter, first {n} rows, float64: {taken}")
    for kind in ("best", "median"):
        ratio = taken["scikit-learn"][kind] / taken["vicinal"][kind]
        verdict(f"faster than scikit-learn's NCA ({kind})", ratio, "x", ">= 12x", ratio >= 12)


def blas_floor(X):
    """The two products Z Zᵀ and W X of the same blocks of rows, nothing else; as many threads."""
    n, d = X.shape
    threads = numba.get_num_threads()
    rows = max(4, BLOCK_ELEMENTS // (4 * n) * 4)
    transposed = np.ascontiguousarray(X.T)
    starts = range(0, n, rows)

    def work(first):
        block, product = np.empty((rows, n)), np.empty((rows, d))
        for start in starts[first::threads]:
            b = min(rows, n - start)
            np.matmul(X[start : start + b], transposed, out=block[:b])
            np.matmul(block[:b], X, out=product[:b])

    def run():
        with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, range(threads)))

    return run


def against_the_floor(n=14_000, repeats=5):
    X, y = letter(n)
    ours, L = as_in_a_fit(nca_objective(X, y)), np.eye(X.shape[1])
    single = as_in_a_fit(nca_objective(X.astype(np.float32), y))
    taken = time_alternately(
        {
            "vicinal": lambda: ours(L),
            "floor": blas_floor(X),
            "vicinal float32": lambda: single(L.astype(np.float32)),
            "floor float32": blas_floor(X.astype(np.float32)),
        },
        repeats,
    )
    print(f"\nletter, first {n} rows: {taken}")
    for kind in ("best", "median"):
        ratio = taken["vicinal"][kind] / taken["floor"][kind]
        verdict(f"times the BLAS floor, float64 ({kind})", ratio, "x", "<= 2.0x", ratio <= 2.0)
    ratio = taken["vicinal float32"]["best"] / taken["floor float32"]["best"]
    print(f"times the BLAS floor, float32 (best): {ratio:.3g}x")


def growth(repeats=5):
    X, y = letter()
    nca = vc.NCA(max_iter=40, tol=0.0, callback=lambda progress: progress.n_iter >= 40)
    L = nca.fit(X[:10_000], y[:10_000]).components_
    small, large = (as_in_a_fit(nca_objective(X[:n], y[:n])) for n in (10_000, 20_000))
    taken = time_alternately(
        {
            "10,000": lambda: small(L),
            "20,000": lambda: large(L),
        },
        repeats,
    )
    print(f"\nletter at a metric trained for 40 iterations: {taken}")
    for kind in ("best", "median"):
        ratio = taken["20,000"][kind] / taken["10,000"][kind]
        verdict(f"growth from 10,000 to 20,000 rows ({kind})", ratio, "x", "< 3.5x", ratio < 3.5)


if __name__ == "__main__":
    print_header("One evaluation of NCA")
    against_scikit_learn()
    against_the_floor()
    growth()
