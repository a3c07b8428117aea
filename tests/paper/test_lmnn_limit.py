"""α → −∞ and LMNN: the same zero-loss sets, different objectives.

With S_i the target neighbors, α = −∞ makes s_i the distance to the farthest target, and a hard
minimum makes t_i that to the nearest impostor. The hinge of row i is then that of its worst
triplet,

    [1 + s_i − t_i]₊ = max_{j∈S_i, l∈D_i} [1 + d_ij − d_il]₊,

zero exactly where all of the row's LMNN hinges are. LMNN sums them, so the paper's "equivalent to
LMNN" holds for what is feasible, not for what is minimized.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from vicinal.kernels import make_kernel
from vicinal.objective.neighbor_sets import build_comparisons, lists_from_user

BACKENDS = pytest.mark.parametrize("backend", ["numpy", "numba"])
SIZES = (9, 7, 8)
N_TARGETS = 3
SCALES = [1e-3, 0.03, 0.3, 1.0, 10.0, 1e3]


def random_case(seed, separation=2.0):
    """X sorted by class, and arbitrary targets (not the nearest) of every row."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(3), SIZES)
    X = rng.standard_normal((len(y), 3)) + separation * rng.standard_normal((3, 3))[y]
    targets = [
        rng.choice([j for j in np.flatnonzero(y == y[i]) if j != i], N_TARGETS, replace=False)
        for i in range(len(y))
    ]
    return X - X.mean(axis=0), y, targets


def random_factor(rng, scale):
    return math.sqrt(scale) * rng.standard_normal((rng.integers(1, 4), 3))


def row_hinges(X, y, targets, L, *, backend, beta=np.inf):
    """[1 + s_i − t_i]₊ of every row, from the kernel."""
    rows = np.arange(len(X))
    lists = lists_from_user(targets, order=rows, codes=y, same_class=True)
    offsets = np.searchsorted(y, np.arange(len(np.unique(y)) + 1))
    comparisons = build_comparisons(X, offsets, similar=lists)
    margins = np.full(len(X), np.nan)

    def respond(block, s, t):
        margins[block] = s - t
        return np.zeros((3, len(block)))

    Z = X @ L.T
    make_kernel(comparisons, backend).sweep(Z, Z, respond, alpha=-np.inf, beta=beta)
    return np.maximum(0.0, 1.0 + margins)


def lmnn_hinges(X, y, targets, L, i):
    """[1 + d_ij − d_il]₊ of every triplet of row i."""
    M = L.T @ L

    def d(j):
        return (X[i] - X[j]) @ M @ (X[i] - X[j])

    impostors = [index for index in range(len(X)) if y[index] != y[i]]
    return [max(0.0, 1.0 + d(j) - d(k)) for j in targets[i] for k in impostors]


@BACKENDS
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("seed", range(4))
def test_a_row_costs_what_its_worst_triplet_costs(seed, scale, backend):
    X, y, targets = random_case(seed)
    L = random_factor(np.random.default_rng(seed), scale)
    got = row_hinges(X, y, targets, L, backend=backend)
    worst = [max(lmnn_hinges(X, y, targets, L, i)) for i in range(len(X))]
    assert_allclose(got, worst, rtol=1e-9, atol=1e-11 * (1 + scale))


@BACKENDS
def test_the_zero_loss_sets_agree(backend):
    """Row by row, over random metrics of all scales; both outcomes occur, often."""
    outcomes = []
    for seed in range(8):
        X, y, targets = random_case(seed)
        rng = np.random.default_rng(seed)
        for scale in SCALES:
            L = random_factor(rng, scale)
            ann_is_zero = row_hinges(X, y, targets, L, backend=backend) == 0
            lmnn_is_zero = [
                all(hinge == 0 for hinge in lmnn_hinges(X, y, targets, L, i)) for i in range(len(X))
            ]
            assert_array_equal(ann_is_zero, lmnn_is_zero)
            outcomes += lmnn_is_zero
    assert 0.2 < np.mean(outcomes) < 0.8


def test_whole_data_sets_without_loss_are_the_same_too():
    """The feasible set of the problem: every row of it zero."""
    feasible = []
    for seed in range(30):
        X, y, targets = random_case(seed, separation=6.0)
        L = random_factor(np.random.default_rng(seed), 3.0)
        ann = row_hinges(X, y, targets, L, backend="numpy").sum() == 0
        lmnn = sum(sum(lmnn_hinges(X, y, targets, L, i)) for i in range(len(X))) == 0
        assert ann == lmnn
        feasible.append(lmnn)
    assert 3 <= sum(feasible) <= 27


def test_the_objectives_differ():
    """One target at distance 1, two impostors at squared distance 1½: LMNN pays for both."""
    far = math.sqrt(1.5)
    X, y = np.array([[0.0], [1.0], [far], [-far]]), np.array([0, 0, 1, 1])
    targets = [[1], [0], [3], [2]]
    L = np.eye(1)
    assert_allclose(lmnn_hinges(X, y, targets, L, 0), [0.5, 0.5])
    assert_allclose(row_hinges(X, y, targets, L, backend="numpy")[0], 0.5)


def test_the_objectives_rank_metrics_differently():
    """Of two metrics, LMNN's hinges prefer the one and the worst triplets the other."""
    X, y, targets = random_case(0)
    rng = np.random.default_rng(1)
    candidates = [random_factor(rng, 1.0) for _ in range(20)]
    ann = np.array([row_hinges(X, y, targets, L, backend="numpy").sum() for L in candidates])
    lmnn = np.array(
        [sum(sum(lmnn_hinges(X, y, targets, L, i)) for i in range(len(X))) for L in candidates]
    )
    assert (lmnn >= ann - 1e-9).all()
    assert (np.subtract.outer(ann, ann) * np.subtract.outer(lmnn, lmnn) < 0).any()


@BACKENDS
def test_the_soft_minimum_of_the_framework_asks_for_less(backend):
    """b(1) ≥ min: what costs nothing in the limit costs nothing in ANN⁻, but not conversely."""
    gained = 0
    for seed in range(6):
        X, y, targets = random_case(seed)
        for scale in (0.3, 1.0, 3.0):
            L = random_factor(np.random.default_rng(seed), scale)
            hard = row_hinges(X, y, targets, L, backend=backend)
            soft = row_hinges(X, y, targets, L, backend=backend, beta=1.0)
            assert (soft <= hard + 1e-12 * (1 + hard)).all()
            gained += np.sum((soft == 0) & (hard > 0))
    assert gained > 10
