"""Neighbors found on a device (here PyTorch's CPU): both rules, all K, as the CPU's search."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import vicinal as vc
from vicinal import kernels
from vicinal.validation.out_of_fold import Rows, correct_votes, predict_all_k
from vicinal.voting import neighbor_search
from vicinal.voting.class_mean import ClassMeanKNN

torch = pytest.importorskip("torch")
gpu = pytest.importorskip("vicinal.kernels.gpu")

RULES = ("class_mean", "vote")
KS = np.array([1, 2, 5, 9, 40])


@pytest.fixture
def searches(monkeypatch):
    """backend="cuda" on PyTorch's CPU; the list fills with (number of queries, k)."""
    made = []

    def recording(queries, references, offsets, k, **options):
        made.append((len(queries), k))
        return find(queries, references, offsets, k, **options)

    find = gpu.device_class_neighbors
    monkeypatch.setattr(gpu, "device_class_neighbors", recording)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(neighbor_search, "DEVICE", "cpu")
    return made


def problem(ties, dtype=np.float64):
    """70 references, 30 queries; 5 classes, two of them with a single row."""
    rng = np.random.default_rng(3)
    y = rng.permutation(np.r_[np.zeros(40, int), np.full(20, 1), np.full(8, 2), 3, 4])
    X = rng.normal(size=(100, 3)) + 100
    X[:70] += 0.3 * y[:, None]
    if ties:  # integers: nothing rounds, and many references are equally near
        X = np.round(X)
    return X[:70].astype(dtype), y, X[70:].astype(dtype)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("ties", [False, True], ids=["reals", "ties"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("k", [1, 5, 60])
def test_classifier_equals_the_cpu(searches, rule, ties, dtype, k):
    R, y, Z = problem(ties, dtype)
    R.flags.writeable = Z.flags.writeable = False
    host, device = (ClassMeanKNN(k, rule=rule, backend=b).fit(R, y) for b in ("numba", "cuda"))
    device.references_.flags.writeable = False  # as a model file may leave it
    np.testing.assert_array_equal(device.predict(Z), host.predict(Z))
    np.testing.assert_allclose(device.predict_proba(Z), host.predict_proba(Z), rtol=1e-6)
    np.testing.assert_allclose(device.class_distances(Z), host.class_distances(Z), rtol=1e-6)
    assert device.predict_proba(Z).dtype == dtype
    assert searches
    if rule == "class_mean":
        assert {found for _, found in searches} == {min(k, 40)}  # no class has more


@pytest.mark.parametrize("leave_one_out", [False, True])
@pytest.mark.parametrize("ties", [False, True], ids=["reals", "ties"])
def test_kneighbors_equal_the_cpus(searches, ties, leave_one_out):
    R, y, Z = problem(ties)
    queries = None if leave_one_out else Z
    host, device = (ClassMeanKNN(backend=b).fit(R, y) for b in ("numba", "cuda"))
    for k in (1, 5, 69):
        distances, rows = host.kneighbors(queries, k)
        found = device.kneighbors(queries, k)
        np.testing.assert_array_equal(found[1], rows)
        np.testing.assert_allclose(found[0], distances, rtol=1e-12)
    assert len(searches) == 3


@pytest.mark.parametrize("unit", [1e-30, 1e30])
def test_units_do_not_matter(searches, unit):
    R, y, Z = problem(ties=False)
    expected = ClassMeanKNN(backend="cuda").fit(R, y).kneighbors(Z, return_distance=False)
    scaled = ClassMeanKNN(backend="cuda").fit(unit * R, y)
    np.testing.assert_array_equal(scaled.kneighbors(unit * Z, return_distance=False), expected)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("ties", [False, True], ids=["reals", "ties"])
def test_all_k_from_one_search(searches, rule, ties):
    R, y, Z = problem(ties)
    expected = predict_all_k(R, y, Z, KS, rule, "numba")
    assert not searches
    np.testing.assert_array_equal(predict_all_k(R, y, Z, KS, rule, "cuda"), expected)
    assert searches == [(30, 40)]
    voters, asked = Rows(R, y), Rows(Z, expected[1])  # K = 2 is always right
    hits = correct_votes(lambda X: X, voters, asked, KS, rule, "cuda")
    np.testing.assert_array_equal(hits, np.sum(expected == expected[1], axis=1))


def test_references_travel_once_and_queries_in_blocks(searches, monkeypatch):
    moved = []
    move = neighbor_search._on_device
    monkeypatch.setattr(
        neighbor_search, "_on_device", lambda values: (moved.append(len(values)), move(values))[1]
    )
    R, y, Z = problem(ties=False)
    for rule in RULES:
        model = ClassMeanKNN(rule=rule, backend="cuda").fit(R, y)
        expected = model.predict_proba(Z)
        moved.clear()
        with monkeypatch.context() as patch:
            patch.setattr("vicinal.voting.class_mean.MEMORY", 16 * 250)
            np.testing.assert_array_equal(model.predict_proba(Z), expected)
        assert moved[0] == 70
        assert 70 not in moved[1:]
        assert sum(moved[1:]) == 30
        assert len(moved) > 2


@pytest.mark.parametrize(
    ("backend", "used"), [("numba", False), ("numpy", False), ("cuda", True), ("cuda:fast", True)]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_estimators_backend_is_the_searches(searches, monkeypatch, backend, used):
    monkeypatch.setattr(gpu, "make_gpu_kernel", lambda c, backend: gpu.GpuKernel(c, "cpu"))
    R, y, _ = problem(ties=False)
    R, y = R[y < 2], y[y < 2]
    estimator = vc.PNCA(backend=backend, max_iter=2)
    search = vc.ANNSearchCV(estimator, alphas=[0.5, 1], n_neighbors=[1, 4], cv=2, random_state=0)
    search.fit(R, y).predict(R)
    # Two folds of two metrics, one search each for all K; then the prediction.
    sizes = [(30, 4)] * 4 + [(60, search.best_params_["n_neighbors"])]
    assert searches == (sizes if used else [])
    assert search.classifier_.backend == ("cuda" if used else "numba")


def test_auto_is_the_learners_rule(searches, monkeypatch):
    R, y, Z = problem(ties=False)
    model = ClassMeanKNN().fit(R, y)
    model.predict(Z)
    assert not searches  # too few references
    monkeypatch.setattr(kernels, "WORTH_A_DEVICE", 70)
    model.predict(Z)
    assert len(searches) == 1
    ClassMeanKNN(backend="numba").fit(R, y).predict(Z)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    model.predict(Z)
    assert len(searches) == 1


def test_auto_never_imports_torch():
    program = (
        "import sys, numpy as np, vicinal as vc; from vicinal import kernels;"
        "kernels.WORTH_A_DEVICE = 1;"
        "vc.ClassMeanKNN(1).fit(np.eye(4), [0, 1, 0, 1]).predict(np.eye(4));"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def message(estimator):
    with pytest.raises((ValueError, RuntimeError, ImportError)) as caught:
        estimator.fit(np.eye(6), [0, 1] * 3)
    return caught.type, str(caught.value)


def test_unknown_backends_are_refused_as_by_the_learners():
    kind, text = message(ClassMeanKNN(backend="cuda0"))
    assert kind is message(vc.ANN(backend="cuda0"))[0]
    assert text == "backend='cuda0' is not possible; use one of 'auto', 'numba', 'cuda'"
    assert issubclass(message(ClassMeanKNN(backend=None))[0], ValueError)
    model = ClassMeanKNN().fit(np.eye(6), [0, 1] * 3).set_params(backend="gpu")
    with pytest.raises(ValueError, match="backend='gpu' is not possible"):
        model.predict(np.eye(6))


def test_no_gpu_and_no_torch_say_what_the_learners_say(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    kind, text = message(ClassMeanKNN(backend="cuda"))
    assert (kind, text) == message(vc.ANN(backend="cuda"))
    assert "use backend='auto'" in text
    for name in [name for name in sys.modules if name.startswith("vicinal.kernels.gpu")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(kernels, "gpu")
    monkeypatch.setitem(sys.modules, "torch", None)  # as if it were not installed
    kind, text = message(ClassMeanKNN(backend="cuda"))
    assert (kind, text) == message(vc.ANN(backend="cuda"))
    assert "vicinal[gpu]" in text


def test_a_model_file_leaves_the_machine_behind(searches, tmp_path):
    R, y, Z = problem(ties=False)
    model = ClassMeanKNN(3, rule="vote", backend="cuda").fit(R, y)
    vc.save(model, tmp_path / "knn.vicinal")
    loaded = vc.load(tmp_path / "knn.vicinal")
    assert loaded.get_params() == {"n_neighbors": 3, "rule": "vote", "backend": "auto"}
    np.testing.assert_array_equal(loaded.predict(Z), model.predict(Z))
    assert len(searches) == 1


def test_values_whose_squares_overflow_are_refused_here_too(searches):
    model = ClassMeanKNN(1, backend="cuda").fit([[1.0], [0.0]], [0, 1])
    with pytest.raises(ValueError, match="rescale"):
        model.predict([[1e200]])
