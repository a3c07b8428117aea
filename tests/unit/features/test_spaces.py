from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.decomposition import PCA
from sklearn.model_selection import cross_val_score

import vicinal as vc
from vicinal.features.expansion import Expansion
from vicinal.features.hat_basis import HatBasis
from vicinal.features.kernel_basis import KernelBasis
from vicinal.features.spaces import MAX_FEATURES, SpaceName, make_spaces

NAMES = get_args(SpaceName)
STRAIGHT = [name for name in NAMES if "kernel" not in name]


def place(name, X, codes):
    """The samples in the space of that name, and its axes."""
    hats = HatBasis.of(X) if name == "unfolded" else None
    kernel = KernelBasis.of(X) if "kernel" in name else None
    expansion = Expansion(X.shape[1], hats, kernel)
    columns = expansion.expand(X)
    space = make_spaces(columns, codes, expansion)[name]
    return space.transform(columns), space.axes


@pytest.fixture
def samples():
    rng = np.random.RandomState(0)
    codes = np.repeat([0, 1, 2], 400)
    X = rng.randn(len(codes), 5) @ (np.eye(5) + 0.2 * rng.randn(5, 5)) + codes[:, None]
    return (X + 100.0) * [1.0, 10.0, 0.1, 3.0, 1.0], codes


def test_standardized_features_have_unit_variance(samples):
    X, codes = samples
    Z, _ = place("standardized", X, codes)
    np.testing.assert_allclose(Z.mean(axis=0), 0.0, atol=1e-10)
    np.testing.assert_allclose(Z.std(axis=0), 1.0)


def test_centered_features_keep_the_ratios_of_distances(samples):
    X, codes = samples
    Z, _ = place("centered", X, codes)
    before = np.linalg.norm(X[:50, None] - X[:50], axis=2)
    after = np.linalg.norm(Z[:50, None] - Z[:50], axis=2)
    np.testing.assert_allclose(after, before / X.std(axis=0).max(), atol=1e-10)


def test_whitened_features_have_unit_covariance_within_classes(samples):
    X, codes = samples
    Z, _ = place("whitened", X, codes)
    within = sum(np.cov(Z[codes == c].T, bias=True) for c in range(3)) / 3
    np.testing.assert_allclose(within, np.eye(5), atol=0.05)  # Ledoit-Wolf shrinks


# A whitened space has more axes than there are differences between classes: the others are any.
@pytest.mark.parametrize("name", [*STRAIGHT, "kernel"])
@pytest.mark.parametrize("unit", [1e-150, 1e150])
def test_the_unit_of_the_data_does_not_matter(samples, name, unit):
    X, codes = samples
    distances = [
        np.linalg.norm(Z[:50, None] - Z[:50], axis=2)
        for Z, _ in (place(name, D, codes) for D in (X, X * unit))
    ]
    np.testing.assert_allclose(distances[1], distances[0], rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize("name", STRAIGHT)
def test_constant_columns_count_nothing(samples, name):
    X, codes = samples
    flat = np.column_stack([X, np.full(len(X), 0.1)])
    _, axes = place(name, flat, codes)
    assert np.isfinite(axes).all()
    np.testing.assert_array_equal(axes[:, -1], 0.0)
    assert not place(name, np.ones((6, 2)), np.repeat([0, 1], 3))[1].any()


def test_the_hats_of_every_feature_vary_equally(samples):
    X, codes = samples
    basis = HatBasis.of(X)
    Z, axes = place("unfolded", X, codes)
    assert not axes[:, :5].any()
    variances = np.bincount(basis.owners[5:], weights=Z.var(axis=0))
    np.testing.assert_allclose(variances, 1.0)


def test_frames_of_the_features_do_not_look_at_hats(samples):
    X, codes = samples
    basis = HatBasis.of(X)
    columns = basis.expand(X)
    alone = make_spaces(X, codes, Expansion(X.shape[1]))
    beside = make_spaces(columns, codes, Expansion(X.shape[1], basis))
    for name, space in alone.items():
        np.testing.assert_array_equal(beside[name].transform(columns), space.transform(X))


def test_many_features_become_the_principal_components(samples):
    rng = np.random.RandomState(1)
    X = rng.randn(200, 100) * np.linspace(3.0, 0.1, 100)
    Z, _ = place("centered", X, rng.randint(2, size=200))
    scores = PCA(MAX_FEATURES).fit_transform(X) / X.std(axis=0).max()
    np.testing.assert_allclose(np.abs(Z), np.abs(scores), atol=1e-8)


def test_principal_components_are_not_blown_up():
    """Equal variances drown what matters: the classifier must see that the scales are good."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:500], y[:500]
    scores = {
        whiten: cross_val_score(
            vc.ANNClassifier(random_state=0), PCA(50, whiten=whiten).fit_transform(X), y, cv=3
        ).mean()
        for whiten in (False, True)
    }
    assert scores[False] > scores[True] + 0.01


def test_features_of_unequal_scale_are_not_taken_as_they_are():
    X, y = load_iris(return_X_y=True)
    X = X * [1.0, 1e3, 1.0, 1e-3]
    assert cross_val_score(vc.ANNClassifier(random_state=0), X, y, cv=3).mean() > 0.94
