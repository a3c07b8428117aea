"""The objective on a device (here PyTorch's CPU) is the objective; learners reach it by backend."""

import subprocess
import sys
import types
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import vicinal as vc  # noqa: E402
from vicinal import kernels  # noqa: E402
from vicinal.kernels import gpu, make_kernel  # noqa: E402
from vicinal.kernels.gpu import GpuKernel  # noqa: E402
from vicinal.kernels.gpu import gpu_kernel as kernel_module  # noqa: E402
from vicinal.kernels.gpu.torch_sweep import TorchSweep  # noqa: E402
from vicinal.learners import neighbor_learner  # noqa: E402
from vicinal.objective.losses import LOSSES, get_loss  # noqa: E402
from vicinal.objective.neighbor_objective import NeighborObjective, plain_shift  # noqa: E402
from vicinal.objective.neighbor_sets import build_comparisons  # noqa: E402
from vicinal.objective.parametrization import Factor, Metric  # noqa: E402

OFFSETS = np.array([0, 30, 31, 55, 90])
CUBED = get_loss((lambda z: z**3, lambda z: 3 * z**2))


def samples(d=5, seed=0):
    X = np.random.default_rng(seed).standard_normal((OFFSETS[-1], d))
    return X - X.mean(axis=0)


def objectives(parametrization, loss, alpha, **sets):
    """The same objective by the readable kernel and on the device."""
    rng, X = np.random.default_rng(1), samples()
    comparisons = build_comparisons(X, OFFSETS, **sets)
    options = {
        "X": X,
        "comparisons": comparisons,
        "parametrization": parametrization,
        "loss": loss,
        "alpha": alpha,
        "gamma": 0.7,
        "shift": plain_shift(comparisons, alpha),
        "weights": rng.random(len(X)),
        "pull": 0.01 * np.eye(X.shape[1]),
    }
    host = NeighborObjective(kernel=make_kernel(comparisons, "numpy"), **options)
    return host, moved(host, GpuKernel(comparisons, "cpu"))


def moved(host, kernel):
    """The same objective with all arrays of n rows where the kernel computes."""
    names = ("X", "shift", "weights")
    arrays = {name: kernel.asarray(getattr(host, name)) for name in names}
    return replace(host, kernel=kernel, **arrays)


@pytest.mark.parametrize("rows", [None, [5, 3, 60, 80]])
@pytest.mark.parametrize(("alpha", "sets"), [(1.0, {}), (-1.0, {"similar": 3})])
@pytest.mark.parametrize("loss", [*LOSSES.values(), CUBED], ids=lambda loss: loss.name)
@pytest.mark.parametrize("parametrization", [Factor(), Metric()])
def test_value_and_gradient(parametrization, loss, alpha, sets, rows):
    host, device = objectives(parametrization, loss, alpha, **sets)
    rng = np.random.default_rng(2)
    params = rng.standard_normal((3, 5))
    if isinstance(parametrization, Metric):
        params = 0.3 * params.T @ params
    rows = None if rows is None else np.array(rows)
    expected, gradient = host.value_and_gradient(params, rows)
    value, got = device.value_and_gradient(params, rows)
    assert value == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(got, gradient, rtol=1e-8, atol=1e-10 * np.abs(gradient).max())
    assert isinstance(got, np.ndarray)
    assert got.dtype == params.dtype


@pytest.mark.parametrize(
    ("errors", "rows", "expected"),
    [
        ([0.0], None, [0]),
        ([1e-2, 1e-9, 0.0], None, [0, 1]),
        ([1e-2, 1e-3, 0.0], None, [0, 2]),
        ([1e-2, 1e-3], None, [0, 1]),
        ([1e-2, 1e-9], np.arange(9), [0]),
    ],
    ids=["exact", "better", "float64", "best", "mini-batch"],
)
def test_as_precise_as_promised(monkeypatch, errors, rows, expected):
    _, device = objectives(Factor(), LOSSES["logistic"], 1.0)
    levels, evaluate = [], GpuKernel.evaluate

    def recording(kernel, *points, level):
        levels.append(level)
        return evaluate(kernel, *points, level=level)

    monkeypatch.setattr(GpuKernel, "evaluate", recording)
    monkeypatch.setattr(GpuKernel, "exponent_errors", lambda kernel, *points: errors)
    device.value_and_gradient(np.eye(5), rows)
    assert levels == expected


@pytest.fixture
def cpu_device(monkeypatch):
    """backend="cuda" on PyTorch's CPU."""
    monkeypatch.setattr(gpu, "make_gpu_kernel", lambda c, backend: GpuKernel(c, "cpu"))
    monkeypatch.setattr(gpu, "nearest_of_class", partial(gpu.nearest_of_class, device="cpu"))


