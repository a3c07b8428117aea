"""Every kernel through the same properties; the oracle is a naive loop over pairs.

The Triton kernels take part in tests/unit/kernels/test_gpu_triton.py, in a process of their own.
"""

from functools import partial
from importlib.util import find_spec

import numpy as np
import pytest

from vicinal.kernels import Comparisons, ReferenceKernel, make_kernel
from vicinal.kernels.contract import Response, SweepResult, TargetResponse
from vicinal.kernels.cpu.cpu_kernel import CpuKernel, _blocks
from vicinal.kernels.cpu.cpu_sweep import CpuSweep
from vicinal.kernels.cpu.layout import Arrangement
from vicinal.kernels.cpu.row_blocks import DIRECT
from vicinal.objective.neighbor_sets import build_comparisons
from vicinal.objective.soft_average import soft_average, soft_weights

KERNELS = {"numpy": ReferenceKernel, "numba": CpuKernel}
if find_spec("torch"):
    from vicinal.kernels.gpu import GpuKernel

    KERNELS["torch"] = partial(GpuKernel, device="cpu")
ALPHAS = [1.0, 0.3, 7.0, -0.6, 0.0, 1e-9, -1e-7, np.inf, -np.inf]


def sorted_points(sizes, m, scale=1.0, seed=0):
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    Z = scale * rng.standard_normal((offsets[-1], m))
    return Z - Z.mean(axis=0), offsets


def naive_sets(comparisons: Comparisons, i):
    """S_i and D_i by definition."""
    n = comparisons.offsets[-1]
    classes = comparisons.class_of_row
    groups = np.arange(n) if comparisons.groups is None else comparisons.groups
    foreign = [j for j in range(n) if groups[j] != groups[i]]
    sides = []
    for lists, same in ((comparisons.similar, True), (comparisons.dissimilar, False)):
        if lists is None:
            sides.append([j for j in foreign if (classes[j] == classes[i]) == same])
        else:
            sides.append(list(lists.indices[lists.indptr[i] : lists.indptr[i + 1]]))
    return sides


def naive_sweep(comparisons, Z, V, respond, alpha, beta, symmetric, rows):
    """The definition: one W, one Laplacian, loops."""
    n = len(Z)
    W = np.zeros((n, n))
    for i in rows:
        S, D = naive_sets(comparisons, i)
        d_s = np.array([np.sum((Z[i] - Z[j]) ** 2) for j in S])
        d_d = np.array([np.sum((Z[i] - Z[j]) ** 2) for j in D])
        s, t = soft_average(d_s, alpha), soft_average(d_d, beta)
        _, ds, dt, _ = respond(np.array([i]), np.array([s]), np.array([t]))
        W[i, S] += ds[0] * soft_weights(d_s, alpha)
        W[i, D] += dt[0] * soft_weights(d_d, beta)
    delta = np.diag(W.sum(axis=1) + W.sum(axis=0))
    return (delta - W - W.T) @ V if symmetric else (0.5 * delta - W) @ V


class Recorder:
    """Answers with fixed values and slopes, some of them zero; remembers the soft averages."""

    def __init__(self, n, seed=1):
        rng = np.random.default_rng(seed)
        self.ds = rng.standard_normal(n) * (rng.random(n) < 0.6)
        self.dt = rng.standard_normal(n) * (self.ds != 0)
        self.values, self.seconds = rng.standard_normal((2, n))
        self.s, self.t, self.visits = np.full(n, np.nan), np.full(n, np.nan), np.zeros(n, int)

    def __call__(self, rows, s, t):
        self.s[rows], self.t[rows] = s, t
        self.visits[rows] += 1
        return Response(self.values[rows], self.ds[rows], self.dt[rows], self.seconds[rows])


def sweep(kernel, Z, V, respond, **options):
    """A kernel's sweep over NumPy arrays, whatever arrays it computes with."""

    def answer(rows, s, t):
        answers = respond(np.asarray(rows), np.asarray(s), np.asarray(t))
        return Response(*(kernel.asarray(a) for a in answers if a is not None))

    points = kernel.asarray(Z)
    result = kernel.sweep(points, points if V is Z else kernel.asarray(V), answer, **options)
    second = float(result.total(kernel.asarray(result.second)))
    return SweepResult(
        float(result.total(result.value)), result.total(result.laplacian), second=second
    )


