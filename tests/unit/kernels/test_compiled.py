"""The exponential by itself, where no normalization can hide an error; the cache on disk."""

import errno
import warnings

import numpy as np
import pytest
from numba.core import caching, config

from vicinal.kernels.cpu import jit
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


def add_one(x):
    return x + 1


@pytest.fixture
def cache_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    jit._warn_without_cache.cache_clear()
    yield tmp_path
    jit._warn_without_cache.cache_clear()


def cached(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("keep", [0, 7, 0.5])
def test_damaged_files_of_the_cache_are_replaced(cache_folder, suffix, keep):
    assert compiled(add_one)(1) == 2
    files = [path for path in cached(cache_folder) if path.suffix == suffix]
    assert files
    for path in files:
        whole = path.read_bytes()
        path.write_bytes(whole[: keep if keep == 0 or keep > 1 else int(keep * len(whole))])
    assert compiled(add_one)(1) == 2
    healed = compiled(add_one)
    assert healed(1) == 2
    assert sum(healed.stats.cache_hits.values()) == 1


def test_a_full_disk_costs_one_warning(cache_folder, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(caching.IndexDataCacheFile, "_save_data", full)
    with pytest.warns(RuntimeWarning, match="NUMBA_CACHE_DIR") as seen:
        results = [compiled(add_one)(x) for x in (1, 1.5)]
    assert results == [2, 2.5]
    assert len(seen) == 1


def test_where_nothing_can_be_written_functions_are_compiled_without_a_cache(
    cache_folder, monkeypatch
):
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    with pytest.warns(RuntimeWarning, match="NUMBA_CACHE_DIR") as seen:
        functions = [compiled(add_one), compiled(add_one)]
    assert len(seen) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [function(1) for function in functions] == [2, 2]
    assert cached(cache_folder) == []
