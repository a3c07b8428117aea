"""The GPU kernels on one device: accuracy, speed, solvers, neighbors, fits of MNIST and KDD.

    python benchmarks/bench_gpu.py [accuracy] [speed] [solvers] [neighbors] [mnist] [kddcup99]

Everything by default; needs an NVIDIA GPU, and the data folder VICINAL_DATA for the fits.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import torch
import triton
from common import verdict
from gpu_checks import fit, neighbors, solvers
from gpu_data import blobs, say

import vicinal as vc
from vicinal.gpu import device_all_neighbors, knn_errors
from vicinal.kernels.gpu import GpuKernel
from vicinal.objective.losses import get_loss
from vicinal.objective.neighbor_objective import NeighborObjective
from vicinal.objective.neighbor_sets import build_comparisons
from vicinal.objective.parametrization import Factor

DATA = Path(os.environ.get("VICINAL_DATA", "../shared/data"))
MEASURED: dict[str, float] = {}
PRODUCTS = {
    "high": [("two parts", 0, (3, 6)), ("three parts", 1, (6, 11))],
    "fast": [("one part", 0, (1, 2))],
}
"""Levels of precision, and how many products of parts pass 1 and pass 2 are made of."""


def seconds(function, repeats: int = 5) -> float:
    """The median; the first call, which compiles, is not counted."""
    function()
    taken = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        function()
        torch.cuda.synchronize()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def header() -> None:
    say("# GPU kernels")
    gpu = torch.cuda.get_device_name()
    say(f"{gpu}, torch {torch.__version__}, triton {triton.__version__}, numpy {np.__version__}")
    A = torch.randn(8192, 8192, device="cuda")
    torch.backends.cuda.matmul.allow_tf32 = True
    MEASURED["tf32"] = 2 * 8192**3 / seconds(lambda: A @ A) / 1e12
    torch.backends.cuda.matmul.allow_tf32 = False
    H = A.half()
    MEASURED["fp16"] = 2 * 8192**3 / seconds(lambda: H @ H) / 1e12
    say(f"8192³ product: tf32 {MEASURED['tf32']:.0f}, fp16 {MEASURED['fp16']:.0f} TFLOP/s")


def objective(
    X, offsets, loss="logistic", alpha=1.0, similar="all", **options
) -> NeighborObjective:
    on_host = X.cpu().numpy() if similar != "all" else None
    comparisons = build_comparisons(on_host, offsets, similar=similar)
    n, d = X.shape
    kernel = GpuKernel(comparisons, "cuda", **options)
    return NeighborObjective(
        X=kernel.asarray(X),
        comparisons=comparisons,
        kernel=kernel,
        parametrization=Factor(),
        loss=get_loss(loss),
        alpha=alpha,
        gamma=1.0,
        shift=torch.zeros(n, dtype=torch.float64, device="cuda"),
        weights=torch.ones(n, dtype=torch.float64, device="cuda"),
        pull=np.zeros((d, d)),
    )


def accuracy() -> None:
    say("\n## accuracy: relative error of value and gradient against float64 on the device")
    X, offsets = blobs(20_000, 32)
    L = 0.6 * np.eye(32)
    cases = [("random, logistic", X, offsets, L, {"loss": "logistic"})]
    cases.append(("random, hinge", X, offsets, L, {"loss": "hinge"}))
    cases.append(("random, alpha=-1, 10 similar", X, offsets, L, {"alpha": -1.0, "similar": 10}))
    cases.append(("random, alpha=-0.5", X, offsets, L, {"alpha": -0.5}))
    cases.append(("random, alpha=4", X, offsets, L, {"alpha": 4.0}))
    wide, wide_offsets = blobs(10_000, 164)
    cases.append(("random, 164 features", wide, wide_offsets, 0.25 * np.eye(164), {}))
    if (DATA / "mnist.npz").is_file():
        cases += trained_cases()
    for name, X, offsets, L, options in cases:
        compare_with_float64(name, X, offsets, L, options)


def trained_cases() -> list[tuple]:
    """20,000 rows of MNIST at metrics that were trained on them, early and late.

    The hard ones: there the gradient is what is left of terms that nearly cancel. Each is also
    taken a tenth of its length away from the optimum.
    """
    (train, y), _ = mnist_pca(20)
    X, y = train[:20_000], y[:20_000]
    order = np.argsort(y, kind="stable")
    centered = torch.as_tensor(X[order] - X.mean(axis=0), device="cuda")
    offsets = np.searchsorted(y[order], np.arange(11))
    cases = []
    for iterations in (5, 60):
        model = vc.ANN(backend="cuda", loss="logistic", max_iter=iterations, tol=0)
        L = fit(model, X, y).components_
        name = f"MNIST, PCA 20, {iterations} iterations"
        cases.append((name, centered, offsets, L, {}))
        cases.append((f"{name}, 1.1 L", centered, offsets, 1.1 * L, {}))
    return cases


def compare_with_float64(name, X, offsets, L, options) -> None:
    """Errors relative to the gradient; beside it in units of J/‖L‖, by which solvers stop."""
    value, gradient = objective(X, offsets, engine="torch", **options).value_and_gradient(L)
    own, unit = np.linalg.norm(gradient), value / np.linalg.norm(L)
    say(f"{name}: |grad| |L| / J = {own / unit:.2g}")
    for kind in ("high", "fast"):
        problem = objective(X, offsets, precision=kind, **options)
        got, got_gradient = problem.value_and_gradient(L)
        error = np.linalg.norm(got_gradient - gradient)
        row = f"  {kind}: value {abs(got / value - 1):.1e}, {error / unit:.1e} of J/|L|, gradient"
        if kind == "high":
            verdict(row, error / own, "", "<= 1e-5", error <= 1e-5 * own)
        else:
            say(f"{row} {error / own:.1e}")


def speed() -> None:
    say("\n## value + gradient, 10 classes, median of 5")
    targets = {(100_000, 64): 0.045, (1_000_000, 32): 3.0}
    for n, d in ((100_000, 32), (100_000, 64), (1_000_000, 32)):
        X, offsets = blobs(n, d)
        L = 0.6 * np.eye(d)
        for precision in ("high", "fast"):
            problem = objective(X, offsets, loss="logistic", precision=precision)
            torch.cuda.reset_peak_memory_stats()
            whole = seconds(lambda problem=problem, L=L: problem.value_and_gradient(L))
            memory = torch.cuda.max_memory_allocated() / 2**30
            say(f"{n:,} x {d}, {precision}: {whole:.4f} s, peak memory {memory:.2f} GiB")
            Z = X.double() @ torch.as_tensor(L, device="cuda")
            for name, level, parts in PRODUCTS[precision]:
                taken = passes_of(problem, Z, level)
                rates = [2 * d * n**2 * k / t / 1e12 for k, t in zip(parts, taken, strict=True)]
                for i, (t, rate) in enumerate(zip(taken, rates, strict=True)):
                    shares = [f"{rate / MEASURED[kind]:.0%} of {kind}'s" for kind in MEASURED]
                    say(
                        f"  {name}, pass {i + 1}: {t:.4f} s, {rate:.0f} TFLOP/s on the tensor "
                        f"cores, {' and '.join(shares)} rate"
                    )
            if precision == "high" and (n, d) in targets:
                target = targets[n, d]
                verdict(f"{n:,} x {d}, high", whole, " s", f"<= {target} s", whole <= target)


def passes_of(problem: NeighborObjective, Z: torch.Tensor, level: int) -> tuple[float, float]:
    """Seconds of pass 1 and of pass 2 by themselves."""
    kernel = problem.kernel
    sweep = kernel.evaluate(Z, problem.alpha, level=level)
    averages = sweep.soft_averages(kernel.anchors)
    slope = torch.sigmoid(averages[0] - averages[1])
    slopes = kernel.slopes(kernel.anchors, slope, -slope)
    first = seconds(lambda: sweep.soft_averages(kernel.anchors), 3)
    return first, seconds(lambda: sweep.laplacian(None, slopes), 3)


def load(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    with np.load(DATA / f"{name}.npz", allow_pickle=False) as arrays:
        return arrays["X"], arrays["y"], arrays["is_test"]


def mnist_pca(components: int):
    """MNIST in [0, 1], rotated to its principal components: (train, y), (test, y)."""
    X, y, is_test = load("mnist")
    points = torch.as_tensor(X, device="cuda").double() / 255
    train = points[torch.as_tensor(~is_test, device="cuda")]
    center = train.mean(0)
    _, vectors = torch.linalg.eigh((train - center).T @ (train - center))
    Z = ((points - center) @ vectors.flip(1)[:, :components]).float().cpu().numpy()
    return (Z[~is_test], y[~is_test]), (Z[is_test], y[is_test])


def errors(train, y, test, y_test, k: int = 15) -> str:
    """Test errors of K-NN, in percent: K = 1, 3, 5, and the best of 1 … k."""
    move = lambda values: torch.as_tensor(values, device="cuda")  # noqa: E731
    _, rows = device_all_neighbors(move(test), move(train), k)
    rates = 100 * knn_errors(rows, move(y), move(y_test)).cpu().numpy()
    best = int(rates.argmin())
    chosen = ", ".join(f"K={j} {rates[j - 1]:.2f} %" for j in (1, 3, 5))
    return f"{chosen}, best K={best + 1} {rates[best]:.2f} %"


def mnist() -> None:
    """K, and gamma=10, are looked at on the test rows: these are no unbiased errors."""
    say("\n## MNIST, 60,000 x 784 -> PCA 164; K-NN test errors (LMNN, published: about 1.7 %)")
    X, y, is_test = load("mnist")
    raw = X.astype(np.float32) / 255
    start = time.perf_counter()
    say(f"raw pixels: {errors(raw[~is_test], y[~is_test], raw[is_test], y[is_test])}")
    say(f"  (all K at once in {time.perf_counter() - start:.2f} s, data moved included)")
    (train, y_train), (test, y_test) = mnist_pca(164)
    say(f"PCA 164: {errors(train, y_train, test, y_test)}")
    for name, model in {
        "ANN()": vc.ANN(backend="cuda"),
        "ANN(gamma=10)": vc.ANN(gamma=10.0, backend="cuda"),
        "ANN(gamma=10, loss='logistic')": vc.ANN(gamma=10.0, loss="logistic", backend="cuda"),
        "ANN(alpha=-1), 10 similar": vc.ANN(alpha=-1.0, backend="cuda"),
        "ANN(alpha=-1, gamma=10), 10 similar": vc.ANN(alpha=-1.0, gamma=10.0, backend="cuda"),
    }.items():
        start = time.perf_counter()
        fit(model, train, y_train)
        taken = time.perf_counter() - start
        found = errors(model.transform(train), y_train, model.transform(test), y_test)
        how = f"{model.n_iter_} iterations, {model.stop_reason_}, J {model.objective_:.4g}"
        say(f"{name}: {found}; {how}")
        verdict(f"{name}, fit", taken, " s", "<= 60 s", taken <= 60)


def kddcup99() -> None:
    X, y, is_test = load("kddcup99")
    X, y = X[~is_test], y[~is_test]
    X = np.sign(X) * np.log1p(np.abs(X))
    spread = X.std(axis=0)
    X = ((X - X.mean(axis=0)) / np.where(spread > 0, spread, 1)).astype(np.float32)
    say(f"\n## KDD Cup 1999, {len(X):,} training rows x {X.shape[1]}, {len(np.unique(y))} classes")
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    model = fit(vc.ANN(backend="cuda", max_iter=100, verbose=1), X, y)
    taken = time.perf_counter() - start
    memory = torch.cuda.max_memory_allocated() / 1e9
    say(f"{model.solver_}: {model.n_iter_} iterations, {model.stop_reason_}")
    say(f"J from {model.history_[0]:.5g} to {model.objective_:.5g}")
    verdict("fit", taken, " s", "<= 300 s", taken <= 300)
    verdict("peak GPU memory", memory, " GB", "<= 4 GB", memory <= 4)


SECTIONS = {
    "accuracy": accuracy,
    "speed": speed,
    "solvers": solvers,
    "neighbors": neighbors,
    "mnist": mnist,
    "kddcup99": kddcup99,
}

if __name__ == "__main__":
    if not torch.cuda.is_available():
        print("No NVIDIA GPU here: nothing to measure.")
        sys.exit(0)
    header()
    for section in sys.argv[1:] or SECTIONS:
        begin = time.perf_counter()
        SECTIONS[section]()
        say(f"({section}: {time.perf_counter() - begin:.0f} s)")
