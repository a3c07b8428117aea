"""A fitted learner takes tensors wherever it takes arrays: also with a graph, in any precision."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_iris

torch = pytest.importorskip("torch")

import vicinal as vc  # noqa: E402
from vicinal.learners.fit_input import on_host  # noqa: E402


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def learner(iris):
    return vc.ANN(n_components=2, max_iter=500).fit(*iris)


class OnDevice:
    """What a CUDA tensor is to NumPy: nothing, until ``.detach().cpu()`` has been called."""

    def __init__(self, values):
        self.values, self.shape = values, values.shape

    def __array__(self, dtype=None, copy=None):
        raise TypeError("can't convert cuda:0 device type tensor to numpy")

    def __len__(self):
        return len(self.values)

    def __getattr__(self, name):
        return getattr(self.values, name)


def tensors_of(values):
    tensor = torch.as_tensor(values)
    return [tensor, tensor.clone().requires_grad_(), OnDevice(tensor)]


def test_transform_and_fit_transform(iris, learner):
    X, y = iris
    for tensor in tensors_of(X):
        assert_array_equal(learner.transform(tensor), learner.transform(X))
    graph = torch.as_tensor(X).requires_grad_()
    Z = vc.ANN(n_components=2, max_iter=500).fit_transform(graph, torch.as_tensor(y))
    assert_array_equal(Z, learner.transform(X))


def test_set_output(iris, learner):
    pytest.importorskip("pandas")
    graph = torch.as_tensor(iris[0]).requires_grad_()
    framed = vc.ANN(n_components=2, max_iter=500).set_output(transform="pandas").fit(*iris)
    assert_array_equal(framed.transform(graph).to_numpy(), learner.transform(iris[0]))


def test_pairs_and_metric(iris, learner):
    X, _ = iris
    pairs = np.stack([X[:20], X[60:80]], axis=1)
    for tensor in tensors_of(pairs):
        assert_array_equal(learner.pair_distance(tensor), learner.pair_distance(pairs))
        assert_array_equal(learner.pair_score(tensor), learner.pair_score(pairs))
    metric = learner.get_metric()
    for u, v in zip(tensors_of(X[0]), tensors_of(X[99]), strict=True):
        assert metric(u, v) == metric(X[0], X[99])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(iris, learner, dtype):
    half = torch.as_tensor(iris[0]).to(dtype)
    assert_array_equal(learner.transform(half), learner.transform(half.double().numpy()))


def test_float32_stays_float32(iris, learner):
    assert learner.transform(torch.as_tensor(iris[0]).float()).dtype == np.float32


def test_bad_tensors_are_refused_as_arrays_are(iris, learner):
    X = torch.as_tensor(iris[0])
    with pytest.raises(ValueError, match="features"):
        learner.transform(X[:, :2].requires_grad_())
    with pytest.raises(ValueError, match="NaN"):
        learner.transform((X / 0 * 0).requires_grad_())


def test_what_is_no_tensor_is_left_alone():
    for values in ([1.0], np.ones(2), "x", None):
        assert on_host(values) is values
