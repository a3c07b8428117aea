"""embed: evaluation mode, batches, precision and the length of embeddings."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from vicinal.deep import embed, network  # noqa: E402


@pytest.fixture
def images():
    return torch.randn(7, 1, 4, 4, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def module():
    torch.manual_seed(0)
    layers = (
        torch.nn.Conv2d(1, 2, 3),
        torch.nn.BatchNorm2d(2),
        torch.nn.Dropout(),
        torch.nn.Flatten(),
    )
    return torch.nn.Sequential(*layers)


def test_batches_and_the_mode_of_the_module_change_nothing(images, module, monkeypatch):
    module.train()
    expected = embed(module, images)
    monkeypatch.setattr(network, "BATCH", 3)
    np.testing.assert_allclose(embed(module, images), expected, rtol=1e-5)
    assert module.training
    np.testing.assert_allclose(embed(module.eval(), images), expected, rtol=1e-5)
    with torch.no_grad():
        Z = module(images).numpy()
    np.testing.assert_allclose(embed(module, images, normalize=False), Z, rtol=1e-5)
    np.testing.assert_allclose(expected, Z / np.linalg.norm(Z, axis=1)[:, None], rtol=1e-5)


def test_arrays_get_the_precision_of_the_module(images, module):
    expected = embed(module, images)
    wide = embed(module, images.double().numpy())
    np.testing.assert_array_equal(wide, expected)
    assert expected.dtype == np.float32
    assert embed(module.double(), images).dtype == np.float64
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = embed(module.float(), images)
    assert half.dtype == np.float32
    np.testing.assert_allclose(half, expected, atol=0.05)


def test_integers_stay_integers():
    words = torch.tensor([[0, 1], [2, 1]])
    module = torch.nn.EmbeddingBag(3, 4)
    assert embed(module, words).shape == (2, 4)


def test_an_embedding_must_be_a_vector(images):
    with pytest.raises(ValueError, match="module must return"):
        embed(torch.nn.Identity(), images)