@pytest.mark.parametrize(
    "options",
    [
        {"solver": "lbfgs", "n_components": 2},
        {"solver": "pgd", "similar": 3, "alpha": -1.0},
        {"solver": "apg", "similar": 3, "alpha": -1.0, "refresh_every": 2},
        {"solver": "sgd", "batch_size": 30},
        {"solver": "sgd", "batch_size": 30, "n_references": 40},
    ],
    ids=str,
)
def test_every_solver_takes_the_same_path(cpu_device, options):
    X = samples()
    y = np.repeat(np.arange(4), np.diff(OFFSETS))
    X = X + y[:, None]
    fits = []
    for backend in ("numba", "cuda"):
        model = vc.ANN(backend=backend, max_iter=5, tol=0, random_state=0, **options)
        with pytest.warns():  # a class of one sample; not converged
            fits.append(model.fit(X, y))
    np.testing.assert_allclose(fits[0].history_, fits[1].history_, rtol=1e-6)
    metrics = [fitted.get_mahalanobis_matrix() for fitted in fits]
    np.testing.assert_allclose(metrics[0], metrics[1], rtol=1e-4, atol=1e-5)


def test_learners_take_tensors():
    X, y = samples(), np.repeat(np.arange(4), np.diff(OFFSETS))
    X, y = X[y != 1], y[y != 1]  # without the class of one sample
    by_arrays = vc.ANN().fit(X, y).components_
    by_tensors = vc.ANN().fit(torch.as_tensor(X), torch.as_tensor(y)).components_
    np.testing.assert_array_equal(by_arrays, by_tensors)


@pytest.fixture
def copies(cpu_device, monkeypatch):
    """Tensors stay where they are, as on a GPU: sizes of the float tensors that leave it."""
    sizes = []
    original = torch.Tensor.cpu

    def counting(tensor, *args, **options):
        if tensor.is_floating_point():
            sizes.append(tensor.numel())
        return original(tensor, *args, **options)

    monkeypatch.setattr(neighbor_learner, "stays_on_device", lambda X, backend: torch.is_tensor(X))
    monkeypatch.setattr(torch.Tensor, "cpu", counting)
    return sizes


STAYING = [
    {"n_components": 2},
    {"n_components": 3, "loss": "logistic", "plain": True},
    {"init": "pca", "n_components": 4, "class_weight": "balanced"},
    {"solver": "pgd", "similar": 3, "alpha": -1.0},
    {"solver": "apg", "similar": 3, "alpha": -1.0, "refresh_every": 2},
    {"dissimilar": 4},
    {"solver": "sgd", "batch_size": 20},
    {"solver": "sgd", "batch_size": 20, "n_references": 60},
]


