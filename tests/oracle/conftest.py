"""The two reference data sets that every number of the oracle tests belongs to."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris


@pytest.fixture
def toy() -> tuple[np.ndarray, np.ndarray]:
    """Three Gaussian classes of 20 samples, 4 features; NumPy has frozen the legacy stream."""
    y = np.arange(60) % 3
    means = np.array([[0, 0, 0, 0], [2, 0, 1, 0], [0, 2, 0, 1]])
    X = np.random.RandomState(0).randn(60, 4) + means[y]
    np.testing.assert_allclose(X[0], [1.76405235, 0.40015721, 0.97873798, 2.2408932], atol=1e-8)
    np.testing.assert_allclose(X.sum(), 131.44340997, atol=1e-8)
    np.testing.assert_allclose((X**2).sum(), 447.13492132, atol=1e-8)
    return X, y


@pytest.fixture
def iris_z() -> tuple[np.ndarray, np.ndarray]:
    """Iris, standardized (ddof = 0). Rows 101 and 142 are equal, and many distances are ties."""
    X, y = load_iris(return_X_y=True)
    assert X.shape == (150, 4)
    np.testing.assert_array_equal(X[101], X[142])
    return (X - X.mean(axis=0)) / X.std(axis=0), y
