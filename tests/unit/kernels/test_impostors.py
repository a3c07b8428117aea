"""The fast push kernel against the readable one, for every shape of data."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from vicinal.kernels.cpu.impostors import PRUNED_POINTS, Impostors, ReferenceImpostors
from vicinal.objective.neighbor_sets import build_comparisons

FLAGS = pytest.mark.parametrize("symmetric", [False, True])
LOSSES = pytest.mark.parametrize("squared", [False, True])


def case(n, m, k, *, seed=0, scale=1.0, classes=4):
    rng = np.random.default_rng(seed)
    codes = np.sort(rng.integers(classes, size=n))
    offsets = np.searchsorted(codes, np.arange(classes + 1))
    Z = scale * rng.standard_normal((n, m))
    Z[0], Z[1] = Z[-1], Z[2]  # duplicates, across classes and within one
    return Z, build_comparisons(Z, offsets, similar=k)


def assert_same(fast, slow):
    assert fast.n_active == slow.n_active
    assert_allclose(fast.value, slow.value, rtol=1e-11)
    assert_allclose(fast.second, slow.second, rtol=1e-11)
    size = np.abs(slow.laplacian).max()
    assert_allclose(fast.laplacian, slow.laplacian, rtol=1e-9, atol=1e-10 * size)


@LOSSES
@FLAGS
@pytest.mark.parametrize(
    ("n", "m", "k", "scale"),
    [
        (12, 1, 1, 1.0),
        (61, 3, 3, 1.0),
        (200, 4, 5, 0.01),  # all others are impostors
        (200, 9, 2, 30.0),  # hardly any is
        (1700, 17, 3, 1.0),
        (PRUNED_POINTS, 2, 3, 5.0),  # tiles are skipped
        (PRUNED_POINTS + 1, 6, 2, 1.0),
    ],
)
def test_matches_the_reference(n, m, k, scale, squared, symmetric):
    Z, targets = case(n, m, k, scale=scale)
    V = np.random.default_rng(1).standard_normal((n, 3))
    flags = {"squared": squared, "symmetric": symmetric}
    slow = ReferenceImpostors(targets).sweep(Z, V, **flags)
    assert_same(Impostors(targets).sweep(Z, V, **flags), slow)
    rows = targets.anchors[::3]
    assert_same(
        Impostors(targets).sweep(Z, V, rows=rows, **flags),
        ReferenceImpostors(targets).sweep(Z, V, rows=rows, **flags),
    )


@FLAGS
@pytest.mark.parametrize("width", [1e-3, 0.5, 100.0])
def test_smoothed_hinges(width, symmetric):
    """Below the hinges, by half the width for each active triplet at most; slopes of value."""
    Z, targets = case(61, 3, 3)
    flags = {"squared": False, "symmetric": symmetric, "width": width}
    slow = ReferenceImpostors(targets).sweep(Z, Z, **flags)
    assert_same(Impostors(targets).sweep(Z, Z, **flags), slow)
    sharp = ReferenceImpostors(targets).sweep(Z, Z, squared=False, symmetric=symmetric)
    assert slow.second == sharp.value
    assert 0 <= sharp.value - slow.value <= width / 2 * sharp.n_active
    if symmetric:  # the Laplacian of W applied to Z is half the gradient in Z
        move = 1e-6 * np.random.default_rng(2).standard_normal(Z.shape)
        ahead, behind = (
            ReferenceImpostors(targets).sweep(Z + step, Z, **flags).value for step in (move, -move)
        )
        assert_allclose(ahead - behind, 4 * np.vdot(slow.laplacian, move), rtol=1e-4)


@LOSSES
@FLAGS
def test_number_of_threads_changes_nothing_but_rounding(squared, symmetric, monkeypatch):
    Z, targets = case(3000, 4, 3)
    flags = {"squared": squared, "symmetric": symmetric}
    pushes = []
    for n_threads in (1, 3, 3):
        monkeypatch.setattr("numba.get_num_threads", lambda n=n_threads: n)
        pushes.append(Impostors(targets).sweep(Z, Z, **flags))
    alone, shared, again = pushes
    assert_same(shared, alone)
    assert_array_equal(again.laplacian, shared.laplacian)


def test_classes_of_one_sample_are_impostors_only():
    Z = np.array([[0.0], [0.1], [0.2], [5.0]])
    targets = build_comparisons(Z, np.array([0, 2, 3, 4]), similar=2)
    assert_array_equal(targets.anchors, [0, 1])
    for kernel in (Impostors, ReferenceImpostors):
        push = kernel(targets).sweep(Z, Z, squared=False, symmetric=False)
        # 1 + 0.01 − 0.04 of sample 0 and 1 + 0.01 − 0.01 of sample 1
        assert_allclose(push.value, 0.97 + 1.0, rtol=1e-12)
        assert push.n_active == 2


def test_a_naive_loop_over_triplets_agrees():
    Z, targets = case(40, 3, 2)
    classes = targets.class_of_row
    W = np.zeros((40, 40))
    value = 0.0
    for i in targets.anchors:
        for j in targets.similar.of(np.array([i])):
            for other in np.flatnonzero(classes != classes[i]):
                hinge = 1 + ((Z[i] - Z[j]) ** 2).sum() - ((Z[i] - Z[other]) ** 2).sum()
                if hinge > 0:
                    value += hinge
                    W[i, j] += 1
                    W[i, other] -= 1
    Lap = np.diag(W.sum(axis=1) + W.sum(axis=0)) - W - W.T
    for kernel in (Impostors, ReferenceImpostors):
        push = kernel(targets).sweep(Z, Z, squared=False, symmetric=True)
        assert_allclose(push.value, value, rtol=1e-12)
        assert_allclose(push.laplacian, Lap @ Z, atol=1e-10)
        H = kernel(targets).sweep(Z, Z, squared=False, symmetric=False).laplacian
        assert_allclose(Z.T @ H + H.T @ Z, Z.T @ Lap @ Z, atol=1e-9)
