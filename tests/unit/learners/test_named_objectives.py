"""What LDML, LMNN and MCML, learners with an objective of their own, have in common."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.utils.estimator_checks import check_estimator

from vicinal.exceptions import ConvergenceWarning
from vicinal.learners.ldml import LDML
from vicinal.learners.lmnn import LMNN
from vicinal.learners.mcml import MCML

every_learner = pytest.mark.parametrize("learner", [LDML, LMNN, MCML])


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = rng.standard_normal((90, 5))
    X[:, :2] += np.array([[0, 0], [2, 0], [0, 2]])[y]
    return X, y


@every_learner
def test_scikit_learn_accepts_it(learner):
    check_estimator(learner(), on_skip=None)


@every_learner
def test_backends_agree(learner, data):
    fast, slow = (learner(backend=backend, tol=1e-3).fit(*data) for backend in ("numba", "numpy"))
    assert_allclose(fast.components_, slow.components_, rtol=1e-6, atol=1e-8)
    if learner is LDML:
        assert_allclose(fast.bias_, slow.bias_, rtol=1e-8)


@every_learner
def test_float32_stays(learner, data):
    X, y = data
    fitted = learner().fit(X.astype(np.float32), y)
    assert fitted.components_.dtype == np.float32
    assert_allclose(fitted.objective_, learner().fit(X, y).objective_, rtol=1e-4)


@every_learner
def test_warns_when_it_did_not_converge(learner, data):
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        learner(max_iter=2, tol=1e-9).fit(*data)


@pytest.mark.parametrize("solver", ["lbfgs", "pgd", "apg"])
@every_learner
@pytest.mark.filterwarnings("ignore:.* stopped after max_iter")
def test_degenerate_data_gives_finite_numbers(learner, solver, data):
    X, y = data
    hard = {
        "constant column": np.c_[X, np.ones(90)],
        "duplicated columns": np.c_[X, X],
        "duplicated rows across classes": np.repeat(X[:30], 3, axis=0),
        "one point": np.ones((90, 5)),
        "few distinct points": np.repeat(X[:2], 45, axis=0),
        "more features than samples": np.random.default_rng(1).standard_normal((15, 20)),
    }
    for A in hard.values():
        fitted = learner(solver=solver, tol=0.01, max_iter=30).fit(A, y[: len(A)])
        assert np.isfinite(fitted.components_).all()
        assert np.isfinite(getattr(fitted, "bias_", 0.0))
