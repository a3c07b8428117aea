"""The objective against a naive double loop, its gradients against finite differences of that."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from vicinal.kernels import make_kernel
from vicinal.kernels.contract import IndexLists
from vicinal.objective.losses import get_loss
from vicinal.objective.neighbor_objective import NeighborObjective, plain_shift
from vicinal.objective.neighbor_sets import build_comparisons
from vicinal.objective.pair_sums import pull_matrix
from vicinal.objective.parametrization import Factor, Metric
from vicinal.objective.sampled_objective import SampledObjective

INF = math.inf
BACKENDS = pytest.mark.parametrize("backend", ["numpy", "numba"])
LOSSES = {
    "hinge": lambda z: max(0.0, 1.0 + z),
    "squared_hinge": lambda z: max(0.0, 1.0 + z) ** 2,
    "logistic": lambda z: math.log1p(math.exp(z)),
    "linear": lambda z: z,
    "sigmoid": lambda z: 1.0 / (1.0 + math.exp(-z)),
}
ALPHAS = [1.0, -0.7, 0.0, 1e-7, -1e-7, 40.0, -25.0, INF, -INF]


# ------------------------------------------------------------------------------------- oracles


def naive_average(d, exponent, plain):
    """b(γ; d) from its definition; where the definition cancels, two terms of its series."""
    if math.isinf(exponent):
        return d.min() if exponent > 0 else d.max()
    if abs(exponent) < 1e-5:
        return d.mean() - 0.5 * exponent * d.var()
    extreme = d.min() if exponent > 0 else d.max()
    total = sum(math.exp(-exponent * (x - extreme)) for x in d)
    return extreme - math.log(total if plain else total / len(d)) / exponent


def naive_set(comparisons, i, similar):
    lists = comparisons.similar if similar else comparisons.dissimilar
    if lists is not None:
        return lists.indices[lists.indptr[i] : lists.indptr[i + 1]].tolist()
    classes, groups = comparisons.class_of_row, comparisons.groups
    return [
        j
        for j in range(len(classes))
        if j != i
        and (classes[j] == classes[i]) == similar
        and (groups is None or groups[j] != groups[i])
    ]


class Naive:
    """J of an objective, pair by pair, from d_ij = (x_i − x_j)ᵀ M (x_i − x_j)."""

    def __init__(self, objective, *, plain=False, strength=0.0):
        self.objective, self.plain, self.strength = objective, plain, strength
        X, comparisons = objective.X.astype(float), objective.comparisons
        self.gaps = X[:, None] - X[None]  # (n, n, d)
        self.sets = {
            i: (naive_set(comparisons, i, True), naive_set(comparisons, i, False))
            for i in comparisons.anchors.tolist()
        }

    def distances(self, M):
        return np.sum((self.gaps @ M) * self.gaps, axis=-1)  # (n, n)

    def margins(self, M):
        """[z_i] of the anchors."""
        D, alpha = self.distances(M), self.objective.alpha
        return [
            (naive_average(D[i, S], alpha, self.plain) - naive_average(D[i, T], 1.0, self.plain))
            / self.objective.gamma
            for i, (S, T) in self.sets.items()
        ]

    def losses(self, M):
        """[w_i ℓ(z_i)] of the anchors."""
        loss, weights = LOSSES[self.objective.loss.name], self.objective.weights
        margins = zip(self.sets, self.margins(M), strict=True)
        return np.array([weights[i] * loss(z) for i, z in margins])

    def pull(self, M):
        D, weights = self.distances(M), self.objective.weights
        return self.strength * sum(weights[i] * D[i, S].sum() for i, (S, _) in self.sets.items())

    def value(self, M):
        return self.losses(M).sum() + self.pull(M)


def derivative(function, h=3e-5):
    """f′(0) by the central difference of fourth order."""
    return (8 * (function(h) - function(-h)) - (function(2 * h) - function(-2 * h))) / (12 * h)


# ------------------------------------------------------------------------------------- problems

SIZES = [5, 1, 6]  # row 5 is a class of its own: no anchor
GROUPS = np.array([0, 0, 1, 2, 3, 4, 4, 0, 2, 5, 6, 7])
STRENGTH = 0.02
SELECTIONS = {
    "all": {},
    "nearest": {"similar": 3},
    "nearest of both": {"similar": 3, "dissimilar": 4},
    "nearest dissimilar": {"dissimilar": 4},
    "groups": {"groups": GROUPS},
    "nearest, groups": {"similar": 2, "groups": GROUPS},
}
SHAPES = {"M": (4, 4), "L square": (4, 4), "L narrow": (1, 4), "L wide": (2, 4)}


@cache
def points(sizes=tuple(SIZES), d=4, seed=3):
    """X sorted by class, centered; the boundaries of the classes; weights."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    X = rng.standard_normal((offsets[-1], d))
    X += 0.6 * np.repeat(np.arange(len(sizes)), sizes)[:, None]
    return X - X.mean(axis=0), offsets, rng.uniform(0.4, 2.0, len(X))


