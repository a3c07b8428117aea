"""NCA, PNCA and the paper's Remark 5, corrected.

Remark 5 calls ANN with α = 1 and ℓ(x) = x equivalent to NCA. Row by row the two margins are
monotone transformations of each other; summed over the rows they are different functions. What is
NCA exactly is α = γ = 1 with the *sigmoid* loss and *plain* soft averages:

    1 − p_i = B_i/(A_i + B_i) = σ(ln B_i − ln A_i) = σ(s̃_i − t̃_i)

The oracles are scikit-learn's NCA, reference numbers of an independent implementation, and the
formulas of the papers written out.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.neighbors import NeighborhoodComponentsAnalysis

from vicinal.kernels import make_kernel
from vicinal.learners.ann import ANN
from vicinal.learners.nca import NCA
from vicinal.learners.pnca import PNCA
from vicinal.objective.losses import get_loss
from vicinal.objective.neighbor_objective import NeighborObjective, plain_shift
from vicinal.objective.neighbor_sets import build_comparisons
from vicinal.objective.parametrization import Factor

BACKENDS = pytest.mark.parametrize("backend", ["numpy", "numba"])

# ---------------------------------------------------------------------------------------- data


def toy():
    """60 samples of 3 classes in 4 dimensions from NumPy's frozen legacy stream."""
    rng = np.random.RandomState(0)
    y = np.arange(60) % 3
    centers = np.array([[0, 0, 0, 0], [2, 0, 1, 0], [0, 2, 0, 1]])
    return rng.randn(60, 4) + centers[y], y


