"""K-NN on a device (here PyTorch's CPU) against the exact search of the CPU."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from vicinal.gpu import knn_errors  # noqa: E402
from vicinal.kernels import gpu  # noqa: E402
from vicinal.kernels.cpu.class_neighbors import NeighborIndex  # noqa: E402
from vicinal.kernels.gpu import gpu_neighbors as module  # noqa: E402
from vicinal.objective.neighbor_sets import build_comparisons  # noqa: E402

OFFSETS = [0, 40, 40, 43, 90]  # an empty class, and one with fewer than k


def points(n, seed, offset=0.0):
    return offset + np.random.default_rng(seed).standard_normal((n, 4))


@pytest.mark.parametrize("block", [2**26, 500])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_equals_the_cpu(monkeypatch, block, offset):
    monkeypatch.setattr(module, "BLOCK_ELEMENTS", block)
    Q, R = points(33, 0, offset), points(90, 1, offset)
    distances, rows = NeighborIndex(R).search(Q, OFFSETS, k=6)
    got = gpu.device_class_neighbors(torch.as_tensor(Q), torch.as_tensor(R), OFFSETS, 6)
    np.testing.assert_array_equal(got[1], rows)
    np.testing.assert_allclose(got[0], distances, rtol=1e-12)


def test_ties_and_exclusion():
    R = np.round(points(90, 2))  # many points coincide
    itself = np.arange(90)
    distances, rows = NeighborIndex(R).search(R, OFFSETS, k=5, exclude=itself)
    tensor = torch.as_tensor(R)
    got = gpu.device_class_neighbors(tensor, tensor, OFFSETS, 5, exclude=torch.as_tensor(itself))
    np.testing.assert_array_equal(got[0], distances)
    np.testing.assert_array_equal(got[1], rows)


@pytest.mark.parametrize("spread", [1e-3, 1e-6, 1e-9])
def test_tight_clusters_far_from_the_center(spread):
    # At 1e-9 even products of float64 do not know their order, and all are candidates.
    rng = np.random.default_rng(4)
    places = np.repeat([-100.0, 100.0], 60)[:, None]
    R = places + spread * rng.standard_normal((120, 4))
    rows = gpu.device_all_neighbors(
        torch.as_tensor(R), torch.as_tensor(R), 5, exclude=torch.arange(120)
    )[1]
    gaps = R[:, None] - R  # differences of neighbors are exact
    distances = np.square(gaps).sum(2) + np.diag(np.full(120, np.inf))
    np.testing.assert_array_equal(rows, distances.argsort(axis=1, kind="stable")[:, :5])


def test_more_ties_than_spare_candidates():
    rng = np.random.default_rng(7)
    R = rng.permutation(np.repeat(np.eye(4), 30, axis=0)) + 0.1
    distances, rows = NeighborIndex(R).search(R, [0, 120], k=3)
    got = gpu.device_all_neighbors(torch.as_tensor(R), torch.as_tensor(R), 3)
    np.testing.assert_array_equal(got[0], distances[:, 0])
    np.testing.assert_array_equal(got[1], rows[:, 0])


def test_lists_of_the_nearest_of_the_class():
    offsets = np.array([0, 40, 43, 90])
    X = points(90, 3)
    expected = build_comparisons(X, offsets, similar=4).similar
    lists = gpu.nearest_of_class(X, offsets, 4, device="cpu")
    np.testing.assert_array_equal(lists.indptr, expected.indptr)
    np.testing.assert_array_equal(lists.indices, expected.indices)


def test_errors_of_all_k_at_once():
    rng = np.random.default_rng(5)
    rows, labels, truth = (
        rng.integers(0, 30, (50, 7)),
        rng.integers(0, 3, 30),
        rng.integers(0, 3, 50),
    )
    errors = knn_errors(*map(torch.as_tensor, (rows, labels, truth)))
    for k in range(1, 8):
        wrong = 0
        for i in range(50):
            found = labels[rows[i, :k]].tolist()
            most = max(found.count(c) for c in found)
            winner = next(c for c in found if found.count(c) == most)  # the nearest of the most
            wrong += winner != truth[i]
        assert float(errors[k - 1]) == pytest.approx(wrong / 50)


def test_missing_neighbors_do_not_vote():
    rows = torch.tensor([[0, -1, -1], [1, 0, -1], [-1, -1, -1]])
    labels = torch.tensor([0, 0, 1])
    np.testing.assert_array_equal(
        knn_errors(rows, labels, torch.tensor([0, 0, 1])), np.full(3, 1 / 3)
    )
