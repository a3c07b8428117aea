"""The fast kernel of logistic pairs against the readable one."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from vicinal.kernels.cpu.logistic_pairs import LogisticPairs, ReferenceLogisticPairs


def assert_same(fast, slow):
    assert_allclose(fast.value, slow.value, rtol=1e-11)
    assert_allclose(fast.bias_slope, slow.bias_slope, rtol=1e-8, atol=1e-300)
    size = np.abs(slow.laplacian).max()
    assert_allclose(fast.laplacian, slow.laplacian, rtol=1e-8, atol=1e-10 * size)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("bias", [-30.0, 0.5, 800.0])
@pytest.mark.parametrize(("n", "m"), [(6, 1), (131, 5), (700, 2)])
def test_matches_the_reference(n, m, bias, symmetric, monkeypatch):
    rng = np.random.default_rng(n)
    codes = np.sort(rng.integers(3, size=n))
    offsets = np.searchsorted(codes, np.arange(4))
    Z, V = rng.standard_normal((n, m)), rng.standard_normal((n, 3))
    Z[0] = Z[-1]
    weights = (0.3, 2.0)
    slow = ReferenceLogisticPairs(offsets, weights).sweep(Z, V, bias, symmetric=symmetric)
    for n_threads in (1, 3):
        monkeypatch.setattr("numba.get_num_threads", lambda n=n_threads: n)
        assert_same(LogisticPairs(offsets, weights).sweep(Z, V, bias, symmetric=symmetric), slow)


def test_hopeless_and_perfect_pairs_keep_their_digits():
    """Losses of 1000 and of e⁻²⁰ a pair: neither overflows nor vanishes."""
    offsets, far = np.array([0, 200, 400]), np.repeat([0.0, np.sqrt(40.0)], 200)[:, None]
    for bias in (20.0, -1000.0):
        fast, slow = (
            kernel(offsets, (1.0, 1.0)).sweep(far, far, bias, symmetric=True)
            for kernel in (LogisticPairs, ReferenceLogisticPairs)
        )
        assert_allclose(fast.value, slow.value, rtol=1e-11)
        assert_allclose(fast.bias_slope, slow.bias_slope, rtol=1e-8, atol=1e-12 * slow.value)
        n_similar = 200 * 199
        expected = (n_similar + 200**2) * np.exp(-20.0) if bias > 0 else n_similar * 1000.0
        assert_allclose(fast.value, expected, rtol=1e-6)