def make(
    *,
    data=None,
    loss="hinge",
    alpha=1.0,
    gamma=0.8,
    plain=False,
    strength=STRENGTH,
    parametrization=None,
    backend="numpy",
    **selection,
):
    X, offsets, weights = data or points()
    comparisons = build_comparisons(X, offsets, **selection)
    return NeighborObjective(
        X=X,
        comparisons=comparisons,
        kernel=make_kernel(comparisons, backend),
        parametrization=parametrization or Factor(),
        loss=get_loss(loss),
        alpha=alpha,
        gamma=gamma,
        shift=plain_shift(comparisons, alpha) if plain else np.zeros(len(X)),
        weights=weights,
        pull=strength * pull_matrix(X, comparisons, weights),
    )


def start(shape, seed=1):
    """Parameters where hinges are in use, some active and some not; M well inside the cone."""
    A = 0.5 * np.random.default_rng(seed).standard_normal(SHAPES[shape])
    return A @ A.T / 4 + 0.125 * np.eye(4) if shape == "M" else A


def as_metric(shape, params):
    return params if shape == "M" else params.T @ params


def parametrization_of(shape):
    return Metric() if shape == "M" else Factor()


@cache
def expected(loss, alpha, plain, selection, shape):
    """(J, ∂J/∂params) by loops and finite differences."""
    objective = make(loss=loss, alpha=alpha, plain=plain, **SELECTIONS[selection])
    naive = Naive(objective, plain=plain, strength=STRENGTH)
    params = start(shape)
    margins = np.array(naive.margins(as_metric(shape, params)))
    assert np.abs(1 + margins).min() > 2e-3, "a kink is within reach of the differences"
    gradient = np.zeros(params.shape)
    for a, b in np.ndindex(params.shape):
        E = np.zeros(params.shape)
        E[a, b] = 1.0
        if shape == "M":
            E = 0.5 * (E + E.T)
        gradient[a, b] = derivative(lambda h, E=E: naive.value(as_metric(shape, params + h * E)))
    return naive.value(as_metric(shape, params)), gradient


def assert_value_and_gradient(backend, loss, alpha, plain, selection, shape):
    objective = make(
        loss=loss,
        alpha=alpha,
        plain=plain,
        backend=backend,
        parametrization=parametrization_of(shape),
        **SELECTIONS[selection],
    )
    value, gradient = objective.value_and_gradient(start(shape))
    expected_value, expected_gradient = expected(loss, alpha, plain, selection, shape)
    assert_allclose(value, expected_value, rtol=1e-10)
    error = np.linalg.norm(gradient - expected_gradient)
    assert error < 1e-6 * np.linalg.norm(expected_gradient)


# --------------------------------------------------------------------------- value and gradient


@BACKENDS
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("selection", ["all", "nearest"])
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("loss", LOSSES)
def test_mean_soft_averages(loss, alpha, selection, shape, backend):
    assert_value_and_gradient(backend, loss, alpha, False, selection, shape)


