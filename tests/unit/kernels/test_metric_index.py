"""Neighbors under several metrics are those of naive float64 loops, whatever is pruned."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from vicinal.kernels.cpu.metric_index import MetricIndex, SearchMetric


def naive(X, metric, queries, k, exclude=None):
    """Squared distances and rows (q, k); ties to the smaller row."""
    distances, rows = np.full((len(queries), k), np.inf), np.full((len(queries), k), -1)
    L = np.eye(metric.columns.stop - metric.columns.start) if metric.L is None else metric.L
    for i, x in enumerate(queries):
        d = np.sum(((X - x)[:, metric.columns] @ L.T) ** 2, axis=1)
        if exclude is not None and exclude[i] >= 0:
            d[exclude[i]] = np.inf
        order = np.argsort(d, kind="stable")[:k]
        order = order[np.isfinite(d[order])]
        distances[i, : len(order)], rows[i, : len(order)] = d[order], order
    return distances, rows


def random_metrics(rng, p):
    return [
        SearchMetric(slice(0, p), rng.normal(size=(p, p)) / p),
        SearchMetric(slice(1, p), rng.normal(size=(2, p - 1))),
        SearchMetric(
            slice(0, p), rng.normal(size=(3, p)) * 10.0 ** rng.uniform(-6, 0, size=(3, 1))
        ),
        SearchMetric(slice(0, p), None),
    ]


def clouds(name, rng, n, p):
    if name == "heavy tails":
        return rng.standard_cauchy(size=(n, p))
    if name == "clusters":
        return 100.0 * rng.normal(size=(8, p))[rng.integers(8, size=n)] + rng.normal(size=(n, p))
    if name == "units":
        return rng.normal(size=(n, p)) * 10.0 ** rng.uniform(-8, 8, p) + 1e4
    return rng.normal(size=(n, p))


@pytest.mark.parametrize("sort", [True, False])
@pytest.mark.parametrize("name", ["normal", "heavy tails", "clusters", "units"])
@pytest.mark.parametrize("p", [2, 7, 23])
def test_neighbors_are_those_of_naive_loops(name, p, sort):
    rng = np.random.default_rng(p)
    X, metrics = clouds(name, rng, 700, p), random_metrics(rng, p)
    queries = np.r_[X[:10], clouds(name, rng, 10, p), 1e3 * rng.normal(size=(2, p))]
    exclude = np.r_[np.arange(10), np.full(12, -1)]
    ks = [9, 40, 1, 75]
    distances, rows = MetricIndex(X, metrics, sort=sort).nearest(queries, ks, exclude)
    for q, (metric, k) in enumerate(zip(metrics, ks, strict=True)):
        expected, expected_rows = naive(X, metric, queries, k, exclude)
        assert_allclose(distances[q, :, :k], expected, rtol=1e-9)
        assert_array_equal(rows[q, :, :k], expected_rows)
        assert np.isinf(distances[q, :, k:]).all()
        assert (rows[q, :, k:] == -1).all()


def test_of_equal_rows_the_smaller_number_is_first_at_distance_zero():
    X = np.repeat(np.random.default_rng(0).normal(size=(30, 3)), 40, axis=0)
    X = np.ascontiguousarray(X[np.random.default_rng(1).permutation(1200)])
    metrics = random_metrics(np.random.default_rng(2), 3)
    distances, rows = MetricIndex(X, metrics).nearest(X[:5], [40] * 4)
    for q in range(4):
        for i in range(5):
            assert_array_equal(rows[q, i], np.flatnonzero((X[i] == X).all(axis=1)))
    assert not distances.any()


def test_every_class_has_its_own_neighbors():
    rng = np.random.default_rng(3)
    X, queries, offsets = (
        rng.normal(size=(400, 5)),
        rng.normal(size=(6, 5)),
        [0, 150, 150, 153, 400],
    )
    metric = SearchMetric(slice(0, 5), None)
    distances, rows = MetricIndex(X, [metric], np.array(offsets)).nearest(queries, [7])
    for c, (start, stop) in enumerate(pairwise(offsets)):
        expected, expected_rows = naive(X[start:stop], metric, queries, 7)
        assert_allclose(distances[0, c], expected, rtol=1e-12)
        assert_array_equal(rows[0, c], np.where(expected_rows < 0, -1, expected_rows + start))


def test_the_number_of_queries_and_of_threads_changes_nothing():
    rng = np.random.default_rng(4)
    X, queries = rng.normal(size=(900, 6)), rng.normal(size=(100, 6))
    index, ks = MetricIndex(X, random_metrics(rng, 6)), [5, 20, 20, 60]
    together = index.nearest(queries, ks)
    for threads in (1, 2):
        again = index.nearest(queries, ks, threads=threads)
        assert_array_equal(again.distances, together.distances)
    with ThreadPoolExecutor(4) as pool:
        alone = list(pool.map(lambda x: index.nearest(x[None], ks), queries))
    assert_array_equal(np.concatenate([a.distances for a in alone], axis=1), together.distances)
    assert_array_equal(np.concatenate([a.ids for a in alone], axis=1), together.ids)


@pytest.mark.parametrize("scale", [0.0, 1e-300, 1e-160, 1e100])
def test_extreme_scales_are_searched_too(scale):
    X = scale * np.random.default_rng(5).normal(size=(100, 3))
    metric = SearchMetric(slice(0, 3), np.eye(3))
    distances, rows = MetricIndex(X, [metric]).nearest(X[:4], [5])
    expected, expected_rows = naive(X, metric, X[:4], 5)
    assert_allclose(distances[0], expected, rtol=1e-12)
    assert_array_equal(rows[0], expected_rows)


def test_an_outlier_does_not_hide_neighbors():
    X = np.random.default_rng(6).normal(size=(200, 3))
    X[17] = 1e60
    metric = SearchMetric(slice(0, 3), np.eye(3))
    queries = np.r_[X[:3], X[17:18]]
    distances, rows = MetricIndex(X, [metric]).nearest(queries, [5])
    expected, expected_rows = naive(X, metric, queries, 5)
    assert_array_equal(rows[0, :3], expected_rows[:3])
    assert rows[0, 3, 0] == 17
    assert_allclose(distances[0], expected, rtol=1e-9)


def test_queries_whose_distances_overflow_are_refused():
    index = MetricIndex(np.eye(3), [SearchMetric(slice(0, 3), np.eye(3))])
    with pytest.raises(ValueError, match="clean or rescale"):
        index.nearest(np.full((1, 3), 1e200), [1])


def test_memory_is_about_what_is_said():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(5000, 20))
    metrics = [SearchMetric(slice(0, 20), rng.normal(size=(20, 20))) for _ in range(6)]
    index = MetricIndex(X, metrics)
    used = sum(array.nbytes for array in index._codes)
    assert 0.5 * used < MetricIndex.memory(5000, metrics) < 2 * used
