"""L-BFGS against SciPy called directly: the same path, no evaluation more."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from vicinal.solvers import lbfgs


class Function:
    """J as SciPy would take it, on params of any shape, counting its evaluations."""

    n_rows = 1

    def __init__(self, value, gradient, factor=1.0):
        self.value, self.gradient, self.factor, self.count = value, gradient, factor, 0

    def value_and_gradient(self, params, rows=None):
        self.count += 1
        flat = params.ravel()
        gradient = self.gradient(flat).reshape(params.shape)
        return self.factor * (1 + self.value(flat)), self.factor * gradient

    def project(self, params):
        return params


def start(shape=(2, 3)):
    """Norm 10: the first step, a tenth of it, is then the unit step of SciPy."""
    x = np.array([-1.2, 1.0, 0.7, -0.5, 1.1, 0.3])
    return (10 * x / np.linalg.norm(x)).reshape(shape)


def test_path_is_scipy_s():
    x0 = start().ravel()
    factor = 1 / np.linalg.norm(rosen_der(x0))
    path = []
    problem = Function(rosen, rosen_der, factor)
    solution = lbfgs(problem, start(), max_iter=60, tol=0.0, callback=lambda p: path.append(p))
    theirs = []
    result = minimize(
        lambda x: (factor * (1 + rosen(x)), factor * rosen_der(x)),
        x0,
        jac=True,
        method="L-BFGS-B",
        callback=lambda x: theirs.append(x.copy()),
        options={"maxiter": solution.n_iter, "ftol": 0, "gtol": 0, "maxls": 8},
    )
    assert solution.n_iter == result.nit >= 30
    for ours, x in zip(path[:20], theirs[:20], strict=True):
        np.testing.assert_allclose(ours.params.ravel(), x, rtol=1e-6)
    np.testing.assert_allclose(solution.params.ravel(), result.x, rtol=1e-5)
    assert problem.count <= result.nfev


def test_as_good_as_scipy_with_its_defaults():
    x0 = np.array([-1.2, 1.0, 0.7, -0.5, 1.1, 0.3])
    problem = Function(rosen, rosen_der)
    solution = lbfgs(problem, x0, max_iter=500, tol=1e-8)
    result = minimize(lambda x: 1 + rosen(x), x0, jac=rosen_der, method="L-BFGS-B")
    assert solution.converged
    assert solution.value <= result.fun + 1e-9
    assert problem.count <= 2 * result.nfev


def test_history_has_one_value_an_iteration():
    seen = []
    solution = lbfgs(
        Function(rosen, rosen_der), start(), max_iter=25, tol=0.0, callback=seen.append
    )
    np.testing.assert_array_equal(solution.history[1:], [progress.value for progress in seen])
    assert solution.n_iter == 25


def test_failed_line_search_goes_on_from_the_lowest_point():
    """J falls so far away that a line search runs out of trials long before the minimum."""
    problem = Function(lambda x: 0.5 * np.sum((x - 1e8) ** 2) / 1e16, lambda x: (x - 1e8) / 1e16)
    solution = lbfgs(problem, np.full(3, 1e-3), max_iter=100, tol=1e-12)
    np.testing.assert_allclose(solution.params, 1e8, rtol=1e-4)
    assert len(solution.history) <= solution.n_iter + 1


def test_kink_ends_with_step():
    """|x| from where SciPy steps across the kink: no gradient ever vanishes there."""
    problem = Function(lambda x: np.abs(x - 0.3).sum(), lambda x: np.where(x > 0.3, 1.0, -1.0))
    solution = lbfgs(problem, np.array([1.0, -2.0]), max_iter=1000, tol=0.0)
    assert solution.stop_reason in ("step", "decrease")
    assert solution.value < 1.05
    assert problem.count < 1000


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_walls_are_backed_away_from(bad):
    """Half of the line is undefined, and the first long steps lead there."""

    def value(x):
        return bad if x[0] < 0 else 1e-3 * x[0] - 1e-6 * np.log(x[0])

    def gradient(x):
        return np.array([bad if x[0] < 0 else 1e-3 - 1e-6 / x[0]])

    solution = lbfgs(Function(value, gradient), np.array([1.0]), max_iter=200, tol=1e-12)
    np.testing.assert_allclose(solution.params, 1e-3, rtol=1e-2)
    assert np.isfinite(solution.history).all()


def test_float32_problem_sees_the_params_that_are_returned():
    """float64 inside SciPy, but every J is that of a float32 point."""
    values = {}

    class Recording(Function):
        def value_and_gradient(self, params, rows=None):
            value, gradient = super().value_and_gradient(params, rows)
            values[params.tobytes()] = value
            return value, gradient.astype(np.float32)

    problem = Recording(rosen, rosen_der)
    solution = lbfgs(problem, start().astype(np.float32), max_iter=200, tol=1e-6)
    assert values[solution.params.tobytes()] == solution.value