def assert_half(got, expected, V, exact):
    """A half H is any with the right VᵀH + HᵀV; kernels to which it is cheaper agree on one."""
    if exact:
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)
    G, G_expected = V.T @ got, V.T @ expected
    np.testing.assert_allclose(G + G.T, G_expected + G_expected.T, rtol=1e-9, atol=1e-8)


CASES = {
    "complete": {},
    "groups": {"groups": True},
    "similar lists": {"similar": 3},
    "dissimilar lists": {"dissimilar": 4},
    "both lists, groups": {"similar": 3, "dissimilar": 4, "groups": True},
}


def comparisons_for(case, Z, offsets):
    options = dict(CASES[case])
    if options.pop("groups", False):
        options["groups"] = np.random.default_rng(5).integers(0, len(Z) // 2, len(Z))
    if len(offsets) == 2:
        options["dissimilar"] = "none"
    return build_comparisons(Z, offsets, **options)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_equals_the_naive_loops(kernel, case, alpha, symmetric):
    Z, offsets = sorted_points([13, 1, 6, 10], m=3)
    V = np.random.default_rng(2).standard_normal((len(Z), 5))
    comparisons = comparisons_for(case, Z, offsets)
    mine, naive = Recorder(len(Z)), Recorder(len(Z))
    bound = KERNELS[kernel](comparisons)
    got = sweep(bound, Z, V, mine, alpha=alpha, symmetric=symmetric)
    expected = naive_sweep(comparisons, Z, V, naive, alpha, 1.0, symmetric, comparisons.anchors)
    assert_half(got.laplacian, expected, V, exact=symmetric or bound.half_is_cheaper)
    assert got.value == pytest.approx(mine.values[comparisons.anchors].sum())
    assert got.second == pytest.approx(mine.seconds[comparisons.anchors].sum())
    np.testing.assert_allclose(mine.s, naive.s, rtol=1e-9)
    np.testing.assert_allclose(mine.t, naive.t, rtol=1e-9)
    assert set(mine.visits[comparisons.anchors]) == {1}


@pytest.mark.parametrize("beta", [0.5, 3.0, np.inf, -1.0])
@pytest.mark.parametrize("kernel", KERNELS)
def test_exponent_of_the_dissimilar_side(kernel, beta):
    Z, offsets = sorted_points([9, 8], m=2)
    comparisons = build_comparisons(Z, offsets)
    mine, naive = Recorder(len(Z)), Recorder(len(Z))
    got = sweep(KERNELS[kernel](comparisons), Z, Z, mine, alpha=2.0, beta=beta, symmetric=True)
    expected = naive_sweep(comparisons, Z, Z, naive, 2.0, beta, True, comparisons.anchors)
    np.testing.assert_allclose(got.laplacian, expected, atol=1e-10)


def both(comparisons, Z, V, **options):
    """Reference and compiled kernel on the same input."""
    out = []
    for kernel in (ReferenceKernel(comparisons), CpuKernel(comparisons)):
        recorder = Recorder(len(Z))
        laplacian = kernel.sweep(Z, V, recorder, **options).laplacian
        out.append((laplacian, recorder.s, recorder.t))
    return out


def assert_same(reference, compiled, tolerance):
    for expected, got in zip(reference, compiled, strict=True):
        scale = np.nanmax(np.abs(expected))
        np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("m", [1, 4, 7, 33])
@pytest.mark.parametrize("sizes", [[2, 1], [700, 431, 30], [5] * 60])
@pytest.mark.parametrize("symmetric", [False, True])
def test_odd_shapes(sizes, m, symmetric):
    Z, offsets = sorted_points(sizes, m)
    comparisons = build_comparisons(Z, offsets)
    V = np.random.default_rng(2).standard_normal((len(Z), 3))
    assert_same(*both(comparisons, Z, V, alpha=1.7, symmetric=symmetric), 1e-11)


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1.0, 10.0, 300.0, 1e5])
@pytest.mark.parametrize("alpha", [1.0, 2.0**-10, 2.0**10, -0.5, np.inf])
@pytest.mark.parametrize("similar", ["all", 5])
def test_scales_and_skipped_tiles(scale, alpha, similar):
    """From points that all coincide to points out of each other's reach, skipped or not."""
    Z, offsets = sorted_points([900, 850, 60], m=3, scale=scale)
    comparisons = build_comparisons(Z, offsets, similar=similar)
    tolerance = 1e-9 if scale < 1e5 else 1e-5  # squared distances of 1e10 lose digits in exponents
    assert_same(*both(comparisons, Z, Z, alpha=alpha), tolerance)