def iris_z():
    X, y = load_iris(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def uneven():
    """Classes of very different sizes, one of a single sample, in no order."""
    rng = np.random.default_rng(7)
    y = rng.permutation(np.repeat([3, 0, 9, 4], [20, 7, 1, 2]))
    return rng.standard_normal((30, 5)), y


DATA = {"toy": toy, "iris": iris_z, "uneven": uneven}
EVERY = pytest.mark.parametrize("data", DATA)


def test_toy_is_the_data_of_the_reference_numbers():
    X, _ = toy()
    assert_allclose([X.sum(), (X**2).sum()], [131.44340997, 447.13492132], rtol=1e-10)
    assert_allclose(X[0], [1.76405235, 0.40015721, 0.97873798, 2.2408932], rtol=1e-8)


# ------------------------------------------------------------------------------------- the code


def sorted_by_class(X, y):
    order = np.argsort(y, kind="stable")
    _, sizes = np.unique(y, return_counts=True)
    return X[order] - X.mean(axis=0), np.concatenate([[0], np.cumsum(sizes)]), y[order]


def objective(X, y, *, loss="sigmoid", alpha=1.0, plain=True, backend="numpy"):
    X, offsets, _ = sorted_by_class(X, y)
    comparisons = build_comparisons(X, offsets)
    return NeighborObjective(
        X=X,
        comparisons=comparisons,
        kernel=make_kernel(comparisons, backend),
        parametrization=Factor(),
        loss=get_loss(loss),
        alpha=alpha,
        gamma=1.0,
        shift=plain_shift(comparisons, alpha) if plain else np.zeros(len(X)),
        weights=np.ones(len(X)),
        pull=np.zeros((X.shape[1], X.shape[1])),
    )


# ------------------------------------------------------------------------------------- oracles


def sklearn_nca(A, X, y):
    """f(A) = Σ p_i and df/dA by scikit-learn, which maximizes it."""
    nca = NeighborhoodComponentsAnalysis()
    nca.n_iter_ = 0
    f, gradient = nca._loss_grad_lbfgs(A.ravel(), X, y[:, None] == y[None, :])
    return f, gradient.reshape(A.shape)


def probabilities(A, X, y, alpha=1.0):
    """p_i of Eq. 37 and 1 − p_i, by its formula, of the rows that have a similar sample."""
    right, wrong = [], []
    for i in range(len(X)):
        d = np.sum(((X - X[i]) @ A.T) ** 2, axis=1)
        similar = [j for j in range(len(X)) if j != i and y[j] == y[i]]
        others = [j for j in range(len(X)) if y[j] != y[i]]
        d -= np.delete(d, i).min()  # the same factor in both, which then cannot both vanish
        if similar:
            own = sum(np.exp(-alpha * d[j]) for j in similar) ** (1 / alpha)
            foreign = sum(np.exp(-d[j]) for j in others)
            right.append(own / (own + foreign))
            wrong.append(foreign / (own + foreign))
    return np.array(right), np.array(wrong)


def transformations(d):
    rng = np.random.default_rng(d)
    return [
        np.eye(d),
        rng.standard_normal((d, d)),
        0.3 * rng.standard_normal((2, d)),  # 2m ≥ d or 2m < d
        rng.standard_normal((1, d)),
        3.0 * rng.standard_normal((d - 1, d)),
        1e-3 * rng.standard_normal((d, d)),
    ]


def cosine(G, H):
    return np.vdot(G, H) / np.linalg.norm(G) / np.linalg.norm(H)


# ------------------------------------------------------------------------------------ NCA itself


@BACKENDS
@EVERY
def test_value_and_gradient_are_those_of_scikit_learn(data, backend):
    X, y = DATA[data]()
    J = objective(X, y, backend=backend)
    for A in transformations(X.shape[1]):
        value, gradient = J.value_and_gradient(A)
        f, df = sklearn_nca(A, X - X.mean(axis=0), y)
        assert_allclose(J.n_rows - value, f, rtol=1e-10)
        assert np.linalg.norm(gradient + df) <= 1e-10 * np.linalg.norm(df)


@BACKENDS
@pytest.mark.parametrize(
    ("data", "f", "norm", "g"),
    [
        (toy, 36.2502979618, 4.4566873038, -44.30044430),
        (iris_z, 122.0912646445, 25.1314128316, -35.65528972),
    ],
)
def test_reference_numbers(data, f, norm, g, backend):
    X, y = data()
    value, gradient = objective(X, y, backend=backend).value_and_gradient(np.eye(4))
    assert_allclose(len(X) - value, f, rtol=1e-11)
    assert_allclose(np.linalg.norm(gradient), norm, rtol=1e-10)
    log_value, _ = objective(X, y, loss="logistic", backend=backend).value_and_gradient(np.eye(4))
    assert_allclose(-log_value, g, rtol=1e-9)


@EVERY
def test_rotations_change_nothing(data):
    X, y = DATA[data]()
    J = objective(X, y)
    d = X.shape[1]
    A = np.random.default_rng(1).standard_normal((d, d))
    Q, _ = np.linalg.qr(np.random.default_rng(2).standard_normal((d, d)))
    value, gradient = J.value_and_gradient(A)
    rotated_value, rotated_gradient = J.value_and_gradient(Q @ A)
    assert_allclose(rotated_value, value, rtol=1e-11)
    assert_allclose(rotated_gradient, Q @ gradient, rtol=0, atol=1e-10 * np.abs(gradient).max())


@BACKENDS
@EVERY
def test_at_zero_every_neighbor_is_as_likely_as_any_other(data, backend):
    X, y = DATA[data]()
    J = objective(X, y, backend=backend)
    value, gradient = J.value_and_gradient(np.zeros((3, X.shape[1])))
    f = sum((np.sum(y == label) - 1) / (len(y) - 1) for label in y)
    assert_allclose(J.n_rows - value, f, rtol=1e-12)
    assert_array_equal(gradient, 0.0)


def test_far_apart_everything_is_certain():
    X, y = toy()
    value, _ = objective(X + 1e3 * y[:, None], y).value_and_gradient(np.eye(4))
    assert value < 1e-12


@BACKENDS
@EVERY
def test_logistic_loss_is_the_logarithmic_form_of_nca(data, backend):
    """Plain, α = γ = 1: J = −Σ ln p_i, the other objective of the NCA paper."""
    X, y = DATA[data]()
    J = objective(X, y, loss="logistic", backend=backend)
    for A in transformations(X.shape[1])[:4]:
        expected = -np.log(probabilities(A, X, y)[0]).sum()
        assert_allclose(J.value_and_gradient(A)[0], expected, rtol=1e-10)


# ------------------------------------------------------------------------------------------ PNCA


@BACKENDS
@pytest.mark.parametrize("alpha", [1.0, 0.1, 0.5, 2.0, 7.0])
@pytest.mark.parametrize("data", ["toy", "uneven"])
def test_equation_37(data, alpha, backend):
    X, y = DATA[data]()
    J = objective(X, y, alpha=alpha, backend=backend)
    for A in transformations(X.shape[1])[:4]:
        _, wrong = probabilities(A, X, y, alpha)
        assert_allclose(J.value_and_gradient(A)[0], wrong.sum(), rtol=1e-10)


def test_alpha_matters():
    """Otherwise the test above would be that of NCA five times."""
    X, y = toy()
    values = [
        objective(X, y, alpha=alpha).value_and_gradient(np.eye(4))[0] for alpha in (0.5, 1.0, 2.0)
    ]
    assert min(abs(np.diff(values))) > 0.5


@pytest.mark.parametrize("alpha", [0.1, 1.0, 7.0])
def test_alpha_changes_the_weight_of_dissimilar_samples_not_their_shares(alpha):
    """α is to heed dissimilar samples that NCA ignores: all of them together, it does.

    ∂(1 − p_i)/∂d_il = −p_i (1 − p_i) e^{−d_il}/B_i: the weight depends on α through p_i, the shares
    of the samples l are a softmax of their distances, whatever α is.
    """
    X, _, y = sorted_by_class(*toy())
    others, h = np.flatnonzero(y != y[0]), 1e-5
    d = ((X[others] - X[0]) ** 2).sum(axis=1)

    def row_0(number, distance):
        """1 − p_0, one of the others moved to that distance."""
        moved = X.copy()
        away = X[others[number]] - X[0]
        moved[others[number]] = X[0] + away * np.sqrt(distance / d[number])
        return objective(moved, y, alpha=alpha).value_and_gradient(np.eye(4), np.array([0]))[0]

    slopes = np.array([row_0(k, d[k] + h) - row_0(k, d[k] - h) for k in range(len(d))]) / (2 * h)
    right, wrong = probabilities(np.eye(4), X, y, alpha)
    assert_allclose(slopes.sum(), -len(X) * right[0] * wrong[0], rtol=1e-4)
    expected = np.exp(-d) / np.exp(-d).sum()
    assert_allclose(slopes / slopes.sum(), expected, rtol=1e-3, atol=1e-6)


# ------------------------------------------------------------------------ Remark 5, as it is worded


@pytest.mark.parametrize("plain", [False, True])
def test_the_linear_loss_is_not_nca(plain):
    X, y = toy()
    linear, sigmoid = objective(X, y, loss="linear", plain=plain), objective(X, y)
    A = np.eye(4)
    _, df = sklearn_nca(A, X, y)
    assert cosine(sigmoid.value_and_gradient(A)[1], -df) > 1 - 1e-12
    assert cosine(linear.value_and_gradient(A)[1], -df) < 0.98


def test_the_linear_loss_ranks_metrics_differently():
    """Two metrics of which NCA prefers the one and the linear loss the other."""
    X, y = toy()
    linear, sigmoid = objective(X, y, loss="linear", plain=False), objective(X, y)
    rng = np.random.default_rng(0)
    candidates = [rng.standard_normal((4, 4)) for _ in range(20)]
    by_linear = np.array([linear.value_and_gradient(A)[0] for A in candidates])
    by_nca = np.array([-sklearn_nca(A, X, y)[0] for A in candidates])
    assert_allclose([sigmoid.value_and_gradient(A)[0] - 60 for A in candidates], by_nca)
    disagree = np.subtract.outer(by_linear, by_linear) * np.subtract.outer(by_nca, by_nca) < 0
    assert disagree.any()


def test_row_by_row_the_linear_loss_is_nca_up_to_a_monotone_transformation():
    """The true part of the remark: σ of each margin is 1 − p_i, each row's gradient is parallel."""
    X, y = toy()
    linear, sigmoid = objective(X, y, loss="linear"), objective(X, y)
    X_sorted, _, y_sorted = sorted_by_class(X, y)
    A = np.eye(4)
    p, q = probabilities(A, X_sorted, y_sorted)
    for i in range(60):
        z, dz = linear.value_and_gradient(A, np.array([i]))  # 60 times those of row i
        _, dq = sigmoid.value_and_gradient(A, np.array([i]))
        assert_allclose(1 / (1 + np.exp(-z / 60)), q[i], rtol=1e-10)
        assert_allclose(dq, p[i] * q[i] * dz, rtol=1e-9, atol=1e-12)
    assert max(p * q) > 3 * min(p * q)  # so that the sum over rows points elsewhere


# --------------------------------------------------------------------------------- the learners


def test_the_learner_maximizes_the_function_of_scikit_learn():
    X, y = iris_z()
    nca = NCA(init="identity", backend="numpy").fit(X, y)
    f, _ = sklearn_nca(nca.components_, X, y)
    assert_allclose(len(X) - nca.objective_, f, rtol=1e-9)
    assert_allclose(len(X) - nca.history_[0], 122.0912646445, rtol=1e-9)
    assert f > 147.9  # p_i near 0 or 1, and two or fewer of them near 0


def test_the_learner_is_a_configuration_of_the_framework():
    X, y = toy()
    shared = {"max_iter": 500, "backend": "numpy", "init": "identity"}
    nca = NCA(**shared).fit(X, y)
    ann = ANN(alpha=1.0, loss="sigmoid", plain=True, regularization=0.0, **shared).fit(X, y)
    pnca = PNCA(alpha=1.0, **shared).fit(X, y)
    assert_array_equal(nca.components_, ann.components_)
    assert_array_equal(nca.components_, pnca.components_)


@pytest.mark.parametrize("alpha", [0.5, 3.0])
def test_the_objective_of_the_pnca_learner_is_equation_37(alpha):
    """At the start, where no p_i is 0 or 1 yet, and at the end."""
    X, y = toy()
    pnca = PNCA(alpha=alpha, init="identity", max_iter=500, backend="numpy").fit(X, y)
    assert_allclose(pnca.history_[0], probabilities(np.eye(4), X, y, alpha)[1].sum(), rtol=1e-9)
    _, wrong = probabilities(pnca.components_, X, y, alpha)
    assert_allclose(pnca.objective_, wrong.sum(), rtol=1e-8)
    assert pnca.objective_ < pnca.history_[0]
