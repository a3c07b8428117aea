"""Input that breaks things: never a NaN in the components, never a hang, a clear message."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import vicinal as vc

LEARNERS = [vc.ANN, vc.PNCA, vc.NCA]


def fit_quietly(learner, X, y, **metadata):
    """Warnings are allowed here, NaN is not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learner.fit(X, y, **metadata)
    assert np.isfinite(learner.components_).all()
    assert np.isfinite(learner.objective_)
    return learner


def blobs(n=40, d=3, classes=2, seed=0):
    rng = np.random.RandomState(seed)
    y = np.arange(n) % classes
    return rng.standard_normal((n, d)) + 1.5 * rng.standard_normal((classes, d))[y], y


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_inf_are_refused(learner, bad):
    X, y = blobs()
    X[3, 1] = bad
    with pytest.raises(ValueError, match="NaN|infinity"):
        learner().fit(X, y)


@pytest.mark.parametrize("learner", LEARNERS)
def test_one_class_is_refused(learner):
    X, _ = blobs()
    with pytest.raises(ValueError, match="1 class"):
        learner().fit(X, np.zeros(len(X)))


@pytest.mark.parametrize("learner", LEARNERS)
def test_nothing_left_is_refused(learner):
    X, _ = blobs(6)
    with pytest.raises(ValueError, match="similar"):
        learner().fit(X, np.arange(6))
    with pytest.raises(ValueError, match="groups"):
        learner().fit(X, [0, 0, 0, 1, 1, 1], groups=[0, 0, 0, 1, 1, 1])


@pytest.mark.parametrize("learner", LEARNERS)
def test_empty_is_refused(learner):
    with pytest.raises(ValueError, match="0 sample"):
        learner().fit(np.empty((0, 3)), np.empty(0))


@pytest.mark.parametrize("learner", LEARNERS)
def test_sparse_is_refused_clearly(learner):
    X, y = blobs()
    with pytest.raises(TypeError, match="[Ss]parse"):
        learner().fit(sparse.csr_matrix(X), y)


@pytest.mark.parametrize("learner", LEARNERS)
def test_continuous_target_is_refused(learner):
    X, _ = blobs()
    with pytest.raises(ValueError, match="continuous"):
        learner().fit(X, X[:, 0])


HARD = {
    "one feature": lambda X, y: (X[:, :1], y),
    "all points equal": lambda X, y: (np.ones_like(X), y),
    "duplicates across classes": lambda X, y: (np.repeat(X[::2], 2, axis=0), y),
    "constant column": lambda X, y: (np.c_[X, np.full(len(X), 5.0)], y),
    "duplicated column": lambda X, y: (np.c_[X, X[:, 0]], y),
    "fewer rows than columns": lambda X, y: (np.tile(X[:6], 5), y[:6]),
    "one-sample classes": lambda X, y: (
        X,
        np.where(np.arange(len(X)) < 3, 10 + np.arange(len(X)), y),
    ),
    "tiny": lambda X, y: (X * 1e-12, y),
    "huge": lambda X, y: (X * 1e12, y),
    "tiny and huge columns": lambda X, y: (X * np.array([1e-12, 1.0, 1e12]), y),
    "near the largest float": lambda X, y: (X * 1e300, y),
    "far from the origin": lambda X, y: (X + 1e6, y),
    "an outlier": lambda X, y: (np.r_[X, [[1e8, 0, 0]]], np.r_[y, 0]),
    "integers": lambda X, y: ((10 * X).astype(int), y),
    "half precision": lambda X, y: (X.astype(np.float16), y),
    "single precision": lambda X, y: (X.astype(np.float32), y),
    "Fortran order": lambda X, y: (np.asfortranarray(X), y),
    "not contiguous": lambda X, y: (np.repeat(X, 2, axis=1)[:20, ::2], y[:20]),
    "strings": lambda X, y: (X, np.array(["no", "yes"])[y]),
    "booleans": lambda X, y: (X, y.astype(bool)),
    "lists": lambda X, y: (X.tolist(), y.tolist()),
    "four rows": lambda X, y: (X[:4], y[:4]),
}


@pytest.mark.parametrize("solver", ["lbfgs", "pgd", "apg", "sgd"])
@pytest.mark.parametrize("alpha", [1.0, -1.0])
@pytest.mark.parametrize("case", HARD)
def test_hard_data(case, alpha, solver):
    X, y = HARD[case](*blobs())
    fit_quietly(vc.ANN(alpha, solver=solver, max_iter=8, random_state=0), X, y)


@pytest.mark.parametrize("learner", [vc.PNCA, vc.NCA])
@pytest.mark.parametrize("case", HARD)
def test_hard_data_for_the_named_methods(case, learner):
    X, y = HARD[case](*blobs())
    fit_quietly(learner(max_iter=8), X, y)


def test_read_only_arrays():
    X, y = blobs()
    X.flags.writeable = y.flags.writeable = False
    before = X.copy()
    fit_quietly(vc.NCA(max_iter=5), X, y)
    np.testing.assert_array_equal(X, before)


def test_two_hundred_classes():
    X, y = blobs(600, 5, classes=200)
    nca = fit_quietly(vc.NCA(max_iter=10), X, y)
    assert nca.objective_ < nca.history_[0]


@pytest.mark.parametrize("exponent", [-10, -5, 0, 5, 10])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("gamma", [2.0**-10, 1.0, 2.0**10])
def test_range_of_alpha_and_gamma(exponent, sign, gamma):
    X, y = blobs()
    fit_quietly(vc.ANN(sign * 2.0**exponent, gamma, max_iter=10), X, y)


@pytest.mark.parametrize("alpha", [0.0, np.inf, -np.inf])
def test_limits_of_alpha(alpha):
    X, y = blobs()
    ann = fit_quietly(vc.ANN(alpha, max_iter=10), X, y)
    assert ann.objective_ <= ann.history_[0]


@settings(max_examples=40)
@given(
    n=st.integers(3, 30),
    d=st.integers(1, 5),
    classes=st.integers(2, 6),
    seed=st.integers(0, 2**31 - 1),
    exponents=st.lists(st.integers(-12, 12), min_size=5, max_size=5),
    duplicate=st.booleans(),
    alpha=st.sampled_from([-np.inf, -4.0, -0.1, 0.0, 0.1, 4.0, np.inf]),
    loss=st.sampled_from(["hinge", "squared_hinge", "logistic", "linear", "sigmoid"]),
    similar=st.sampled_from(["all", 1, 3]),
)
def test_anything_goes_or_says_why(n, d, classes, seed, exponents, duplicate, alpha, loss, similar):
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((n, d)) * 10.0 ** np.array(exponents[:d])
    if duplicate:
        X[1::2] = X[: len(X[1::2])]
    y = rng.randint(classes, size=n)
    learner = vc.ANN(alpha, loss=loss, similar=similar, max_iter=5)
    try:
        fit_quietly(learner, X, y)
    except ValueError as error:
        assert "1 class" in str(error) or "similar" in str(error)