def test_tiles_are_really_skipped():
    """Otherwise the test above would prove nothing."""
    Z, offsets = sorted_points([900, 850, 60], m=3, scale=300.0)
    comparisons = build_comparisons(Z, offsets)
    sweep = CpuSweep(comparisons, Arrangement.of(comparisons), Z, Z, (1.0, 1.0), False)
    assert sweep.reordered
    ((quads, labels, *_), *_) = _blocks(sweep.placed, comparisons.anchors)
    n_tiles = sweep._tiles.low.shape[1]
    runs = np.empty((len(quads), n_tiles + 3, 2), dtype=np.int64)
    counts = np.zeros((len(quads), 2), dtype=np.int64)
    sweep._choose_runs(quads, labels, runs, counts)
    seen = sum(np.diff(runs[q, : counts[q, 1]]).sum() for q in range(len(quads)))
    assert seen < 0.5 * len(quads) * len(Z)


def test_some_rows_where_tiles_are_skipped():
    """Points are reordered then: the rows asked for must be found where they went."""
    Z, offsets = sorted_points([900, 850, 60], m=3, scale=300.0)
    comparisons = build_comparisons(Z, offsets)
    assert CpuSweep(comparisons, Arrangement.of(comparisons), Z, Z, (1.0, 1.0), False).reordered
    rows = np.random.default_rng(0).choice(len(Z), 300, replace=False)
    found = []
    for kernel in (ReferenceKernel, CpuKernel):
        recorder = Recorder(len(Z))
        found.append(kernel(comparisons).sweep(Z, Z, recorder, alpha=1.0, rows=rows).laplacian)
        np.testing.assert_array_equal(np.flatnonzero(recorder.visits), np.sort(rows))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9, atol=1e-9 * np.abs(found[0]).max())


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("alpha", [1.0, 3.0, -0.6, 0.0, np.inf])
def test_float32_is_kept_and_accurate(case, alpha):
    Z, offsets = sorted_points([80, 33, 71], m=6)
    comparisons = comparisons_for(case, Z, offsets)
    Zf = Z.astype(np.float32)
    reference, compiled = (
        kernel(comparisons).sweep(z, z, Recorder(len(Z)), alpha=alpha).laplacian
        for kernel, z in ((ReferenceKernel, Zf.astype(np.float64)), (CpuKernel, Zf))
    )
    assert compiled.dtype == np.float32
    np.testing.assert_allclose(compiled, reference, rtol=0, atol=3e-5 * np.abs(reference).max())


def test_some_rows_only():
    Z, offsets = sorted_points([30, 25], m=3)
    comparisons = build_comparisons(Z, offsets)
    rows = np.array([40, 3, 7, 54, 12])
    naive = Recorder(len(Z))
    expected = naive_sweep(comparisons, Z, Z, naive, 1.0, 1.0, True, rows)
    for kernel in KERNELS.values():
        mine = Recorder(len(Z))
        got = sweep(kernel(comparisons), Z, Z, mine, alpha=1.0, rows=rows, symmetric=True)
        np.testing.assert_allclose(got.laplacian, expected, atol=1e-11)
        assert got.value == pytest.approx(mine.values[rows].sum())
        assert np.flatnonzero(mine.visits).tolist() == sorted(rows)


