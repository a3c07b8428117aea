"""MLKR against metric-learn's numbers, finite differences and its own mathematics.

Recorded by benchmarks/metric_learn/peer_mlkr.py with metric-learn 0.7.0, scikit-learn 1.5.2 and
NumPy 2.2.6.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime
from scipy.spatial.distance import cdist

import vicinal as vc
from vicinal.kernels import make_kernel
from vicinal.learners.mlkr import regression_configuration
from vicinal.objective.neighbor_sets import build_comparisons
from vicinal.objective.parametrization import Factor, Metric

RECORDED = [
    (
        np.eye(3),
        8.95202185054082,
        [
            [0.8762576976671881, -3.6179509276784163, 0.9350097185456925],
            [-3.617950927678415, -9.690237992127145, -0.5141927161790028],
            [0.9350097185456945, -0.5141927161790019, 1.8327978934769755],
        ],
    ),
    (
        [
            [-0.4980324506923049, 1.9295320538169858, 0.9494208069257608],
            [0.0875512413851909, -1.225435518830168, 0.8443629764015471],
            [-1.0002153473895647, -1.5447710967776116, 1.1880297923523018],
        ],
        11.33581982890999,
        [
            [-5.428233532611746, 0.7774251132439045, 1.3576814034919436],
            [-25.630839767581598, -1.0076315603071198, -11.693750008598046],
            [14.197352756968158, -0.1951498046164899, 13.996654268389713],
        ],
    ),
    (
        [
            [0.09508278357745488, 0.27625764713424567, 0.09561829588290635],
            [0.25704918357080736, -0.19530767799004406, -0.31027285253533937],
        ],
        30.78945465678446,
        [
            [-36.229826572461576, -13.741961822611698, -11.015064681666175],
            [-15.651346620645054, -4.014488993404317, -6.421932688284609],
        ],
    ),
]
CUBED = (lambda z: np.abs(z) ** 3, lambda z: 3 * z * np.abs(z))


def data(q: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The samples that the numbers belong to; q > 0 gives that many other targets."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((40, 3))
    y = np.sin(X[:, 0]) + 0.5 * X[:, 1] ** 2 + 0.1 * rng.standard_normal(40)
    return X, np.column_stack([y, X @ X.T[:, :q]])[:, :q] if q else y


def objective(X, y, *, loss="squared", backend="numba", parametrization=None, weights=None, **sets):
    comparisons = build_comparisons(X, np.array([0, len(X)]), dissimilar="none", **sets)
    return regression_configuration(y, loss).objective(
        {
            "X": X,
            "comparisons": comparisons,
            "kernel": make_kernel(comparisons, backend),
            "parametrization": parametrization or Factor(),
            "weights": np.ones(len(X)) if weights is None else weights,
            "pull": np.zeros((X.shape[1], X.shape[1])),
        }
    )


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize(("L", "value", "gradient"), RECORDED)
def test_value_and_gradient_are_those_of_metric_learn(L, value, gradient, backend):
    got = objective(*data(), backend=backend).value_and_gradient(np.asarray(L))
    assert_allclose(got[0], value, rtol=1e-10)
    assert_allclose(got[1], gradient, rtol=1e-8, atol=1e-9)


GROUPS = np.arange(40) // 2
CASES = {"complete": {}, "groups": {"groups": GROUPS}, "nearest": {"similar": 6}}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("loss", ["squared", "absolute", "huber", CUBED])
@pytest.mark.parametrize("q", [0, 3])
def test_gradient_is_that_of_finite_differences(loss, q, case):
    X, y = data(q)
    weights = np.random.RandomState(1).random(40)
    problem = objective(X, y, loss=loss, weights=weights, **CASES[case])
    for m in (1, 3):
        L = np.random.RandomState(2).standard_normal((m, 3))
        expected = approx_fprime(
            L.ravel(), lambda a, s=L.shape: problem.value_and_gradient(a.reshape(s))[0], 1e-7
        )
        gradient = problem.value_and_gradient(L)[1]
        assert_allclose(gradient.ravel(), expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


def test_gradient_in_the_matrix_is_that_of_the_factor():
    X, y = data()
    L = np.random.RandomState(2).standard_normal((3, 3))
    value, by_factor = objective(X, y).value_and_gradient(L)
    same, by_matrix = objective(X, y, parametrization=Metric()).value_and_gradient(L.T @ L)
    assert_allclose(same, value)
    assert_allclose(2 * L @ by_matrix, by_factor, rtol=1e-8, atol=1e-10)


def test_estimates_of_all_mini_batches_add_up():
    problem = objective(*data())
    L = np.random.RandomState(2).standard_normal((3, 3))
    parts = [problem.value_and_gradient(L, rows) for rows in np.arange(40).reshape(4, 10)]
    value, gradient = problem.value_and_gradient(L)
    assert_allclose(np.mean([part[0] for part in parts]), value)
    assert_allclose(np.mean([part[1] for part in parts], axis=0), gradient, atol=1e-10)


def test_limits_of_the_length_of_the_metric():
    """At 0 every prediction is the mean of the others, at infinity the nearest neighbor's."""
    X, y = data()
    problem = objective(X, y)
    mean_of_others = (y.sum() - y) / 39
    assert_allclose(
        problem.value_and_gradient(np.zeros((3, 3)))[0], ((y - mean_of_others) ** 2).sum()
    )
    D = cdist(X, X)
    np.fill_diagonal(D, np.inf)
    value, gradient = problem.value_and_gradient(1e8 * np.eye(3))
    assert_allclose(value, ((y - y[D.argmin(axis=1)]) ** 2).sum())
    assert_allclose(gradient, 0, atol=1e-12)


def test_fit_ends_where_its_objective_says():
    X, y = data()
    fitted = vc.MLKR().fit(X, y)
    P = np.exp(-cdist(fitted.transform(X), fitted.transform(X), "sqeuclidean"))
    np.fill_diagonal(P, 0)
    predicted = P @ y / P.sum(axis=1)
    assert_allclose(fitted.objective_, ((y - predicted) ** 2).sum(), rtol=1e-8)
    assert fitted.objective_ < 0.5 * RECORDED[0][1]
