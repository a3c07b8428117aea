"""The exponential by itself, where no normalization can hide an error."""

import numpy as np
import pytest

from vicinal.kernels.cpu.jit import compiled, fast_exp


@compiled
def exponentials(x, out):
    for j in range(x.shape[0]):
        out[j] = fast_exp(x[j])


def exp(x):
    out = np.empty_like(x)
    exponentials(x, out)
    return out


@pytest.mark.parametrize(("dtype", "low", "tolerance"), [("f8", -708, 1e-13), ("f4", -87, 1e-6)])
def test_relative_error(dtype, low, tolerance):
    x = np.concatenate(
        [np.linspace(low + 1e-3, 80, 400_001), np.linspace(-1, 1, 10_001), [-0.0, 0.0]]
    ).astype(dtype)
    expected = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(exp(x), expected, rtol=tolerance)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_exact_values(dtype):
    x = np.array([0.0, -np.inf, -1e30, -1000.0], dtype=dtype)
    np.testing.assert_array_equal(exp(x), np.array([1, 0, 0, 0], dtype=dtype))


def test_at_the_joints_of_the_range_reduction():
    k = np.arange(-1000, 100)
    x = np.log(2.0) * (k + 0.5)
    x = np.concatenate([np.nextafter(x, -np.inf), x, np.nextafter(x, np.inf)])
    np.testing.assert_allclose(exp(x), np.exp(x), rtol=1e-13)


def test_it_cannot_be_called_uncompiled():
    with pytest.raises(NotImplementedError):
        fast_exp(0.0)