def test_result_does_not_depend_on_threads_beyond_rounding_and_repeats_exactly(monkeypatch):
    Z, offsets = sorted_points([600, 900], m=5)
    comparisons = build_comparisons(Z, offsets)

    def run(threads):
        monkeypatch.setattr("numba.get_num_threads", lambda: threads)
        return CpuKernel(comparisons).sweep(Z, Z, Recorder(len(Z)), alpha=1.0).laplacian

    np.testing.assert_array_equal(run(2), run(2))
    np.testing.assert_allclose(run(1), run(3), atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("alpha", [1.0, -1.0, 0.0, np.inf, -np.inf])
def test_coinciding_points(kernel, alpha):
    """All points equal: every average is 0, every set's weights are uniform, nothing is NaN."""
    offsets = np.array([0, 4, 9])
    Z = np.zeros((9, 2))
    comparisons = build_comparisons(Z, offsets)
    V = np.random.default_rng(0).standard_normal((9, 3))
    mine, naive = Recorder(9), Recorder(9)
    got = sweep(KERNELS[kernel](comparisons), Z, V, mine, alpha=alpha, symmetric=True)
    expected = naive_sweep(comparisons, Z, V, naive, alpha, 1.0, True, np.arange(9))
    np.testing.assert_allclose(got.laplacian, expected, atol=1e-12)
    np.testing.assert_array_equal(mine.s, np.zeros(9))


def test_outliers_far_beyond_the_range_of_the_exponential():
    """A row whose nearest neighbor is at d = 1e8: e^{−d} is 0, its soft averages are not."""
    Z, offsets = sorted_points([20, 20], m=2)
    Z[5] += 1e4
    Z -= Z.mean(axis=0)
    assert_same(*both(build_comparisons(Z, offsets), Z, Z, alpha=1.0), 1e-6)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_a_few_rows_underflow_where_most_do_not(dtype):
    """Exponentials are taken as they are for these points; two rows need the shifted ones."""
    Z, offsets = sorted_points([300, 250], m=2, scale=0.1)
    Z[5] += 20.0  # its nearest is at d = 800: e^{−d} is 0
    Z[400] -= 14.0 if dtype == "f8" else 5.0  # at d = 392 (50): a number, but almost none
    Z = (Z - Z.mean(axis=0)).astype(dtype)
    comparisons = build_comparisons(Z, offsets)
    assert CpuSweep(comparisons, Arrangement.of(comparisons), Z, Z, (1.0, 1.0), False)._modes == (
        DIRECT,
        DIRECT,
    )
    reference, compiled = (
        (kernel(comparisons).sweep(z, z, recorder, alpha=1.0).laplacian, recorder.s, recorder.t)
        for kernel, z, recorder in (
            (ReferenceKernel, Z.astype("f8"), Recorder(len(Z))),
            (CpuKernel, Z, Recorder(len(Z))),
        )
    )
    assert_same(reference, compiled, 1e-10 if dtype == "f8" else 1e-4)


def test_unknown_backend():
    Z, offsets = sorted_points([3, 3], m=2)
    with pytest.raises(ValueError, match="numba, numpy"):
        make_kernel(build_comparisons(Z, offsets), "fortran")


# -- averages of targets ---------------------------------------------------------------------


class TargetRecorder:
    """Answers with fixed values and slopes, some of them zero; remembers the averages."""

    def __init__(self, n, q, seed=1):
        rng = np.random.default_rng(seed)
        self.slopes = rng.standard_normal((n, q)) * (rng.random((n, 1)) < 0.6)
        self.values = rng.standard_normal(n)
        self.averages, self.visits = np.full((n, q), np.nan), np.zeros(n, int)

    def __call__(self, rows, averages):
        self.averages[rows] = averages
        self.visits[rows] += 1
        return TargetResponse(self.values[rows], self.slopes[rows])


def naive_target_sweep(comparisons, Z, V, Y, respond, symmetric, rows):
    """The definition: p by loops, W = g · ∂ŷ/∂d."""
    W = np.zeros((len(Z), len(Z)))
    for i in rows:
        S, _ = naive_sets(comparisons, i)
        d = np.array([np.sum((Z[i] - Z[j]) ** 2) for j in S])
        p = np.exp(-(d - d.min())) / np.exp(-(d - d.min())).sum()
        average = p @ Y[S]
        _, slopes = respond(np.array([i]), average[None])
        W[i, S] = [p_j * slopes[0] @ (average - Y[j]) for p_j, j in zip(p, S, strict=True)]
    delta = np.diag(W.sum(axis=1) + W.sum(axis=0))
    return (delta - W - W.T) @ V if symmetric else (0.5 * delta - W) @ V


def target_sweep(kernel, Z, V, Y, respond, **options):
    """A kernel's sweep over averages of NumPy arrays, whatever arrays it computes with."""

    def answer(rows, averages):
        answers = respond(np.asarray(rows), np.asarray(averages))
        return TargetResponse(*map(kernel.asarray, answers))

    points, targets = kernel.asarray(Z), kernel.asarray(Y)
    operand = points if V is Z else kernel.asarray(V)
    result = kernel.sweep_targets(points, operand, targets, answer, **options)
    return SweepResult(float(result.total(result.value)), result.total(result.laplacian))


@pytest.mark.parametrize("rows", [None, [14, 3, 7, 20]])
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("case", ["complete", "groups", "similar lists", "both lists, groups"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_target_averages_equal_the_naive_loops(kernel, case, q, symmetric, rows):
    Z, _ = sorted_points([30], m=3)
    rng = np.random.default_rng(2)
    V, Y = rng.standard_normal((30, 5)), rng.standard_normal((30, q))
    comparisons = comparisons_for(case, Z, np.array([0, 30]))
    mine, naive = TargetRecorder(30, q), TargetRecorder(30, q)
    bound = KERNELS[kernel](comparisons)
    visited = comparisons.anchors if rows is None else np.intersect1d(rows, comparisons.anchors)
    rows = None if rows is None else visited
    got = target_sweep(bound, Z, V, Y, mine, symmetric=symmetric, rows=rows)
    expected = naive_target_sweep(comparisons, Z, V, Y, naive, symmetric, visited)
    assert_half(got.laplacian, expected, V, exact=symmetric or bound.half_is_cheaper)
    assert got.value == pytest.approx(mine.values[visited].sum())
    np.testing.assert_allclose(mine.averages, naive.averages, rtol=1e-9, atol=1e-12)
    assert np.flatnonzero(mine.visits).tolist() == visited.tolist()
    assert mine.visits.max() == 1


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1.0, 10.0, 300.0, 1e5])
@pytest.mark.parametrize("similar", ["all", 5])
def test_target_averages_at_all_scales_and_with_skipped_tiles(scale, similar):
    Z, offsets = sorted_points([1800], m=3, scale=scale)
    Y = np.random.default_rng(3).standard_normal((1800, 2))
    comparisons = build_comparisons(Z, offsets, similar=similar, dissimilar="none")
    found = []
    for kernel in (ReferenceKernel(comparisons), CpuKernel(comparisons)):
        recorder = TargetRecorder(1800, 2)
        laplacian = kernel.sweep_targets(Z, Z, Y, recorder).laplacian
        found.append((laplacian / scale, recorder.averages))
    # Where every row sees one neighbor only, W is 0: the errors are those of 1e5² in exponents.
    tolerance = 1e-9 if scale < 1e5 else 1e-5
    for expected, got in zip(*found, strict=True):
        np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("similar", ["all", 5])
def test_float32_targets_with_slopes_of_any_size(similar):
    Z, offsets = sorted_points([150], m=4)
    Y = np.random.default_rng(3).standard_normal((150, 1))
    comparisons = build_comparisons(Z, offsets, similar=similar, dissimilar="none")
    laplacians = []
    for kernel, dtype in ((ReferenceKernel, "f8"), (CpuKernel, "f4")):
        recorder = TargetRecorder(150, 1)
        recorder.slopes *= 1e24
        z, y = Z.astype("f4").astype(dtype), Y.astype("f4").astype(dtype)
        laplacians.append(kernel(comparisons).sweep_targets(z, z, y, recorder).laplacian)
    assert laplacians[1].dtype == np.float32
    largest = np.abs(laplacians[0]).max()
    np.testing.assert_allclose(laplacians[1], laplacians[0], rtol=0, atol=3e-5 * largest)


@pytest.mark.parametrize("kernel", KERNELS)
def test_target_averages_of_coinciding_points_are_means_of_the_others(kernel):
    Y = np.arange(9.0)[:, None]
    comparisons = build_comparisons(np.zeros((9, 2)), np.array([0, 9]), dissimilar="none")
    mine = TargetRecorder(9, 1)
    got = target_sweep(KERNELS[kernel](comparisons), np.zeros((9, 2)), np.zeros((9, 2)), Y, mine)
    np.testing.assert_allclose(mine.averages, (Y.sum() - Y) / 8, rtol=1e-12)
    assert not got.laplacian.any()


def test_target_averages_do_not_depend_on_threads_beyond_rounding(monkeypatch):
    Z, offsets = sorted_points([1500], m=5)
    comparisons = build_comparisons(Z, offsets, dissimilar="none")
    Y = Z[:, :1] ** 2

    def run(threads):
        monkeypatch.setattr("numba.get_num_threads", lambda: threads)
        return CpuKernel(comparisons).sweep_targets(Z, Z, Y, TargetRecorder(1500, 1)).laplacian

    np.testing.assert_array_equal(run(2), run(2))
    np.testing.assert_allclose(run(1), run(3), atol=1e-12)