@pytest.mark.filterwarnings("ignore::vicinal.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("options", STAYING, ids=str)
def test_tensors_stay_on_the_device(copies, options):
    rng = np.random.default_rng(5)
    y = rng.permutation(np.repeat(list("abcd"), 40))
    X = 3 + rng.standard_normal((160, 5)) + (y == "a")[:, None] + 2 * (y == "c")[:, None]
    options = {**options, "max_iter": 4, "tol": 0, "random_state": 0}
    weights = rng.random(160)
    by_array = vc.ANN(backend="numba", **options).fit(X, y, sample_weight=weights)
    by_tensor = vc.ANN(**options).fit(torch.as_tensor(X), y, sample_weight=weights)
    assert max(copies) <= 25  # (d, d)
    assert by_tensor.n_features_in_ == 5
    np.testing.assert_allclose(by_tensor.history_, by_array.history_, rtol=1e-5)
    metrics = [model.get_mahalanobis_matrix() for model in (by_array, by_tensor)]
    np.testing.assert_allclose(metrics[1], metrics[0], rtol=1e-3, atol=1e-3 * metrics[0].max())


@pytest.mark.filterwarnings("ignore::vicinal.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("similar", ["all", 3])
def test_groups_with_tensors(copies, similar):
    rng = np.random.default_rng(6)
    y, groups = np.repeat([0, 1], 30), rng.integers(0, 20, 60)
    X = (rng.standard_normal((60, 3)) + y[:, None]).astype(np.float32)
    options = {"similar": similar, "max_iter": 3, "tol": 0}
    by_array = vc.ANN(backend="numba", **options).fit(X, y, groups=groups)
    by_tensor = vc.ANN(**options).fit(torch.as_tensor(X), torch.as_tensor(y), groups=groups)
    assert by_tensor.components_.dtype == np.float32
    np.testing.assert_allclose(by_tensor.history_, by_array.history_, rtol=1e-4)


@pytest.mark.filterwarnings("ignore::vicinal.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int32, torch.uint8])
def test_samples_of_any_numeric_type(copies, dtype):
    X = torch.as_tensor(np.random.default_rng(7).integers(0, 9, (40, 3)))
    y = np.arange(40) % 4
    expected, got = (vc.ANN(max_iter=3).fit(X.to(t), y) for t in (torch.float64, dtype))
    np.testing.assert_array_equal(got.history_, expected.history_)
    np.testing.assert_array_equal(got.components_, expected.components_)


@pytest.mark.filterwarnings("ignore::vicinal.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("as_labels", [np.asarray, list, torch.as_tensor])
def test_labels_of_any_kind_in_any_order(copies, as_labels):
    rng = np.random.default_rng(4)
    y, mixed = np.repeat(np.arange(4), 20), rng.permutation(80)
    X = torch.as_tensor(7 + rng.standard_normal((80, 3)) + y[:, None])
    expected = vc.ANN(max_iter=3, init="paper").fit(X, y)
    got = vc.ANN(max_iter=3, init="paper").fit(X[mixed], as_labels(y[mixed]))
    np.testing.assert_allclose(got.history_, expected.history_, rtol=1e-9)


@pytest.mark.parametrize(
    ("X", "match"),
    [
        (torch.zeros(6), "2-dimensional"),
        (torch.tensor([[0.0], [1.0], [torch.nan], [2.0]]), "NaN or infinity"),
        (torch.zeros((5, 2)), "inconsistent"),
    ],
    ids=["vector", "nan", "length"],
)
def test_bad_tensors(copies, X, match):
    with pytest.raises(ValueError, match=match):
        vc.ANN().fit(X, [0, 0, 1, 1])


def test_auto_uses_a_gpu_only_where_torch_is_there_already(monkeypatch):
    def with_gpu(available):
        cuda = types.SimpleNamespace(is_available=lambda: available)
        monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=cuda))

    with_gpu(True)
    assert kernels.choose_backend("auto", 20_000) == "cuda"
    assert kernels.choose_backend("auto", 19_999) == "numba"
    assert kernels.choose_backend("numpy", 10**6) == "numpy"
    with_gpu(False)
    assert kernels.choose_backend("auto", 10**6) == "numba"
    monkeypatch.delitem(sys.modules, "torch")
    assert kernels.choose_backend("auto", 10**6) == "numba"
    assert "torch" not in sys.modules


def test_nothing_imports_torch_by_itself():
    program = "import sys, vicinal, vicinal.kernels; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_no_gpu_says_what_to_do():
    y = np.repeat([0, 1], 10)
    with pytest.raises(RuntimeError, match="use backend='auto'"):
        vc.ANN(backend="cuda").fit(np.random.default_rng(0).standard_normal((20, 3)), y)


def test_unknown_precision():
    with pytest.raises(ValueError, match="'high' or 'fast'"):
        GpuKernel(build_comparisons(samples(), OFFSETS), "cpu", "extreme")


def test_unknown_engine():
    with pytest.raises(ValueError, match="'auto', 'triton' or 'torch'"):
        GpuKernel(build_comparisons(samples(), OFFSETS), "cpu", engine="bogus")


@pytest.mark.parametrize(
    ("device", "installed", "engine"),
    [("cuda", True, "triton"), ("cuda", False, "torch"), ("cpu", True, "torch")],
)
def test_auto_is_triton_on_a_gpu_where_it_is_installed(monkeypatch, device, installed, engine):
    monkeypatch.setattr(kernel_module, "find_spec", lambda name: object() if installed else None)
    assert kernel_module.choose_engine("auto", torch.device(device)) == engine


@pytest.mark.parametrize(
    ("memory", "width", "expected"),
    [
        (216, 256, [2.0**-22, 0.0]),  # KiB; after what level 0 costs
        (152, 256, [0.0]),
        (88, 256, None),
        (88, 64, [2.0**-22, 0.0]),
    ],
)
def test_levels_of_precision_are_those_whose_tiles_fit(monkeypatch, memory, width, expected):
    monkeypatch.setattr(kernel_module, "memory_for_tiles", lambda device: memory * 2**10)
    kernel = GpuKernel(build_comparisons(samples(), OFFSETS), "cpu", engine="triton")
    errors = kernel.exponent_errors(torch.ones((90, width)), 1.0)
    assert errors == [0.0] if expected is None else errors[1:] == expected
    if expected == [0.0]:
        sweep = kernel.evaluate(torch.ones((90, width), dtype=torch.float64), 1.0, level=1)
        assert isinstance(sweep._dense, TorchSweep)


def test_the_finer_level_has_errors_too_where_exponents_are_large():
    kernel = GpuKernel(build_comparisons(samples(), OFFSETS), "cpu", engine="triton")
    coarse, fine, exact = kernel.exponent_errors(torch.full((90, 4), 50.0), 1000.0)
    assert coarse > 1  # γ‖z‖² = 10⁷
    assert 2.0**-22 < fine < 1e-3 * coarse
    assert exact == 0