@BACKENDS
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("selection", ["all", "nearest"])
@pytest.mark.parametrize("alpha", [1.0, -0.7, 40.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_plain_soft_averages(loss, alpha, selection, shape, backend):
    assert_value_and_gradient(backend, loss, alpha, True, selection, shape)


@BACKENDS
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("selection", list(SELECTIONS)[2:])
@pytest.mark.parametrize(("alpha", "plain"), [(1.0, False), (-0.7, False), (2.5, True)])
def test_other_selections(alpha, plain, selection, shape, backend):
    assert_value_and_gradient(backend, "squared_hinge", alpha, plain, selection, shape)


def test_hinges_are_active_in_some_rows_and_not_in_others():
    """Otherwise the tests of the hinge above would be those of the linear loss."""
    margins = np.array(Naive(make()).margins(start("M")))
    assert 3 <= np.sum(margins > -1) <= len(margins) - 3


def test_rows_beyond_the_hinge_give_no_gradient():
    """Far apart, all is classified with room to spare: only the pull is left."""
    X, offsets, weights = points()
    apart = X + 40.0 * np.repeat(np.arange(3), SIZES)[:, None]
    objective = make(data=(apart, offsets, weights), parametrization=Metric())
    value, gradient = objective.value_and_gradient(np.eye(4))
    assert_allclose(value, np.trace(objective.pull), rtol=1e-12)
    assert_array_equal(gradient, objective.pull)


@pytest.mark.parametrize("shape", SHAPES)
def test_both_backends_on_more_rows_than_one_thread_takes(shape):
    data = points(sizes=(300, 290, 25))
    values = [
        make(data=data, backend=backend, alpha=1.3, parametrization=parametrization_of(shape))
        for backend in ("numpy", "numba")
    ]
    (value, gradient), (fast_value, fast_gradient) = (
        objective.value_and_gradient(start(shape)) for objective in values
    )
    assert_allclose(fast_value, value, rtol=1e-11)
    assert_allclose(fast_gradient, gradient, rtol=0, atol=1e-10 * np.abs(gradient).max())


@BACKENDS
@pytest.mark.parametrize("shape", SHAPES)
def test_float32(shape, backend):
    X, offsets, weights = points()
    options = {"parametrization": parametrization_of(shape), "loss": "logistic"}
    value, gradient = make(**options).value_and_gradient(start(shape))
    single = make(data=(X.astype(np.float32), offsets, weights), backend=backend, **options)
    value32, gradient32 = single.value_and_gradient(start(shape).astype(np.float32))
    assert_allclose(value32, value, rtol=1e-5)
    assert_allclose(gradient32, gradient, rtol=0, atol=2e-5 * np.abs(gradient).max())


@BACKENDS
def test_evaluation_is_pure(backend):
    objective = make(backend=backend, similar=3)
    params = start("L wide")
    X, before = objective.X.copy(), params.copy()
    value, gradient = objective.value_and_gradient(params)
    objective.value_and_gradient(2 * params, np.array([1, 4]))
    again, gradient_again = objective.value_and_gradient(params)
    assert value == again
    assert_array_equal(gradient, gradient_again)
    assert_array_equal(params, before)
    assert_array_equal(objective.X, X)


@pytest.mark.parametrize("plain", [False, True])
def test_gamma_divides_the_margin(plain):
    objectives = [
        make(loss="linear", gamma=gamma, plain=plain, strength=0.0) for gamma in (1.0, 4.0)
    ]
    (value, gradient), (quarter, gradient_quarter) = (
        objective.value_and_gradient(start("L wide")) for objective in objectives
    )
    assert_allclose(quarter, value / 4, rtol=1e-12)
    assert_allclose(gradient_quarter, gradient / 4, rtol=1e-12)


def test_own_loss_and_any_number_of_classes():
    data = points(sizes=(2,) * 9, d=4)
    cubed = (lambda z: z**3, lambda z: 3 * z**2)
    objective = make(data=data, loss=cubed, strength=0.0, parametrization=Metric())
    naive = Naive(objective)
    M = start("M")
    value, gradient = objective.value_and_gradient(M)
    weights = objective.weights
    assert_allclose(value, weights @ np.array(naive.margins(M)) ** 3, rtol=1e-11)
    E = np.outer(M[0], M[0])
    slope = derivative(lambda h: weights @ np.array(naive.margins(M + h * E)) ** 3)
    assert_allclose(np.vdot(gradient, E), slope, rtol=1e-7)


# ------------------------------------------------------------------------- plain soft averages


@pytest.mark.parametrize("alpha", [1.0, -0.5, 3.0])
def test_plain_shift_is_the_difference_of_the_definitions(alpha):
    objective = make(alpha=alpha, gamma=1.0)
    M = start("M")
    mean, plain = Naive(objective), Naive(objective, plain=True)
    shift = plain_shift(objective.comparisons, alpha)[objective.comparisons.anchors]
    assert_allclose(np.array(plain.margins(M)) - np.array(mean.margins(M)), shift, atol=1e-12)


@pytest.mark.parametrize("alpha", [INF, -INF])
def test_plain_and_mean_agree_on_the_similar_side_at_infinity(alpha):
    comparisons = build_comparisons(*points(sizes=(4, 5))[:2])
    assert_allclose(plain_shift(comparisons, alpha), np.log(comparisons.n_dissimilar))


@pytest.mark.parametrize("alpha", [1.0, -2.0, INF, -INF])
def test_rows_without_neighbors_get_no_shift(alpha):
    """And say nothing of it: they are no anchors, ln 0 is nobody's business."""
    shift = plain_shift(make().comparisons, alpha)
    assert shift[5] == 0.0
    assert np.isfinite(shift).all()


def test_rows_without_any_neighbors_get_no_shift():
    """Row 0 of the lists is empty on both sides: ln 0 − ln 0."""
    X, offsets, _ = points()
    one_each = np.concatenate([[0, 0], np.ones(11, dtype=int)])
    similar, dissimilar = IndexLists(one_each, np.array([2])), IndexLists(one_each, np.array([8]))
    shift = plain_shift(build_comparisons(X, offsets, similar=similar, dissimilar=dissimilar), 1.0)
    assert_array_equal(shift, 0.0)


# ------------------------------------------------------------------- mini-batches and weights


@BACKENDS
@pytest.mark.parametrize("shape", ["M", "L narrow", "L wide"])
@pytest.mark.parametrize("selection", ["all", "nearest"])
def test_mini_batches_are_unbiased(selection, shape, backend):
    """Over a partition of the anchors, the estimates sum to J, each by its share of the rows."""
    objective = make(
        backend=backend, parametrization=parametrization_of(shape), **SELECTIONS[selection]
    )
    params = start(shape)
    value, gradient = objective.value_and_gradient(params)
    batches = np.split(np.random.default_rng(0).permutation(objective.n_rows), [1, 5, 7])
    parts = [objective.value_and_gradient(params, rows) for rows in batches]
    shares = np.array([len(rows) for rows in batches]) / objective.n_rows
    assert_allclose(shares @ [part[0] for part in parts], value, rtol=1e-12)
    total = sum(share * part[1] for share, part in zip(shares, parts, strict=True))
    assert_allclose(total, gradient, atol=1e-12 * np.abs(gradient).max())


def test_a_mini_batch_is_its_own_anchors_scaled_up():
    """Rows count anchors: row 5 of the data is none, so anchor 5 is row 6."""
    objective = make(parametrization=Metric())
    naive = Naive(objective, strength=STRENGTH)
    M = start("M")
    losses, pull = naive.losses(M), naive.pull(M)
    assert objective.n_rows == len(losses) == 11
    for rows in ([5], [10, 0, 3], [7, 2]):
        value, _ = objective.value_and_gradient(M, np.array(rows))
        assert_allclose(value, 11 / len(rows) * losses[rows].sum() + pull, rtol=1e-12)


def test_a_row_without_weight_counts_for_others_but_not_for_itself():
    X, offsets, weights = points()
    silent = weights.copy()
    silent[[2, 8]] = 0.0
    objective = make(data=(X, offsets, silent))
    anchors = np.setdiff1d(objective.comparisons.anchors, [2, 8])
    without = replace(objective, comparisons=replace(objective.comparisons, anchors=anchors))
    params = start("L wide")
    value, gradient = objective.value_and_gradient(params)
    assert_allclose(value, Naive(objective, strength=STRENGTH).value(params.T @ params), rtol=1e-12)
    other_value, other_gradient = without.value_and_gradient(params)
    assert_allclose(value, other_value, rtol=1e-12)
    assert_allclose(gradient, other_gradient, rtol=1e-10, atol=1e-12)


def test_linear_in_the_weights():
    X, offsets, weights = points()
    params = start("L wide")
    once, twice = (
        make(data=(X, offsets, factor * weights)).value_and_gradient(params) for factor in (1, 2)
    )
    assert_allclose(twice[0], 2 * once[0], rtol=1e-12)
    assert_allclose(twice[1], 2 * once[1], rtol=1e-12)


# ------------------------------------------------------------------------------ parametrizations


@BACKENDS
@pytest.mark.parametrize("shape", ["L square", "L narrow", "L wide"])
@pytest.mark.parametrize("alpha", [1.0, -2.0])
def test_the_parametrizations_agree(alpha, shape, backend):
    """J(L) = J(LᵀL) and ∂J/∂L = 2 L ∂J/∂M, also where M is singular."""
    L = start(shape)
    by_factor, by_metric = (
        make(alpha=alpha, loss="logistic", backend=backend, parametrization=parametrization)
        for parametrization in (Factor(), Metric())
    )
    value, gradient = by_factor.value_and_gradient(L)
    value_of_metric, gradient_of_metric = by_metric.value_and_gradient(L.T @ L)
    assert_allclose(value_of_metric, value, rtol=1e-12)
    assert_allclose(gradient_of_metric, gradient_of_metric.T, rtol=1e-10)
    assert_allclose(gradient, 2 * L @ gradient_of_metric, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("d", [1, 2, 3, 5])
@pytest.mark.parametrize("m", [1, 2, 3])
def test_both_branches_of_the_factor_gradient(m, d):
    """2m < d and 2m ≥ d are the same sum in another order: against Σ_ij W_ij x_ij x_ijᵀ."""
    rng = np.random.default_rng(10 * m + d)
    X, W, L = rng.standard_normal((7, d)), rng.standard_normal((7, 7)), rng.standard_normal((m, d))
    delta = np.diag(W.sum(axis=0) + W.sum(axis=1))
    scatter = sum(W[i, j] * np.outer(X[i] - X[j], X[i] - X[j]) for i in range(7) for j in range(7))

    def gradient(parametrization, params, **options):
        Z = X @ parametrization.factor(params).T
        V, symmetric = parametrization.operand(X, Z, **options)
        LapV = (delta - W - W.T) @ V if symmetric else (0.5 * delta - W) @ V
        asked.append((V is Z, symmetric))
        return parametrization.pull_back(params, X, LapV, symmetric=symmetric)

    asked: list[tuple[bool, bool]] = []
    assert_allclose(gradient(Factor(), L), 2 * L @ scatter, atol=1e-11)
    assert_allclose(gradient(Factor(), L, half_is_cheaper=False), 2 * L @ scatter, atol=1e-11)
    assert_allclose(gradient(Metric(), L.T @ L), scatter, atol=1e-11)
    assert asked == [(2 * m < d, 2 * m < d), (True, True), (False, False)]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_linear_term(shape):
    """⟨C, M⟩ and its gradient, for a C that is not the objective's."""
    C = start("M", seed=9)
    params = start(shape)
    value, gradient = parametrization_of(shape).linear(params, C)
    assert_allclose(value, np.trace(C @ as_metric(shape, params)), rtol=1e-12)
    E = start(shape, seed=5)
    slope = derivative(lambda h: np.trace(C @ as_metric(shape, params + h * E)))
    assert_allclose(np.vdot(gradient, E), slope, rtol=1e-8)


@given(seed=st.integers(0, 10_000), d=st.integers(1, 6), symmetric=st.booleans())
def test_the_projection_is_the_nearest_positive_semidefinite_matrix(seed, d, symmetric):
    """By Moreau's conditions: P ⪰ 0, A − P ⪯ 0, ⟨A − P, P⟩ = 0 for the symmetric part A."""
    B = np.random.default_rng(seed).standard_normal((d, d)) * 10.0 ** (seed % 7 - 3)
    B = B + B.T if symmetric else B
    A = 0.5 * (B + B.T)
    P = Metric().project(B)
    scale = np.linalg.norm(A)
    assert_allclose(P, P.T, atol=1e-14 * scale)
    assert np.linalg.eigvalsh(P).min() >= -1e-14 * scale
    assert np.linalg.eigvalsh(A - P).max() <= 1e-13 * scale
    assert abs(np.vdot(A - P, P)) <= 1e-13 * scale**2
    assert_allclose(Metric().project(P), P, atol=1e-13 * scale)


def test_projection_of_what_is_feasible_or_hopeless():
    M = start("M")
    assert_allclose(Metric().project(M), M, rtol=1e-12)
    assert_array_equal(Metric().project(-M), np.zeros((4, 4)))
    L = -M
    assert_array_equal(Factor().project(L), L)
    objective = make(parametrization=Metric())
    assert_allclose(objective.project(np.diag([1.0, -2.0, 0.0, 3.0])), np.diag([1.0, 0, 0, 3.0]))


@given(seed=st.integers(0, 10_000), rank=st.integers(0, 4))
def test_the_factor_of_a_metric_gives_it_back(seed, rank):
    A = np.random.default_rng(seed).standard_normal((4, rank))
    L = Metric().factor(A @ A.T)
    assert_allclose(L.T @ L, A @ A.T, atol=1e-13 * (1 + np.linalg.norm(A) ** 2))
    assert_array_equal(Factor().factor(A), A)


# --------------------------------------------------------------------------- sampled references


def sampled(objective, n_references, seed=0, backend="numpy", batch_size=256):
    bind = partial(make_kernel, backend=backend)
    return SampledObjective(objective, bind, n_references, batch_size, seed)


@BACKENDS
@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("selection", SELECTIONS)
def test_with_all_references_the_sample_is_exact(selection, plain, backend):
    objective = make(plain=plain, backend=backend, **SELECTIONS[selection])
    estimate = sampled(objective, len(objective.X), backend=backend)
    params = start("L wide")
    assert estimate.n_rows == objective.n_rows
    for rows in (None, np.array([3, 9, 0, 5]), np.array([7])):
        value, gradient = objective.value_and_gradient(params, rows)
        same_value, same_gradient = estimate.value_and_gradient(params, rows)
        assert_allclose(same_value, value, rtol=1e-11)
        assert_allclose(same_gradient, gradient, rtol=1e-9, atol=1e-10)


def mean_of_draws(estimate, params, n_passes=60, batch=10):
    """Mean of the estimates over passes through all anchors: only the references are random."""
    rng = np.random.default_rng(0)
    batches = [
        rows
        for _ in range(n_passes)
        for rows in rng.permutation(estimate.n_rows).reshape(-1, batch)
    ]
    draws = [estimate.value_and_gradient(params, rows) for rows in batches]
    return np.mean([v for v, _ in draws]), np.mean([g for _, g in draws], axis=0)


@pytest.mark.parametrize("selection", [{}, {"similar": 4}, {"dissimilar": 4}])
@pytest.mark.parametrize(("alpha", "plain"), [(1.0, False), (1.0, True), (-0.5, False)])
def test_the_mean_of_many_draws_is_close_to_the_truth(alpha, plain, selection):
    """And closer with more references: a soft average of a sample is only nearly unbiased."""
    data = points(sizes=(40, 30, 20))
    objective = make(data=data, loss="logistic", alpha=alpha, plain=plain, **selection)
    params = 0.6 * start("L wide")
    value, gradient = objective.value_and_gradient(params)
    errors = []
    for n_references in (10, 60):
        mean, mean_gradient = mean_of_draws(sampled(objective, n_references), params)
        error = np.linalg.norm(mean_gradient - gradient) / np.linalg.norm(gradient)
        errors.append(error)
    assert_allclose(mean, value, rtol=0.01)
    assert errors[1] < min(0.03, 0.5 * errors[0])


def test_draws_are_a_function_of_the_seed_and_the_anchors():
    """Evaluation is pure: other anchors and other seeds see other references, the same the same."""
    objective = make(data=points(sizes=(40, 30, 20)))
    params, estimate = start("L wide"), sampled(objective, 20, seed=3, batch_size=30)
    batches = [np.arange(10), np.arange(1, 11), np.arange(2, 12)]
    samples = [tuple(estimate._sample(objective.comparisons.anchors[rows])) for rows in batches]
    assert len(set(samples)) == 3
    for rows in (*batches, None):
        first, other = (
            sampled(objective, 20, seed, batch_size=30).value_and_gradient(params, rows)
            for seed in (3, 4)
        )
        for _ in range(2):
            value, gradient = estimate.value_and_gradient(params, rows)
            assert value == first[0] != other[0]
            assert_array_equal(gradient, first[1])


@pytest.mark.parametrize("alpha", [1.0, 0.25, -3.0])
def test_the_plain_shift_keeps_the_true_set_sizes(alpha):
    """At L = 0 all distances are 0, and the sizes are all that is left of J."""
    objective = make(
        data=points(sizes=(40, 30, 20, 1)), loss="logistic", alpha=alpha, gamma=1.0, plain=True
    )
    value, _ = objective.value_and_gradient(np.zeros((2, 4)))
    rows = np.arange(objective.n_rows)
    estimate = sampled(objective, 10)
    assert_allclose(estimate.value_and_gradient(np.zeros((2, 4)), rows)[0], value, rtol=1e-12)
    naive = Naive(objective, plain=True)
    assert_allclose(value, naive.value(np.zeros((4, 4))), rtol=1e-12)


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_listed_sides_stay_whole(backend):
    """With both sides listed nothing is left to sample, however few the references."""
    X, offsets, weights = points(sizes=(40, 30, 20))
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(3), np.diff(offsets))
    lists = []
    for same in (True, False):
        members = [
            rng.choice(np.flatnonzero((classes == classes[i]) == same), 5, replace=False)
            for i in range(len(X))
        ]
        members = [np.sort(js[js != i]) for i, js in enumerate(members)]
        indptr = np.concatenate([[0], np.cumsum([len(js) for js in members])])
        lists.append(IndexLists(indptr, np.concatenate(members)))
    objective = make(
        data=(X, offsets, weights), similar=lists[0], dissimilar=lists[1], backend=backend
    )
    estimate = sampled(objective, 2, backend=backend)
    params = start("L wide")
    for rows in (np.array([50, 3, 77, 12]), rng.permutation(90), np.array([8])):
        value, gradient = objective.value_and_gradient(params, rows)
        same_value, same_gradient = estimate.value_and_gradient(params, rows)
        assert_allclose(same_value, value, rtol=1e-11)
        assert_allclose(same_gradient, gradient, rtol=1e-9, atol=1e-10)


def test_rare_classes_still_meet_their_own():
    """A class of two among a thousand: each has the other for a similar sample in every draw."""
    X, offsets, weights = points(sizes=(500, 2, 498))
    far = X.copy()
    far[500:502] += 1e3  # s is the distance of the two, t is that of a thousand to within 1 %
    objective = make(data=(far, offsets, weights), loss="linear", gamma=1.0, strength=0.0)
    estimate = sampled(objective, 20)
    for row in (500, 501):
        value, _ = objective.value_and_gradient(np.eye(4), np.array([row]))
        for _ in range(5):
            drawn, _ = estimate.value_and_gradient(np.eye(4), np.array([row]))
            assert_allclose(drawn, value, rtol=0.01)


def test_groups_may_leave_a_sampled_anchor_without_neighbors():
    """Nearly all of a class are of one group, the sample rarely holds the two that are not."""
    data = points(sizes=(100, 100))
    groups = np.concatenate([np.full(98, 0), [1, 2], np.full(98, 3), [4, 5]])
    estimate = sampled(make(data=data, groups=groups), 10)
    for rows in ([0], [1, 2, 3], np.arange(20)):
        for _ in range(3):
            value, gradient = estimate.value_and_gradient(start("L wide"), np.array(rows))
            assert np.isfinite(value)
            assert np.isfinite(gradient).all()


def test_a_sample_projects_as_the_whole_does():
    objective = make(parametrization=Metric())
    M = np.diag([1.0, -2.0, 0.5, -0.1])
    assert_array_equal(sampled(objective, 4).project(M), objective.project(M))


# ------------------------------------------------------------------------------------- smoothing


@BACKENDS
@pytest.mark.parametrize("shape", ["M", "L square", "L wide"])
@pytest.mark.parametrize("alpha", [1.0, -0.7, -25.0, INF, -INF])
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_smoothed_objective(backend, shape, alpha, loss):
    """J comes with it; the difference is bounded by the width; the gradient is that of J_w."""
    objective = make(
        loss=loss, alpha=alpha, backend=backend, parametrization=parametrization_of(shape)
    )
    params = start(shape)
    exact, _ = objective.value_and_gradient(params)
    for width in (1.0, 0.1, 1e-3):
        value, gradient, given = objective.smoothed(params, width)
        assert_allclose(given, exact, rtol=1e-12)
        assert abs(exact - value) <= 1.5 * width * objective.height
        if alpha < 0:
            assert value <= exact * (1 + 1e-12)
        if width > 0.05:
            E = np.random.default_rng(0).standard_normal(params.shape)
            E = E + E.T if shape == "M" else E
            quotient = derivative(
                lambda h, E=E, width=width: objective.smoothed(params + h * E, width)[0], h=1e-6
            )
            assert_allclose(np.vdot(gradient, E), quotient, rtol=1e-4, atol=1e-7)


def test_which_objectives_have_kinks():
    assert make(loss="hinge").has_kinks
    assert make(loss="logistic", alpha=-INF).has_kinks
    assert not make(loss="logistic", alpha=-40.0).has_kinks
    assert make(loss="logistic").bound == 0.0
    assert make(loss="linear").bound == -INF
    objective = make(similar=3)
    assert_allclose(objective.height, objective.weights[objective.comparisons.anchors].sum())


@pytest.mark.parametrize("units", [1.0, 1e2])
def test_coordinates_are_a_linear_change_and_do_not_depend_on_units(units):
    X, offsets, weights = points()
    X = X @ np.diag([1.0, units, 1.0 / units, 1.0])
    objective = make(data=(X, offsets, weights))
    to_params, from_params, gradient = objective.coordinates
    L, G = np.random.default_rng(0).standard_normal((2, 3, 4))
    assert_allclose(to_params(from_params(L)), L, rtol=1e-6, atol=1e-9)
    assert_allclose(np.vdot(to_params(L), G), np.vdot(L, gradient(L, G)), rtol=1e-8)
    Z = X @ to_params(np.eye(4)).T
    assert_allclose(Z.T @ Z / len(Z), np.eye(4), atol=1e-6)


def test_coordinates_of_metrics_keep_the_cone():
    X, offsets, weights = points()
    coordinates = make(data=(X, offsets, weights), parametrization=Metric()).coordinates
    A = make(data=(X, offsets, weights)).coordinates.to_params(np.eye(4))
    B, G = np.random.default_rng(0).standard_normal((2, 4, 4))
    M, G = B.T @ B, G + G.T
    assert_allclose(coordinates.to_params(M), A.T @ M @ A, rtol=1e-10)
    assert_allclose(coordinates.to_params(coordinates.from_params(M)), M, rtol=1e-6, atol=1e-9)
    change = np.vdot(coordinates.to_params(M), G)
    assert_allclose(change, np.vdot(M, coordinates.gradient(M, G)), rtol=1e-8)
    assert np.linalg.eigvalsh(coordinates.from_params(M)).min() > 0


def test_coordinates_of_constant_features_are_finite():
    X, offsets, weights = points()
    constant = X * np.array([1.0, 0.0, 1.0, 1.0])
    to_params, from_params, _ = make(data=(constant, offsets, weights)).coordinates
    assert np.isfinite(to_params(np.eye(4))).all()
    assert_allclose(to_params(from_params(np.eye(4))), np.eye(4), atol=1e-9)
    nothing = make(data=(0.0 * X, offsets, weights))
    assert_array_equal(nothing.coordinates.to_params(np.eye(4)), np.eye(4))
