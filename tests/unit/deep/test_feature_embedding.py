"""Embeddings of features: their formulas, and which features have one."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from vicinal.deep.feature_embedding import (  # noqa: E402
    FeatureEmbedding,
    PeriodicCode,
    PiecewiseLinearCode,
    table_network,
)


@pytest.fixture
def X():
    torch.manual_seed(0)
    return torch.randn(200, 3)


def test_periodic_code_is_sines_and_cosines(X):
    code = PeriodicCode(3, 4)
    frequencies = code.frequencies.detach().numpy()
    phases = 2 * np.pi * X.numpy()[:, :, None] * frequencies
    expected = np.concatenate([np.sin(phases), np.cos(phases)], axis=2)
    np.testing.assert_allclose(code(X).detach().numpy(), expected, atol=1e-5)


def test_piecewise_code_adds_up_to_the_place_among_the_quantiles(X):
    code = PiecewiseLinearCode(X, 8)
    places = code(X).sum(dim=2).numpy()
    for column, place in zip(X.numpy().T, places.T, strict=True):
        edges = np.sort(column)[np.round(np.linspace(0, 1, 9) * 199).astype(int)]
        np.testing.assert_allclose(place, np.interp(column, edges, np.arange(9)), atol=1e-5)
    beyond = code(torch.full((1, 3), 50.0))
    assert (beyond[:, :, :-1] == 1).all()
    assert (beyond[:, :, -1] > 1).all()


def test_features_with_few_values_have_fewer_intervals():
    X = torch.stack([torch.arange(30.0), torch.arange(30.0) % 3], dim=1)
    code = PiecewiseLinearCode(X, 8)
    shares = code(X)[:, 1]
    assert (shares[:, 2:] == 0).all()
    np.testing.assert_array_equal(shares.sum(dim=1).numpy(), X[:, 1].numpy())


@pytest.mark.parametrize("kind", ["periodic", "piecewise"])
def test_features_of_two_values_stay_as_they_are(X, kind):
    flags = (X[:, :2] > 0).float()
    both = torch.cat([flags[:, :1], X, flags[:, 1:]], dim=1)
    embedding = FeatureEmbedding(both, kind, size=5)
    out = embedding(both)
    assert out.shape == (200, 3 * 5 + 2)
    assert embedding.n_outputs == out.shape[1]
    assert torch.equal(out[:, -2:], flags)
    alone = FeatureEmbedding(flags, kind)
    assert torch.equal(alone(flags), flags)


@pytest.mark.parametrize("kind", ["periodic", "piecewise", None])
@pytest.mark.parametrize("hidden", [(), (7, 6)])
def test_all_parameters_of_the_network_are_learned(X, kind, hidden):
    network = table_network(X, kind, hidden, 4, dropout=0.0)
    network(X).square().sum().backward()
    gradients = [parameter.grad for parameter in network.parameters()]
    assert all(gradient is not None for gradient in gradients)
    assert network(X).shape == (200, 4)
    assert torch.equal(network.double().eval()(X.double()).isfinite(), torch.ones(200, 4) == 1)
